//! `server ... ssl`.

use crate::certificates::{Kind, Pair, authority, signed};
use crate::support::client::{Client, Response};
use crate::support::proxy::DEFAULTS;
use crate::support::server::Server;
use crate::support::{Terse, program, until};
use openssl::ssl::{Ssl, SslContext, SslMethod};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

/// A process that ends TLS with certificates for `a.test` and `b.test`, and answers with the name it was asked for.
fn origin(words: &str, root: &Pair) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem crt b.pem {words}\n \
         http-request return status 200 hdr Name %[ssl_fc_sni] hdr Version %[ssl_fc_protocol] hdr Resumed %[ssl_fc_is_resumed] \
         hdr Client %[ssl_c_s_dn(CN)] hdr Protocol %[ssl_fc_alpn]\n"
    );
    let pem = |name| signed(Kind::Ecdsa, &[name], root).pem();
    let terse =
        Terse::with(&text).file("a.pem", pem("a.test")).file("b.pem", pem("b.test")).file("root.pem", root.certificate_pem());
    terse.listen("web").start()
}

/// A process that speaks TLS to a server.
fn proxy(server: SocketAddr, words: &str, lines: &str, root: &Pair) -> Terse {
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS} retries 0\n{lines}\nlisten web\n bind fd@${{web}}\n server s {server} ssl {words}\n \
         http-response set-header Facts %[ssl_bc],%[ssl_bc_protocol],%[ssl_s_s_dn(CN)],%[bc_err]\n"
    );
    let shown = signed(Kind::Ecdsa, &["client"], root).pem();
    Terse::with(&text).file("root.pem", root.certificate_pem()).file("client.pem", shown).listen("web").start()
}

fn get(terse: &Terse, path: &str, host: &str) -> Response {
    let mut client = Client::connect(terse.address("web"));
    client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    client.response("GET")
}

fn status(terse: &Terse, host: &str) -> u16 {
    get(terse, "/", host).status
}

#[test]
fn its_certificate_is_verified() {
    let (root, stranger) = (authority("root"), authority("stranger"));
    let origin = origin("", &root);
    let server = origin.address("web");
    for (words, host, expected) in [
        ("ca-file root.pem", "a.test", 200),
        ("ca-file root.pem", "c.test", 503),
        ("ca-file root.pem no-sni-auto", "c.test", 200),
        ("ca-file root.pem sni str(b.test)", "a.test", 200),
        ("ca-file root.pem sni str(c.test) verifyhost a.test", "x", 200),
        ("ca-file root.pem sni str(a.test) verifyhost b.test", "x", 503),
        ("verify none", "c.test", 200),
        ("ca-file root.pem force-tlsv12", "a.test", 200),
    ] {
        let terse = proxy(server, words, "", &root);
        assert_eq!(status(&terse, host), expected, "{words} {host}");
        terse.end();
    }
    let terse = proxy(server, "ca-file root.pem", "", &stranger);
    assert_eq!(status(&terse, "a.test"), 503);
    terse.end();
    origin.end();
}

#[test]
fn what_is_told_of_it_and_to_it() {
    let root = authority("root");
    let origin = origin("verify optional ca-file root.pem", &root);
    let terse = proxy(origin.address("web"), "ca-file root.pem crt client.pem alpn http/1.1 ssl-max-ver TLSv1.2", "", &root);
    let response = get(&terse, "/", "b.test:80");
    let told = ["Name", "Version", "Client", "Protocol", "Facts"].map(|name| response.field(name).unwrap_or_default().to_owned());
    assert_eq!(told, ["b.test", "TLSv1.2", "client", "http/1.1", "1,TLSv1.2,b.test,0"]);
    terse.end();
    origin.end();
}

#[test]
fn sessions_are_resumed_unless_they_are_forgotten() {
    let root = authority("root");
    let origin = origin("", &root);
    for (words, resumed) in [("", "1"), ("no-ssl-reuse", "0")] {
        for version in ["force-tlsv12", "force-tlsv13"] {
            let words = format!("ca-file root.pem {version} {words}");
            let terse = proxy(origin.address("web"), &words, " option httpclose\n", &root);
            let again = [(), ()].map(|()| {
                let response = get(&terse, "/", "a.test");
                response.field("Resumed").unwrap_or_default().to_owned()
            });
            assert_eq!(again, ["0", resumed], "{words}");
            terse.end();
        }
    }
    origin.end();
}

/// If the name is an address, the certificate must have the address: as an address, not as a name.
#[test]
fn addresses_are_verified_as_such() {
    let root = authority("root");
    let origin = |names: &[&str]| {
        let text = format!(
            "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n http-request return status 200 hdr Name \"<%[ssl_fc_sni]>\"\n"
        );
        Terse::with(&text).file("a.pem", signed(Kind::Ecdsa, names, &root).pem()).listen("web").start()
    };
    let (named, addressed) = (origin(&["a.test"]), origin(&["own", "127.0.0.1", "::1"]));
    for (words, host, of_named, of_addressed) in [
        ("", "a.test", 200, 503),
        ("", "127.0.0.1", 503, 200),
        ("", "127.0.0.1:8080", 503, 200),
        ("", "127.0.0.2", 503, 503),
        ("", "[::1]", 503, 200),
        ("", "[::1]:8080", 503, 200),
        ("", "[::2]", 503, 503),
        ("", "127.1", 503, 503),
        ("force-tlsv12", "127.0.0.1", 503, 200),
        ("sni req.hdr(host)", "127.0.0.1", 503, 200),
        ("sni req.hdr(host)", "[0:0::1]", 503, 200),
        ("sni str(127.0.0.1)", "a.test", 503, 200),
        ("sni str(::1)", "a.test", 503, 200),
        ("sni str(192.0.2.1)", "a.test", 503, 503),
        ("verifyhost 127.0.0.1", "a.test", 503, 200),
        ("verifyhost [::1]", "a.test", 503, 200),
        ("verifyhost ::2", "a.test", 503, 503),
        ("verifyhost a.test", "127.0.0.1", 200, 503),
        ("verifyhost own sni str(127.0.0.1)", "x", 503, 200),
        ("no-sni-auto verifyhost 127.0.0.1", "x", 503, 200),
        ("verify none", "127.0.0.1", 200, 200),
    ] {
        for (origin, status) in [(&named, of_named), (&addressed, of_addressed)] {
            let terse = proxy(origin.address("web"), &format!("ca-file root.pem {words}"), "", &root);
            let response = get(&terse, "/", host);
            assert_eq!(response.status, status, "{words} {host}");
            // RFC 6066 section 3: an address is no name to ask for.
            assert!(response.field("Name").is_none_or(|name| !name.contains([':', '1'])), "{words} {host}: {response:?}");
            terse.end();
        }
    }
    [named, addressed].into_iter().for_each(Terse::end);
}

/// A session that began under one address is not resumed under another: the certificate would not be verified for it.
#[test]
fn sessions_belong_to_addresses() {
    let root = authority("root");
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n http-request return status 200 hdr Resumed %[ssl_fc_is_resumed]\n"
    );
    let pem = signed(Kind::Ecdsa, &["own", "127.0.0.1", "127.0.0.3"], &root).pem();
    let origin = Terse::with(&text).file("a.pem", pem).listen("web").start();
    for version in ["force-tlsv12", "force-tlsv13"] {
        let terse = proxy(origin.address("web"), &format!("ca-file root.pem {version}"), " option httpclose\n", &root);
        let seen = ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.3", "own"].map(|host| {
            let response = get(&terse, "/", host);
            (response.status, response.field("Resumed").unwrap_or_default().to_owned())
        });
        let expected = [(200, "0"), (200, "1"), (503, ""), (200, "1"), (200, "0"), (200, "0")];
        assert_eq!(seen, expected.map(|(status, resumed)| (status, resumed.to_owned())), "{version}");
        terse.end();
    }
    origin.end();
}

/// Rules see the same facts of a resumed session's server as before.
#[test]
fn resumed_sessions_tell_the_same() {
    let root = authority("root");
    let origin = origin("", &root);
    let facts = [
        "ssl_bc_sni",
        "ssl_bc_cipher",
        "ssl_bc_protocol",
        "ssl_bc_curve",
        "ssl_bc_use_keysize",
        "ssl_bc_alpn",
        "ssl_s_s_dn",
        "ssl_s_i_dn(cn)",
    ];
    let facts = [&facts[..], &["ssl_s_der,sha1,hex", "ssl_s_chain_der,sha1,hex", "ssl_s_notafter", "ssl_s_serial,hex"]].concat();
    let list: String = facts.iter().map(|fact| format!("<%[{fact}]>")).collect();
    for version in ["force-tlsv12", "force-tlsv13"] {
        let text = format!(
            "global\n nbthread 1\n{DEFAULTS} option httpclose\nlisten web\n bind fd@${{web}}\n http-response set-header Facts \"{list}\"\n \
             http-response set-header Again %[ssl_bc_is_resumed]\n server s {} ssl ca-file root.pem alpn http/1.1 {version}\n",
            origin.address("web")
        );
        let terse = Terse::with(&text).file("root.pem", root.certificate_pem()).listen("web").start();
        let [first, again] = [(), ()].map(|()| {
            let response = get(&terse, "/", "b.test");
            ["Again", "Facts"].map(|name| response.field(name).unwrap_or_default().to_owned())
        });
        assert_eq!(again, ["1", &*first[1]], "{version}");
        assert!(first[0] == "0" && first[1].starts_with("<b.test><") && !first[1].contains("<>"), "{first:?}");
        terse.end();
    }
    origin.end();
}

#[test]
fn connections_are_shared_only_under_one_name() {
    let root = authority("root");
    let origin = origin("", &root);
    let terse = proxy(origin.address("web"), "ca-file root.pem", " http-reuse always\n", &root);
    for (host, _) in [("a.test", 1), ("b.test", 2), ("a.test", 2), ("b.test", 2)] {
        let response = get(&terse, "/", host);
        assert_eq!((response.status, response.field("Name")), (200, Some(host)));
    }
    terse.end();
    origin.end();
}

#[test]
fn checks_make_handshakes() {
    let root = authority("root");
    let origin = origin("", &root);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    for (words, lines, line) in [
        ("ca-file root.pem check-sni a.test check", "", "Layer6 check passed"),
        ("verify none check", " option httpchk GET /\n", "Layer7 check passed"),
        ("ca-file root.pem check-sni c.test check", "", "Layer6 invalid response"),
        ("ca-file root.pem check-sni 127.0.0.1 check", "", "Layer6 invalid response"),
        ("ca-file root.pem check", " option httpchk\n http-check send hdr Host [::1]:80\n", "Layer6 invalid response"),
        ("ca-file root.pem check", " option tcp-check\n tcp-check connect ssl sni 127.0.0.1\n", "Layer6 invalid response"),
        (
            "verify none check no-check-ssl",
            " option httpchk\n http-check connect\n http-check send meth GET uri /\n",
            "Layer7 invalid response",
        ),
    ] {
        let terse = proxy(
            origin.address("web"),
            &format!("{words} inter 20ms rise 1 fall 1"),
            &format!("{lines} option log-health-checks\n log stderr format raw local0\n"),
            &root,
        );
        until(&format!("'{line}' of '{words}'"), || terse.stderr().contains(line).then_some(()));
        terse.end();
    }
    drop(closed);
    origin.end();
}

#[test]
fn checks_offer_protocols_and_by_http_only_those_that_are_spoken() {
    let root = authority("root");
    for (words, lines, chosen) in [
        ("check-alpn h2,http/1.1", "", "h2"),
        ("", " option tcp-check\n tcp-check connect ssl alpn h2\n", "h2"),
        ("check-alpn h2,http/1.1", " option httpchk\n", "h2"),
        ("alpn http/1.1", " option httpchk\n", "http/1.1"),
        ("check-alpn h3,http/1.1", " option httpchk\n", "http/1.1"),
    ] {
        let text = format!(
            "global\n nbthread 1\n{DEFAULTS}\nfrontend web\n mode tcp\n bind fd@${{web}} ssl crt a.pem alpn h2,http/1.1\n \
             log stderr format raw local0\n log-format \"chosen %[ssl_fc_alpn].\"\n"
        );
        let origin = Terse::with(&text).file("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem()).listen("web").start();
        let words = format!("verify none check inter 20ms {words}");
        let terse = proxy(origin.address("web"), &words, lines, &root);
        let line = format!("chosen {chosen}.");
        until(&format!("'{line}' of '{words}'"), || origin.stderr().contains(&line).then_some(()));
        terse.end();
        origin.end();
    }
}

#[test]
fn nginx_is_spoken_to() {
    let Some(nginx) = program::find("nginx") else { return };
    let root = authority("root");
    let folder = tempfile::tempdir().unwrap();
    let site = signed(Kind::Rsa, &["a.test"], &root);
    std::fs::write(folder.path().join("site.pem"), site.pem()).unwrap();
    let body = "0123456789".repeat(100_000);
    std::fs::write(folder.path().join("body"), &body).unwrap();
    let port = crate::support::server::Port::new();
    let at = folder.path().display();
    let configuration = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error; events {{}} http {{ access_log off; client_body_temp_path {at}/1; proxy_temp_path {at}/2; \
         fastcgi_temp_path {at}/3; uwsgi_temp_path {at}/4; scgi_temp_path {at}/5; server {{ listen {} ssl; root {at}; \
         ssl_certificate {at}/site.pem; ssl_certificate_key {at}/site.pem; }} }}",
        port.address()
    );
    std::fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    let server = port.address();
    drop(port);
    let (file, prefix) = (format!("{at}/nginx.conf"), at.to_string());
    let _running = program::Running::start(&nginx, &["-c", &file, "-p", &prefix], folder.path());
    until("nginx to listen", || std::net::TcpStream::connect(server).ok());
    let terse = proxy(server, "ca-file root.pem", "", &root);
    for _ in 0..3 {
        let response = get(&terse, "/body", "a.test");
        assert!(response.status == 200 && response.text() == body);
    }
    terse.end();
}

#[test]
fn a_line_that_says_nothing_of_trust_is_refused() {
    let text = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\nlisten web\n bind 127.0.0.1:0\n server s 127.0.0.1:1 ssl\n";
    let finished = Terse::with(text).arg(&["-c"]).run();
    assert!(finished.code() == Some(1) && finished.stderr.contains("no CA file specified"), "{}", finished.stderr);
    for (global, options) in [("ssl-server-verify none", &["-c"][..]), ("ssl-server-verify required", &["-c", "-dV"])] {
        let finished = Terse::with(&format!("global\n {global}\n{text}")).arg(options).run();
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{global}");
    }
}

/// A body whose end is that of the connection, as a server of TLS sends it, with and without the end of TLS.
#[test]
fn a_body_that_is_cut_off_is_not_whole() {
    let root = authority("root");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let site = signed(Kind::Ecdsa, &["a.test"], &root);
    let server = std::thread::spawn(move || {
        let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
        context.set_certificate(&site.certificate).unwrap();
        context.set_private_key(&site.key).unwrap();
        let context = context.build();
        for ends in [true, false] {
            let mut stream = Ssl::new(&context).unwrap().accept(listener.accept().unwrap().0).unwrap();
            let mut room = [0; 4096];
            assert!(stream.read(&mut room).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\npart").unwrap();
            if ends {
                stream.shutdown().unwrap();
            }
        }
    });
    let lines = " log stderr format raw local0\n log-format \"%tsc\"\n retries 0\n";
    let terse = proxy(address, "verify none", lines, &root);
    for (states, end) in [("----\n", "part\r\n0\r\n\r\n"), ("SD--\n", "part\r\n")] {
        let mut client = Client::connect(terse.address("web"));
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        assert!(String::from_utf8(client.rest()).unwrap().ends_with(end), "{states}");
        until("a line", || terse.stderr().contains(states).then_some(()));
    }
    terse.end();
    server.join().unwrap();
}

/// Requests that share connections: those for one name, or where the line sets it, those that have the same name.
#[test]
fn connections_are_shared_by_name() {
    let root = authority("root");
    let end = Terse::with("").listen("clear").listen("end");
    let front =
        |name: &str, server: &str, words: &str| format!("listen {name}\n bind fd@${{{name}}}\n server s {server} {words}\n");
    let (plain, secure) = (end.address("clear").to_string(), end.address("end").to_string());
    let text = format!(
        "global\n nbthread 1\n{DEFAULTS}\nfrontend end\n bind fd@${{end}} ssl crt a.pem\n bind fd@${{clear}}\n \
         http-request return status 200 hdr First %[http_first_req]\n{}{}{}",
        front("sni", &secure, "ssl verify none sni req.hdr(x-sni)"),
        front("called", &plain, "pool-conn-name req.hdr(x-name)"),
        front("both", &secure, "ssl verify none sni req.hdr(x-sni) pool-conn-name req.hdr(x-name)"),
    );
    let end = end.file("terse.cfg", text).file("a.pem", signed(Kind::Ecdsa, &["a.test"], &root).pem());
    let end = end.listen("sni").listen("called").listen("both").start();
    for (name, asked) in [
        ("sni", [("a", "x", "1"), ("a", "y", "0"), ("b", "y", "1"), ("a", "y", "0"), ("b", "z", "0")]),
        ("called", [("a", "x", "1"), ("b", "x", "0"), ("b", "y", "1"), ("a", "x", "0"), ("a", "y", "0")]),
        ("both", [("a", "x", "1"), ("b", "x", "0"), ("b", "y", "1"), ("c", "y", "0"), ("d", "x", "0")]),
    ] {
        let mut client = Client::connect(end.address(name));
        for (sni, called, first) in asked {
            let answer = client.get("/", &[("X-Sni", &format!("{sni}.test")), ("X-Name", called)]);
            assert_eq!(answer.field("First"), Some(first), "{name}: {sni} {called}");
        }
    }
    end.end();
}

/// A script that writes over TLS and closes, while much that the server has sent waits for it: all that it wrote arrives.
#[test]
fn what_a_script_wrote_before_it_closed_arrives() {
    let (arrived, arrivals) = mpsc::channel();
    let server = Server::start(move |connection| {
        connection.bytes(6).unwrap();
        connection.send(vec![b'.'; 512 << 10]);
        let _ = arrived.send(connection.rest());
    });
    let script = r#"
core.register_service("write", "http", function(applet)
  local socket = core.tcp()
  socket:settimeout(10)
  assert(socket:connect_ssl("127.0.0.1", tonumber(applet.headers["port"][0])))
  socket:send("first\n")
  socket:receive(1)
  socket:send(string.rep("more ", 20000))
  socket:send("last words")
  socket:close()
  applet:start_response()
  applet:send("done")
end)
"#;
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n lua-load \"${{dir}}/script.lua\"\n{DEFAULTS}\n\
         listen secured\n mode tcp\n bind fd@${{secured}} ssl crt a.pem\n server plain {}\n\
         listen web\n bind fd@${{web}}\n http-request use-service lua.write\n",
        server.address()
    );
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    let terse = Terse::with(&text).file("script.lua", script).file("a.pem", pem).listen("web").listen("secured").start();
    let mut client = Client::connect(terse.address("web"));
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nport: {}\r\n\r\n", terse.address("secured").port()));
    assert_eq!(client.response("GET").status, 200);
    let rest = arrivals.recv().unwrap();
    assert!(rest.len() == 100_010 && rest.ends_with(b"more last words"), "{} bytes", rest.len());
    terse.end();
}
