//! Texts of configurations, their plans, and the reports about them.

use super::*;
use crate::keywords::tests::{load_with, said};
use crate::reply::Page;
use crate::settings::{ConnectionMode, Mode, Reuse};
use std::sync::Mutex;
use std::time::Duration;
use terse_config::Settings;
use terse_sample::PatternFiles;

struct Files;

impl PatternFiles for Files {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        Ok(format!("HTTP/1.0 503 {name}\r\n\r\n").into_bytes())
    }
}

fn host() -> Host {
    Host {
        workers: 2,
        maxconn: 100,
        buffer_bytes: 16384,
        rewrite_bytes: None,
        memory_bytes: 1 << 20,
        http2: Default::default(),
        http2_servers: Default::default(),
        body_key: [7; 32],
        tag: "terse".into(),
        started: Instant::now(),
        sinks: Sinks::new(|_| Err(std::io::ErrorKind::NotFound.into())),
        notices: None,
        local_peer: "a".into(),
    }
}

/// The plan of a text, and the reports after it was read.
fn plan_on(host: &Host, text: &str) -> (Option<Plan>, Vec<String>) {
    let mut shared = Settings::default();
    let registry = shared.entry::<Registry>();
    registry.files = Some(Arc::new(Files));
    crate::samples::FETCHES.iter().for_each(|table| registry.add_fetches(table));
    crate::samples::CONVERTERS.iter().for_each(|table| registry.add_converters(table));
    crate::samples::ALIASES.iter().for_each(|table| registry.add_aliases(table));
    let (config, read) = load_with(text, shared);
    assert_eq!(read, [""; 0], "{text}");
    let mut diagnostics = Diagnostics::default();
    let plan = build(config, host, &mut diagnostics);
    (plan, said(diagnostics.iter()))
}

/// The plan of a text without reports.
fn plan(text: &str) -> Plan {
    let (plan, said) = plan_on(&host(), text);
    assert_eq!(said, [""; 0], "{text}");
    plan.unwrap()
}

/// The reports about a text.
fn remarks(text: &str) -> Vec<String> {
    plan_on(&host(), text).1
}

const TIMEOUTS: &str = "defaults\n mode http\n timeout client 5s\n timeout server 6s\n timeout connect 1s\n";

#[test]
fn a_listen_section_is_two_halves() {
    let plan = plan(&format!("{TIMEOUTS}listen web\n bind :80\n server a 127.0.0.1:1\n server b 127.0.0.1:2\n"));
    let backends = plan.backends.now();
    let ([front], [back], [bind]) = (&plan.frontends[..], &backends[..], &plan.binds[..]) else { panic!() };
    assert_eq!((&*front.name, &*back.name, front.id, back.id), ("web", "web", 2, 2));
    assert_eq!((front.default_backend, back.twin, bind.frontend), (Some(0), Some(0), 0));
    assert_eq!((front.mode, back.mode, back.farm.servers().len()), (Mode::Http, Mode::Http, 2));
    assert_eq!((front.timeouts.client, back.timeouts.server), (Some(Duration::from_secs(5)), Some(Duration::from_secs(6))));
    assert_eq!((back.timeouts.queue, front.timeouts.tarpit), (Some(Duration::from_secs(1)), Some(Duration::from_secs(1))));
    assert_eq!((back.retries, back.redispatch, back.reuse), (3, 0, Reuse::Safe));
    assert_eq!((plan.process.workers, plan.memory.bytes()), (2, 1 << 20));
}

#[test]
fn names_lead_to_backends_whatever_the_order() {
    let plan = plan(&format!(
        "{TIMEOUTS}frontend f\n bind :80,:81\n acl x path /x\n use_backend two if x\n use_backend %[path] if x\n default_backend one\n\
         backend one\n server a 127.0.0.1:1\n server b 127.0.0.1:2\nbackend two\n server c 127.0.0.1:3\n"
    ));
    let front = &plan.frontends[0];
    assert_eq!(front.default_backend, Some(0));
    assert_eq!(front.switches.iter().map(|(_, backend)| *backend).collect::<Vec<_>>(), [Some(1), None]);
    assert_eq!((plan.server_count(), plan.backends.now().named(b"two").map(|back| back.number), plan.binds.len()), (3, Some(1), 2));
    assert!(plan.binds.iter().enumerate().all(|(index, bind)| bind.index == index && bind.frontend == 0));
}

#[test]
fn numbers_are_the_ones_given_or_the_next_that_are_free() {
    let plan = plan(&format!(
        "{TIMEOUTS}frontend a\n bind :1\nbackend b\n id 3\nbackend c\nfrontend d\n bind :2\nbackend e\n id 9\nbackend f\n"
    ));
    assert_eq!(plan.frontends.iter().map(|front| front.id).collect::<Vec<_>>(), [2, 5]);
    assert_eq!(plan.backends.now().iter().map(|back| back.id).collect::<Vec<_>>(), [3, 4, 9, 6]);
    assert_eq!(plan.frontends.iter().map(|front| front.order).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(plan.backends.now().iter().map(|back| back.order).collect::<Vec<_>>(), [1, 2, 4, 5]);
    let said = remarks("backend a\n id 7\nbackend b\n id 7\n");
    assert_eq!(said, ["3! backend 'b' reuses same custom id as backend 'a' (declared at test:1)"]);
}

#[test]
fn what_is_disabled_is_left_out_and_rules_pass_over_it() {
    let plan = plan(&format!(
        "{TIMEOUTS}frontend off\n bind :80\n disabled\nfrontend on\n bind :81\n use_backend gone\n use_backend here\n default_backend gone\n\
         backend gone\n disabled\n server a 127.0.0.1:1\nbackend here\nlisten both\n bind :82\n disabled\n"
    ));
    assert_eq!((plan.frontends.len(), plan.binds.len(), plan.backends.now().len()), (1, 1, 1));
    let front = &plan.frontends[0];
    assert_eq!((&*front.name, front.id, plan.backends.now()[0].id), ("on", 3, 5));
    assert_eq!(front.switches.iter().map(|(_, backend)| *backend).collect::<Vec<_>>(), [Some(0)]);
    assert_eq!(front.default_backend, None);
}

#[test]
fn settings_reach_both_halves() {
    let plan = plan(&format!(
        "{TIMEOUTS} option httpclose\n option forwardfor\n maxconn 10\n backlog 20\n retries 1\nlisten l\n bind :80 backlog 7\n bind :81\n \
         server a 127.0.0.1:1\n"
    ));
    let (front, back) = (&plan.frontends[0], plan.backends.now()[0].clone());
    assert_eq!((front.options.connection, back.options.connection), (Some(ConnectionMode::Close), Some(ConnectionMode::Close)));
    assert!(front.forwarded_for.is_some() && back.forwarded_for.is_some());
    assert_eq!((front.tally.limit(), back.retries), (10, 1));
    assert_eq!(plan.binds.iter().map(|bind| bind.settings.backlog).collect::<Vec<_>>(), [Some(7), Some(20)]);
}

#[test]
fn error_pages_come_from_lines_and_sections_and_the_last_holds() {
    let plan = plan(&format!(
        "http-errors set\n errorfile 503 from-set\n errorfile 404 from-set\n{TIMEOUTS} errorfile 503 from-defaults\n errorfile 408 from-defaults\n\
         frontend a\n bind :1\n errorfiles set\nfrontend b\n bind :2\n errorfiles set 404\nfrontend c\n bind :3\n errorfiles set\n errorfile 404 own\n\
         frontend d\n bind :4\n http-error status 503 default-errorfiles\n http-error status 404 errorfiles set\n http-error status 408\n"
    ));
    let pages = |front: usize, status: u16| match plan.frontends[front].pages.get(status)? {
        Page::Ready(page) => Some(page.reason.to_string()),
        Page::Written(reply) => Some(format!("written {}", reply.status)),
    };
    let all = |front| [503, 404, 408, 500].map(|status| pages(front, status).unwrap_or_default());
    assert_eq!(all(0), ["from-set", "from-set", "from-defaults", ""]);
    assert_eq!(all(1), ["from-defaults", "from-set", "from-defaults", ""]);
    assert_eq!(all(2), ["from-set", "own", "from-defaults", ""]);
    assert_eq!(all(3), ["", "from-set", "written 408", ""]);
    assert_eq!(plan.error_sets.len(), 1);
    let said = remarks(&format!("http-errors set\n{TIMEOUTS}listen a\n bind :1\n errorfiles ste\n errorfiles set 500\n"));
    assert_eq!(said, ["9! unable to find http-errors section 'ste'", "10? status '500' not declared in http-errors section 'set'"]);
}

#[test]
fn logs_are_compiled_and_opened() {
    let text = format!(
        "global\n log stderr local0\n{TIMEOUTS} log global\n option httplog\nfrontend a\n bind :1\nfrontend b\n bind :2\n no log\n log-format \"%ci\"\n \
         log stdout local1\n unique-id-format %ci\n unique-id-header X-Id\nfrontend c\n bind :3\n"
    );
    let (plan, said) = plan_on(&host(), &text);
    // Aliases of a stream's values are this crate's own, and have their tests where they are joined.
    assert!(plan.is_some() || said.iter().all(|line| line.contains("failed to parse log format")), "{said:?}");
    let plan = super::tests::plan(&format!(
        "{TIMEOUTS}frontend b\n bind :2\n log stdout local1\n log-format \"%ci\"\n unique-id-format %ci\n"
    ));
    let log = &plan.frontends[0].log;
    assert!(log.format.is_some() && log.unique_id.is_some() && log.error_format.is_none() && !log.journal.is_empty());
    let said =
        remarks(&format!("{TIMEOUTS}frontend b\n bind :2\n log stdout local1\n log-format \"%[nothing]\"\n log fd@99 local0\n"));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("10! cannot log to descriptor 99") && said[1].starts_with("9! failed to parse log format"),
        "{said:?}"
    );
}

#[test]
fn changes_of_servers_are_told_to_the_host_too() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let notices = told.clone();
    let host = Host { notices: Some(Arc::new(move |_, line| notices.lock().unwrap().push(line.to_owned()))), ..host() };
    let (plan, _) = plan_on(&host, &format!("{TIMEOUTS}backend b\n server a 127.0.0.1:1\n"));
    let farm = plan.as_ref().unwrap().backends.now()[0].farm.clone();
    farm.set_admin(&farm.servers()[0], terse_balance::AdminOrder::Maint, Instant::now());
    let told = told.lock().unwrap();
    assert!(!told.is_empty() && told[0].contains("b/a"), "{told:?}");
}

#[test]
fn what_leads_nowhere() {
    for (lines, expected) in [
        ("default_backend wbe", "frontend 'f': unable to find required default_backend: 'wbe'"),
        ("use_backend nobody", "frontend 'f': unable to find required use_backend: 'nobody'"),
        (
            "default_backend tcp",
            "http frontend 'f' (test:6) tries to use incompatible tcp backend 'tcp' (test:10) by 'default_backend' (see 'mode')",
        ),
    ] {
        let said = remarks(&format!("{TIMEOUTS}frontend f\n bind :80\n {lines}\nbackend web\nbackend tcp\n mode tcp\n"));
        assert_eq!(said, [format!("8! {expected}")]);
    }
    let said = remarks(&format!("{TIMEOUTS}listen l\n bind :80\n default_backend l\n"));
    assert_eq!(said, ["8! proxy 'l': loop detected for default_backend: 'l'"]);
}

#[test]
fn what_may_stand_in_a_refused_line_is_not_said_to_be_missing() {
    let (config, read) = load_with("frontend f\n bind :80 namespace x\n default_backend x\n", Settings::default());
    assert_eq!(read.len(), 1);
    let mut diagnostics = Diagnostics::default();
    diagnostics.alert(&config.sections[0].place, "refused");
    assert!(build(config, &host(), &mut diagnostics).is_none());
    assert_eq!(said(diagnostics.iter()), ["1! refused", "3! frontend 'f': unable to find required default_backend: 'x'"]);
}

#[test]
fn what_has_no_effect_in_mode_tcp() {
    let said = remarks(
        "defaults\n timeout client 5s\n timeout server 6s\n timeout connect 1s\nlisten l\n bind :80\n cookie A insert\n balance uri\n server a 127.0.0.1:1 cookie a\n \
         monitor-uri /m\n option http-buffer-request\n log stderr local0\n option httplog\n",
    );
    for (part, line) in [
        ("cookie will be ignored for proxy 'l'", 5),
        ("Layer 7 hash not possible for proxy 'l'", 5),
        ("proxy 'l' : ignoring cookie for server 'a'", 5),
        ("'monitor-uri' statement ignored for proxy 'l'", 5),
        ("'option http-buffer-request' ignored for proxy 'l'", 5),
        ("'option httplog' not usable here (needs 'mode http')", 13),
    ] {
        assert!(said.iter().any(|one| one.contains(part) && one.starts_with(&format!("{line}?"))), "{part}: {said:?}");
    }
}

#[test]
fn lines_of_its_own_that_mode_tcp_has_no_use_for_are_told_where_they_stand() {
    let lines = " compression algo gzip\n capture request header Host len 9\n option httpclose\n option http-server-close\n \
                 errorfile 503 page\n option forwardfor\n";
    let times = "timeout client 5s\n timeout server 6s\n timeout connect 1s\n";
    let own = remarks(&format!("defaults\n {times}frontend f\n bind :80\n{lines} no option httpclose\n"));
    let names = ["compression algo", "capture request header", "option httpclose", "option http-server-close", "errorfile"];
    let expected = names
        .iter()
        .chain([&"option forwardfor"])
        .zip(7..)
        .map(|(name, line)| format!("{line}? '{name}' ignored for frontend 'f' as it requires HTTP mode"));
    assert_eq!(own, expected.collect::<Vec<_>>());
    let defaults =
        "compression algo gzip\n option httpclose\n option forwardfor\n errorfile 503 page\n monitor-uri /m\n balance uri\n";
    let of_defaults = remarks(&format!("defaults\n mode http\n {times} {defaults}frontend f\n mode tcp\n bind :80\n"));
    assert_eq!(of_defaults, ["12? 'monitor-uri' statement ignored for frontend 'f' as it requires HTTP mode"]);
    // Bytes that become HTTP after a frontend are compressed as the frontend's lines set.
    let turned = format!("defaults\n {times}frontend f\n bind :80\n default_backend b\n{lines}backend b\n mode http\n");
    let told: Vec<_> = remarks(&turned).iter().map(|line| line.split('?').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(told, ["10", "11", "13"]);
}

/// `proto` names a version of HTTP, or `none`.
#[test]
fn protocols_fit_their_modes() {
    let told = |text: &str| remarks(&format!("{TIMEOUTS}{text}"));
    for (mode, bind, server, expected) in [
        ("http", "proto h2", "proto h2", None),
        ("tcp", "proto none", "", None),
        ("tcp", "proto h2", "", Some("'proto' names a version of HTTP, and connections of mode tcp are none")),
        ("http", "proto none", "", Some("'proto none' is for connections of mode tcp")),
        ("tcp", "", "proto h2", Some("MUX protocol is not usable for server 's'")),
    ] {
        let said = told(&format!("listen l\n mode {mode}\n bind :80 {bind}\n server s 127.0.0.1:7 {server}\n"));
        match expected {
            None => assert_eq!(said, [""; 0], "{mode} {bind} {server}"),
            Some(part) => assert!(said.len() == 1 && said[0].contains(part), "{mode} {bind} {server}: {said:?}"),
        }
    }
}

/// A frontend whose rules switch connections to HTTP has rules on requests.
#[test]
fn rules_on_requests_stay_where_connections_are_switched() {
    let told = |switch: &str| {
        let text =
            format!("frontend f\n mode tcp\n bind :80\n{switch} http-request deny\n default_backend b\nbackend b\n mode http\n");
        remarks(&format!("{TIMEOUTS}{text}")).iter().filter(|line| line.contains("'http-request' rules ignored")).count()
    };
    let delay = " tcp-request inspect-delay 1s\n";
    assert_eq!((told(&format!("{delay} tcp-request content switch-mode http if HTTP\n")), told(delay)), (0, 1));
}

#[test]
fn modes_are_not_compared_where_a_line_was_refused() {
    for back in ["backend b from NOPE\n mode tcp\n", "backend b\n mode tpc\n", "defaults\n mode tpc\nbackend b\n"] {
        let text = format!("{TIMEOUTS}frontend f\n bind :80\n default_backend b\n{back}");
        let (config, read) = load_with(&text, Settings::default());
        assert_eq!(read.len(), 1, "{read:?}");
        let mut diagnostics = Diagnostics::default();
        diagnostics.alert(&config.sections[0].place, "refused");
        assert!(build(config, &host(), &mut diagnostics).is_none());
        assert_eq!(said(diagnostics.iter()), ["6! refused"], "{back}");
    }
}

#[test]
fn what_is_missing() {
    assert_eq!(remarks("frontend f\n mode http\n bind :80\n"), ["1? missing timeouts for frontend 'f'"]);
    assert_eq!(remarks("backend b\n mode http\n server a 127.0.0.1:1\n"), ["1? missing timeouts for backend 'b'"]);
    assert_eq!(remarks("backend b\n server a 127.0.0.1:1\n timeout tunnel 1h\n timeout connect 1s\n"), [""; 0]);
    assert_eq!(remarks("backend b\n mode http\n"), [""; 0]);
    assert_eq!(remarks("log-forward l\n bind 127.0.0.1:1\n timeout client 1s\n log 127.0.0.1 local0\n"), [""; 0]);
    let said = remarks("log-forward l\n bind 127.0.0.1:1\n log 127.0.0.1 local0\n");
    assert!(said.len() == 1 && said[0].contains("missing 'timeout client' for log-forward 'l'"), "{said:?}");
    let said = remarks(&format!("{TIMEOUTS}frontend f\n"));
    assert_eq!(said, ["6? frontend 'f' has no 'bind' directive. Please declare it as a backend if this was intended"]);
    let said = remarks(&format!("{TIMEOUTS} log-format %ci\nfrontend f\n bind :80\n"));
    assert_eq!(said, ["7? log format ignored for frontend 'f' since it has no log address"]);
    let said = remarks(&format!("{TIMEOUTS}listen l\n bind :80\n default_backend b\n server a 127.0.0.1:1\nbackend b\n"));
    assert_eq!(
        said,
        ["6? in proxy 'l', the 'default_backend' rule always has precedence over the servers, which will never be used"]
    );
}

#[test]
fn names_in_expressions_are_found_or_refused() {
    let text = |expression: &str| {
        format!(
            "{TIMEOUTS}frontend web\n bind :1\n http-request deny if {{ {expression} 1 }}\n default_backend apps\n\
             backend apps\n server one 127.0.0.1:1\nbackend off\n disabled\n"
        )
    };
    for right in [
        "nbsrv(apps)",
        "be_conn(off)",
        "fe_conn(web)",
        "srv_conn(apps/one)",
        "srv_sess_rate(apps/one)",
        "be_sess_rate(apps)",
        "nbsrv",
    ] {
        assert_eq!(remarks(&text(right)), [""; 0], "{right}");
    }
    for (wrong, reason) in [
        ("nbsrv(app)", "unable to find backend 'app'"),
        ("be_sess_rate(web)", "unable to find backend 'web'"),
        ("fe_conn(wbe)", "unable to find frontend 'wbe'"),
        ("fe_req_rate(apps)", "unable to find frontend 'apps'"),
        ("srv_is_up(app/one)", "unable to find backend 'app'"),
        ("srv_conn(apps/oen)", "unable to find server 'oen' in backend 'apps'"),
        ("srv_sess_rate(one)", "unable to find server 'one': frontend 'web' has none"),
    ] {
        let said = remarks(&text(wrong));
        assert!(said.len() == 1 && said[0].contains(reason), "{wrong}: {said:?}");
    }
}

/// A name that only added backends would miss refuses no file.
#[test]
fn defaults_with_names_refuse_nothing_that_their_heirs_have() {
    let table = "stick-table type ip size 10 store conn_cnt\n tcp-request connection track-sc0 src";
    for format in ["%[src_conn_cnt]", "%[nbsrv(none)]", "%[src_conn_cnt(none)]", "%[srv_conn(s)]", "%[str(a),debug(p,none)]"] {
        let used = !format.contains("none");
        let text = format!(
            "{TIMEOUTS}defaults web\n mode http\n timeout client 5s\n unique-id-format {format}\n \
             errorfile 503 a.http\n log stdout local0\n http-request set-header x %[path,map_str(m,none)] if {{ path /a }}\n\
             defaults apps\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n unique-id-format %[rand]\n\
             defaults other from apps\n http-request deny if {{ src 10.0.0.1 }}\n log /nowhere local0\n log-format %ci\n\
             frontend web from {}\n bind :1\n {table}\n default_backend s\n\
             backend s from apps\n server s 127.0.0.1:1\n",
            if used { "web" } else { "apps" }
        );
        let (plan, said) = plan_on(&host(), &text);
        // A server's name alone stands for a server of the section's own backend.
        let refused = format.contains("srv_conn");
        assert_eq!((plan.is_some(), said.len()), (!refused, usize::from(refused)), "{format}: {said:?}");
    }
}

#[test]
fn what_only_added_backends_want_is_there_for_them() {
    let wants = |lines: &str| {
        let plan = plan(&format!("{TIMEOUTS}defaults late\n {lines}\n"));
        (plan.spliced(0).is_open, plan.compresses())
    };
    assert_eq!(wants(""), (false, false));
    assert_eq!(wants("option splice-response"), (true, false));
    assert_eq!(wants("compression algo gzip"), (false, true));
}

#[test]
fn checks_have_no_clients_port() {
    for (lines, verdict) in [
        ("server s 10.0.0.1 check", "!"),
        ("server s 10.0.0.1:+1 check addr 10.0.0.2", "!"),
        ("server s : check addr 10.0.0.2", "!"),
        ("option tcp-check\n tcp-check connect port 1\n tcp-check connect\n server s 10.0.0.1 check", "!"),
        ("server s : check", "?"),
        ("option tcp-check\n tcp-check connect port 1\n server s 10.0.0.1 check", ""),
        ("server s 10.0.0.1 check port 1", ""),
        ("server s 10.0.0.1 check addr 10.0.0.2:1", ""),
        ("server s 0.0.0.0:1 check", ""),
        ("server s 10.0.0.1", ""),
    ] {
        let said = remarks(&format!("{TIMEOUTS}backend b\n {lines}\n"));
        let told = said.iter().find(|said| said.contains("server 's' has neither service port nor check port"));
        assert_eq!(told.is_some(), !verdict.is_empty(), "{lines}: {said:?}");
        assert!(told.is_none_or(|told| told.contains(&format!("{verdict} "))), "{lines}: {said:?}");
    }
}

#[test]
fn logs_have_no_clients_port() {
    let said = remarks(&format!("{TIMEOUTS}backend l\n mode log\n server s 10.0.0.1\n"));
    assert!(said.iter().any(|said| said.contains("server 's': logs have no client")), "{said:?}");
}

#[test]
fn servers_are_checked_as_sections_say() {
    let text = |name: &str| {
        format!(
            "healthcheck web\n http-check expect status 200\n type httpchk GET /up\nhealthcheck mail\n type smtpchk\n{TIMEOUTS}backend b\n \
             option tcp-check\n server s 127.0.0.1:1 check healthcheck {name}\n server t 127.0.0.1:1 check\nfrontend f\n bind :1\n"
        )
    };
    let plan = plan(&text("web"));
    let farm = plan.backends.now()[0].farm.clone();
    let scripts = [0, 1].map(|index| format!("{:?}", farm.script_of(&farm.servers()[index])));
    assert!(scripts[0].contains("kind: Http") && scripts[1].contains("kind: Tcp"), "{scripts:?}");
    assert_eq!(remarks(&text("wbe")), ["13! unable to find healthcheck section 'wbe'"]);
}

/// The host's name among peers is `a`.
#[test]
fn peers_and_their_tables_are_found() {
    const TABLES: &str = "backend own\n stick-table type ip size 9 peers p\nbackend l\n timeout connect 1s\n \
                          timeout server 1s\n stick on src table p/t\n server s 127.0.0.1:1\n";
    let text = |lines: &str| format!("peers p\n{lines} table t type ip size 9 write-to own\n{TABLES}");
    let (plan, said) = plan_on(&host(), &text("server a\nbind :1024\nserver b 127.0.0.1:1\n"));
    let plan = plan.unwrap_or_else(|| panic!("{said:?}"));
    assert_eq!(said, [""; 0]);
    let circle = &plan.peers[0];
    let names: Vec<_> = circle.group.tables.iter().map(|shared| (&*shared.name, shared.aside.is_some())).collect();
    assert_eq!(names, [("/t", true), ("own", false)]);
    assert_eq!((circle.group.peers.len(), circle.binds.len(), &*circle.group.own), (1, 1, "a"));
    assert!(plan.tables.iter().all(|table| table.name().contains('/') == table.has(terse_balance::table::Data::ServerKey)));

    let (plan, said) = plan_on(&host(), &text("peer a 127.0.0.1:1024\n default-bind backlog 7\n"));
    let binds = &plan.unwrap().peers[0].binds;
    assert_eq!((&*binds[0].address, binds[0].backlog, said.len()), ("127.0.0.1:1024", Some(7), 0));

    for (lines, expected) in [
        ("peer x 127.0.0.1:1\n", "1? peers 'p' share nothing: none is called 'a'"),
        ("server a\n", "1? peers 'p' cannot be reached here"),
        ("server a 127.0.0.1:1\nbind :1024\n", "2? its address is passed over"),
        ("server a\nbind :1024\nserver b\n", "4! 'b' has no address, and is not this process, which is called 'a'"),
    ] {
        let (_, said) = plan_on(&host(), &text(lines));
        assert!(said.len() == 1 && said[0].starts_with(expected), "{lines}: {said:?}");
    }
    let (plan, said) = plan_on(&host(), &text("disabled\n"));
    assert!(plan.unwrap().peers.is_empty() && said.is_empty());
    let (_, said) = plan_on(&host(), "backend b\n stick-table type ip size 9 peers q\n");
    assert!(said.len() == 1 && said[0].starts_with("2! unable to find peers section 'q'"), "{said:?}");
}
