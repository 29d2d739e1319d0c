//! Bodies of codings within codings, within their limits: nothing panics, no call makes more than a piece, no split changes how it ends,
//! and all memory is given back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::rc::Rc;
use std::sync::Arc;
use terse_compress::decode::body::PIECE_BYTES;
use terse_compress::decode::{
    Ask, Decision, Decompression, Decompressor, Effective, Fault, Limits, Place, Plan, policy, settings::Responses,
};
use terse_compress::{Budget, Limit};
use terse_message::{BodyLength, Request, Response};

const CODINGS: [&str; 8] =
    ["gzip", "gzip, gzip", "br, gzip", "zstd, gzip", "gzip, br", "deflate, zstd", "gzip, deflate, br", "br, br"];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, input)) = input.split_first() else { return };
    let plan = plan(CODINGS[usize::from(choice % 8)]);
    let limits = Limits { max_bytes: 1 << 20, max_ratio: 1 + u32::from(choice / 32) * 100, strict: choice & 8 != 0 };
    let whole = decode(plan, limits, input, input.len().max(1));
    let split = decode(plan, limits, input, usize::from(choice) + 1);
    // A ratio is judged where a push ends; and of two decoders that find something wrong, the split says which is the first.
    if whole != Err(Fault::Ratio) && split != Err(Fault::Ratio) {
        assert_eq!(whole.ok(), split.ok(), "{whole:?}, or {split:?} in steps: {}", input.escape_ascii());
    }
});

/// What a response of that Content-Encoding asks for, to a client that takes none.
fn plan(coding: &str) -> Plan {
    let settings = Decompression { response: Some(Responses::On), ..Decompression::default() };
    let mut request = Request::default();
    request.set_method(b"GET");
    let ask: Box<Ask> = policy::ask(&request, &Effective::new(Some(&settings), None)).expect("it is on");
    let mut response = Response::default();
    (response.status, response.body) = (200, BodyLength::Framed);
    response.fields.push(b"Content-Encoding", coding.as_bytes());
    match policy::decide(&ask, &response, false) {
        Decision::Decode(plan) => plan,
        other => panic!("{coding}: {other:?}"),
    }
}

/// How many bytes came out, or why not.
fn decode(plan: Plan, limits: Limits, input: &[u8], step: usize) -> Result<u64, Fault> {
    let limit = Arc::new(Limit::new(256 << 20));
    let place = Rc::new(Place::new(limit.clone()));
    let mut decompressor = Decompressor::new(plan, limits, &place).expect("there is memory");
    let mut run = || {
        for piece in input.chunks(step) {
            let mut at = 0;
            loop {
                let pushed = decompressor.push(&piece[at..])?;
                assert!(decompressor.output().len() <= PIECE_BYTES);
                decompressor.clear_output();
                at += pushed.taken;
                if !pushed.more {
                    assert_eq!(at, piece.len());
                    break;
                }
            }
            decompressor.relax();
        }
        decompressor.finish().map(|()| decompressor.bytes_out())
    };
    let result = run();
    drop(decompressor);
    assert!(limit.used() == 0 && limit.take(256 << 20), "all memory is given back");
    result
}
