//! Accepting: from a listener to a session's task.

use crate::access::{Access, Listener, Turn};
use crate::connection::downstream::ClientConnection;
use crate::connection::run;
use crate::effort::Measured;
use crate::gate::State;
use crate::io::Transport;
use crate::session::Session;
use crate::settings::BindSettings;
use crate::worker::{Control, Worker};
use socket2::SockRef;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

/// Accepts for the `bind` line's address of that index, until the worker drains.
pub fn spawn(worker: &Rc<Worker>, bind: usize, access: Access) -> io::Result<()> {
    match access {
        Access::Own(listener) => {
            tokio::task::spawn_local(accept(worker.clone(), bind, Accepting::new(listener)?));
        }
        Access::Shared(turn) => {
            tokio::task::spawn_local(accept_in_turn(worker.clone(), bind, turn));
        }
    }
    Ok(())
}

enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Delay of the next accept after the kernel had no descriptor or memory for it: others must release some first.
const BREATH: Duration = Duration::from_millis(100);
/// Interval at which a worker without room checks whether other workers' connections have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A connection and its client's address over IP.
type Accepted = (Transport, Option<SocketAddr>);

async fn accept(worker: Rc<Worker>, bind: usize, mut listener: Accepting) {
    while let Some((accepted, place)) = next(&worker, bind, &mut listener).await {
        serve(&worker, bind, accepted, place);
    }
}

async fn accept_in_turn(worker: Rc<Worker>, bind: usize, mut turn: Turn) {
    let mut control = worker.watch_control();
    loop {
        let listener = tokio::select! {
            biased;
            _ = control.wait_for(|c| *c != Control::Running) => return,
            listener = turn.wait() => listener,
        };
        let Some(Ok(mut listener)) = listener.map(Accepting::new) else { return };
        let Some((accepted, place)) = next(&worker, bind, &mut listener).await else { return };
        let left = listener.into_listener().map(|listener| turn.pass(listener));
        serve(&worker, bind, accepted, place);
        let Ok(left) = left else { return };
        // Without another worker to hand the listener to, this worker keeps it.
        match left.map(Accepting::new) {
            None => {}
            Some(Ok(listener)) => return accept(worker, bind, listener).await,
            Some(Err(_)) => return,
        }
    }
}

/// The next connection and its place within the limits; `None` when the worker drains. Connections beyond the limits are not
/// served yet: this one waits here, the next ones in the kernel.
async fn next(worker: &Rc<Worker>, bind: usize, listener: &mut Accepting) -> Option<(Accepted, Place)> {
    let mut control = worker.watch_control();
    let mut gate = worker.plan.frontends[worker.plan.binds[bind].frontend].gate.watch();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = control.wait_for(|c| *c != Control::Running) => return None,
            () = async { drop(gate.wait_for(|state| *state != State::Open).await) } => {
                let settings = &worker.plan.binds[bind].settings;
                let mut control = worker.watch_control();
                tokio::select! {
                    _ = control.wait_for(|c| *c != Control::Running) => return None,
                    opens = pause(listener, settings, &mut gate) => if !opens { return None },
                }
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => return Some((accepted, Place::wait_for(worker, bind).await)),
            Err(error) if is_exhausted(&error) => {
                EXHAUSTION.note(&error, Purpose::Accept);
                // A place that another worker frees is free well before the next look.
                worker.make_room(None);
                tokio::time::sleep(BREATH).await;
            }
            // The connection was gone before it was accepted.
            Err(_) => {}
        }
    }
}

/// Waits until the frontend takes connections again; false when it will not. Its address refuses connections meanwhile, where
/// that can be taken back: connections of a unix socket wait, and so do those of a socket that other processes hold as well,
/// which may accept them.
async fn pause(listener: &mut Accepting, settings: &BindSettings, gate: &mut watch::Receiver<State>) -> bool {
    let own = match listener {
        Accepting::Tcp(io) if !settings.address.starts_with("fd@") => Some(SockRef::from(&*io)),
        _ => None,
    };
    let address = own.as_ref().and_then(|own| own.local_addr().ok());
    if let Some(own) = &own {
        let _ = own.shutdown(Shutdown::Read);
    }
    let opens = gate.wait_for(|state| *state != State::Paused).await.is_ok_and(|state| *state == State::Open);
    if let (true, Some(own)) = (opens, &own) {
        // A port that the kernel had chosen is forgotten; otherwise the socket still has its address.
        let _ = address.map(|address| own.bind(&address));
        let _ = own.listen(settings.backlog.and_then(|backlog| i32::try_from(backlog).ok()).unwrap_or(i32::MAX));
        // The runtime takes the socket that it knows for closed.
        let fresh = loop {
            match own.try_clone().and_then(|again| TcpListener::from_std(again.into())) {
                Ok(fresh) => break fresh,
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        };
        *listener = Accepting::Tcp(fresh);
    }
    opens
}

fn serve(worker: &Rc<Worker>, bind: usize, (io, client): Accepted, place: Place) {
    worker.spare_descriptors(None);
    let session = Session::new(worker, bind, &io, client);
    let options = &session.frontend().options;
    io.apply(options.client_probes.asked().as_ref(), options.no_linger);
    let effort = session.effort.clone();
    let client = ClientConnection::new(io, worker.wheel.timer());
    let serve = run(client, session, place);
    match effort {
        None => tokio::task::spawn_local(serve),
        Some(effort) => tokio::task::spawn_local(Measured::new(serve, effort)),
    };
}

fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

impl Accepting {
    fn new(listener: Listener) -> io::Result<Accepting> {
        Ok(match listener {
            Listener::Tcp(io) => Accepting::Tcp(TcpListener::from_std(io)?),
            Listener::Unix(io) => Accepting::Unix(UnixListener::from_std(io)?),
        })
    }

    fn into_listener(self) -> io::Result<Listener> {
        Ok(match self {
            Accepting::Tcp(io) => Listener::Tcp(io.into_std()?),
            Accepting::Unix(io) => Listener::Unix(io.into_std()?),
        })
    }

    /// The next connection, and its client's address over IP.
    async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            Accepting::Tcp(io) => {
                let (io, client) = io.accept().await?;
                (Transport::from_tcp(io), Some(client))
            }
            Accepting::Unix(io) => (Transport::Unix(io.accept().await?.0), None),
        })
    }
}

/// A connection's place within the limits of the process and of its frontend.
struct Place {
    worker: Rc<Worker>,
    bind: usize,
}

impl Place {
    async fn wait_for(worker: &Rc<Worker>, bind: usize) -> Place {
        loop {
            // A connection that was accepted before a drain is served all the same: no other worker can.
            if let Some(place) = Place::take(worker, bind, !worker.is_running()) {
                return place;
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, worker.released.notified()).await;
        }
    }

    fn take(worker: &Rc<Worker>, bind: usize, beyond_limits: bool) -> Option<Place> {
        let address = &worker.plan.binds[bind];
        let (front, limits, is_tls) = (&worker.plan.frontends[address.frontend], &worker.plan.limits, address.tls.is_some());
        if !beyond_limits && (limits.memory.is_closed() || limits.rates(is_tls).any(|rate| rate.is_reached(worker.now_ms()))) {
            return None;
        }
        let rate = front.session_rate.as_ref().filter(|_| !beyond_limits);
        let now_ms = rate.map_or(0, |_| worker.now_ms());
        if rate.is_some_and(|(limit, rate)| rate.per_second(now_ms) >= *limit) {
            return None;
        }
        if !front.tally.admit(if beyond_limits { 0 } else { front.tally.limit() }) {
            return None;
        }
        // In this order: giving a worker's place back would wake the task that waits here, over and over.
        if !worker.admit(beyond_limits) {
            front.tally.leave();
            return None;
        }
        if !address.admit(beyond_limits) {
            front.tally.leave();
            worker.give_back_place();
            return None;
        }
        if is_tls && !limits.admit_tls(beyond_limits) {
            address.leave();
            front.tally.leave();
            worker.give_back_place();
            return None;
        }
        rate.inspect(|(_, rate)| rate.add(now_ms, 1));
        limits.rates(is_tls).for_each(|rate| rate.count(worker.now_ms()));
        let counters = front.tally.of(worker.index);
        counters.connections.add(1);
        counters.enter();
        if let Some(tally) = &address.tally {
            tally.of(worker.index).enter();
        }
        Some(Place { worker: worker.clone(), bind })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let bind = &self.worker.plan.binds[self.bind];
        let tally = &self.worker.plan.frontends[bind.frontend].tally;
        tally.of(self.worker.index).current.sub(1);
        tally.leave();
        if let Some(tally) = &bind.tally {
            tally.of(self.worker.index).current.sub(1);
        }
        bind.leave();
        if bind.tls.is_some() {
            self.worker.plan.limits.leave_tls();
        }
        self.worker.release();
    }
}
