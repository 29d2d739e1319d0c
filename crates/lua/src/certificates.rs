//! The class `CertCache`: certificates that scripts renew, as the stats socket's commands do.

use crate::home::Home;
use mlua::{Lua, Table, Value};
use terse_admin::Link;

/// The parts of a certificate, with the ends of their files' names, in the order in which they depend on each other.
const PARTS: [(&str, &str); 5] = [("crt", ""), ("key", ".key"), ("issuer", ".issuer"), ("ocsp", ".ocsp"), ("sctl", ".sctl")];

/// Puts the class into a state.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    let home = home.clone();
    let set = move |_: &Lua, given: Table| {
        let house = home.house.upgrade().ok_or_else(|| mlua::Error::runtime("the process ends"))?;
        let (file, parts) = read(&given)?;
        replace(&house.link(), &file, &parts)
            .map_err(|reason| mlua::Error::runtime(format!("CertCache.set: {}", reason.trim_end())))
    };
    let class = lua.create_table()?;
    class.set("set", lua.create_function(set)?)?;
    lua.globals().set("CertCache", class)
}

/// The end of a file's name, and what comes into its place.
type Part = (&'static str, Vec<u8>);

/// The fields of the script's table.
fn read(given: &Table) -> mlua::Result<(String, Vec<Part>)> {
    let wrong = |reason: String| mlua::Error::runtime(format!("CertCache.set: {reason}"));
    for pair in given.pairs::<String, Value>() {
        let (name, _) = pair?;
        if name != "filename" && !PARTS.iter().any(|(known, _)| *known == name) {
            return Err(wrong(format!("'{name}' is no field; fields are filename, crt, key, issuer, ocsp, sctl")));
        }
    }
    let file: String = given.get::<Option<String>>("filename")?.ok_or_else(|| wrong("expects the field 'filename'".into()))?;
    let mut parts = Vec::new();
    for (name, end) in PARTS {
        if let Some(text) = given.get::<Option<mlua::String>>(name)? {
            parts.push((end, text.as_bytes().to_vec()));
        }
    }
    match parts.is_empty() {
        true => Err(wrong("there is nothing to change: expects 'crt' or another part".into())),
        false => Ok((file, parts)),
    }
}

/// Takes the parts and commits them; what was taken is forgotten where that fails.
fn replace(link: &Link, file: &str, parts: &[Part]) -> Result<(), String> {
    let ask = |words: [&str; 3], name: &str, payload: Option<&[u8]>| {
        let words = [words[0].as_bytes(), words[1].as_bytes(), words[2].as_bytes(), name.as_bytes()];
        link.give(&words, payload)
    };
    for (at, (end, text)) in parts.iter().enumerate() {
        if let Err(reason) = ask(["set", "ssl", "cert"], &format!("{file}{end}"), Some(text)) {
            // A change that another began is left to it.
            if at > 0 {
                let _ = ask(["abort", "ssl", "cert"], file, None);
            }
            return Err(reason);
        }
    }
    ask(["commit", "ssl", "cert"], file, None).map(drop).inspect_err(|_| drop(ask(["abort", "ssl", "cert"], file, None)))
}
