//! SOCKS4: a server reached through a proxy of connections (`socks4`), by the memo "SOCKS: A protocol for TCP proxy
//! across firewalls".

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Asks a proxy, on a connection to it, to connect to `to`. The caller limits the time.
///
/// # Errors
/// The connection's error; `ConnectionRefused` when the proxy does not connect, `Unsupported` for IPv6, which SOCKS4
/// lacks.
pub async fn ask(stream: &mut TcpStream, to: SocketAddr) -> io::Result<()> {
    stream.write_all(&request(to)?).await?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await?;
    match answer[..2] {
        [0, GRANTED] => Ok(()),
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

fn request(to: SocketAddr) -> io::Result<Vec<u8>> {
    let SocketAddr::V4(to) = to else { return Err(io::ErrorKind::Unsupported.into()) };
    Ok([&[VERSION, CONNECT][..], &to.port().to_be_bytes(), &to.ip().octets(), USER].concat())
}

const VERSION: u8 = 4;
const CONNECT: u8 = 1;
const GRANTED: u8 = 0x5a;
/// User ID, as HAProxy sends it.
const USER: &[u8] = b"HAProxy\0";

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn requests_name_an_ipv4_address() {
        assert_eq!(request("10.1.2.3:80".parse().unwrap()).unwrap(), b"\x04\x01\x00\x50\x0a\x01\x02\x03HAProxy\0");
        assert!(request("[::1]:80".parse().unwrap()).is_err());
    }

    #[tokio::test]
    async fn a_proxy_grants_or_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (code, granted) in [(0x5a, true), (0x5b, false)] {
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut proxy, _) = listener.accept().await.unwrap();
            proxy.write_all(&[0, code, 0, 0, 0, 0, 0, 0]).await.unwrap();
            assert_eq!(ask(&mut stream, "10.0.0.1:80".parse().unwrap()).await.is_ok(), granted);
            let mut asked = [0; 16];
            proxy.read_exact(&mut asked).await.unwrap();
        }
    }
}
