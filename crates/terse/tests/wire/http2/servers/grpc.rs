//! gRPC through terse, by Google's implementations for Go and for Python: every kind of call, deadlines, cancellation, errors.
//!
//! `TERSE_GRPC_GO` names the program that `go build` makes in `tests/wire/http2/grpc`, `TERSE_GRPC_PYTHON` a Python that has
//! grpcio, as `scripts/grpc` makes both. Implementations that are missing are left out, with a message.

use super::super::support::program::{Said, run};
use super::{Program, Secret, figure, proxy};
use std::path::{Path, PathBuf};

/// An implementation of gRPC.
struct Implementation {
    name: &'static str,
    program: PathBuf,
    /// Arguments ahead of those that both take.
    words: Vec<&'static str>,
}

/// Implementations that are there.
fn implementations() -> Vec<Implementation> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/http2/grpc/peer.py");
    let both = [("Go", "TERSE_GRPC_GO", vec![]), ("Python", "TERSE_GRPC_PYTHON", vec![script])];
    let there = both.into_iter().filter_map(|(name, variable, words)| {
        let program = std::env::var_os(variable).map(PathBuf::from).filter(|program| program.is_file());
        if program.is_none() {
            println!("left out: {variable} names no program, so gRPC by {name} is not tested");
        }
        Some(Implementation { name, program: program?, words })
    });
    there.collect()
}

impl Implementation {
    fn serve(&self, secure: bool, secret: &Secret) -> Program {
        let address = "{address}";
        let words = [&self.words[..], &["server", address], if secure { &["a.pem"][..] } else { &[] }].concat();
        Program::run(self.name, &self.program, &words, secret)
    }

    fn ask(&self, address: &str, root: Option<&Path>) -> Said {
        let root: Vec<&str> = root.iter().filter_map(|root| root.to_str()).collect();
        run(&self.program, &[&self.words[..], &["client", address], &root].concat())
    }
}

/// Output of a client that has got all that it shall.
const TOLD: &str = "\
unary hello [ahead] [5] OK
large true OK
empty 0 OK
client streaming 1000 1000000 OK
server streaming 300 3000000 true
both ways 200 true
error NotFound no such thing
no method Unimplemented
late error first Aborted too late: 100 % über
deadline told true OK
deadline DeadlineExceeded true
cancellation Canceled true
together 500
";

fn calls(words: &str, secure: bool) {
    let secret = Secret::new();
    let all = implementations();
    for server in &all {
        let program = server.serve(secure, &secret);
        // All calls of a client are on one connection: streams that end unfinished are tested here.
        let terse = proxy(&format!(" http-reuse always\n server one {} {words}", program.address), &secret);
        let root = terse.path("root.pem");
        for client in &all {
            for (bind, root) in [("web", None), ("secure", Some(&*root))] {
                let said = client.ask(&terse.address(bind).to_string(), root);
                let what = format!("{}'s client at {bind}, {}'s server: {}", client.name, server.name, said.stderr);
                assert_eq!(said.stdout, TOLD, "{what}");
            }
        }
        let made = figure(&terse, "connect");
        assert!(made <= 40, "{}: {made} connections", server.name);
        terse.end();
    }
}

#[test]
fn every_kind_of_call_goes_over_clear_text() {
    calls("proto h2", false);
}

#[test]
fn every_kind_of_call_goes_over_tls() {
    calls("ssl ca-file root.pem sni str(localhost) alpn h2", true);
}
