//! What expressions and logs have of a request's target over HTTP/2, beside Debian's HAProxy.

use super::servers::{Program, Secret};
use super::support::Terse;
use super::support::program::curl;
use super::support::proxy::DEFAULTS;

/// What both have the same of.
const SAME: &str =
    "%HPO|%HQ|%HM|%HV|%[path]|%[pathq]|%[base]|%[query]|%[url_param(b)]|%[capture.req.uri]|%[req.ver]|%[fc_http_major]";

/// What HAProxy has the host in, and its version of a capture, which is HTTP/1.1's.
const OTHER: &str = "%HU|%HP|%r|%[url]|%[url_ip]|%[url_port]|%[capture.req.ver]";

#[test]
fn a_target_has_no_host_in_it() {
    let (Some(curl), secret) = (curl(), Secret::new()) else { return };
    let answer = |format: &str| format!(" http-request return status 200 content-type text/plain lf-string \"{format}\"");
    let rules = format!("{} if {{ path_beg /same }}\n{}\n", answer(SAME), answer(OTHER));
    let text = format!("{DEFAULTS}\nlisten web\n bind {{web}}\n bind {{secure}} ssl crt {{folder}}a.pem alpn h2,http/1.1\n{rules}");
    let ours = text.replace("{web}", "fd@${web}").replace("{secure}", "fd@${secure}").replace("{folder}", "");
    let terse =
        Terse::with(&format!("global\n nbthread 1\n{ours}")).file("a.pem", &secret.pem).listen("web").listen("secure").start();
    for (address, scheme, bind) in [
        (terse.address("web"), "http", "bind {address}"),
        (terse.address("secure"), "https", "bind {address} ssl crt {folder}/a.pem alpn h2,http/1.1"),
    ] {
        let theirs = format!("{DEFAULTS}\nlisten web\n {bind}\n{rules}");
        let Some(haproxy) = Program::start("haproxy", &["-db", "-f"], &theirs, &secret, b"") else { return };
        let version = if scheme == "http" { "--http2-prior-knowledge" } else { "--http2" };
        let ask = |address: std::net::SocketAddr, path: &str| {
            let said = curl(&["-sk", version, "-H", "Host: 10.0.0.1:81", &format!("{scheme}://{address}{path}")]);
            assert_eq!(said.code, Some(0), "{path}: {said:?}");
            said.stdout
        };
        for path in ["/same/a?b=1&c", "/same"] {
            assert_eq!(ask(address, path), ask(haproxy.address, path), "{scheme} {path}");
        }
        assert_eq!(ask(address, "/x?b=1"), "/x?b=1|/x|GET /x?b=1 HTTP/2.0|/x?b=1|||HTTP/2.0", "{scheme}");
        let whole = format!("{scheme}://10.0.0.1:81/x?b=1");
        let theirs = format!("{whole}|{scheme}://10.0.0.1:81/x|GET {whole} HTTP/2.0|{whole}|10.0.0.1|81|HTTP/1.1");
        assert_eq!(ask(haproxy.address, "/x?b=1"), theirs, "{scheme}");
    }
    terse.end();
}
