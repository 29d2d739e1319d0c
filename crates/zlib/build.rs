//! Compiles the functions with variable arguments, which Rust cannot define.

fn main() {
    println!("cargo:rerun-if-changed=src/printf.c");
    cc::Build::new().file("src/printf.c").compile("terse_z_printf");
}
