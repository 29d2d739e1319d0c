//! A response's body from the server to the client.

use crate::io::{Part, Sink, Source};
use crate::phase::respond::{PAUSE, from_server, to_client};
use crate::phase::transfer::Failure;
use terse_compress::Compressor;
use terse_http::h1::head::parse_trailers;
use terse_message::{Cause, Fields, Phase, Who};

/// Moves a body as it is.
pub async fn pass(down: &mut Source<'_>, sink: &mut Sink<'_>) -> Result<(), Failure> {
    loop {
        match down.part().map_err(from_server)? {
            Some(Part::Data(n)) => {
                sink.send(down.data(n)).await.map_err(|e| to_client(&e))?;
                down.consume(n);
            }
            Some(Part::End) => return sink.finish(down.trailers()).await.map_err(|e| to_client(&e)),
            None => {
                sink.flush().await.map_err(|e| to_client(&e))?;
                down.more().await.map_err(from_server)?;
            }
        }
    }
}

/// Reads a body to its end: the client has asked for the head alone.
pub async fn discard(down: &mut Source<'_>, sink: &mut Sink<'_>) -> Result<(), Failure> {
    sink.flush().await.map_err(|e| to_client(&e))?;
    loop {
        match down.part().map_err(from_server)? {
            Some(Part::Data(n)) => down.consume(n),
            Some(Part::End) => return Ok(()),
            None => down.more().await.map_err(from_server)?,
        }
    }
}

/// Moves a body through a coder. What the server has sent before a pause reaches the client decodable.
pub async fn compress(down: &mut Source<'_>, sink: &mut Sink<'_>, coder: &mut Compressor) -> Result<(), Failure> {
    loop {
        match down.part().map_err(from_server)? {
            Some(Part::Data(n)) => {
                let step = coder.feed(down.data(n)).map_err(|_| fault())?;
                down.consume(n);
                coder.settle(step).await.map_err(|_| fault())?;
                deliver(coder, sink).await?;
            }
            Some(Part::End) => {
                let step = coder.finish().map_err(|_| fault())?;
                coder.settle(step).await.map_err(|_| fault())?;
                deliver(coder, sink).await?;
                let trailers = trailers(down.trailers());
                return sink.finish(&trailers).await.map_err(|e| to_client(&e));
            }
            None => {
                if !wait(down, coder, sink).await? {
                    let step = coder.pause().map_err(|_| fault())?;
                    coder.settle(step).await.map_err(|_| fault())?;
                    deliver(coder, sink).await?;
                    sink.flush().await.map_err(|e| to_client(&e))?;
                    down.more().await.map_err(from_server)?;
                }
            }
        }
    }
}

/// Reads more; false when the server pauses and something waits for it in the coder or the sink.
async fn wait(down: &mut Source<'_>, coder: &Compressor, sink: &mut Sink<'_>) -> Result<bool, Failure> {
    if !coder.has_pending() && sink.out.is_empty() {
        down.more().await.map_err(from_server)?;
        return Ok(true);
    }
    match tokio::time::timeout(PAUSE, down.more()).await {
        Ok(more) => more.map(|()| true).map_err(from_server),
        Err(_) => Ok(false),
    }
}

/// Hands on what has come out of the coder.
async fn deliver(coder: &mut Compressor, sink: &mut Sink<'_>) -> Result<(), Failure> {
    // Taken, not borrowed: a coder that waits for its server keeps no memory for output.
    let output = std::mem::take(coder.output());
    sink.send(&output).await.map_err(|e| to_client(&e))
}

/// The trailers that still hold of a compressed body.
fn trailers(raw: &[u8]) -> Vec<u8> {
    let mut fields = Fields::default();
    let mut out = Vec::new();
    if !raw.is_empty() && parse_trailers(raw, &mut fields).is_ok() {
        terse_compress::head::apply_trailers(&mut fields);
        fields.write_to(&mut out);
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn fault() -> Failure {
    Failure::late(Who::Internal, Phase::Data, Cause::Fault)
}
