//! Contents of clients' hellos: `tune.ssl.capture-buffer-size`.

use crate::certificates::authority;
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVerifyMode, SslVersion};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Answer to a client with a hello of its own.
fn answer(terse: &Terse) -> String {
    let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
    context.set_verify(SslVerifyMode::NONE);
    context.set_max_proto_version(Some(SslVersion::TLS1_2)).unwrap();
    context.set_cipher_list("ECDHE-ECDSA-AES128-GCM-SHA256").unwrap();
    context.set_groups_list("P-256:P-384").unwrap();
    context.set_sigalgs_list("ECDSA+SHA256").unwrap();
    let mut stream = Ssl::new(&context.build()).unwrap().connect(TcpStream::connect(terse.address("web")).unwrap()).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split("\r\n\r\n").nth(1).unwrap().to_owned()
}

#[test]
fn hellos_are_kept_as_far_as_there_is_room() {
    let site = authority("a.test");
    let shown = "%[ssl_fc_protocol_hello_id]|%[ssl_fc_cipherlist_bin(1),be2dec(-,2)]|%[ssl_fc_cipherlist_hex]|\
                 %[ssl_fc_cipherlist_str]|%[ssl_fc_eclist_bin(1),be2dec(-,2)]|%[ssl_fc_ecformats_bin,be2dec(-,1)]|\
                 %[ssl_fc_sigalgs_bin,hex]|%[ssl_fc_extlist_bin,bytes(0,4),hex]|%[ssl_fc_cipherlist_xxh,bool]";
    for (global, expected) in [
        ("", "||||||||"),
        (
            "tune.ssl.capture-buffer-size 96",
            "771|49195-255|C02B00FF|ECDHE-ECDSA-AES128-GCM-SHA256,TLS_EMPTY_RENEGOTIATION_INFO_SCSV|23-24|0-1-2|0403|000B000A|1",
        ),
        ("tune.ssl.capture-buffer-size 3", "771|49195|C02B|ECDHE-ECDSA-AES128-GCM-SHA256|||||1"),
    ] {
        let text = format!(
            "global\n nbthread 1\n {global}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem\n \
             http-request return status 200 content-type text/plain lf-string \"{shown}\"\n"
        );
        let terse = Terse::with(&text).file("a.pem", site.pem()).listen("web").start();
        assert_eq!(answer(&terse), expected, "{global}");
        terse.end();
    }
}
