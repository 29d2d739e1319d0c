use crate::commands::fixture::{Talk, WEB};
use crate::figures::Column;
use crate::settings::Level;
use terse_balance::Count;
use terse_compress::Reason;

/// The lines of an answer without its end, each as its fields.
fn table(answer: &str) -> Vec<Vec<String>> {
    answer.trim_end().lines().map(|line| line.trim_start_matches("# ").split(',').map(str::to_owned).collect()).collect()
}

fn services(answer: &str) -> Vec<String> {
    table(answer).iter().skip(1).map(|fields| format!("{}/{}", fields[0], fields[1])).collect()
}

#[test]
fn every_line_has_the_headers_fields() {
    let mut talk = Talk::new(WEB);
    let answer = talk.says("show stat");
    assert!(answer.starts_with("# pxname,svname,qcur,") && answer.ends_with("\n\n"), "{answer}");
    let lines = table(&answer);
    assert_eq!(lines[0].len(), Column::ALL.len() + 1, "each field has a comma behind it");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    assert!(lines[1..].iter().all(|line| line[Column::End as usize] == "-"));
    assert_eq!(
        services(&answer),
        ["fe/FRONTEND", "be/a", "be/b", "be/c", "be/BACKEND", "raw/FRONTEND", "raw/r", "raw/BACKEND", "empty/BACKEND"]
    );
}

#[test]
fn figures_are_those_of_the_counters() {
    let mut talk = Talk::new(WEB);
    let plan = talk.context.plan.clone();
    for worker in 0..2 {
        let counters = plan.frontends[0].tally.of(worker);
        counters.enter();
        counters.sessions.add(3);
        counters.requests.add(4);
        counters.status_2xx.add(2);
        counters.compression.count_compressed(terse_compress::Coding::Gzip, 1000, 300);
        counters.compression.count_passed(Reason::Head);
    }
    let server = &plan.backends.now()[0].farm.servers()[0];
    server.counters.add(Count::Sessions, 2);
    let lines = table(&talk.says("show stat"));
    let field = |line: usize, column: Column| lines[line][column as usize].as_str();
    let front = |column| field(1, column);
    assert_eq!((front(Column::Current), front(Column::CurrentLimit), front(Column::Sessions)), ("2", "100", "6"));
    assert_eq!((front(Column::Status), front(Column::Requests), front(Column::Status2xx)), ("OPEN", "8", "4"));
    assert_eq!((front(Column::CompressIn), front(Column::CompressOut), front(Column::CompressResponses)), ("2000", "600", "2"));
    assert_eq!((front(Column::ProxyId), front(Column::Type), front(Column::Mode)), ("2", "0", "http"));
    let server = |column| field(2, column);
    assert_eq!((server(Column::Sessions), server(Column::Status), server(Column::CurrentLimit)), ("2", "UP 1/3", ""));
    assert_eq!((server(Column::CheckStatus), server(Column::CheckRise), server(Column::CheckCode)), ("INI", "2", ""));
    assert_eq!((server(Column::Address), server(Column::Cookie)), ("127.0.0.1:1", "one"));
    let backup = |column| field(3, column);
    assert_eq!((backup(Column::Weight), backup(Column::Active), backup(Column::Backup)), ("10", "0", "1"));
    assert_eq!((backup(Column::CurrentLimit), backup(Column::Status), backup(Column::CheckStatus)), ("20", "no check", ""));
    assert_eq!(field(4, Column::Status), "MAINT");
    let back = |column| field(5, column);
    assert_eq!((back(Column::Status), back(Column::Active), back(Column::Backup), back(Column::Weight)), ("UP", "1", "1", "1"));
    assert_eq!((back(Column::Cookie), back(Column::Algorithm)), ("SRV", "leastconn"));
    assert_eq!((field(7, Column::Address), field(7, Column::Mode), field(7, Column::Status2xx)), ("unix", "tcp", ""));
    assert_eq!(field(9, Column::Status), "UP", "a backend without servers");
}

#[test]
fn name_servers_have_a_domain() {
    let mut talk = Talk::new(&format!("{WEB}resolvers dns\n nameserver one 127.0.0.1:53\n nameserver two 127.0.0.1:54\n"));
    let zeros = "0,".repeat(15);
    assert_eq!(
        talk.says("show stat domain resolvers"),
        format!(
            "# id,pid,sent,send_error,valid,update,cname,cname_error,any_err,nx,timeout,refused,other,invalid,too_big,truncated,outdated,\n\
             one,dns,{zeros}\ntwo,dns,{zeros}\n\n"
        )
    );
    let typed = talk.says("show stat domain resolvers typed");
    assert!(typed.starts_with("N.0.id.1:CGPV:str:one\nN.1.pid.1:CGPV:str:dns\nN.2.sent.1:MGPV:u64:0\n"), "{typed}");
    let json = talk.says("show stat domain resolvers json");
    assert!(json.starts_with("[[{\"field\":{\"pos\":0,\"name\":\"id\"},") && json.matches("\"send_error\"").count() == 2, "{json}");
}

#[test]
fn proxies_kinds_and_servers_are_selected() {
    let mut talk = Talk::new(WEB);
    for (words, expected) in [
        ("be -1 -1", &["be/a", "be/b", "be/c", "be/BACKEND"][..]),
        ("3 -1 -1", &["be/a", "be/b", "be/c", "be/BACKEND"]),
        ("be 4 -1", &["be/a", "be/b", "be/c"]),
        ("be 4 2", &["be/b"]),
        ("be 2 -1", &["be/BACKEND"]),
        ("-1 1 -1", &["fe/FRONTEND", "raw/FRONTEND"]),
        ("raw 7 -1", &["raw/FRONTEND", "raw/r", "raw/BACKEND"]),
        ("be 4 -1 no-maint", &["be/a", "be/b"]),
        ("domain proxy be 4 -1 up", &["be/a", "be/b"]),
        ("99 -1 -1", &[]),
    ] {
        assert_eq!(services(&talk.says(&format!("show stat {words}"))), expected, "{words}");
    }
    assert_eq!(talk.says("show stat nope -1 -1"), "No such proxy.\n\n");
    assert_eq!(talk.says("show stat domain nope"), "Invalid statistics domain.\n\n");
    assert_eq!(services(&talk.says("show stat be")).len(), 9);
    talk.says("set server be/a health down");
    assert_eq!(services(&talk.says("show stat be 4 -1 up")), ["be/b"]);
}

#[test]
fn other_forms() {
    let mut talk = Talk::new(WEB);
    let typed = talk.says("show stat be 15 -1 typed");
    assert!(typed.starts_with("S.3.1.0.pxname.1:KNSV:str:be\nS.3.1.1.svname.1:KNSV:str:a\n"), "{typed}");
    assert!(typed.contains("\nB.3.0.7.stot.1:MCPV:u64:0\n") && typed.ends_with("\n\n"), "{typed}");
    let texts = talk.says("show stat be 2 -1 typed desc");
    assert!(texts.contains("\nB.3.0.7.stot.1:MCPV:u64:0:\"Sessions since the start\"\n"), "{texts}");
    let json = talk.says("show stat be 4 1 json");
    assert!(json.starts_with("[[{\"objType\":\"Server\",\"proxyId\":3,\"id\":1,") && json.ends_with("}}]]\n\n"), "{json}");
}

#[test]
fn users_see_no_addresses() {
    let mut talk = Talk::new(WEB);
    talk.client.level = Level::User;
    let lines = table(&talk.says("show stat"));
    assert!(lines[1..].iter().all(|line| line[Column::Address as usize].is_empty() && line[Column::Cookie as usize].is_empty()));
}

#[test]
fn addresses_have_rows_where_that_is_wanted() {
    let mut talk = Talk::new(&WEB.replace(
        " bind 127.0.0.1:80\n",
        " option socket-stats\n bind :80 name main maxconn 1\n bind 127.0.0.1:82,127.0.0.1:83\n bind unix@/run/fe id 2\n",
    ));
    let plan = talk.context.plan.clone();
    let counters = plan.binds[0].tally.as_deref().map(|tally| tally.of(1)).expect("an address that is counted");
    counters.enter();
    counters.sessions.add(3);
    counters.bytes_in.add(40);
    let answer = talk.says("show stat");
    let names = ["fe/FRONTEND", "fe/main", "fe/sock-3", "fe/sock-4", "fe/sock-2", "be/a", "be/b"];
    assert_eq!(services(&answer)[..7], names, "and none of 'raw', which does not want it");
    let lines = table(&answer);
    let field = |line: usize, column: Column| lines[line][column as usize].as_str();
    let main = |column| field(2, column);
    assert_eq!((main(Column::Current), main(Column::CurrentMax), main(Column::CurrentLimit)), ("1", "1", "1"));
    assert_eq!((main(Column::Sessions), main(Column::BytesIn), main(Column::DeniedRequests)), ("3", "40", "0"));
    assert_eq!((main(Column::Status), main(Column::Type), main(Column::Status2xx)), ("FULL", "3", ""));
    assert_eq!(
        (main(Column::Address), field(3, Column::Address), field(5, Column::Address)),
        ("0.0.0.0:80", "127.0.0.1:82", "unix")
    );
    assert_eq!((field(3, Column::CurrentLimit), field(3, Column::Status)), ("0", "OPEN"));
    assert_eq!(services(&talk.says("show stat fe 8 3")), ["fe/sock-3"]);
    talk.says("clear counters all");
    assert_eq!(counters.bytes_in.get(), 0);
    assert_eq!(counters.current.get(), 1, "what is in use now is not forgotten");
}
