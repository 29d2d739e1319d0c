//! The class `Queue`, and `core.wait`: data that a script hands to another of its state.
//!
//! The queue is Lua's own (`prelude/queue.lua`); the bell that its readers wait for is here. A ring without a listener is
//! kept, so that none is missed.

use crate::run::may_wait;
use mlua::{Lua, UserData, UserDataMethods};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

struct Bell(Arc<Notify>);

impl UserData for Bell {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("ring", |_, bell, ()| {
            bell.0.notify_one();
            Ok(())
        });
        // Returns whether it has rung; without a time limit it waits without end.
        methods.add_async_method("hear", |_, bell, most_ms: Option<u64>| async move {
            may_wait()?;
            let notify = bell.0.clone();
            drop(bell);
            let heard = notify.notified();
            match most_ms {
                None => {
                    heard.await;
                    Ok(true)
                }
                Some(most) => Ok(tokio::time::timeout(Duration::from_millis(most), heard).await.is_ok()),
            }
        });
    }
}

/// Puts `core.queue` and `core.wait` into a state.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    let bell = lua.create_function(|_, ()| Ok(Bell(Arc::default())))?;
    lua.load(include_str!("prelude/queue.lua")).set_name("=[core]").call(bell)
}
