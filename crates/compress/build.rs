//! Records the versions of the coders' libraries that are built in, as the lock file has them.

fn main() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    println!("cargo:rerun-if-changed={path}");
    let lock = std::fs::read_to_string(path).unwrap_or_default();
    for (package, variable) in
        [("zlib-rs", "ZLIB_RS_VERSION"), ("libdeflate-sys", "LIBDEFLATE_VERSION"), ("mbrotli", "MBROTLI_VERSION")]
    {
        println!("cargo:rustc-env={variable}={}", version(&lock, package).unwrap_or("unknown"));
    }
}

/// Of the first package of that name.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, behind) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    behind.split('"').next()
}
