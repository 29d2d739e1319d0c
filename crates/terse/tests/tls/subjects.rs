//! Names in certificates, as rules see them.

use crate::certificates::{Pair, authority, entitled};
use crate::support::proxy::DEFAULTS;
use crate::support::{Terse, program};
use crate::talk::Ask;
use std::io::{Read, Write};

/// A proxy's facts about names: `web` speaks to the client, and its server is the same process.
fn process(fetches: &[String], client: &Pair, root: &Pair) -> Terse {
    let (near, far): (Vec<_>, Vec<_>) = fetches.iter().partition(|fetch| !fetch.contains("ssl_s_"));
    let list = |fetches: &[&String]| fetches.iter().map(|fetch| format!("<%[{fetch}]>")).collect::<String>();
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend end\n bind \"unix@${{dir}}/end\" ssl crt site.pem ca-file root.pem verify none\n \
         http-request return status 200\n\
         listen web\n bind fd@${{web}} ssl crt site.pem ca-file root.pem verify required\n \
         http-response set-header Near \"{}\"\n http-response set-header Far \"{}\"\n server s \"unix@${{dir}}/end\" ssl verify none\n",
        list(&near),
        list(&far),
    );
    Terse::with(&text).file("site.pem", client.pem()).file("root.pem", root.certificate_pem()).listen("web")
}

fn found(terse: &Terse, shown: &Pair) -> Vec<String> {
    let mut stream = Ask { shown: Some(shown), ..Ask::default() }.connect(terse.address("web")).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let field = |name: &str| {
        answer.lines().find_map(|line| line.to_ascii_lowercase().starts_with(name).then(|| &line[name.len()..])).unwrap_or_default()
    };
    let all = format!("{}{}", field("near: "), field("far: "));
    all.split_terminator('>').map(|found| found.trim_start_matches('<').to_owned()).collect()
}

/// All fetches of names find entries whatever their case, and write names as HAProxy does. By long names HAProxy finds nothing.
#[test]
fn entries_are_found_as_by_haproxy() {
    let root = authority("root");
    let entries = [
        ("C", "FR"),
        ("O", "Acme, Inc."),
        ("OU", "Dev"),
        ("OU", "Ops"),
        ("CN", "mallory"),
        ("emailAddress", "m@x.test"),
        ("1.3.6.1.4.1.99999.7", "own"),
        ("UID", "7"),
        ("DC", "test"),
        ("serialNumber", "12"),
    ];
    let pair = entitled(&entries, &root);
    let own = [
        (
            "",
            "/C=FR/O=Acme, Inc./OU=Dev/OU=Ops/CN=mallory/emailAddress=m@x.test/1.3.6.1.4.1.99999.7=own/UID=7/DC=test/serialNumber=12",
        ),
        (
            "(,0,rfc2253)",
            r"serialNumber=12,DC=test,UID=7,1.3.6.1.4.1.99999.7=#0C036F776E,emailAddress=m@x.test,CN=mallory,OU=Ops,OU=Dev,O=Acme\, Inc.,C=FR",
        ),
        ("(CN)", "mallory"),
        ("(cn)", "mallory"),
        ("(Cn,1)", "mallory"),
        ("(CN,0)", ""),
        ("(ou,0)", ""),
        ("(cn,1,rfc2253)", "mallory"),
        ("(ou)", "Dev"),
        ("(Ou,2)", "Ops"),
        ("(OU,-1)", "Ops"),
        ("(ou,-2)", "Dev"),
        ("(ou,3)", ""),
        ("(ou,-3)", ""),
        ("(EMAILaddress)", "m@x.test"),
        ("(1.3.6.1.4.1.99999.7)", "own"),
        ("(UNDEF)", ""),
        ("(uid)", "7"),
        ("(dc)", "test"),
        ("(SerialNumber)", "12"),
        ("(L)", ""),
    ];
    let issuer = [("", "/CN=root"), ("(cn)", "root"), ("(CN,-1)", "root"), ("(o)", ""), ("(,0,rfc2253)", "CN=root")];
    let long = [("(commonName)", "mallory"), ("(organizationalunitname,2)", "Ops"), ("(2.5.4.3)", "mallory")];
    let sides = ["ssl_c", "ssl_f", "ssl_s"];
    let all = |name: &str, cases: &[(&str, &str)]| -> (Vec<String>, Vec<String>) {
        let all = sides
            .iter()
            .flat_map(|side| cases.iter().map(move |(args, found)| (format!("{side}_{name}{args}"), (*found).to_owned())));
        all.unzip()
    };
    let (mut fetches, mut expected) = all("s_dn", &own);
    let (more, also) = all("i_dn", &issuer);
    fetches.extend(more);
    expected.extend(also);
    // In the order of the fields: facts about the server come last.
    let in_order = |values: Vec<String>, fetches: &[String]| -> Vec<String> {
        let (near, far): (Vec<_>, Vec<_>) = values.into_iter().zip(fetches).partition(|(_, fetch)| !fetch.contains("ssl_s_"));
        near.into_iter().chain(far).map(|(value, _)| value).collect()
    };
    let terse = process(&fetches, &pair, &root).start();
    assert_eq!(found(&terse, &pair), in_order(expected.clone(), &fetches));
    terse.end();
    if let Some(haproxy) = program::find("haproxy") {
        let theirs = process(&fetches, &pair, &root).program(&haproxy).start();
        assert_eq!(found(&theirs, &pair), in_order(expected, &fetches), "haproxy");
    }
    let (fetches, expected) = all("s_dn", &long);
    let terse = process(&fetches, &pair, &root).start();
    assert_eq!(found(&terse, &pair), in_order(expected, &fetches));
    terse.end();
}

#[test]
fn other_formats_are_refused() {
    for fetch in ["ssl_c_s_dn(,0,rfc1779)", "ssl_s_i_dn(CN,1,x)", "ssl_c_r_dn(,0,RFC2253)"] {
        let text = format!("{DEFAULTS}\nfrontend web\n bind 127.0.0.1:0\n http-request set-header X %[{fetch}]\n");
        let finished = Terse::with(&text).arg(&["-c"]).run();
        assert!(finished.code() == Some(1) && finished.stderr.contains("only rfc2253 format is supported"), "{}", finished.stderr);
    }
}
