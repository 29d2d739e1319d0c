//! A thousand requests at once to a server that has had no connection yet, and whose protocol is not known.

use super::super::support::program::{find, run};
use super::{Program, Secret, TLS, figure, proxy};
use std::collections::BTreeSet;

/// nginx with a small file, over TLS.
fn nginx(listen: &str, secret: &Secret) -> Option<Program> {
    let configuration = format!(
        "daemon off; master_process off; pid {{folder}}/pid; error_log {{folder}}/error.log;\nevents {{ worker_connections 4096; }}\n\
         http {{\n log_format told '$connection $server_protocol $status';\n access_log {{folder}}/log told;\n\
         client_body_temp_path {{folder}}/t; proxy_temp_path {{folder}}/p;\n fastcgi_temp_path {{folder}}/f;\n\
         uwsgi_temp_path {{folder}}/u; scgi_temp_path {{folder}}/s;\n\
         ssl_certificate {{folder}}/a.pem; ssl_certificate_key {{folder}}/a.pem;\n\
         server {{ listen {{address}} ssl {listen}; root {{folder}}/files; }}\n}}\n"
    );
    Program::start("nginx", &["-c"], &configuration, secret, b"hello")
}

/// Arguments of h2load: ten connections of a hundred streams, or a thousand connections of HTTP/1.1.
const CLIENTS: [&[&str]; 2] = [&["-c", "10", "-m", "100"], &["--h1", "-c", "1000"]];

/// The connections that nginx has seen for a thousand requests, all by one protocol.
fn cold(listen: &str, protocol: &str, clients: &[&str]) -> Option<usize> {
    let secret = Secret::new();
    let nginx = nginx(listen, &secret)?;
    let h2load = find("h2load")?;
    let terse = proxy(&format!(" http-reuse always\n server one {} {TLS}", nginx.address), &secret);
    let url = format!("http://{}/big", terse.address("web"));
    let said = run(&h2load, &[clients, &["-n", "1000", &url]].concat());
    assert!(said.stdout.contains("1000 succeeded, 0 failed, 0 errored, 0 timeout"), "{clients:?}: {}", said.stdout);
    let made = figure(&terse, "connect");
    terse.end();
    let log = nginx.file("log");
    assert_eq!(log.lines().filter(|line| line.ends_with(&format!("{protocol} 200"))).count(), 1000, "{protocol}");
    let connections: BTreeSet<_> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    println!("{protocol} {clients:?}: {} connections, {made} made", connections.len());
    assert!(made as usize >= connections.len());
    Some(connections.len())
}

#[test]
fn a_thousand_requests_share_a_few_connections() {
    for clients in CLIENTS {
        let Some(connections) = cold("http2", "HTTP/2.0", clients) else { return };
        // 128 streams on each, and requests come faster than connections are made.
        assert!(connections <= 12, "{clients:?}: {connections} connections");
    }
}

#[test]
fn a_thousand_requests_reach_a_server_of_http1_alike() {
    for clients in CLIENTS {
        cold("", "HTTP/1.1", clients);
    }
}
