//! Vectors of RFC 7541 Appendix C, and the crate `hpack` as an oracle.

use super::*;
use proptest::prelude::*;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Pairs, Stop> {
    let mut pairs = Pairs::new();
    decoder.decode(block, &mut Vec::new(), |lines, line| {
        assert_eq!(lines[line.value.end..], *b"\r\n");
        pairs.push((lines[line.name].to_vec(), lines[line.value].to_vec()));
        true
    })?;
    Ok(pairs)
}

fn encode(encoder: &mut Encoder, pairs: &Pairs) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    pairs.iter().for_each(|(name, value)| encoder.field(name, value, &mut out));
    out
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn pairs(lines: &[(&str, &str)]) -> Pairs {
    lines.iter().map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect()
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];

#[test]
fn appendix_c_2_single_fields() {
    for (block, field) in [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", ("custom-key", "custom-header")),
        ("040c2f73616d706c652f70617468", (":path", "/sample/path")),
        ("100870617373776f726406736563726574", ("password", "secret")),
        ("82", (":method", "GET")),
    ] {
        assert_eq!(decode(&mut Decoder::default(), &hex(block)), Ok(pairs(&[field])));
    }
}

#[test]
fn appendix_c_3_and_c_4_requests() {
    let second = [&GET[..], &[("cache-control", "no-cache")]].concat();
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    for blocks in [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        ["828684418cf1e3c2e5f23a6ba0ab90f4ff", "828684be5886a8eb10649cbf", "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"],
    ] {
        let mut decoder = Decoder::default();
        for (block, expected) in blocks.iter().zip([&GET[..], &second, &third]) {
            assert_eq!(decode(&mut decoder, &hex(block)), Ok(pairs(expected)));
        }
    }
    // The encoder writes the same blocks as the RFC's.
    let mut encoder = Encoder::default();
    assert_eq!(encode(&mut encoder, &pairs(&GET)), hex("828684418cf1e3c2e5f23a6ba0ab90f4ff"));
    assert_eq!(encode(&mut encoder, &pairs(&second)), hex("828684be5886a8eb10649cbf"));
    assert_eq!(encode(&mut encoder, &pairs(&third)), hex("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"));
}

#[test]
fn appendix_c_5_and_c_6_responses_with_eviction() {
    let (private, date) = (("cache-control", "private"), ("date", "Mon, 21 Oct 2013 20:13:21 GMT"));
    let location = ("location", "https://www.example.com");
    let heads = [
        vec![(":status", "302"), private, date, location],
        vec![(":status", "307"), private, date, location],
        vec![
            (":status", "200"),
            private,
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            location,
            ("content-encoding", "gzip"),
            ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
        ],
    ];
    let plain = [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
    ];
    let coded = [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        decoder.decode(&hex("3fe101"), &mut Vec::new(), |_, _| true).unwrap();
        for (block, head) in blocks.iter().zip(&heads) {
            assert_eq!(decode(&mut decoder, &hex(block)), Ok(pairs(head)));
        }
    }
}

#[test]
fn blocks_that_are_none() {
    for block in [
        "80",             // index 0
        "be",             // an entry that is not there
        "40",             // no name
        "400161",         // no value
        "4001610561",     // a value that is too short
        "00850000000000", // padding of zeros
        "823fe101",       // a change of size behind a field
        "3fe11f82ff",     // an index that does not end
        "3fe21f",         // more than the limit
    ] {
        assert_eq!(decode(&mut Decoder::default(), &hex(block)), Err(Stop::Malformed), "{block}");
    }
    assert_eq!(decode(&mut Decoder::default(), &hex("3fe11f2082")), Ok(pairs(&[(":method", "GET")])));
}

#[test]
fn secrets_are_never_indexed() {
    let mut encoder = Encoder::default();
    for (name, value, bits) in [("authorization", "Basic eDp5", 0x10), ("cookie", "a=1", 0x10), ("content-length", "17", 0)] {
        for _ in 0..2 {
            assert_eq!(encode(&mut encoder, &pairs(&[(name, value)]))[0] & 0xf0, bits, "{name}");
        }
    }
}

#[test]
fn changes_of_the_tables_size_are_told_once() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let head = pairs(&[("x-a", "1"), ("x-b", "2")]);
    for sizes in [&[4096][..], &[0], &[64, 4096], &[10, 100_000, 50], &[4096]] {
        sizes.iter().for_each(|size| encoder.resize(*size));
        for _ in 0..3 {
            assert_eq!(decode(&mut decoder, &encode(&mut encoder, &head)), Ok(head.clone()));
        }
        assert_eq!(encoder.table.limit(), decoder.table.limit());
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(heads in proptest::collection::vec(fields(), 1..6)) {
        let (mut encoder, mut ours, mut oracle) = (Encoder::default(), Decoder::default(), hpack::Decoder::new());
        for head in heads {
            let block = encode(&mut encoder, &head);
            prop_assert_eq!(decode(&mut ours, &block), Ok(head.clone()));
            prop_assert_eq!(oracle.decode(&block).ok(), Some(head));
        }
    }

    #[test]
    fn what_another_encodes_is_decoded(heads in proptest::collection::vec(fields(), 1..6)) {
        let (mut encoder, mut decoder) = (hpack::Encoder::new(), Decoder::default());
        for head in heads {
            let block = encoder.encode(head.iter().map(|(n, v)| (&n[..], &v[..])));
            prop_assert_eq!(decode(&mut decoder, &block), Ok(head));
        }
    }

    #[test]
    fn no_block_panics(block in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&mut Decoder::default(), &block);
    }
}

fn fields() -> impl Strategy<Value = Pairs> {
    let name = prop_oneof![
        Just(b"x-one".to_vec()),
        Just(b"cookie".to_vec()),
        Just(b":path".to_vec()),
        Just(b"accept".to_vec()),
        "[a-z-]{1,20}".prop_map(String::into_bytes),
    ];
    let value = prop_oneof![Just(b"same".to_vec()), proptest::collection::vec(any::<u8>(), 0..300)];
    proptest::collection::vec((name, value), 0..30)
}
