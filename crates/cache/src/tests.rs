use super::*;
use terse_http::h1;
use terse_message::Conformance;
use terse_message::body::Listener;

const SECOND: i64 = 1000;
const NOW: i64 = 784_111_777_000;

fn cache(settings: CacheSettings) -> Arc<Cache> {
    Arc::new(Cache::new("c".into(), settings, &[7; 32]))
}

fn small() -> Arc<Cache> {
    cache(CacheSettings { total_mbytes: Some(1), max_object_bytes: Some(300_000), vary: true, ..CacheSettings::default() })
}

fn request(target: &str, fields: &str) -> Request {
    let head = format!("GET {target} HTTP/1.1\r\nHost: Example.org\r\n{fields}\r\n");
    let mut request = Request::default();
    assert_eq!(h1::parse_request(head.as_bytes(), &mut request), Ok(h1::Parsed::Complete(head.len())));
    request
}

fn response(fields: &str) -> Response {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    let mut response = Response::default();
    assert_eq!(h1::parse_response(head.as_bytes(), b"GET", &mut response), Ok(h1::Parsed::Complete(head.len())));
    response
}

/// A rule's lookup in the cache.
fn met(cache: &Arc<Cache>, request: &Request, over_tls: bool) -> Option<Asked> {
    cache.meet(request, over_tls, Selecting::of(&request.fields, false, Conformance::Rfc))
}

/// Begins to record the answer to a request.
fn begin(cache: &Arc<Cache>, request: &Request, fields: &str, now_ms: i64) -> Option<Recording> {
    cache.record(&met(cache, request, false)?, &response(fields), now_ms, 0)
}

/// Keeps a response with this body; false where it is not kept.
fn keep(cache: &Arc<Cache>, request: &Request, fields: &str, body: &[u8], now_ms: i64) -> bool {
    let Some(mut recording) = begin(cache, request, fields, now_ms) else { return false };
    body.chunks(1000).for_each(|part| _ = recording.hear(part));
    Box::new(recording).end();
    look(cache, request, now_ms).is_some()
}

fn look(cache: &Arc<Cache>, request: &Request, now_ms: i64) -> Option<Hit> {
    cache.look(&met(cache, request, false)?, now_ms)
}

fn body(entry: &Entry) -> Vec<u8> {
    (0..).map(|at| entry.piece(at)).take_while(|piece| !piece.is_empty()).flatten().copied().collect()
}

const FRESH: &str = "Cache-Control: max-age=10\r\n";

#[test]
fn what_is_kept_comes_back_until_it_is_stale() {
    let cache = small();
    let text: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    let asked = request("/a?b", "");
    let fields = "Cache-Control: max-age=10\r\nAge: 2\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\nX: y\r\n";
    assert!(keep(&cache, &asked, fields, &text, NOW));
    let hit = look(&cache, &request("http://Example.org/a?b", ""), NOW + 3 * SECOND).unwrap();
    assert_eq!((hit.age, hit.entry.body_bytes()), (5, 100_000));
    assert!(body(&hit.entry) == text);
    let head = String::from_utf8_lossy(&hit.entry.head);
    assert_eq!(head, "HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nX: y\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n");
    for other in ["/a", "/a?c", "/A?b"] {
        assert!(look(&cache, &request(other, ""), NOW).is_none(), "{other}");
    }
    assert!(look(&cache, &asked, NOW + 8 * SECOND - 1).is_some());
    assert!(look(&cache, &asked, NOW + 8 * SECOND).is_none(), "it was two seconds old when it came");
}

#[test]
fn the_scheme_is_part_of_a_resource() {
    let cache = small();
    let key = |target: &str, over_tls| met(&cache, &request(target, ""), over_tls).unwrap().key;
    let (plain, secure) = (key("/a", false), key("/a", true));
    assert_ne!(plain, secure);
    assert_eq!((key("http://Example.org/a", false), key("HTTPS://example.ORG/a", true)), (plain, secure));
    // A scheme that contradicts the connection makes another resource.
    let others = [key("https://example.org/a", false), key("http://example.org/a", true)];
    assert!(others.iter().all(|other| ![plain, secure].contains(other)) && others[0] != others[1]);
    assert_eq!(key("/a?b=x://y", false), key("http://example.org/a?b=x://y", false));
}

#[test]
fn requests_may_want_less() {
    let cache = small();
    assert!(keep(&cache, &request("/", ""), FRESH, b"x", NOW));
    let later = NOW + 4 * SECOND;
    for (fields, served) in [
        ("Cache-Control: max-age=4\r\n", true),
        ("Cache-Control: max-age=3\r\n", false),
        ("Cache-Control: max-age=x\r\n", false),
        ("Cache-Control: min-fresh=6\r\n", true),
        ("Cache-Control: min-fresh=7\r\n", false),
        ("Cache-Control: max-stale\r\n", true),
    ] {
        assert_eq!(look(&cache, &request("/", fields), later).is_some(), served, "{fields}");
    }
    for (fields, served) in [
        ("", true),
        ("Cache-Control: no-cache\r\n", false),
        ("Pragma: no-cache\r\n", false),
        ("Authorization: Basic x\r\n", false),
        ("Content-Length: 3\r\n", false),
    ] {
        assert_eq!(met(&cache, &request("/", fields), false).unwrap().may_answer, served, "{fields}");
    }
    assert!(begin(&cache, &request("/no", "Cache-Control: no-store\r\n"), FRESH, NOW).is_none());
    assert!(begin(&cache, &request("/no", "Authorization: x\r\n"), FRESH, NOW).is_none());
}

#[test]
fn only_whole_responses_of_the_right_size_are_kept() {
    let cache = small();
    let asked = request("/", "");
    assert!(begin(&cache, &asked, "Cache-Control: max-age=10\r\nContent-Length: 300000\r\n", NOW).is_none());
    assert!(!keep(&cache, &asked, FRESH, &[0; 300_000], NOW));
    let mut broken = begin(&cache, &asked, FRESH, NOW).unwrap();
    broken.hear(b"part");
    drop(broken);
    assert!(look(&cache, &asked, NOW).is_none());
    assert_eq!(cache.free_bytes(), 1 << 20, "nothing is left of it");
    assert!(keep(&cache, &asked, FRESH, b"", NOW));
}

/// The least recently used response is evicted; a response that is being sent stays, and counts.
#[test]
fn the_memory_is_bounded() {
    let cache = small();
    let asked: Vec<Request> = (0..5).map(|n| request(&format!("/{n}"), "")).collect();
    let size = [0; 290_000];
    for request in &asked[..3] {
        assert!(keep(&cache, request, FRESH, &size, NOW));
    }
    assert!(look(&cache, &asked[0], NOW).is_some());
    assert!(keep(&cache, &asked[3], FRESH, &size, NOW));
    let there: Vec<bool> = asked.iter().map(|request| look(&cache, request, NOW).is_some()).collect();
    assert_eq!(there, [true, false, true, true, false]);
    let sent: Vec<Hit> = asked.iter().filter_map(|request| look(&cache, request, NOW)).collect();
    assert!(!keep(&cache, &asked[4], FRESH, &size, NOW));
    drop(sent);
    assert!(keep(&cache, &asked[4], FRESH, &size, NOW));
    let held: usize = cache.list().iter().map(|listed| listed.entry.size_bytes()).sum();
    assert_eq!(held + cache.free_bytes(), 1 << 20);
}

#[test]
fn one_records_and_whoever_is_slow_is_overtaken() {
    let cache = small();
    let asked = request("/", "");
    let slow = begin(&cache, &asked, FRESH, NOW).unwrap();
    assert!(begin(&cache, &asked, FRESH, NOW + SECOND).is_none());
    assert!(keep(&cache, &asked, FRESH, b"quick", NOW + 3 * SECOND));
    Box::new(slow).end();
    assert_eq!(body(&look(&cache, &asked, NOW + 3 * SECOND).unwrap().entry), b"quick");
}

#[test]
fn what_was_changed_is_forgotten() {
    let cache = small();
    let asked = request("/", "");
    assert!(keep(&cache, &asked, FRESH, b"old", NOW));
    let key = met(&cache, &asked, false).unwrap().key;
    cache.forget(&key);
    assert!(look(&cache, &asked, NOW).is_none());
    let old = begin(&cache, &asked, FRESH, NOW).unwrap();
    cache.forget(&key);
    Box::new(old).end();
    assert!(look(&cache, &asked, NOW).is_none(), "it was on its way before the change");
    let before = met(&cache, &asked, false).unwrap();
    cache.forget(&key);
    assert!(cache.record(&before, &response(FRESH), NOW, 0).is_none(), "it was asked for before the change");
    assert!(keep(&cache, &asked, FRESH, b"new", NOW));
    for (method, unsafe_one) in [("GET", false), ("HEAD", false), ("OPTIONS", false), ("PUT", true), ("BREW", true)] {
        assert_eq!(is_unsafe(method.as_bytes()), unsafe_one);
    }
}

#[test]
fn responses_that_vary() {
    let cache = cache(CacheSettings { total_mbytes: Some(1), vary: true, max_variants: Some(2), ..CacheSettings::default() });
    let from = |referer: &str| request("/", &format!("Referer: {referer}\r\n"));
    let fields = "Cache-Control: max-age=10\r\nVary: Referer\r\n";
    assert!(keep(&cache, &from("a"), fields, b"a", NOW) && keep(&cache, &from("b"), fields, b"b", NOW));
    assert!(!keep(&cache, &from("c"), fields, b"c", NOW), "two are enough");
    assert_eq!(body(&look(&cache, &from("a"), NOW).unwrap().entry), b"a");
    assert!(look(&cache, &request("/", ""), NOW).is_none());
    assert!(keep(&cache, &from("c"), fields, b"c", NOW + 10 * SECOND), "the others are stale");
    let off = super::tests::cache(CacheSettings { total_mbytes: Some(1), ..CacheSettings::default() });
    assert!(!keep(&off, &from("a"), fields, b"a", NOW));
}

#[test]
fn hints_stay_when_their_response_goes() {
    let settings = CacheSettings { total_mbytes: Some(1), max_object_bytes: Some(500_000), ..CacheSettings::default() };
    let hinting = |early_hints| cache(CacheSettings { early_hints, hint_percent: Some(1), ..settings.clone() });
    let fields = "Cache-Control: max-age=10\r\nLink: <a>; rel=preload\r\n";
    let on = hinting(EarlyHints::On);
    let asked: Vec<Request> = (0..13).map(|n| request(&format!("/{n}"), "")).collect();
    let key = |request: &Request| met(&on, request, false).unwrap().key;
    assert!(asked.iter().all(|request| keep(&on, request, fields, &[0; 400_000], NOW)));
    assert_eq!((on.list().len(), on.list_hints().len()), (2, 10));
    assert!(on.hints(&key(&asked[0])).is_none(), "ten blocks are a hundredth of the cache");
    assert_eq!(&*on.hints(&key(&asked[1])).unwrap()[0], b"<a>; rel=preload");
    assert!(on.hints(&key(&asked[12])).is_some(), "of a response that is stale they are told too");
    on.forget(&key(&asked[1]));
    assert!(on.hints(&key(&asked[1])).is_none());
    let only = hinting(EarlyHints::Only);
    assert!(!keep(&only, &asked[0], fields, b"x", NOW) && only.list_hints().len() == 1);
    let off = hinting(EarlyHints::Off);
    assert!(keep(&off, &asked[0], fields, b"x", NOW) && off.hints(&key(&asked[0])).is_none());
}
