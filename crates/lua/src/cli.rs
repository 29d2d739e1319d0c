//! `core.register_cli`: commands of the stats socket that scripts answer ([`crate::desk`]).

use crate::home::{Home, Kind, Registered};
use mlua::{Function, Lua, Table};

/// Gives `core` the function.
pub(crate) fn install(lua: &Lua, home: &Home, core: &Table) -> mlua::Result<()> {
    let home = home.clone();
    let register = move |_: &Lua, (path, usage, function): (Table, String, Function)| {
        let refused = |reason: String| mlua::Error::runtime(format!("core.register_cli: {reason}"));
        if home.is_serving() {
            return Err(refused("commands are registered while the script is loaded".into()));
        }
        let words = path.sequence_values::<String>().collect::<mlua::Result<Vec<_>>>()?;
        let name = words.join(" ");
        if let Some(house) = home.house.upgrade() {
            house.link().add(words, usage, house.clone().command(&name)).map_err(refused)?;
        }
        home.register(Kind::Cli, name, Registered { function, is_http: false, arguments: 0 });
        Ok(())
    };
    core.set("register_cli", lua.create_function(register)?)
}
