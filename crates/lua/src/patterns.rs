//! The classes `Map` and `Patref`, and the functions of `core` that change ACLs and maps.
//!
//! A map's file is read when the script is loaded, as those of the configuration are: at run time no file is opened.

use crate::guard;
use crate::home::Home;
use crate::lent;
use mlua::{Lua, Table, UserData, UserDataMethods, UserDataRef, Value, Variadic};
use std::sync::{Arc, Mutex, PoisonError};
use terse_sample::Value as Sample;
use terse_sample::pattern::{Matching, Reference, Refusal, Way};

/// The class's name among a state's own values.
const MAP: &str = "Map";

/// Methods of comparing entries, as `Map._str` and its like; their numbers are their indexes.
const METHODS: [(&str, Matching); 9] = [
    ("int", Matching::Int),
    ("ip", Matching::Ip),
    ("str", Matching::Str),
    ("beg", Matching::Beg),
    ("sub", Matching::Sub),
    ("dir", Matching::Dir),
    ("dom", Matching::Dom),
    ("end", Matching::End),
    ("reg", Matching::Reg),
];

/// A change by a key and a value.
type Change = fn(&Reference, &[u8], &[u8]) -> Result<(), Refusal>;

struct Lookup(Arc<Way>);

impl UserData for Lookup {}

/// Puts the classes and functions into a state.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    maps(lua, home)?;
    let core: Table = lua.globals().get("core")?;
    let change = |run: Change| {
        lua.create_function(move |_, (name, key, value): (String, mlua::String, Option<mlua::String>)| {
            let reference = reference(&name)?;
            let value = value.map_or_else(Vec::new, |value| value.as_bytes().to_vec());
            run(&reference, &key.as_bytes(), &value).map_err(|refusal| mlua::Error::runtime(format!("'{name}': {refusal}")))
        })
    };
    core.set("add_acl", change(|reference, key, _| reference.add_unless_there(key))?)?;
    core.set("set_map", change(Reference::put)?)?;
    for name in ["del_acl", "del_map"] {
        core.set(
            name,
            change(|reference, key, _| {
                reference.remove(key);
                Ok(())
            })?,
        )?;
    }
    core.set(
        "get_patref",
        lua.create_function(|_, name: String| Ok(Patref { reference: reference(&name)?, version: Mutex::default() }))?,
    )
}

/// The entries of ACLs and maps of that name.
fn reference(name: &str) -> mlua::Result<Arc<Reference>> {
    let reason = "the configuration is still being read: patterns can be changed once the process serves";
    let worker = lent::worker_here().ok_or_else(|| mlua::Error::runtime(reason))?;
    let found = worker.plan.patterns.find(name).filter(|reference| reference.is_used());
    found.ok_or_else(|| mlua::Error::runtime(format!("no ACL and no map reads '{name}'")))
}

fn maps(lua: &Lua, home: &Home) -> mlua::Result<()> {
    let methods = lua.create_table()?;
    for (name, otherwise) in [("lookup", false), ("slookup", true)] {
        let look = move |lua: &Lua, (this, key): (Table, Value)| {
            let Value::UserData(data) = this.raw_get::<Value>(0)? else {
                return Err(mlua::Error::runtime("expects an object of Map.new"));
            };
            let way: UserDataRef<Lookup> = data.borrow()?;
            let key = match &key {
                Value::String(text) => text.as_bytes().to_vec(),
                Value::Integer(number) => number.to_string().into_bytes(),
                _ => return Err(mlua::Error::runtime("a map is asked for a string")),
            };
            match way.0.value(Sample::str(&key)).and_then(Sample::into_bytes) {
                Some(value) => Ok(Value::String(lua.create_string(&*value)?)),
                None if otherwise => Ok(Value::String(lua.create_string("")?)),
                None => Ok(Value::Nil),
            }
        };
        methods.set(name, lua.create_function(look)?)?;
    }
    let meta = guard::hidden(lua)?;
    meta.set("__index", methods)?;
    lua.set_named_registry_value(MAP, meta)?;
    let class = lua.create_table()?;
    for (number, (name, _)) in METHODS.iter().enumerate() {
        class.set(*name, number)?;
        class.set(format!("_{name}"), number)?;
    }
    let home = home.clone();
    let new = move |lua: &Lua, (file, method): (String, Option<usize>)| {
        let method = METHODS.get(method.unwrap_or(2)).ok_or_else(|| mlua::Error::runtime("Map.new: no such method"))?;
        let reading = home.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let way = match (&*reading, lent::worker_here()) {
            (Some(language), _) => language.map(&file, method.1),
            (None, Some(worker)) => worker.plan.language.map(&file, method.1),
            (None, None) => Err("maps are made while a script is loaded".into()),
        };
        let way = way.map_err(|reason| mlua::Error::runtime(format!("Map.new: {reason}")))?;
        let object = lua.create_table()?;
        object.raw_set(0, lua.create_userdata(Lookup(way))?)?;
        object.set_metatable(Some(lua.named_registry_value(MAP)?))?;
        Ok(object)
    };
    class.set("new", lua.create_function(new)?)?;
    lua.globals().set("Map", class)
}

/// An object of `core.get_patref`, and the version that it prepares.
struct Patref {
    reference: Arc<Reference>,
    version: Mutex<Option<u32>>,
}

/// Result of a change: true, or nil and the reason.
type Changed = (Option<bool>, Variadic<String>);

fn changed(result: Result<(), Refusal>) -> Changed {
    match result {
        Ok(()) => (Some(true), Variadic::new()),
        Err(refusal) => (None, Variadic::from_iter([refusal.to_string()])),
    }
}

impl Patref {
    fn version(&self) -> Option<u32> {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, version: Option<u32>) -> Option<u32> {
        std::mem::replace(&mut *self.version.lock().unwrap_or_else(PoisonError::into_inner), version)
    }

    /// The entries of a key in the chosen version.
    fn of_key(&self, key: &[u8]) -> Vec<u64> {
        self.each(|entry| (&*entry.key == key).then_some(entry.id))
    }

    /// Collects the results of `look` for each entry.
    fn each<T>(&self, mut look: impl FnMut(&terse_sample::pattern::Entry) -> Option<T>) -> Vec<T> {
        let (mut found, mut behind) = (Vec::new(), None);
        loop {
            let entries = self.reference.entries(self.version(), behind, AT_ONCE);
            let Some(last) = entries.last() else { return found };
            behind = Some(last.id);
            found.extend(entries.iter().filter_map(|entry| look(entry)));
        }
    }

    fn add(&self, entries: &[(Vec<u8>, Option<Vec<u8>>)]) -> Changed {
        let is_map = self.reference.has_values();
        let entries = entries.iter().map(|(key, value)| {
            let value = value.as_deref().or(is_map.then_some(&b""[..]));
            (&**key, value.filter(|_| is_map))
        });
        changed(self.reference.add(self.version(), entries))
    }

    fn set(&self, key: &[u8], value: &[u8], force: bool) -> Changed {
        if !self.reference.has_values() {
            return (None, Variadic::from_iter(["it is no map".to_owned()]));
        }
        let ids = self.of_key(key);
        match (ids.is_empty(), force) {
            (true, true) => self.add(&[(key.to_vec(), Some(value.to_vec()))]),
            (true, false) => changed(Err(Refusal::NotFound)),
            _ => changed(ids.into_iter().try_for_each(|id| self.reference.set_entry(id, value))),
        }
    }
}

/// Entries that are visited under one lock.
const AT_ONCE: usize = 1024;

impl UserData for Patref {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get_name", |_, this, ()| Ok(this.reference.name().to_owned()));
        methods.add_method("is_map", |_, this, ()| Ok(this.reference.is_map()));
        methods.add_method("purge", |_, this, ()| {
            this.reference.clear(None);
            Ok(())
        });
        methods.add_method("prepare", |_, this, ()| {
            if let Some(before) = this.replace(Some(this.reference.prepare())) {
                this.reference.clear(Some(before));
            }
            Ok(())
        });
        methods.add_method("commit", |_, this, ()| match this.replace(None) {
            None => Ok(changed(Ok(()))),
            Some(version) => Ok(changed(this.reference.commit(version).inspect_err(|_| this.reference.clear(Some(version))))),
        });
        methods.add_method("giveup", |_, this, ()| {
            if let Some(version) = this.replace(None) {
                this.reference.clear(Some(version));
            }
            Ok(())
        });
        methods.add_method("add", |_, this, (key, value): (mlua::String, Option<mlua::String>)| {
            Ok(this.add(&[(key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()))]))
        });
        methods.add_method("add_bulk", |_, this, entries: Table| {
            let mut all = Vec::new();
            for pair in entries.pairs::<Value, mlua::String>() {
                let (key, value) = pair?;
                let value = value.as_bytes().to_vec();
                all.push(match key {
                    Value::String(key) if this.reference.has_values() => (key.as_bytes().to_vec(), Some(value)),
                    _ if !this.reference.has_values() => (value, None),
                    _ => return Err(mlua::Error::runtime("the entries of a map are values by their keys")),
                });
            }
            Ok(this.add(&all))
        });
        methods.add_method("del", |_, this, key: mlua::String| {
            let ids = this.of_key(&key.as_bytes());
            Ok(ids.into_iter().filter(|id| this.reference.remove_entry(*id)).count() > 0)
        });
        methods.add_method("set", |_, this, (key, value, force): (mlua::String, mlua::String, Option<bool>)| {
            Ok(this.set(&key.as_bytes(), &value.as_bytes(), force.unwrap_or(false)))
        });
        methods.add_method("event_sub", |_, _, _: Variadic<Value>| -> mlua::Result<()> {
            let reason = "Patref.event_sub is not available in terse: events of patterns are not handed to scripts";
            Err(mlua::Error::runtime(reason))
        });
        // Methods come first; other names are keys. Patterns of ACLs have no values, but are there.
        methods.add_meta_method("__index", |lua, this, key: mlua::String| {
            let key = key.as_bytes();
            let mut found = this.each(|entry| (*entry.key == *key).then(|| entry.value.clone())).into_iter();
            Ok(match found.next() {
                None => Value::Nil,
                Some(value) => Value::String(lua.create_string(value.as_deref().unwrap_or_default())?),
            })
        });
        methods.add_meta_method("__pairs", |lua, this, ()| {
            let entries = this.each(|entry| Some((entry.key.to_vec(), entry.value.as_ref().map(|value| value.to_vec()))));
            let left = Mutex::new(entries.into_iter());
            lua.create_function(move |lua, _: Variadic<Value>| {
                let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                Ok(match next {
                    None => (Value::Nil, Value::Nil),
                    Some((key, value)) => {
                        (Value::String(lua.create_string(key)?), Value::String(lua.create_string(value.unwrap_or_default())?))
                    }
                })
            })
        });
    }
}
