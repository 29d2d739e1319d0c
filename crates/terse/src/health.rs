//! `terse health [URL]`: checks that a process answers, for images and scripts that have no curl.

use crate::report::print;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

/// Sends the request, and ends with 0 where the response's status is 200 to 399, with 1 where it is another or there is none. 2:
/// the arguments are no URL.
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let url = match &words[..] {
        [] => CONSOLE,
        [word] if ["--help", "-h"].contains(&word.as_str()) => {
            print(format!("{USAGE}\n"));
            return ExitCode::SUCCESS;
        }
        [url] => url.as_str(),
        _ => return misuse("expects one URL"),
    };
    let Some((host, path)) = parts(url) else { return misuse("expects http://HOST[:PORT][/PATH]") };
    match ask(&host, path) {
        Ok(status) if (200..400).contains(&status) => ExitCode::SUCCESS,
        Ok(status) => failure(url, &format!("answers with {status}")),
        Err(reason) => failure(url, &reason),
    }
}

/// `HOST:PORT` and the path of a URL of HTTP.
fn parts(url: &str) -> Option<(String, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let is_sound = !host.is_empty() && rest.chars().all(|sign| !sign.is_whitespace() && !sign.is_control());
    is_sound.then(|| (if has_port { host.to_owned() } else { format!("{host}:80") }, path))
}

fn ask(host: &str, path: &str) -> Result<u16, String> {
    let address = host.to_socket_addrs().map_err(|error| error.to_string())?.next().ok_or("no address")?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| error.to_string())?;
    let asked = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| {
        stream.write_all(
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: terse-health\r\nConnection: close\r\n\r\n").as_bytes(),
        )
    });
    asked.map_err(|error| error.to_string())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).map_err(|error| error.to_string())?;
    let status = head.strip_prefix(b"HTTP/1.").and_then(|rest| std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok());
    status.ok_or_else(|| "answers in another protocol".into())
}

fn failure(url: &str, reason: &str) -> ExitCode {
    eprintln!("terse health: {url}: {reason}");
    ExitCode::FAILURE
}

fn misuse(reason: &str) -> ExitCode {
    eprintln!("terse health: {reason}");
    ExitCode::from(2)
}

/// Text of `--help`.
const USAGE: &str = "usage: terse health [http://HOST[:PORT][/PATH]]   (without a URL: the console at http://127.0.0.1:8404/)";

/// Address of the console with `--to` and with the packaged file.
const CONSOLE: &str = "http://127.0.0.1:8404/;api=summary";
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        assert_eq!(parts("http://a:81/b?c"), Some(("a:81".into(), "/b?c")));
        assert_eq!(parts("http://[::1]"), Some(("[::1]:80".into(), "/")));
        for url in ["https://a/", "a:80", "http://", "http:///x", "http://a/ b", "http://a\r\n/"] {
            assert_eq!(parts(url), None, "{url}");
        }
    }
}
