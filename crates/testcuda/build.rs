//! The kernels of the GPU engine, for a processor.

fn main() {
    let sources = "../card/src/cuda";
    println!("cargo::rerun-if-changed={sources}/kernel.cu");
    println!("cargo::rerun-if-changed={sources}/emulate.cpp");
    // Warnings would be of declarations that only a GPU's compiler understands.
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).warnings(false).include(sources).file(format!("{sources}/emulate.cpp"));
    build.compile("terse_emulate");
}
