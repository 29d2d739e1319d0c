//! Scripts that HAProxy's users have, by their own tests: haproxy-auth-request and haproxy-lua-cors.
//!
//! Neither is part of this repository. `TERSE_AUTH_REQUEST` and `TERSE_LUA_CORS` name the folders, the first with its submodule,
//! and `VTEST` names VTest. Tests without a name are left out, with a message. haproxy runs the same where it is installed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{create_dir, read_dir, write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::client::{Client, Response};
use support::program::find;
use support::proxy::DEFAULTS;
use support::server::{Server, ok};
use support::{PATIENCE, Terse};
use tempfile::TempDir;

#[test]
fn tests_of_auth_request_pass() {
    let Some(folder) = named("TERSE_AUTH_REQUEST", "haproxy-auth-request", "auth-request.lua") else { return };
    let Some(vtest) = named("VTEST", "VTest", "") else { return };
    let http = folder.join("haproxy-lua-http/http.lua");
    assert!(http.is_file(), "{}: git submodule update --init", http.display());
    let run = |program: &Path| Bed::new(&vtest, program).run(&folder.join("test"));
    let mut asked: BTreeSet<String> = AUTH_REQUEST.map(String::from).into();
    for (name, result) in find("haproxy").map(|haproxy| run(&haproxy)).unwrap_or_default() {
        match result {
            Ok(()) => _ = asked.insert(name),
            Err(why) if asked.remove(&name) => eprintln!("left out, for it does not pass on haproxy: {name}: {why}"),
            Err(_) => {}
        }
    }
    assert!(!asked.is_empty(), "no test passes on haproxy");
    let results = run(Path::new(env!("CARGO_BIN_EXE_terse")));
    let passed: BTreeSet<&String> = results.iter().filter(|(_, result)| result.is_ok()).map(|(name, _)| name).collect();
    let missing: Vec<&String> = asked.iter().filter(|name| !passed.contains(name)).collect();
    for name in &missing {
        let why = results.get(*name).and_then(|result| result.as_ref().err());
        eprintln!("{name}: {}", why.map_or("it is not there", String::as_str));
    }
    assert!(missing.is_empty(), "{} of {} do not pass: {missing:?}", missing.len(), asked.len());
    eprintln!("haproxy-auth-request: {} of {} tests pass", passed.len(), results.len());
}

#[test]
fn tests_of_cors_pass() {
    let Some(folder) = named("TERSE_LUA_CORS", "haproxy-lua-cors", "lib/cors.lua") else { return };
    let server = Server::answering(|_| ok("hello"));
    has_cors(&folder, &server, None);
    if let Some(haproxy) = find("haproxy") {
        has_cors(&folder, &server, Some(&haproxy));
    }
}

/// Results of the unit tests in the program's Lua, and then of the action that they are tests of.
fn has_cors(folder: &Path, server: &Server, program: Option<&Path>) {
    let text = format!(
        "global\n nbthread 1\n lua-prepend-path \"${{cors}}/lib/?.lua\"\n lua-prepend-path \"${{cors}}/tests/?.lua\"\n \
         lua-load \"${{dir}}/unit.lua\"\n lua-load \"${{cors}}/lib/cors.lua\"\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n \
         http-request use-service lua.report if {{ path /report }}\n \
         http-request lua.cors \"GET,PUT\" \"example.com,localhost:8080\" \"X-A,X-B\"\n http-response lua.cors\n server s {}\n",
        server.address()
    );
    let cors = folder.to_str().unwrap();
    let terse = Terse::with(&text).file("unit.lua", UNIT_TESTS).env("cors", cors).listen("web");
    let running = match program {
        Some(haproxy) => terse.program(haproxy).start(),
        None => terse.start(),
    };
    let mut client = running.client();
    let report = client.get("/report", &[]).text();
    assert!(report.contains("\nended with 0\n") && report.contains(" successes, 0 failures"), "{program:?}: {report}");
    let count = report.split("Ran ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count >= 31), "{program:?}: {report}");
    let mut preflight = |origin: &str| {
        client.send(format!("OPTIONS / HTTP/1.1\r\nHost: a\r\n{origin}\r\n"));
        says(&client.response("OPTIONS"))
    };
    let (methods, headers) = ("access-control-allow-methods: GET,PUT", "access-control-allow-headers: X-A,X-B");
    let (age, vary) = ("access-control-max-age: 600", "vary: Accept-Encoding,Origin");
    let local = "access-control-allow-origin: https://localhost:8080";
    assert_eq!(preflight("Origin: https://localhost:8080\r\n"), ["204", methods, headers, age, local, vary]);
    assert_eq!(preflight("Origin: https://other.test\r\n"), ["204", methods, headers, age]);
    assert_eq!(preflight(""), ["200"], "it is the server's");
    let get = |client: &mut Client, fields: &[(&str, &str)]| says(&client.get("/", fields));
    let example = "access-control-allow-origin: http://example.com";
    assert_eq!(get(&mut client, &[("Origin", "http://example.com")]), ["200", example, vary]);
    assert_eq!(get(&mut client, &[("Origin", "http://example.com.test")]), ["200"]);
    assert_eq!(get(&mut client, &[]), ["200"]);
    if program.is_none() {
        running.end();
    }
}

/// The status, and the fields that are about origins.
fn says(response: &Response) -> Vec<String> {
    let names = ["methods", "headers"].map(|name| format!("access-control-allow-{name}"));
    let others = ["access-control-max-age", "access-control-allow-origin", "vary"].map(String::from);
    let fields = names.into_iter().chain(others).filter_map(|name| Some(format!("{name}: {}", response.field(&name)?)));
    std::iter::once(response.status.to_string()).chain(fields).collect()
}

/// The path in a variable; prints that a test is left out where there is none. A path without the needed content is a mistake.
fn named(variable: &str, what: &str, inside: &str) -> Option<PathBuf> {
    let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        eprintln!("left out: {variable} does not name {what}");
        return None;
    };
    let is_there = if inside.is_empty() { path.is_file() } else { path.join(inside).is_file() };
    assert!(is_there, "{variable}: {} is not {what}", path.display());
    Some(path.canonicalize().unwrap())
}

/// Folder and files that VTest runs with.
struct Bed {
    vtest: PathBuf,
    version: String,
    folder: TempDir,
}

impl Bed {
    /// For a program, which is run under the name `haproxy`.
    fn new(vtest: &Path, program: &Path) -> Bed {
        // VTest's sockets lie in folders in it, and their paths are short.
        let folder = tempfile::Builder::new().prefix("v").tempdir_in("/tmp").unwrap();
        symlink(program, folder.path().join("haproxy")).unwrap();
        write(folder.path().join("json.lua"), JSON).unwrap();
        let path = folder.path().display();
        write(folder.path().join("json.cfg"), format!("global\n lua-prepend-path {path}/?.lua\n")).unwrap();
        let output = Command::new(folder.path().join("haproxy")).arg("-v").stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // `HAProxy version 2.6.12-1 2023/12/16 - ...`: tests ask for versions.
        let version = said.split(' ').nth(2).unwrap_or_else(|| panic!("{}: {said}", program.display())).to_owned();
        Bed { vtest: vtest.to_owned(), version, folder }
    }

    /// Result of each test of a folder. A skip is no pass.
    fn run(&self, tests: &Path) -> BTreeMap<String, Result<(), String>> {
        let entries = read_dir(tests).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "vtc"));
        files.map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), self.run_one(&file))).collect()
    }

    fn run_one(&self, file: &Path) -> Result<(), String> {
        let inside = |name: &str| self.folder.path().join(name);
        let scratch = inside("s");
        create_dir(&scratch).unwrap();
        let mut command = Command::new(&self.vtest);
        command.arg(format!("-Dhaproxy_version={}", self.version)).args(["-t", &PATIENCE.as_secs().to_string()]).arg(file);
        command.env("HAPROXY_PROGRAM", inside("haproxy")).env("HAPROXY_ARGS", format!("-f {}", inside("json.cfg").display()));
        command.env("TMPDIR", &scratch).current_dir(&scratch).stdin(Stdio::null());
        let output = command.output().unwrap();
        std::fs::remove_dir_all(&scratch).unwrap();
        match output.status.code() {
            Some(0) => Ok(()),
            Some(SKIPPED) => Err("skipped".to_owned()),
            _ => Err(String::from_utf8_lossy(&output.stdout).into_owned()),
        }
    }
}

/// VTest's status for a test that does not apply.
const SKIPPED: i32 = 77;

/// The tests of haproxy-auth-request that pass. One more, `no_variable_leak`, is for versions of HAProxy before 2.5.
const AUTH_REQUEST: [&str; 20] = [
    "allow",
    "allow_mt",
    "deny",
    "deny_close",
    "deny_garbage",
    "dynamic_method",
    "expose_arbitrary_headers",
    "expose_location",
    "expose_location_last",
    "expose_status_code",
    "headers_complete",
    "headers_fail",
    "headers_fail_multiple",
    "headers_filter",
    "headers_request",
    "headers_succeed",
    "multiple_requests",
    "multiple_requests_mt",
    "pass_headers_to_backend",
    "starts",
];

/// haproxy-lua-http loads a module `json`, and none of these tests has it do anything.
const JSON: &str = r#"
local function unexpected() error("no test reads or writes JSON") end
return { decode = unexpected, encode = unexpected }
"#;

/// Runs the unit tests as the script is loaded, and has a service return their results. They replace `core` with a table of their
/// own, print, and end the process.
const UNIT_TESTS: &str = r#"
local core_there, print_there, exit_there = core, print, os.exit
local lines, ended = {}, "none"
print = function(...)
  local words = table.pack(...)
  for i = 1, words.n do words[i] = tostring(words[i]) end
  lines[#lines + 1] = table.concat(words, "\t")
end
os.exit = function(code)
  ended = tostring(code)
  error("the end", 0)
end
local _, reason = pcall(dofile, os.getenv("cors") .. "/tests/cors_tests.lua")
core, print, os.exit = core_there, print_there, exit_there
local report = table.concat(lines, "\n") .. "\nended with " .. ended .. "\n" .. tostring(reason)
core.register_service("report", "http", function(applet)
  applet:start_response()
  applet:send(report)
end)
"#;
