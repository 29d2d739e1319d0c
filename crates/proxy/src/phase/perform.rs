//! A service that a program has registered responds, as a server would whose connection ends in this process.

use crate::exchange::{Client, Ended};
use crate::io::clock;
use crate::phase::persist::Bound;
use crate::phase::{answer, prepare, transfer};
use crate::reply;
use crate::script::{self, Applet};
use crate::server::{ServerConnection, clear};
use crate::stream::Stream;
use crate::tunnel;
use std::future::poll_fn;
use std::sync::Arc;
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_message::{Abort, Cause, Phase, Who};
use tokio::net::UnixStream;

/// Has the service respond, to the end of its work.
pub async fn run(client: &mut Client<'_>, stream: &mut Stream, service: Arc<dyn Applet>) -> Result<Ended, Abort> {
    let mut connection = enter(stream, service).await?;
    let mut exchange = prepare::request(client, stream, Bound::default());
    let result = transfer::run(client, &mut connection, stream, &mut exchange).await;
    // A service that is not done with its response has no receiver for it any more.
    drop(connection);
    if result.is_ok() {
        poll_fn(|cx| script::poll(stream, cx)).await;
    }
    let stage = stream.facts.stage.get();
    let failed = stage.is_some_and(|stage| stage.has_failed());
    stage.inspect(|stage| stage.clear());
    match result {
        Ok(ended) => {
            stream.facts.abort = Some(ANSWERED);
            Ok(ended)
        }
        Err(_) if failed && stream.facts.status == 0 => {
            stream.facts.abort = Some(ANSWERED);
            client.take_back();
            let page = reply::page(stream, 500);
            answer::send(client, stream, &page).await
        }
        Err(failure) => Err(failure.abort),
    }
}

/// Has the service serve a connection in mode tcp, to the end of both.
pub async fn bytes(client: &mut Client<'_>, stream: &mut Stream, service: Arc<dyn Applet>) -> Result<(), Abort> {
    let mut connection = enter(stream, service).await?;
    let result = tunnel::connected(client, stream, &mut connection).await;
    stream.facts.stage.get().inspect(|stage| stage.clear());
    result.and(Err(ANSWERED))
}

/// The service begins; the proxy's end of its connection.
async fn enter(stream: &mut Stream, service: Arc<dyn Applet>) -> Result<ServerConnection, Abort> {
    let worker = &stream.facts.session.worker;
    worker.spare_descriptors(None);
    let mut tries = 1;
    let (near, far) = loop {
        match UnixStream::pair() {
            Ok(pair) => break pair,
            Err(error) if clear(worker, None, &error, tries).await => tries += 1,
            Err(error) => {
                EXHAUSTION.note(&error, Purpose::Script);
                return Err(Abort::new(Who::Resource, Phase::Connect, Cause::Exhausted));
            }
        }
    };
    let play = service.start(stream, far);
    stream.facts.stage.get_or_init(Box::default).enter(service, play);
    stream.facts.by_service = true;
    let now = Some(clock::now());
    (stream.facts.times.queued, stream.facts.times.connected) = (now, now);
    stream.facts.figures.phase.set(Phase::Headers);
    Ok(connection(near, stream))
}

/// Termination state in logs of a stream that a service has served.
const ANSWERED: Abort = Abort::new(Who::Local, Phase::Request, Cause::Denied);

fn connection(io: UnixStream, stream: &Stream) -> ServerConnection {
    let session = &stream.facts.session;
    let worker = &session.worker;
    // The other end is the script's.
    let counted = Some(worker.plan.descriptors.count(2));
    ServerConnection::to_service(io, &worker.wheel, session.number, counted)
}
