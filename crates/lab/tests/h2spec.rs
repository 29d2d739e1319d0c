//! The origin speaks HTTP/2 as h2spec wants it: this checks `terse_http::h2`, which the proxy speaks, too.
//!
//! H2SPEC names the program, as `scripts/h2spec` builds it; without it this test is left out.

use std::path::Path;
use std::process::Command;
use terse_lab::origin::{Options, Origin};

#[test]
fn all_of_h2spec_holds() {
    let Some(program) = std::env::var_os("H2SPEC").filter(|program| Path::new(program).is_file()) else {
        return eprintln!("h2spec was left out: H2SPEC does not name it.");
    };
    let origin = Origin::start(&Options { only_http2: true, ..Options::local(1) }).unwrap();
    let port = origin.addresses()[0].port().to_string();
    for mode in [&[][..], &["--strict"]] {
        let run = Command::new(&program).args(["-h", "127.0.0.1", "-p", &port, "-o", "5"]).args(mode).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        let last = text.lines().last().unwrap_or_default();
        assert!(run.status.success() && last.contains(" 0 skipped, 0 failed"), "{text}");
        let tests = last.split(' ').next().and_then(|tests| tests.parse::<u32>().ok());
        assert!(tests.is_some_and(|tests| tests >= 140), "{last}");
    }
}
