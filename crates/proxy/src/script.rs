//! Programs that the configuration loads, and services of this program: the interface between rules and phases and the
//! program's runtime.
//!
//! ```text
//! at load:      a keyword puts a [`Library`] into [`Scripts`] -> rules name its actions and services
//! an action:    rule -> Action::run: done at once, or Flow::Play -> the phase drives the play, and goes on with the flow that it ends with
//! a service:    rule -> Flow::Perform -> phase/perform.rs: a socket pair, a server's connection at this end, the applet at the other
//! ```
//!
//! A service is a server inside the process. Its responses go the way of all servers' responses: through rules, compression,
//! filters and timeouts; and a client that is slow holds it back, because the socket between them is full.
//!
//! Invariant: a play sees its stream while it is polled and at no other time. So the phases that wait for a service's bytes
//! poll it beside their own future ([`beside`]).

use crate::rules::{Action, Flow, RuleSet};
use crate::stream::Stream;
use crate::worker::Worker;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use terse_balance::Wardens;
use terse_config::{Args, Fault, Setting, Settings};
use tokio::net::UnixStream;

/// Registrations of a configuration's programs.
pub trait Library: Send + Sync {
    /// The action of that name for a set of rules; it takes its arguments of the line.
    ///
    /// # Errors
    /// There is none, it is none of this set, or arguments are missing.
    fn action(self: Arc<Self>, name: &str, args: &mut Args<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault>;

    /// The service of that name.
    ///
    /// # Errors
    /// There is none, or it is none for this set of rules.
    fn service(self: Arc<Self>, name: &str, args: &mut Args<'_>, set: RuleSet) -> Result<Arc<dyn Applet>, Fault>;

    /// Listens to news of servers, before any of them is checked.
    fn hear(self: Arc<Self>, wardens: &Wardens);

    /// Starts the tasks beside traffic, when a worker begins to serve.
    fn begin(self: Arc<Self>, worker: &Rc<Worker>);
}

/// A service that speaks HTTP/1 on a socket.
pub trait Applet: Send + Sync {
    /// Its name in logs.
    fn name(&self) -> &str;

    /// Begins to serve a stream's request, which is still as rules have left it. It will be sent on the socket, in the form that servers
    /// get it.
    fn start(&self, stream: &mut Stream, socket: UnixStream) -> Box<dyn Play>;
}

/// A running program, for a single stream.
pub trait Play {
    /// Goes on until it waits or ends. A service ends with [`Flow::Next`], or with another flow where it has failed.
    fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Flow>;
}

/// The programs of the configuration that is being read.
#[derive(Clone, Default)]
pub struct Scripts {
    /// Their registrations, once a program is loaded.
    pub library: Option<Arc<dyn Library>>,
    /// Whether a script could not be loaded, which was reported.
    pub has_failed: bool,
}

impl Setting for Scripts {
    fn inherit(&self) -> Scripts {
        self.clone()
    }
}

/// The services that are part of this program, by their names for `use-service`; each is made when a line names it.
#[derive(Clone, Default)]
pub struct BuiltIn(pub Vec<(&'static str, MakeApplet)>);

/// Makes a service for the configuration that is being read.
pub type MakeApplet = fn(&mut Settings) -> Arc<dyn Applet>;

impl Setting for BuiltIn {
    fn inherit(&self) -> BuiltIn {
        self.clone()
    }
}

/// State of a stream's programs.
#[derive(Default)]
pub struct Stage {
    /// The service that answers it, while it does.
    play: Cell<Option<Box<dyn Play>>>,
    /// That service, for its name in logs.
    service: RefCell<Option<Arc<dyn Applet>>>,
    /// Whether it has failed.
    failed: Cell<bool>,
    /// Notes of its programs.
    pub notes: RefCell<Option<Box<dyn Any>>>,
}

impl Stage {
    /// A service begins.
    pub(crate) fn enter(&self, service: Arc<dyn Applet>, play: Box<dyn Play>) {
        self.play.set(Some(play));
        self.service.replace(Some(service));
    }

    /// The service goes, wherever it stands.
    pub(crate) fn clear(&self) {
        self.play.take();
    }

    /// Whether the service has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// The service's name, for logs.
    pub(crate) fn service_name(&self) -> Option<String> {
        self.service.borrow().as_ref().map(|service| service.name().to_owned())
    }
}

/// Lets a stream's service go on, if there is one. Ready once there is none.
pub(crate) fn poll(stream: &mut Stream, cx: &mut Context<'_>) -> Poll<()> {
    let Some(mut play) = stream.facts.stage.get().and_then(|stage| stage.play.take()) else { return Poll::Ready(()) };
    let polled = play.poll(stream, cx);
    if let Some(stage) = stream.facts.stage.get() {
        match polled {
            Poll::Pending => {
                stage.play.set(Some(play));
                return Poll::Pending;
            }
            Poll::Ready(flow) => stage.failed.set(!matches!(flow, Flow::Next)),
        }
    }
    Poll::Ready(())
}

/// Awaits a future, and lets the stream's service go on meanwhile.
pub(crate) async fn beside<T>(stream: &mut Stream, mut future: Pin<&mut impl Future<Output = T>>) -> T {
    poll_fn(|cx| {
        if stream.facts.stage.get().is_some() {
            let _ = poll(stream, cx);
        }
        future.as_mut().poll(cx)
    })
    .await
}

/// Drives an action that waits to its end.
pub(crate) async fn to_its_end(stream: &mut Stream, mut play: Box<dyn Play>) -> Flow {
    let flow = poll_fn(|cx| play.poll(stream, cx)).await;
    ended(stream, flow)
}

/// Notes the rule whose program has ended with more than [`Flow::Next`].
pub(crate) fn ended(stream: &mut Stream, flow: Flow) -> Flow {
    if !matches!(flow, Flow::Next) {
        stream.facts.last_rule = stream.facts.waiting_rule.take();
    }
    flow
}
