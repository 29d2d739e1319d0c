//! The kernels of the GPU engine, for a processor.

fn main() {
    let sources = "../card/src/cuda";
    println!("cargo::rerun-if-changed={sources}/kernel.cu");
    println!("cargo::rerun-if-changed={sources}/emulate.c");
    println!("cargo::rerun-if-changed={sources}/emulate.cpp");
    let mut build = cc::Build::new();
    // Warnings would be of words that only a GPU's compiler knows; memory is read as bytes and as words, as on a GPU.
    build.opt_level(2).warnings(false).flag("-fno-strict-aliasing").include(sources).file(format!("{sources}/emulate.c"));
    build.compile("terse_emulate");
}
