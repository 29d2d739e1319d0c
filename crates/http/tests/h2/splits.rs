//! No split of the input changes the events.

use crate::peer::*;
use proptest::prelude::*;
use std::time::Instant;
use terse_http::h2::hpack::Encoder;
use terse_http::h2::{Connection, Event, Limits, PREFACE};

/// Data by stream, in the order it came.
type Received = Vec<(u32, Vec<u8>)>;

/// The events, the data, and the output.
fn record(pieces: impl Iterator<Item = Vec<u8>>) -> (Vec<Event>, Received, Vec<u8>) {
    let mut connection = Connection::server(Limits::default());
    let (mut events, mut data, now) = (Vec::new(), Vec::<(u32, Vec<u8>)>::new(), Instant::now());
    for piece in pieces {
        let mut rest = &piece[..];
        loop {
            let (used, event) = connection.receive(rest, now);
            rest = &rest[used..];
            let Some(event) = event else { break };
            if let Event::Data { id, .. } = event {
                let mut taken = Vec::new();
                connection.take_data(id, &mut taken);
                match data.last_mut() {
                    Some((last, all)) if *last == id => all.extend_from_slice(&taken),
                    _ => data.push((id, taken)),
                }
            }
            // A frame may come as several events.
            if !matches!(event, Event::Data { end: false, .. }) {
                events.push(event);
            }
        }
    }
    data.retain(|(_, bytes)| !bytes.is_empty());
    (events, data, connection.output().to_vec())
}

/// Frames that make some sense.
fn session() -> impl Strategy<Value = Vec<u8>> {
    let mut encoder = Encoder::default();
    let mut heads = Vec::new();
    for head in [&GET, &POST] {
        let mut block = Vec::new();
        head.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), &mut block));
        heads.push(block);
    }
    let kind = prop_oneof![4 => Just(DATA), 4 => Just(HEADERS), 1 => 2..11u8];
    let payload = prop_oneof![
        proptest::sample::select(heads),
        proptest::collection::vec(any::<u8>(), 0..40),
        Just(vec![0; 4]),
        Just(vec![0; 8]),
    ];
    let one = (kind, prop_oneof![Just(END_HEADERS), Just(END_HEADERS | END_STREAM), any::<u8>()], 0..12u32, payload);
    proptest::collection::vec(one, 0..12).prop_map(|all| {
        let start = [PREFACE, &frame(SETTINGS, 0, 0, b"")].concat();
        all.into_iter().fold(start, |bytes, (kind, flags, id, payload)| [bytes, frame(kind, flags, id, &payload)].concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_split_of_the_input_changes_what_is_said(session in session(), cuts in proptest::collection::vec(1..30usize, 1..50)) {
        let whole = record(std::iter::once(session.clone()));
        let mut rest = &session[..];
        let mut cuts = cuts.into_iter().cycle();
        let pieces = std::iter::from_fn(|| {
            let (piece, more) = rest.split_at(cuts.next()?.min(rest.len()));
            rest = more;
            (!piece.is_empty()).then(|| piece.to_vec())
        });
        prop_assert_eq!(record(pieces), whole);
    }
}
