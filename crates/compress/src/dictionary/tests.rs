use super::*;
use crate::policy::{self, Decision, Link, Load};
use crate::settings::{Effective, Process};
use crate::testing::{lines, load, read as read_file, reasons, request, response};
use crate::{Offer, Pace};
use terse_dictionary::Hash;

const BYTES: &[u8] = b"the bytes of a dictionary";
const SECTION: &str = "dictionary d\n file /d\n match /app/*\n";

/// The settings of the proxy `l` behind sections.
fn settings(text: &str) -> (Option<Compression>, Stock, Vec<String>) {
    let (mut config, mut diagnostics) = read_file(&[crate::keywords::KEYWORDS, KEYWORDS], text);
    let files = |path: &str, _: u64| match path {
        "/d" => Ok(BYTES.to_vec()),
        "/e" => Ok(b"others".to_vec()),
        "/empty" => Ok(Vec::new()),
        _ => Err("no such file".to_owned()),
    };
    let stock = settle(&mut config.sections, &files, &mut diagnostics);
    let listen = config.sections.iter_mut().find(|section| section.kind == SectionKind::Listen);
    let compression = listen.and_then(|section| section.settings.take::<Compression>()).map(Compression::settled);
    (compression, stock, reasons(&diagnostics))
}

fn available(bytes: &[u8]) -> String {
    // Base64 of 32 bytes, for tests alone.
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hash = Hash::of(bytes).0;
    let mut out = String::from("Available-Dictionary: :");
    for three in hash.chunks(3) {
        let word = three.iter().chain(&[0; 3]).take(3).fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i <= three.len() { digit } else { '=' });
        }
    }
    out + ":"
}

struct Proxy {
    compression: Compression,
    process: Process,
    link: Link,
}

impl Proxy {
    fn new(lines: &str) -> Proxy {
        let (compression, _, said) = settings(&format!("{SECTION}listen l\n compression on\n{lines}"));
        assert_eq!(said, [""; 0]);
        let link = Link { is_secure: true, ..Link::default() };
        Proxy { compression: compression.unwrap(), process: Process::default(), link }
    }

    fn effective(&self) -> Effective<'_> {
        Effective::new(Some(&self.compression), Some(&self.compression), &self.process)
    }

    fn offer(&self, head: &str) -> Offer {
        policy::offer(&request(head), None, self.link, &self.effective())
    }

    /// The coding of the answer, and what became of the dictionary.
    fn decide(&self, head: &str, answer: &str) -> (Option<&'static str>, Usage) {
        self.decide_at(head, answer, &Load::IDLE)
    }

    fn decide_at(&self, head: &str, answer: &str, load: &Load) -> (Option<&'static str>, Usage) {
        let (offer, answer) = (self.offer(head), response(answer));
        let settings = self.effective();
        let verdict = policy::decide(&offer, &answer, load, &settings, || true);
        let verdict = policy::look(&verdict, b"some text of the body", None, &settings);
        let coding = match verdict.decision {
            Decision::Compress(plan) | Decision::Head(plan) => Some(plan.coding.token()),
            _ => None,
        };
        (coding, policy::usage(&offer, &answer, &verdict, load, &settings).unwrap())
    }
}

const SCRIPT: &str = "200\nContent-Type: text/javascript\nContent-Length: 50000\nETag: \"x\"";
const GET: &str = "GET /app/1.js\nHost: a.example\nAccept-Encoding: gzip, br, zstd, dcb, dcz\n";

#[test]
fn an_answer_refers_to_what_its_client_has() {
    let proxy = Proxy::new("compression dictionary d\n");
    let get = format!("{GET}{}", available(BYTES));
    assert_eq!(proxy.decide(&get, SCRIPT), (Some("dcz"), Usage::Used));
    assert_eq!(proxy.decide(&get.replace("GET ", "HEAD "), SCRIPT), (Some("dcz"), Usage::Used));
    for (change, coding, usage) in [
        ("Accept-Encoding: dcz", Some("dcz"), Usage::Used),
        ("Accept-Encoding: gzip;q=0.5, dcz;q=0.5", Some("dcz"), Usage::Used),
        ("Accept-Encoding: gzip, dcz;q=0.5", Some("gzip"), Usage::Refused),
        ("Accept-Encoding: gzip, dcz;q=0", Some("gzip"), Usage::Refused),
        ("Accept-Encoding: identity, dcz;q=0.5", None, Usage::Refused),
        ("Accept-Encoding: gzip, *", Some("zstd"), Usage::Refused),
        ("Accept-Encoding: gzip, dcb", Some("gzip"), Usage::Refused),
    ] {
        let get = get.replace("Accept-Encoding: gzip, br, zstd, dcb, dcz", change);
        assert_eq!(proxy.decide(&get, SCRIPT), (coding, usage), "{change}");
    }
    for (field, usage) in [
        (String::new(), Usage::None),
        ("Available-Dictionary: x".into(), Usage::Malformed),
        (format!("{}\n{}", available(BYTES), available(BYTES)), Usage::Malformed),
        (available(b"other bytes"), Usage::Unknown),
    ] {
        assert_eq!(proxy.decide(&format!("{GET}{field}"), SCRIPT), (Some("zstd"), usage), "{field}");
    }
}

#[test]
fn auto_learns_with_names_or_without() {
    for (line, names) in [("auto", 0), ("secure auto", 0), ("auto d", 1), ("d auto", 1)] {
        let (compression, stock, said) = settings(&format!("{SECTION}listen l\n compression dictionary {line}\n"));
        let line = compression.unwrap().dictionary.unwrap();
        assert_eq!((line.names.len(), line.is_auto, line.learner.is_some(), said), (names, true, true, Vec::new()));
        assert!(line.is_on() && stock.learner().is_wanted());
        stock.learner().limit(0);
        assert!(!stock.learner().is_wanted(), "there is no memory for it");
    }
    let (compression, stock, said) = settings(&format!("{SECTION}listen l\n compression dictionary d\n"));
    assert!(compression.unwrap().dictionary.unwrap().learner.is_none() && !stock.learner().is_wanted() && said.is_empty());
    assert_eq!(settings("listen l\n compression dictionary secure\n").2.len(), 1);
    assert_eq!(settings("listen l\n compression dictionary off auto\n").2.len(), 1);
}

#[test]
fn only_answers_to_secure_clients_are_learned_from() {
    let mut proxy = Proxy::new("compression dictionary auto\n");
    let learns = |proxy: &Proxy, head: &str| proxy.offer(head).dictionary().unwrap().learner().is_some();
    for head in [GET.to_owned(), format!("{GET}{}", available(b"other")), format!("{GET}Available-Dictionary: x")] {
        assert!(learns(&proxy, &head), "{head}");
    }
    for (codings, may_take) in [("gzip, br", false), ("zstd", true), ("dcz", true), ("zstd;q=0", false), ("*", true)] {
        let head = GET.replace("gzip, br, zstd, dcb, dcz", codings);
        assert_eq!(learns(&proxy, &head), may_take, "{codings}");
    }
    proxy.link.is_secure = false;
    assert!(!learns(&proxy, GET));
}

#[test]
fn what_ordinary_compression_refuses_stays_refused() {
    let proxy = Proxy::new("compression dictionary d\n");
    let get = format!("{GET}{}", available(BYTES));
    for (answer, usage) in [
        ("206\nContent-Type: text/css\nContent-Range: bytes 0-9/50000\nContent-Length: 10", Usage::Partial),
        ("304", Usage::NotCoded),
        ("200\nContent-Type: text/css\nContent-Length: 5000\nCache-Control: no-transform", Usage::NotCoded),
        ("200\nContent-Type: text/css\nContent-Length: 5000\nContent-Encoding: dcz", Usage::NotCoded),
        ("200\nContent-Type: image/png\nContent-Length: 5000", Usage::NotCoded),
        ("200\nContent-Type: text/css\nContent-Length: 10", Usage::NotCoded),
    ] {
        assert_eq!(proxy.decide(&get, answer), (None, usage), "{answer}");
    }
    let full = Load { memory_full: true, ..Load::IDLE };
    assert_eq!(proxy.decide_at(&get, SCRIPT, &full), (None, Usage::Memory));
    assert_eq!(proxy.decide(&format!("{get}\nCache-Control: no-transform"), SCRIPT), (None, Usage::NotCoded));
    let rushed = Load { pace: Pace::Rushed, ..Load::IDLE };
    assert_eq!(proxy.decide_at(&get, SCRIPT, &rushed), (Some("zstd"), Usage::Level));
}

#[test]
fn another_sites_answer_must_be_one_that_it_may_read() {
    let proxy = Proxy::new("compression dictionary d\n");
    let allowed = |value: &str| format!("{SCRIPT}\nAccess-Control-Allow-Origin: {value}");
    for (fields, answer, usage) in [
        ("Sec-Fetch-Site: same-origin\nSec-Fetch-Mode: no-cors", SCRIPT.to_owned(), Usage::Used),
        ("Sec-Fetch-Site: none\nSec-Fetch-Mode: navigate", SCRIPT.into(), Usage::Used),
        ("Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate", SCRIPT.into(), Usage::Used),
        ("Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors", SCRIPT.into(), Usage::Opaque),
        ("Sec-Fetch-Site: same-site\nSec-Fetch-Mode: no-cors", allowed("*"), Usage::Opaque),
        ("Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors", allowed("*"), Usage::Opaque),
        ("Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors\nOrigin: https://b.example", SCRIPT.into(), Usage::Opaque),
        ("Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors\nOrigin: https://b.example", allowed("*"), Usage::Used),
        ("Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors\nOrigin: https://b.example", allowed("https://b.example"), Usage::Used),
        (
            "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors\nOrigin: https://b.example",
            allowed("https://c.example"),
            Usage::Opaque,
        ),
    ] {
        let coding = if usage == Usage::Used { "dcz" } else { "zstd" };
        assert_eq!(proxy.decide(&format!("{GET}{}\n{fields}", available(BYTES)), &answer), (Some(coding), usage), "{fields}");
    }
}

#[test]
fn only_over_tls_or_where_the_operator_says_so() {
    let mut proxy = Proxy::new("compression dictionary d\n");
    proxy.link.is_secure = false;
    let get = format!("{GET}{}", available(BYTES));
    assert_eq!(proxy.decide(&get, SCRIPT), (Some("zstd"), Usage::Insecure));
    assert_eq!(proxy.decide(GET, SCRIPT), (Some("zstd"), Usage::None));
    assert!(!proxy.offer(&get).dictionary().unwrap().varies(), "nobody has looked at the field");
    let mut proxy = Proxy::new("compression dictionary secure d\n");
    proxy.link.is_secure = false;
    assert_eq!(proxy.decide(&get, SCRIPT), (Some("dcz"), Usage::Used));
}

#[test]
fn heads_name_the_dictionary_and_what_they_vary_on() {
    let proxy = Proxy::new("compression dictionary d\n");
    let short = &Hash::of(BYTES).hex()[..16];
    let head = |get: &str, answer: &str| {
        let (offer, mut answer) = (proxy.offer(get), response(answer));
        let settings = proxy.effective();
        let verdict = policy::decide(&offer, &answer, &Load::IDLE, &settings, || true);
        let verdict = policy::look(&verdict, b"", None, &settings);
        crate::head::apply(&mut answer, &offer, &verdict, &settings);
        lines(&answer.fields)
    };
    let get = format!("{GET}{}", available(BYTES));
    let tag = format!("W/\"x;terse=dcz-{short}\"");
    let coded = head(&get, SCRIPT);
    for line in ["Content-Encoding: dcz", &format!("ETag: {tag}"), "Vary: Accept-Encoding,Available-Dictionary"] {
        assert!(coded.contains(line), "{line} in {coded}");
    }
    assert!(!coded.contains("Content-Length"));
    let plain = head("GET /app/1.js\nHost: a.example", SCRIPT);
    assert!(plain.contains("Vary: Accept-Encoding,Available-Dictionary"), "{plain}");
    let renewed = head(&format!("{get}\nIf-None-Match: {tag}"), "304\nETag: \"x\"\nContent-Type: text/javascript");
    assert!(renewed.contains(&format!("ETag: {tag}")) && renewed.contains("Available-Dictionary"), "{renewed}");
    let other = head(&format!("{GET}If-None-Match: {tag}"), "304\nETag: \"x\"\nContent-Type: text/javascript");
    assert!(other.contains("ETag: \"x\"") && other.contains("Available-Dictionary"), "{other}");
}

#[test]
fn a_mark_comes_off_for_the_client_that_has_the_dictionary() {
    let proxy = Proxy::new("compression dictionary d\n");
    let tag = format!("W/\"x;terse=dcz-{}\"", &Hash::of(BYTES).hex()[..16]);
    let guarded = |get: &str| {
        let mut request = request(get);
        let offer = policy::offer(&request, None, proxy.link, &proxy.effective());
        crate::range::guard(&mut request, Some(&offer), None, crate::range::EtagMode::Suffix);
        String::from_utf8(request.fields.get(b"If-None-Match").unwrap().to_vec()).unwrap()
    };
    assert_eq!(guarded(&format!("{GET}{}\nIf-None-Match: {tag}", available(BYTES))), "\"x\"");
    assert_eq!(guarded(&format!("{GET}If-None-Match: {tag}")), tag, "a cache may ask for somebody else");
}

#[test]
fn the_server_does_not_see_what_is_ours() {
    let proxy = Proxy::new("compression dictionary d\n");
    let seen = |field: &str| {
        let mut request = request(&format!("{GET}{field}\nDictionary-ID: \"i\""));
        let offer = policy::offer(&request, None, proxy.link, &proxy.effective());
        if offer.dictionary().unwrap().is_ours() {
            hide(&mut request.fields);
        }
        lines(&request.fields)
    };
    assert_eq!(seen(&available(BYTES)), "Host: a.example\nAccept-Encoding: gzip, br, zstd");
    let others = available(b"the server's own");
    let own = seen(&others);
    assert!(own.contains("zstd, dcb, dcz") && own.contains(&others) && own.contains("Dictionary-ID"), "{own}");
    let mut alone = request("GET /\nAccept-Encoding: dcz");
    hide(&mut alone.fields);
    assert_eq!(lines(&alone.fields), "Accept-Encoding: identity");
    let mut nothing_else = request("GET /\nAccept-Encoding: dcz, identity;q=0, *;q=0");
    hide(&mut nothing_else.fields);
    assert_eq!(lines(&nothing_else.fields), "Accept-Encoding: identity");
}

#[test]
fn weak_tags_reach_the_server_where_no_dictionary_can_be_used() {
    let proxy = |is_secure| Proxy { link: Link { is_secure, ..Link::default() }, ..Proxy::new("compression dictionary d\n") };
    let get = "GET /app/x\nHost: a.example\nAccept-Encoding: gzip, br, zstd";
    assert_eq!((proxy(false).offer(get).takes_all, proxy(true).offer(get).takes_all), (true, false));
}

#[test]
fn pages_tell_of_a_dictionary_that_is_for_their_parts() {
    let text =
        "dictionary d\n file /d\n match /app/*.js\n match-dest script\nlisten l\n compression on\n compression dictionary d\n";
    let (compression, _, said) = settings(text);
    assert_eq!(said, [""; 0]);
    let link = Link { is_secure: true, ..Link::default() };
    let proxy = Proxy { compression: compression.unwrap(), process: Process::default(), link };
    let offer = proxy.offer("GET /\nHost: a.example\nAccept-Encoding: zstd");
    assert!(offer.dictionary().unwrap().news(&response("200\nContent-Type: text/html")).is_some());
}

#[test]
fn another_hosts_dictionary_is_unknown() {
    let text = "dictionary d\n file /d\n match /*\n host a.example b.example:8443\ndictionary e\n file /e\n match /*\n host c.example\n\
                listen l\n compression on\n compression dictionary d e\n";
    let (compression, stock, said) = settings(text);
    assert_eq!(said, [""; 0]);
    assert_eq!(stock.all().count(), 2);
    let link = Link { is_secure: true, ..Link::default() };
    let proxy = Proxy { compression: compression.unwrap(), process: Process::default(), link };
    for (host, bytes, usage) in [
        ("a.example", BYTES, Usage::Used),
        ("A.example:443", BYTES, Usage::Used),
        ("b.example:8443", BYTES, Usage::Used),
        ("b.example", BYTES, Usage::Unknown),
        ("c.example", BYTES, Usage::Unknown),
        ("c.example", b"others", Usage::Used),
        ("a.example", b"others", Usage::Unknown),
        ("a b", BYTES, Usage::Unknown),
    ] {
        let get = format!("{GET}{}", available(bytes)).replace("a.example", host);
        assert_eq!(proxy.decide(&get, SCRIPT).1, usage, "{host}");
    }
    let given = &proxy.compression.dictionary.as_ref().unwrap().given;
    let path = format!("/.dictionary/{}", Hash::of(BYTES).hex());
    assert!(given.published(b"a.example", path.as_bytes()).is_some());
    assert!(given.published(b"c.example", path.as_bytes()).is_none());
    assert!(given.published(b"a.example", b"/.dictionary/").is_none());
}

#[test]
fn pages_tell_of_the_dictionary_that_is_for_them() {
    let proxy = Proxy::new("compression dictionary d\n");
    let news = |get: &str, answer: &str| {
        proxy.offer(get).dictionary().unwrap().news(&response(answer)).map(|dictionary| dictionary.path.to_string())
    };
    let page = "200\nContent-Type: text/html; charset=utf-8";
    assert_eq!(news(GET, page), Some(format!("/.dictionary/{}", Hash::of(BYTES).hex())));
    assert!(news(&format!("{GET}{}", available(b"other")), page).is_some());
    for (get, answer) in [
        (format!("{GET}{}", available(BYTES)), page),
        (GET.into(), SCRIPT),
        (GET.into(), "404\nContent-Type: text/html"),
        (GET.replace("/app/", "/other/"), page),
        (GET.replace("GET ", "POST "), page),
    ] {
        assert_eq!(news(&get, answer), None, "{get} {answer}");
    }
}

#[test]
fn levels_have_a_floor_that_goes_with_the_dictionary() {
    let at = |lines: &str, global: &str, dictionary, pace| {
        let (config, said) =
            load(&[crate::keywords::KEYWORDS, KEYWORDS], &format!("global\n{global}\nlisten l\n compression on\n{lines}"));
        assert_eq!(said, [""; 0]);
        let process = config.global.settings.get::<Process>().cloned().unwrap_or_default();
        let compression = config.sections[0].settings.get::<Compression>().cloned().map(Compression::settled);
        let settings = Effective::new(compression.as_ref(), None, &process);
        settings.dictionary_level(dictionary, Some(1 << 20), pace).map(|level| level.0)
    };
    let (small, large) = (100 << 10, 1 << 20);
    assert_eq!((at("", "", small, Pace::Steady), at("", "", large, Pace::Steady)), (Some(6), Some(6)));
    assert_eq!((at("", "", small, Pace::Pressed), at("", "", large, Pace::Pressed)), (Some(4), Some(6)));
    assert_eq!((at("", "", small, Pace::Rushed), at("", "", large, Pace::Rushed)), (None, None));
    assert_eq!(at(" compression level zstd 1\n", "", small, Pace::Steady), Some(3));
    assert_eq!(at(" compression level zstd 12\n", "", large, Pace::Rushed), Some(9), "reading it would take too long");
    assert_eq!(at("", "", 16 << 20, Pace::Steady), Some(6));
    assert_eq!(at("", "", (16 << 20) + 16, Pace::Steady), None, "far larger than the body");
    assert_eq!(at("", " tune.comp.maxlevel 3\n", small, Pace::Steady), Some(3));
    assert_eq!(at("", " tune.comp.maxlevel 3\n", large, Pace::Steady), None);
}

#[test]
fn what_is_wrong_is_said() {
    for (text, reason) in [
        ("dictionary d\n file /d\n", "dictionary 'd' has no 'match'"),
        ("dictionary d\n match /*\n", "dictionary 'd' has no 'file'"),
        ("dictionary d\n file /none\n match /*\n", "cannot read the dictionary '/none': no such file"),
        ("dictionary d\n file /empty\n match /*\n", "'/empty' is empty"),
        (
            "dictionary off\n file /d\n match /*\n",
            "a dictionary cannot be called 'off', which 'compression dictionary' takes for its own word",
        ),
        ("dictionary d\n file /d\n file /e\n match /*\n", "a dictionary has one 'file'"),
        ("dictionary d\n file /d\n match /*\n match /a/*\n", "a dictionary has one 'match'"),
        ("dictionary d\n file /d\n match /*\n id a\n id b\n", "a dictionary has one 'id'"),
        ("dictionary d\n file /d\n match /*\n path /a/\n path /b/\n", "a dictionary has one 'path'"),
        ("dictionary d\n file /d\n match /*\n path /a/./b/\n", "'/a/./b/' is not a path"),
        ("dictionary d\n file /d\n match /(a)\n", "'/(a)': '(' has a meaning of its own in URL patterns"),
        ("dictionary d\n file /d\n match /*\n match-dest picture\n", "'picture' is not a destination that Fetch knows"),
        (
            "dictionary d\n file /d\n match /*\n path d\n",
            "'d' is not a path that begins and ends with '/' and holds letters, digits and any of -._~/",
        ),
        ("dictionary d\n file /d\n match /*\n host a/b\n", "'a/b' is not a host"),
        ("listen l\n compression dictionary\n", "'compression dictionary' expects <name> as argument"),
        ("listen l\n compression dictionary secure off\n", "'off' is no name of a dictionary here"),
        ("listen l\n compression dictionary x\n", "there is no dictionary 'x'"),
        ("global\n dictionary-store a\n", "'a' is not a path from the root"),
        ("global\n dictionary-store /a size 1m\n", "one dictionary may have 4194304 bytes"),
        ("global\n dictionary-store /a\n dictionary-store /b size 8m\n", "there is one folder for all learned dictionaries"),
        ("listen l\n compression algo dcz\n", "'dcz' is not a supported algorithm"),
    ] {
        let (_, _, said) = settings(text);
        assert!(said.iter().any(|one| one.contains(reason)), "{text}: {said:?}");
    }
    let (_, _, said) = settings("dictionary d\n file /none\n match /*\nlisten l\n compression dictionary d\n");
    assert_eq!(said.len(), 1, "once is enough: {said:?}");
    let (compression, _, said) =
        settings(&format!("{SECTION}defaults\n compression dictionary d\nlisten l\n compression dictionary off\n"));
    assert_eq!(said, [""; 0]);
    let compression = compression.unwrap();
    assert!(Effective::new(Some(&compression), None, &Process::default()).dictionary().is_none());
}
