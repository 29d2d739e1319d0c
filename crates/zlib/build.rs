//! Compiles the functions with variable arguments, which Rust cannot define, and names the library.

fn main() {
    println!("cargo:rerun-if-changed=src/printf.c");
    cc::Build::new().file("src/printf.c").compile("terse_z_printf");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libz.so.1");
}
