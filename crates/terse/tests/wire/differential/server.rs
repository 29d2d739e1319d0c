//! The servers of both proxies: their responses depend on the path and on their names alone.

use super::support::server::{Connection, Request, Server};
use super::talk::normal;

/// Starts so many servers: `a`, `b`, `c`...
pub(crate) fn start(count: usize) -> Vec<Server> {
    (0..count)
        .map(|number| {
            let name = char::from(b'a' + number as u8);
            Server::start(move |connection| serve(connection, name))
        })
        .collect()
}

fn serve(connection: &mut Connection, name: char) {
    while let Some(request) = connection.request() {
        let path = request.target.split('?').next().unwrap().trim_end_matches('/').rsplit('/').next().unwrap();
        let goes_on = connection.send(answer(&request, path, name));
        if !goes_on || matches!(path, "close" | "old" | "cut" | "junk" | "empty") {
            return;
        }
    }
}

/// Response to a path.
pub(crate) fn answer(request: &Request, path: &str, name: char) -> Vec<u8> {
    let is_head = request.method == "HEAD";
    let message = |status: &str, fields: &str, body: &str| {
        let body = if is_head { "" } else { body };
        format!("HTTP/1.1 {status}\r\nX-Server: {name}\r\n{fields}\r\n{body}").into_bytes()
    };
    let sized = |fields: &str, body: &str| message("200 OK", &format!("{fields}Content-Length: {}\r\n", body.len()), body);
    let text = "the same words again and again. ".repeat(60);
    match path {
        "204" => message("204 No Content", "", ""),
        "304" => message("304 Not Modified", "ETag: \"x\"\r\n", ""),
        "404" => message("404 Not Found", "Content-Length: 4\r\n", "gone"),
        "500" => message("500 Oops", "Content-Length: 4\r\n", "oops"),
        "chunked" => message("200 OK", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n"),
        "close" => message("200 OK", "Connection: close\r\n", "until the end"),
        "old" => b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        "cookie" => sized("Set-Cookie: SRV=app; path=/\r\nSet-Cookie: other=1\r\n", "cookie"),
        "cacheable" => sized("Cache-Control: max-age=60\r\nETag: \"x\"\r\n", "cacheable"),
        "hop" => sized("Connection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=1\r\nX-End: 1\r\n", "hop"),
        "html" => sized("Content-Type: text/html; charset=utf-8\r\nETag: \"x\"\r\nAccept-Ranges: bytes\r\n", &text),
        "plain" => sized("Content-Type: text/plain\r\n", &text),
        "image" => sized("Content-Type: image/png\r\n", &text),
        "coded" => sized("Content-Type: text/html\r\nContent-Encoding: br\r\n", "not really"),
        "part" => {
            message("206 Partial Content", "Content-Type: text/html\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n", "part")
        }
        "stream" => message(
            "200 OK",
            "Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n",
            &format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len()),
        ),
        "no-transform" => sized("Content-Type: text/html\r\nCache-Control: no-transform\r\n", &text),
        "hints" => [&b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"[..], &sized("", "late")].concat(),
        "junk" => b"junk\r\n\r\n".to_vec(),
        "empty" => Vec::new(),
        "location" => message("302 Found", "Location: http://backend.local:8080/x\r\nContent-Length: 0\r\n", ""),
        _ => sized("Server: test\r\n", &format!("{name}:{}", request.body.len())),
    }
}

/// Requests that servers have seen, in the order of arrival at each: the server, the first line, the fields and the body.
pub(crate) fn seen(servers: &[Server]) -> Vec<String> {
    servers
        .iter()
        .zip('a'..)
        .flat_map(|(server, name)| {
            let show = move |request: Request| format!("{name} {} {:?}", request.line, normal(&request.fields));
            server.requests().into_iter().map(show)
        })
        .collect()
}
