use super::*;
use crate::algorithm::settings::{Balance, HashAffinity, HashMethod, UriKey};
use crate::check::{Probe, ProbeKind, Step};
use crate::persistence::CookieMode;
use crate::settings::{ObservedLayer, OnError};
use std::collections::HashSet;
use std::time::Duration;
use terse_config::{Environment, Loader, Setting, Settings, Severity, Source};

/// Settings of the last section, and messages: `line! reason` for alerts, `line? reason` for warnings.
pub(super) fn load(text: &str) -> (FarmSettings, Vec<String>) {
    load_as(text)
}

/// The same for settings of any type.
pub(super) fn load_as<T: Setting>(text: &str) -> (T, Vec<String>) {
    let loader = Loader { tables: vec![KEYWORDS], environment: Environment::default() };
    let source = Source { name: "test".into(), bytes: text.into() };
    let (mut config, diagnostics) = loader.load(&[source], Settings::default());
    let said = diagnostics.iter().map(|d| {
        let mark = if d.severity == Severity::Alert { '!' } else { '?' };
        format!("{}{mark} {}", d.place.as_ref().map_or(0, |place| place.line), d.reason)
    });
    let settings = config.sections.last_mut().and_then(|section| section.settings.take()).unwrap_or_default();
    (settings, said.collect())
}

/// Settings of a backend with these lines, which give no messages.
fn backend(lines: &str) -> FarmSettings {
    let (settings, said) = load(&format!("backend b\n{lines}\n"));
    assert_eq!(said, [""; 0], "{lines}");
    settings
}

/// Messages about a line in a backend.
pub(super) fn said_of(line: &str) -> String {
    load(&format!("backend b\n{line}\n")).1.join("; ")
}

#[test]
fn no_name_stands_twice() {
    let mut seen = HashSet::new();
    assert!(KEYWORDS.iter().all(|keyword| seen.insert(keyword.name)));
    let mut words = HashSet::new();
    let tables = [server_words::KEYWORDS, announcement::KEYWORDS, course_words::KEYWORDS, name_words::KEYWORDS];
    assert!(tables.into_iter().flatten().all(|param| words.insert(param.name)));
}

#[test]
fn the_reference_has_all_words() {
    let reference = reference();
    assert!(reference.contains("* `inter <time>`: ") && reference.contains("* `agent-check`: "));
    assert!(reference.contains("* `disable-on-404`: ") && reference.contains("* `send-binary <hexadecimal> [comment <text>]`: "));
}

#[test]
fn a_service_with_a_cookie_and_a_server_called_backup() {
    let farm = backend(
        "cookie  SERVERID insert nocache indirect\n\
         balance leastconn\n\
         server RIP_Name 192.168.17.2:80 weight 1 cookie RIP_Name check  inter 2000 rise 2 fall 3\n\
         server  backup 127.0.0.1:9081 backup",
    );
    let cookie = farm.cookie.unwrap();
    assert_eq!((&*cookie.name, cookie.mode, cookie.indirect, cookie.nocache), ("SERVERID", CookieMode::Insert, true, true));
    assert_eq!(farm.balance, Balance::LeastConn);
    let [first, second] = &farm.servers[..] else { panic!() };
    assert_eq!((&*first.name, first.cookie.as_deref(), first.backup), ("RIP_Name", Some("RIP_Name"), false));
    assert_eq!((first.check.enabled, first.check.inter), (true, Duration::from_secs(2)));
    assert_eq!((&*second.name, second.address.to_string().as_str(), second.backup), ("backup", "127.0.0.1:9081", true));
}

#[test]
fn defaults_give_everything_but_servers() {
    let (farm, said) = load(
        "defaults\nbalance source\noption allbackups\ndefault-server check inter 200ms rise 1 fall 1\ntimeout check 3s\n\
         backend b\nserver a 10.0.0.1:80\ndefault-server no-check weight 7\nserver b 10.0.0.2:80 rise 4\n",
    );
    assert_eq!(said, [""; 0]);
    assert_eq!((farm.balance, farm.all_backups, farm.check_timeout), (Balance::Source, true, Some(Duration::from_secs(3))));
    let [a, b] = &farm.servers[..] else { panic!() };
    assert_eq!((a.check.enabled, a.check.inter, a.check.rise, a.weight), (true, Duration::from_millis(200), 1, 1));
    assert_eq!((b.check.enabled, b.check.rise, b.check.fall, b.weight), (false, 4, 1, 7));
}

#[test]
fn algorithms_and_hashes() {
    assert_eq!(backend("balance static-rr").balance, Balance::StaticRoundRobin);
    assert_eq!(backend("balance random").balance, Balance::Random(2));
    assert_eq!(backend("balance random(3)").balance, Balance::Random(3));
    let key = UriKey { whole: true, path_only: true, len: 9, depth: 2 };
    assert_eq!(backend("balance uri whole len 9 path-only depth 2").balance, Balance::Uri(key));
    let hash = backend("hash-preserve-affinity maxconn\nhash-type consistent").hash;
    assert_eq!((hash.method, hash.avalanche, hash.affinity), (HashMethod::Consistent, true, HashAffinity::MaxConn));
    assert!(!backend("hash-type consistent crc32").hash.avalanche);
    assert!(said_of("balance hdr(host").contains("missing closing parenthesis"));
    assert_eq!(backend("hash-balance-factor 150").hash_balance_percent, 150);
    assert!(said_of("hash-balance-factor 100").contains("greater than 100"));
    assert!(said_of("balance random(0)").contains("draws"));
    assert!(said_of("balance best").contains("unknown algorithm 'best'"));
}

#[test]
fn cookies_know_their_attributes() {
    let cookie = backend("cookie S rewrite attr a=b secure domain .x domain .y httponly postonly").cookie.unwrap();
    assert_eq!(&*cookie.attributes, "; domain=.x; domain=.y; HttpOnly; Secure; a=b");
    assert!(cookie.postonly);
    assert!(said_of("cookie S insert prefix").contains("only one"));
    assert!(said_of("cookie S preserve").contains("requires"));
    let terms = backend("cookie S insert maxidle 3 maxlife 1h").cookie.unwrap().terms;
    assert_eq!((terms.idle_s, terms.life_s), (Some(3), Some(3600)));
    assert!(said_of("cookie S maxidle x").contains("maxidle") || said_of("cookie S maxidle x").contains("<time>"));
    assert!(said_of("cookie S attr a;b").contains("cannot stand"));
    assert!(said_of("cookie a=b").contains("cannot be"));
}

#[test]
fn a_sections_own_check_lines_replace_those_of_its_defaults() {
    let defaults = "defaults\noption httpchk GET /status HTTP/1.1\nhttp-check send hdr Host h body test\n";
    let probe = |lines: &str| {
        let (farm, said) = load(&format!("{defaults}backend b\n{lines}"));
        assert_eq!(said, [""; 0]);
        farm.probe
    };
    let inherited = probe("");
    let uri = |probe: &Probe| probe.request.uri.as_ref().and_then(|uri| uri.as_text().map(<[u8]>::to_vec));
    assert_eq!((uri(&inherited).as_deref(), inherited.http.len()), (Some(&b"/status"[..]), 1));
    let own = probe("http-check send hdr X y\n");
    assert_eq!((own.kind, uri(&own), own.http.len()), (ProbeKind::Http, None, 1));
    let blank = probe("option httpchk\n");
    assert_eq!((blank.kind, uri(&blank), blank.http.len()), (ProbeKind::Http, None, 0));
}

#[test]
fn check_lines_in_every_form() {
    let probe = backend("option httpchk HEAD /x HTTP/1.1\\r\\nHost:\\ www\\r\\nX-A:b").probe;
    assert_eq!(probe.request.version.as_deref(), Some("HTTP/1.1"));
    let fields: Vec<_> = probe.request.fields.iter().map(|(name, value)| (name.as_str(), value.as_text())).collect();
    assert_eq!(fields, [("Host", Some(&b"www"[..])), ("X-A", Some(&b"b"[..]))]);
    assert_eq!(backend("option httpchk /x").probe.request.uri.as_ref().and_then(|uri| uri.as_text()), Some(&b"/x"[..]));
    assert_eq!(backend("option httpchk GET /x HTTP/1.1 www").probe.request.fields.len(), 1);
    let steps = backend(
        "http-check connect port 81\nhttp-check send\nhttp-check expect ! rstatus ^5\nhttp-check expect comment why string ok\n\
         http-check expect hdr name -m beg x- value -m reg ^a",
    );
    assert!(matches!(steps.probe.http[0], Step::Connect { port: Some(81), .. }));
    assert!(matches!(&steps.probe.http[2], Step::Expect(expect) if expect.negated));
    let tcp = backend("option tcp-check\ntcp-check send-binary 0aFF\ntcp-check expect min-recv 5 !rstring ^error").probe;
    assert!(matches!(&tcp.tcp[0], Step::Send { bytes, .. } if bytes == &[0x0a, 0xff]));
    assert!(matches!(&tcp.tcp[1], Step::Expect(expect) if expect.negated && expect.min_bytes == Some(5)));
    let behind = backend("tcp-check expect !rstring ^error comment why min-recv 3").probe;
    assert!(matches!(&behind.tcp[0], Step::Expect(expect)
        if expect.negated && expect.min_bytes == Some(3) && expect.comment.as_deref() == Some("why")));
    for (line, why) in [
        ("tcp-check expect string a string b", "'string' stands behind the match"),
        ("tcp-check expect comment a", "expects <match>"),
        ("http-check expect status 200-", "'200-' is neither"),
        ("http-check expect status 300-200", "neither"),
        ("http-check expect", "expects <match>"),
        ("http-check expect rstring (", "not a regular expression"),
        ("http-check send hdr a %[path]", "not available here"),
        ("http-check set-var(check.a) strr(b)", "unknown fetch method"),
        ("http-check set-var(chek.a) str(b)", "must start with its scope"),
        ("http-check expect hdr name-lf -m reg a", "not for formats"),
        ("http-check sned", "did you mean"),
        ("http-check connect\nhttp-check expect status 200", "'send' is missing before this one"),
        ("http-check connect\nhttp-check connect", "'expect' is missing before this one"),
        ("http-check send\nhttp-check set-var(check.a) int(1)\nhttp-check send", "'connect' is missing before this one"),
        ("tcp-check send a\ntcp-check connect", "the first step must be a 'connect', too"),
        ("http-check expect ok-status L7STS status 200", "unknown status 'L7STS'"),
        ("http-check expect on-error %[nothing] status 200", "unknown fetch method"),
        ("server s 10.0.0.1:80 socks4 10.0.0.9", "the address of a proxy, and its port"),
        ("tcp-check send-binary abc", "pairs"),
        ("option httpchk GET / HTTP/3", "not a version"),
        ("option smtpchk hello", "neither 'HELO' nor 'EHLO'"),
        ("option pgsql-check", "expects 'user <name>'"),
    ] {
        let loader = Loader { tables: vec![KEYWORDS], environment: Environment::default() };
        let source = Source { name: "test".into(), bytes: format!("backend b\n{line}\n").into() };
        let (_, diagnostics) = loader.load(&[source], Settings::default());
        let said: Vec<_> = diagnostics.iter().map(|d| format!("{} {}", d.reason, d.hint.as_deref().unwrap_or_default())).collect();
        assert!(said.join(";").contains(why), "{line}: {said:?}");
    }
}

#[test]
fn words_of_servers_that_are_wrong() {
    for (words, why) in [
        ("s 10.0.0.1:80 ssl verify maybe", "'maybe' is neither"),
        ("s 10.0.0.1:80 observe layer3", "neither 'layer4' nor 'layer7'"),
        ("s 10.0.0.1:80 on-error panic", "unknown action 'panic'"),
        ("s 10.0.0.1:80 on-marked-down shutdown", "unknown action"),
        ("s 10.0.0.1:80 source nowhere", "not an address"),
        ("s 10.0.0.1:80 source 10.0.0.2:9-1", "not an address"),
        ("s 10.0.0.1:80 source 10.0.0.2 usesrc nobody", "not whose address"),
        ("s 10.0.0.1:80 source 10.0.0.2 usesrc hdr_ip(x,0)", "names no field and occurrence"),
        ("s 10.0.0.1:80 hash-key name", "is not 'id'"),
        ("s 10.0.0.1:80 usesrc clientip", "only allowed after a 'source'"),
        ("s 10.0.0.1:80 init-addr dns", "unknown method 'dns'"),
        ("s 10.0.0.1:80 resolve-net 10.0.0.0/33", "not a network"),
        ("s 10.0.0.1:80 resolve-opts dup", "unknown option 'dup'"),
        ("s 10.0.0.1:80 wieght 4", "unknown parameter 'wieght'"),
        ("s 10.0.0.1:80 weight 257", "not between 0 and 256"),
        ("s 10.0.0.1:80 inter 0", "without a pause"),
        ("s 10.0.0.1:80 cookie a;b", "cannot be a cookie's value"),
        ("s 10.0.0.1:80 proto h3", "protocol 'h3' is not spoken"),
        ("s 10.0.0.1:80 addr 10.0.0.2:x", "'10.0.0.2:x' is not an IPv4 or IPv6 address"),
        ("s 10.0.0.1:+", "'+' is not a port"),
        ("s somewhere:80", "could not resolve address 'somewhere'"),
        ("s", "expects <address>"),
    ] {
        assert!(said_of(&format!("server {words}")).contains(why), "{words}: {}", said_of(&format!("server {words}")));
    }
    let (_, said) = load("backend b\nserver s 10.0.0.1:80 id 4\nserver s 10.0.0.2:80\nserver t 10.0.0.1:80 id 4\n");
    assert_eq!(said.len(), 2);
    assert!(said[0].starts_with("3! ") && said[1].starts_with("4! "), "{said:?}");
}

#[test]
fn a_frontends_lines_only_warn_but_those_of_servers() {
    let (_, said) = load("frontend f\nbalance source\noption httpchk\n");
    assert_eq!(said.len(), 2);
    assert!(said.iter().all(|said| said.contains("? ") && said.contains("no backend capability")), "{said:?}");
    let servers = "server s 10.0.0.1:80\nserver-template s 3 10.0.0.1:80\ndefault-server weight 3\n";
    let (farm, said) = load(&format!("frontend f\n{servers}"));
    assert_eq!(said.len(), 3);
    assert!(said.iter().all(|said| said.contains("! ") && said.contains("is not allowed in 'frontend' section")), "{said:?}");
    assert!(farm.servers.is_empty() && farm.template.weight == 1);
}

#[test]
fn templates_make_servers() {
    let farm = backend(
        "default-server\ndefault-server init-addr none ws auto\nserver-template web 3 app.internal:80 weight 5 id 7\nserver-template x 5-6 10.0.0.1:80",
    );
    let names: Vec<_> = farm.servers.iter().map(|server| (&*server.name, server.id, server.name_in_dns.as_deref())).collect();
    let dns = Some("app.internal");
    assert_eq!(
        names,
        [("web1", Some(7), dns), ("web2", Some(8), dns), ("web3", Some(9), dns), ("x5", None, None), ("x6", None, None)]
    );
    assert!(farm.servers[0].is_unresolved() && farm.servers[0].weight == 5 && !farm.servers[3].is_unresolved());
    for range in ["0", "3-1", "x", "1-99999999", ""] {
        assert!(!load(&format!("backend b\nserver-template s {range} 10.0.0.1:80\n")).1.is_empty(), "{range}");
    }
    assert_eq!(backend("server-template s 2 10.0.0.1").servers[1].address.to_string(), "10.0.0.1:+0");
    let dispatched = load("listen l\ndispatch 10.0.0.1:80\n");
    assert!(dispatched.1[0].starts_with("2? ") && &*dispatched.0.servers[0].name == "dispatch", "{:?}", dispatched.1);
}

#[test]
fn words_of_servers_that_come_and_go() {
    let farm = backend(
        "fullconn 200\nsource 10.0.0.9\n\
         server a 10.0.0.1:80 check minconn 3 maxconn 30 slowstart 10s observe layer7 error-limit 4 on-error mark-down\n\
         server b 10.0.0.2:80 track a on-marked-down shutdown-sessions on-marked-up shutdown-backup-sessions tcp-ut 5s\n\
         server c 10.0.0.3:80 minconn 7 source 10.0.0.8:1000-1010 interface eth0 weight 0\n\
         server d d.test:80 init-addr last,libc,10.0.0.4 resolvers dns resolve-prefer ipv4 resolve-net 10.0.0.0/8,::1\n\
         server e nowhere.test:80 resolvers dns\nserver-template f 1 _app._tcp.test resolvers dns",
    );
    let [a, b, c, d, e, f] = &farm.servers[..] else { panic!() };
    assert_eq!((farm.fullconn, a.minconn, a.maxconn, a.slowstart), (Some(200), 3, 30, Duration::from_secs(10)));
    assert_eq!(
        (a.observe.layer, a.observe.error_limit, a.observe.on_error),
        (Some(ObservedLayer::Responses), 4, OnError::MarkDown)
    );
    assert_eq!((b.track.as_ref().map(|(name, _)| &**name), b.ends_sessions, b.ends_backup_sessions), (Some("a"), true, true));
    assert_eq!((c.minconn, c.maxconn, c.source.last_port, c.source.interface.as_deref()), (7, 7, 1010, Some("eth0")));
    assert_eq!((d.address.to_string().as_str(), d.resolution.prefer_v4, d.resolution.networks.len()), ("10.0.0.4:80", true, 2));
    assert_eq!((e.address.to_string().as_str(), f.address.to_string().as_str()), ("0.0.0.0:80", "0.0.0.0:0"));
    assert_eq!(farm.source.address.map(|address| address.to_string()).as_deref(), Some("10.0.0.9:0"));
}

#[test]
fn without_a_client_a_server_needs_its_own_port() {
    for (lines, why) in [
        ("backend b\nserver s udp@10.0.0.1\n", "logs have no client"),
        ("backend b\nserver s udp@:514\n", "logs have no client"),
        ("listen l\ndispatch 10.0.0.1\n", "missing port"),
        ("listen l\ndispatch 10.0.0.1:+1\n", "missing port"),
    ] {
        let said = load(lines).1;
        assert!(said.iter().any(|said| said.starts_with("2! ") && said.contains(why)), "{lines}: {said:?}");
    }
    for line in ["server s 10.0.0.1", "server s :", "server s udp@10.0.0.1:514"] {
        assert_eq!(load(&format!("backend b\n{line}\n")).1, [""; 0], "{line}");
    }
}

#[test]
fn agents_have_ports_of_their_own() {
    for line in
        ["server s 10.0.0.1 agent-check", "server s 10.0.0.1:80 agent-check", "default-server agent-check\nserver s 10.0.0.1:80"]
    {
        let said = load(&format!("backend b\n{line}\n")).1;
        assert!(said.len() == 1 && said[0].contains("! ") && said[0].contains("agent port"), "{line}: {said:?}");
    }
    for line in ["server s 10.0.0.1 agent-check agent-port 1", "server s 10.0.0.1:80 agent-check port 1"] {
        assert_eq!(load(&format!("backend b\n{line}\n")).1, [""; 0], "{line}");
    }
}

#[test]
fn servers_have_names_of_their_own() {
    for lines in ["server s 10.0.0.1:80\nserver s 10.0.0.2:80 disabled", "server s2 10.0.0.1:80\nserver-template s 1-3 10.0.0.1:80"]
    {
        let said = load(&format!("backend b\n{lines}\n")).1;
        assert!(said.len() == 1 && said[0].starts_with("3! ") && said[0].contains("another server named"), "{lines}: {said:?}");
    }
    assert_eq!(load("backend b\nserver s 10.0.0.1:80\nbackend c\nserver s 10.0.0.1:80\n").1, [""; 0]);
}
