//! `core.event_sub`, `Server.event_sub`: events of servers that scripts subscribe to.
//!
//! ```text
//!   the thread that changes a server --> Hub::hear --> queue of each subscription that asks for it (bounded)
//!                                                         |
//!   task of the worker that has subscribed: one event after the other --> the script's function
//! ```
//!
//! A queue that is full drops what comes, and says so once until its task has caught up.

use crate::home::{Home, House, complain};
use crate::hub::{ADMIN, DEL, Event, MOST, MOST_WAITING, STATE, Subscription, TYPES};
use crate::lent;
use crate::run::{Callable, Failure, Limits, Run};
use crate::tuning::Tuning;
use mlua::{Function, IntoLua, Lua, MultiValue, Table, UserData, UserDataMethods, Value};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use terse_balance::news::{Change, Checked, News};
use terse_balance::{Admin, Operation};
use terse_proxy::worker::Worker;

/// Events that HAProxy has and that never happen here.
const NEVER: [&str; 3] = ["ACME", "ACME_DEPLOY", "ACME_NEWCERT"];

/// A subscription and its function.
pub(crate) struct Listening {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) callable: Callable,
    pub(crate) house: Arc<dyn House>,
}

/// The script's object of a subscription.
struct Handle(Arc<Subscription>);

impl UserData for Handle {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("unsub", |_, this, ()| {
            this.0.end();
            Ok(())
        });
    }
}

impl Listening {
    /// Starts the task that calls the script's function, on a worker.
    pub(crate) fn spawn(self, worker: &Rc<Worker>, tuning: Tuning) {
        tokio::task::spawn_local(self.listen(worker.clone(), tuning));
    }

    async fn listen(self, worker: Rc<Worker>, tuning: Tuning) {
        let report = |reason: &str| lent::worker(&worker, || complain(&*self.house, &format!("Lua event_hdl: {reason}")));
        while let Some((event, dropped)) = self.subscription.next().await {
            if dropped {
                report(&format!("events were dropped, because more than {MOST_WAITING} waited for the script"));
            }
            // A subscription to a server ends with it.
            let is_last = event.kind == DEL && self.subscription.server.is_some();
            if self.subscription.types >> event.kind & 1 == 1
                && let Err(Failure::Wrong(reason)) = self.call(&event, &worker, &tuning).await
            {
                report(&format!("runtime error: {reason}"));
            }
            if is_last {
                self.subscription.end();
            }
        }
    }

    async fn call(&self, event: &Event, worker: &Rc<Worker>, tuning: &Tuning) -> Result<(), Failure> {
        let lua = &self.callable.lua;
        let args = || -> mlua::Result<MultiValue> {
            let kind = TYPES.get(event.kind).copied().unwrap_or_default().into_lua(lua)?;
            let data = Value::Table(lent::worker(worker, || event.table(lua))?);
            let handle = Value::UserData(lua.create_userdata(Handle(self.subscription.clone()))?);
            Ok([kind, data, handle, event.when.into_lua(lua)?].into_iter().collect())
        };
        let args = args().map_err(|error| Failure::from(&error))?;
        let mut run = Run::start(&self.callable, args, Limits { total: tuning.task, burst: tuning.burst })?;
        poll_fn(|cx| lent::worker(worker, || run.poll(cx))).await.map(drop)
    }
}

impl Event {
    /// The object `ServerEvent`.
    fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set("name", self.name.as_str())?;
        table.set("puid", self.puid)?;
        table.set("rid", self.rid)?;
        table.set("proxy_name", self.backend.as_str())?;
        table.set("proxy_uuid", self.backend_id)?;
        match &self.news {
            News::Changed(change) if self.kind == STATE => table.set("state", state(lua, change)?)?,
            News::Changed(change) if self.kind == ADMIN => table.set("admin", admin(lua, change)?)?,
            News::Checked(checked) => table.set("check", result(lua, checked)?)?,
            _ => {}
        }
        if self.kind != DEL {
            let find: Function = lua.named_registry_value(FIND)?;
            table.set("reference", find.call::<Value>((self.backend.as_str(), self.name.as_str(), self.puid.to_string()))?)?;
        }
        Ok(table)
    }
}

fn state(lua: &Lua, change: &Change) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("admin", change.by_admin)?;
    table.set("cause", change.cause.as_str())?;
    table.set("old_state", operation(change.old.operation))?;
    table.set("new_state", operation(change.new.operation))?;
    table.set("requeued", change.moved)?;
    if let Some(checked) = change.check.as_ref().filter(|_| !change.by_admin) {
        table.set("check", result(lua, checked)?)?;
    }
    Ok(table)
}

const fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Stopped => "STOPPED",
        Operation::Starting => "STARTING",
        Operation::Running => "RUNNING",
        Operation::Stopping => "STOPPING",
    }
}

fn admin(lua: &Lua, change: &Change) -> mlua::Result<Table> {
    let flags = |admin: Admin| {
        let has = |flag: Admin| admin.0 & flag.0 != 0;
        lua.create_table_from([
            ("MAINT", admin.is_maint()),
            ("FMAINT", has(Admin::FORCED_MAINT)),
            ("IMAINT", has(Admin::INHERITED_MAINT)),
            ("RMAINT", admin.is_unresolved()),
            ("CMAINT", has(Admin::CONFIGURED_MAINT)),
            ("DRAIN", admin.is_drain()),
            ("FDRAIN", has(Admin::FORCED_DRAIN)),
            ("IDRAIN", has(Admin::INHERITED_DRAIN)),
        ])
    };
    let table = lua.create_table()?;
    table.set("cause", change.cause.as_str())?;
    table.set("old_admin", flags(change.old.admin)?)?;
    table.set("new_admin", flags(change.new.admin)?)?;
    table.set("requeued", change.moved)?;
    Ok(table)
}

/// The object `ServerEventCheckRes`.
fn result(lua: &Lua, checked: &Checked) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set(
        "result",
        match checked.result {
            4 => "CONDPASS",
            3 => "PASSED",
            _ => "FAILED",
        },
    )?;
    table.set("agent", checked.agent)?;
    table.set("duration", u64::try_from(checked.duration.as_millis()).unwrap_or(u64::MAX))?;
    let reason = lua.create_table()?;
    reason.set("short", checked.short)?;
    reason.set("desc", checked.text)?;
    reason.set("code", checked.code)?;
    table.set("reason", reason)?;
    let health = lua.create_table_from([("cur", checked.health), ("rise", checked.rise), ("fall", checked.fall)])?;
    table.set("health", health)?;
    Ok(table)
}

/// The function that finds a server's object, among a state's own values.
const FIND: &str = "server of an event";

const PRELUDE: &str = r#"
local core = core
return function(backend, name, puid)
  local proxy = core.backends[backend]
  local server = proxy and proxy.servers[name]
  return server and server.puid == puid and server or nil
end
"#;

/// Gives `core` the function; after the classes of proxies and servers. Returns the function for a single server.
pub(crate) fn install(lua: &Lua, home: &Home, thread: usize) -> mlua::Result<Function> {
    lua.set_named_registry_value(FIND, lua.load(PRELUDE).set_name("=[core]").eval::<Function>()?)?;
    let here = home.clone();
    let every = move |lua: &Lua, (types, function): (Table, Function)| subscribe(lua, &here, thread, &types, function, None);
    lua.globals().get::<Table>("core")?.set("event_sub", lua.create_function(every)?)?;
    let here = home.clone();
    lua.create_function(move |lua, (backend, puid, types, function): (String, String, Table, Function)| {
        let puid = puid.parse().map_err(mlua::Error::external)?;
        subscribe(lua, &here, thread, &types, function, Some((backend, puid)))
    })
}

fn subscribe(
    lua: &Lua,
    home: &Home,
    thread: usize,
    types: &Table,
    function: Function,
    server: Option<(String, u32)>,
) -> mlua::Result<Value> {
    let types = bits(types)?;
    let Some(house) = home.house.upgrade() else { return Ok(Value::Nil) };
    // Of the states that load one file, the first worker's subscribes.
    if thread > 1 && !home.is_serving() {
        return Ok(Value::Nil);
    }
    let subscription = Arc::new(Subscription::new(types, server));
    if !house.hub().add(&subscription) {
        return Err(mlua::Error::runtime(format!("event_sub: there are {MOST} subscriptions already")));
    }
    match lent::worker_here().filter(|_| home.is_serving()) {
        Some(worker) => {
            let (subscription, callable) = (subscription.clone(), Callable { lua: lua.clone(), function });
            let tuning = house.tuning();
            Listening { subscription, callable, house }.spawn(&worker, tuning);
        }
        None => {
            let mut registry = home.registry.lock().unwrap_or_else(PoisonError::into_inner);
            registry.subscriptions.push((subscription.clone(), function));
        }
    }
    Ok(Value::UserData(lua.create_userdata(Handle(subscription))?))
}

/// The bits of a list of types.
fn bits(types: &Table) -> mlua::Result<u8> {
    let mut bits = 0;
    let mut any = false;
    for name in types.sequence_values::<String>() {
        let name = name?;
        any = true;
        match TYPES.iter().position(|known| *known == name) {
            Some(bit) => bits |= 1 << bit,
            None if name == "SERVER" => bits |= (1 << TYPES.len()) - 1,
            None if NEVER.contains(&&*name) => {
                let reason = format!("event_sub: '{name}' is not available in terse: certificates are not ordered by scripts");
                return Err(mlua::Error::runtime(reason));
            }
            None => {
                return Err(mlua::Error::runtime(format!(
                    "event_sub: '{name}' is no event; events are SERVER, {}",
                    TYPES.join(", ")
                )));
            }
        }
    }
    if !any {
        return Err(mlua::Error::runtime("event_sub expects a list of events"));
    }
    Ok(bits)
}
