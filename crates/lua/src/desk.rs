//! Commands of the stats socket that scripts answer, on their way to the functions.
//!
//! ```text
//!   control thread: a client's words --> Command::begin --> the first worker's queue --> a task of it: Run with an AppletTCP
//!   the client <-- control thread <-- socket pair <------------------------------------ what the script sends
//! ```

use crate::home::Kind;
use crate::lent;
use crate::library::{Library, Named};
use crate::run::{Failure, Limits, Run};
use crate::stream;
use crate::wire::{Socket, Wire};
use mlua::{IntoLua, MultiValue, Value};
use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use terse_admin::Guest;
use terse_proxy::worker::Worker;
use tokio::sync::mpsc;

/// Calls that wait for the first worker.
const MOST_WAITING: usize = 64;

/// The way of calls to the first worker. Until that serves, they wait.
pub(crate) struct Desk {
    to_worker: mpsc::Sender<Call>,
    calls: Mutex<Option<mpsc::Receiver<Call>>>,
}

impl Default for Desk {
    fn default() -> Desk {
        let (to_worker, calls) = mpsc::channel(MOST_WAITING);
        Desk { to_worker, calls: Mutex::new(Some(calls)) }
    }
}

/// A client's command.
struct Call {
    named: Named,
    words: Vec<Vec<u8>>,
    socket: UnixStream,
}

/// A registered command.
struct Command {
    library: Weak<Library>,
    name: String,
}

/// The command that the function of that name answers.
pub(crate) fn command(library: &Arc<Library>, name: &str) -> Arc<dyn Guest> {
    Arc::new(Command { library: Arc::downgrade(library), name: name.to_owned() })
}

impl Guest for Command {
    fn begin(&self, words: Vec<Vec<u8>>, socket: UnixStream) -> Result<(), String> {
        let library = self.library.upgrade().ok_or("the script is gone")?;
        let (named, _) = library.find(Kind::Cli, &self.name).ok_or("the script has not registered it")?;
        let sent = library.desk().to_worker.try_send(Call { named, words, socket });
        sent.map_err(|_| "too many commands wait for scripts".into())
    }
}

impl Desk {
    /// Takes calls on the first worker.
    pub(crate) fn open(&self, worker: &Rc<Worker>) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut calls) = calls else { return };
        let worker = worker.clone();
        tokio::task::spawn_local(async move {
            while let Some(call) = calls.recv().await {
                tokio::task::spawn_local(answer(call, worker.clone()));
            }
        });
    }
}

/// Runs a command's function to its end, and sends what it has to say.
async fn answer(call: Call, worker: Rc<Worker>) {
    let Call { named, words, socket } = call;
    let Ok(socket) = tokio::net::UnixStream::from_std(socket) else { return };
    let wire = Arc::new(Wire::new(Some(Socket::Unix(socket))));
    let tuning = named.library().tuning();
    let begin = || -> Result<Run, Failure> {
        let callable = named.callable(worker.index);
        let callable = callable.ok_or_else(|| Failure::Wrong("this worker's scripts have not registered it".into()))?;
        let args = || -> mlua::Result<MultiValue> {
            let mut args = vec![Value::Table(stream::object(&wire, &callable.lua, tuning.memory_bytes)?)];
            for word in &words {
                args.push(callable.lua.create_string(word)?.into_lua(&callable.lua)?);
            }
            Ok(args.into_iter().collect())
        };
        let args = args().map_err(|error| Failure::from(&error))?;
        Run::start(&callable, args, Limits { total: tuning.service, burst: tuning.burst })
    };
    let result = match begin() {
        Ok(mut run) => {
            poll_fn(|cx| match lent::worker(&worker, || run.poll(cx)) {
                Poll::Ready(result) => Poll::Ready(result.map(drop)),
                Poll::Pending => {
                    // Output is sent also while the script waits for another event.
                    let _ = wire.poll_flush(cx);
                    Poll::Pending
                }
            })
            .await
        }
        Err(failure) => Err(failure),
    };
    if let Err(Failure::Wrong(reason)) = result {
        lent::worker(&worker, || named.wrong(&reason));
    }
    poll_fn(|cx| wire.poll_finish(cx)).await;
    wire.close();
}
