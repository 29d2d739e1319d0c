//! The class `Regex`: expressions as those of rules are, matched within the same limits.

use crate::guard;
use mlua::{Lua, Table, UserData, UserDataRef, Value};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use terse_sample::regexp::{self, Regexp};

/// The class's name among a state's own values.
const CLASS: &str = "Regex";

/// HAProxy's limit of groups, the whole included.
const MOST_GROUPS: usize = 20;

/// Number of expressions given as texts that are kept compiled.
const KEPT: usize = 256;

static COMPILED: Mutex<Option<HashMap<Vec<u8>, Regexp>>> = Mutex::new(None);

struct Compiled(Regexp);

impl UserData for Compiled {}

/// Puts the class into a state.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    let methods = lua.create_table()?;
    methods
        .set("exec", lua.create_function(|_, (this, text): (Table, mlua::String)| Ok(of(&this)?.0.is_match(&text.as_bytes())))?)?;
    methods.set("match", lua.create_function(|lua, (this, text): (Table, mlua::String)| find(lua, &this, &text))?)?;
    let meta = guard::hidden(lua)?;
    meta.set("__index", methods)?;
    lua.set_named_registry_value(CLASS, meta)?;
    let class = lua.create_table()?;
    let new = |lua: &Lua, (pattern, sensitive): (mlua::String, Option<bool>)| {
        // As in HAProxy: without the argument, case is ignored.
        match regexp::compile(&pattern.as_bytes(), !sensitive.unwrap_or(false)) {
            Ok(regex) => {
                let object = lua.create_table()?;
                object.raw_set(0, lua.create_userdata(Compiled(regex))?)?;
                object.set_metatable(Some(lua.named_registry_value(CLASS)?))?;
                Ok((true, Value::Table(object)))
            }
            Err(reason) => Ok((false, Value::String(lua.create_string(reason)?))),
        }
    };
    class.set("new", lua.create_function(new)?)?;
    lua.globals().set("Regex", class)
}

/// Whether it matches, and the matches of its groups, the whole first; a group that has no part in it is empty.
fn find(lua: &Lua, this: &Table, text: &mlua::String) -> mlua::Result<(bool, Table)> {
    let regex = of(this)?;
    let text = text.as_bytes();
    let list = lua.create_table()?;
    let Some(groups) = regex.0.captures(&text) else { return Ok((false, list)) };
    // The last group that has matched is the last of the list.
    let last = (0..MOST_GROUPS).rev().find(|group| groups.bytes(*group).is_some()).unwrap_or(0);
    for group in 0..=last {
        list.raw_push(lua.create_string(groups.bytes(group).unwrap_or_default())?)?;
    }
    Ok((true, list))
}

fn of(object: &Table) -> mlua::Result<UserDataRef<Compiled>> {
    match object.raw_get::<Value>(0)? {
        Value::UserData(data) => data.borrow(),
        _ => Err(mlua::Error::runtime("expects an object of Regex.new")),
    }
}

/// The expression of a text, case-sensitive; compiled expressions are kept.
pub(crate) fn compiled(pattern: &[u8]) -> mlua::Result<Regexp> {
    let mut kept = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some(known) = kept.get(pattern) {
        return Ok(known.clone());
    }
    let regex = regexp::compile(pattern, false).map_err(mlua::Error::runtime)?;
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert(pattern.to_vec(), regex.clone());
    Ok(regex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_and_groups() {
        let lua = Lua::new();
        install(&lua).unwrap();
        let script = r#"
local ok, regex = Regex.new("needle (..) (...)(x)?", true)
local hit, list = regex:match("Looking for a needle in the haystack")
local wrong, reason = Regex.new("(", true)
local _, loose = Regex.new("NEEDLE")
return ok and regex:exec("a needle in the") and not regex:exec("a NEEDLE in the") and loose:exec("needle") and hit
  and #list == 3 and list[1] == "needle in the" and list[2] == "in" and list[3] == "the" and regex:match("cat") == false
  and wrong == false and reason
"#;
        let reason: mlua::Result<String> = lua.load(script).eval();
        assert!(reason.unwrap().contains("regular expression '('"));
        let strange = lua.load("return pcall(function() local _, r = Regex.new('a') r.exec({}, 'a') end)").eval::<bool>();
        assert!(!strange.unwrap(), "an object of another kind is refused");
    }
}
