//! Choosing the backend: `use_backend`, `default_backend`.

use crate::plan::roll::Held;
use crate::session::Session;
use crate::settings::SwitchTarget;
use crate::stream::Stream;
use std::sync::atomic::Ordering::Relaxed;
use terse_message::{Abort, Cause, Phase, Who};

/// Chooses the stream's backend.
pub fn choose(stream: &mut Stream) -> Result<(), Abort> {
    let session = stream.facts.session.clone();
    stream.facts.backend = find(stream, &session);
    stream.facts.figures.backend.set(stream.facts.backend().map(|backend| backend.number));
    match stream.facts.backend() {
        Some(backend) => {
            let counters = backend.tally.of(session.worker.index);
            counters.enter();
            counters.sessions.add(1);
            Ok(())
        }
        None => Err(Abort::new(Who::Server, Phase::Connect, Cause::NoServer)),
    }
}

/// The backend that the frontend's lines name for the stream as it is now. Backends that are not published are passed over,
/// unless a line of the frontend forces the use.
pub fn find(stream: &Stream, session: &Session) -> Option<Held> {
    let (frontend, worker) = (session.frontend(), &session.worker);
    let forced = frontend.forced_switches.iter().any(|condition| condition.eval(&stream.env()));
    let is_open = |backend: &Held| forced || backend.is_published.load(Relaxed);
    for (switch, known) in &frontend.switches {
        if switch.condition.as_ref().is_some_and(|condition| !condition.eval(&stream.env())) {
            continue;
        }
        let chosen = match (&switch.target, known) {
            (_, Some(number)) => worker.backend(*number),
            (SwitchTarget::Format(format), None) => {
                let mut name = Vec::new();
                format.write(&stream.env(), &mut name);
                worker.backend_named(&name)
            }
            (SwitchTarget::Name(_), None) => None,
        };
        match chosen {
            Some(backend) if is_open(&backend) => return Some(backend),
            Some(_) => {}
            // As with HAProxy, a name from an expression that names no backend leaves the choice to the default.
            None => break,
        }
    }
    let default = worker.backend(frontend.default_backend?)?;
    (default.twin == Some(session.frontend) || is_open(&default)).then_some(default)
}
