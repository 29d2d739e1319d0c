//! What expressions say of a stream's own state: bytes each way, its task's calls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::proxy::{listen, sections};
use support::server::Server;

#[test]
fn bytes_are_counted_on_both_sides() {
    let server = Server::body("four");
    let terse = listen(&format!(
        "http-request set-header X-More yes\n http-response set-header Sent %[req.bytes_out]\n \
         http-response set-header Came %[req.bytes_in]\n server s {}",
        server.address()
    ));
    let mut client = terse.client();
    for _ in 0..2 {
        let head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        client.send(head);
        let response = client.response("GET");
        let sent = head.len() + "X-More: yes\r\n".len();
        assert_eq!(["came", "sent"].map(|name| response.field(name).unwrap().parse()), [Ok(head.len()), Ok(sent)]);
    }
    terse.end();
}

#[test]
fn tasks_are_measured() {
    let terse = sections(
        "http-request return status 200 hdr calls %[cpu_calls] hdr busy %[cpu_ns_tot] hdr each %[cpu_ns_avg] hdr waited %[lat_ns_tot]",
        "",
    );
    let mut client = terse.client();
    for _ in 0..3 {
        let response = client.get("/", &[]);
        let number = |name: &str| response.field(name).unwrap().parse::<u64>().unwrap();
        assert!((1..10).contains(&number("calls")), "{response:?}");
        assert!(number("busy") > 0 && number("each") > 0, "{response:?}");
        // Reading waits for nothing but the kernel: a moment passes between its word and the call.
        assert!(number("waited") > 0 || number("calls") == 1, "{response:?}");
    }
    terse.end();
}
