//! Parts of Lua's own libraries that a script could harm the process with: they are removed, or made harmless, before any
//! script is loaded.
//!
//! * `__gc`: Lua runs it with its hooks off, so that it could not be stopped. Existing objects get no such function
//!   afterwards, since metatables that are not a script's own are hidden ([`hidden`]).
//! * Compiled chunks: Lua does not check them, and wrong ones reach into memory. Programs are read as text alone.
//! * `os.exit`: it ends the process.

use mlua::{Lua, Table};

/// Guards a state.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    lua.load(GUARDS).set_name("=[guard]").exec()
}

const GUARDS: &str = r#"
local setmetatable_, load_, loadfile_ = setmetatable, load, loadfile
local error, rawget, type = error, rawget, type
function setmetatable(object, meta)
  if type(meta) == "table" and rawget(meta, "__gc") ~= nil then
    error("a metatable with '__gc' is refused: nothing could stop it", 2)
  end
  return setmetatable_(object, meta)
end
function load(chunk, name, _, ...)
  return load_(chunk, name, "t", ...)
end
function loadfile(file, _, ...)
  return loadfile_(file, "t", ...)
end
function dofile(file)
  local chunk, reason = loadfile_(file, "t")
  if not chunk then error(reason, 0) end
  return chunk()
end
if string then
  string.dump = nil
end
if os then
  function os.exit()
    error("os.exit is refused: a script does not end the process", 2)
  end
end
if io then
  getmetatable(io.stdout).__metatable = false
end
if package then
  local searchpath, package = package.searchpath, package
  package.searchers[2] = function(name)
    local file, reason = searchpath(name, package.path)
    if not file then return reason end
    local chunk, wrong = loadfile_(file, "t")
    if not chunk then error("error loading module '" .. name .. "' from file '" .. file .. "':\n\t" .. wrong, 0) end
    return chunk, file
  end
end
"#;

/// A metatable that scripts neither see nor change.
pub(crate) fn hidden(lua: &Lua) -> mlua::Result<Table> {
    let meta = lua.create_table()?;
    meta.set("__metatable", false)?;
    Ok(meta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::Function;

    #[test]
    fn what_reaches_past_limits_is_refused() {
        let lua = Lua::new();
        let compiled = lua.load("return 1").into_function().unwrap().dump(false);
        install(&lua).unwrap();
        lua.globals().set("compiled", lua.create_string(compiled).unwrap()).unwrap();
        lua.globals().set("object", lua.create_table().unwrap()).unwrap();
        lua.globals().get::<Table>("object").unwrap().set_metatable(Some(hidden(&lua).unwrap())).unwrap();
        for (script, said) in [
            ("setmetatable({}, { __gc = print })", "a metatable with '__gc' is refused"),
            ("setmetatable(object, {})", "cannot change a protected metatable"),
            ("getmetatable(io.stdout).__gc = print", "attempt to index a boolean value"),
            ("os.exit()", "os.exit is refused"),
            ("assert(load(compiled))", "attempt to load a binary chunk (mode is 't')"),
            ("assert(load(compiled, 'x', 'b'))", "attempt to load a binary chunk (mode is 't')"),
            ("assert(loadfile(...))", "attempt to load a binary chunk (mode is 't')"),
            ("assert(loadfile(..., 'b'))", "attempt to load a binary chunk (mode is 't')"),
            ("dofile(...)", "attempt to load a binary chunk (mode is 't')"),
            ("package.path = ... require('x')", "attempt to load a binary chunk (mode is 't')"),
            ("string.dump(print)", "attempt to call a nil value (field 'dump')"),
            ("(''):dump()", "attempt to call a nil value (method 'dump')"),
        ] {
            let file = std::env::temp_dir().join(format!("terse-lua-{}.luac", std::process::id()));
            std::fs::write(&file, lua.globals().get::<mlua::String>("compiled").unwrap().as_bytes()).unwrap();
            let error = lua.load(script).into_function().and_then(|f: Function| f.call::<()>(file.to_str()));
            std::fs::remove_file(&file).unwrap();
            let error = error.unwrap_err().to_string();
            assert!(error.contains(said), "{script}: {error}");
        }
        for script in [
            "return load('return ...')(7)",
            "return load('return x', 'name', 't', { x = 7 })()",
            "return load('return x', nil, nil, { x = 7 })()",
            "return getmetatable(setmetatable({}, { x = 7 })).x",
        ] {
            assert_eq!(lua.load(script).eval::<i64>().unwrap(), 7, "{script}");
        }
    }
}
