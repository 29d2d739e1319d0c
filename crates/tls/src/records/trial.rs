//! A connection in memory, to check that records are compressed and come back before compression is used.

use super::{Manner, method, while_in};
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::ssl::{Ssl, SslContextBuilder, SslMethod, SslStream, SslVerifyMode, SslVersion};
use openssl::x509::{X509, X509Name};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;

/// Makes the connection, sends a text compressed and stored, and checks the bytes on the wire.
pub(super) fn run() -> Result<(), String> {
    let said = |error: ErrorStack| format!("a connection to try it with cannot be made: {error}");
    let (one, other) = ends().map_err(said)?;
    let (up, down) = (Wire::default(), Wire::default());
    let made = |ssl, read: &Wire, written: &Wire| SslStream::new(ssl, End { read: read.clone(), written: written.clone() });
    let mut client = made(one, &down, &up).map_err(said)?;
    let mut server = made(other, &up, &down).map_err(said)?;
    // Each turn takes the handshake as far as it comes without the other end.
    for _ in 0..4 {
        let _ = client.do_handshake();
        let _ = server.do_handshake();
    }
    if !method::current(client.ssl()) || !method::current(server.ssl()) {
        return Err("a connection that was tried does not compress".into());
    }
    for (manner, most) in [(Manner::Deflate, RECORD / 8), (Manner::Stored, RECORD + 128)] {
        let text: Vec<u8> = b"the quick brown fox ".iter().copied().cycle().take(RECORD).collect();
        let sent = while_in(manner, || server.ssl_write(&text));
        let wire_bytes = down.0.borrow().len();
        let mut room = vec![0; RECORD];
        let received = client.ssl_read(&mut room);
        let is_back = matches!((sent, received), (Ok(sent), Ok(received)) if sent == RECORD && received == RECORD) && room == text;
        if !is_back || wire_bytes > most {
            return Err(format!("a record that was tried came back wrong ({wire_bytes} bytes)"));
        }
    }
    Ok(())
}

const RECORD: usize = 16_000;

/// The two ends: client and server.
fn ends() -> Result<(Ssl, Ssl), ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&group)?)?;
    let mut name = X509Name::builder()?;
    name.append_entry_by_nid(Nid::COMMONNAME, "trial")?;
    let name = name.build();
    let mut certificate = X509::builder()?;
    certificate.set_version(2)?;
    certificate.set_subject_name(&name)?;
    certificate.set_issuer_name(&name)?;
    certificate.set_pubkey(&key)?;
    let (from, to) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(1)?);
    certificate.set_not_before(&from)?;
    certificate.set_not_after(&to)?;
    certificate.sign(&key, MessageDigest::sha256())?;
    let mut server = context(SslMethod::tls_server())?;
    server.set_certificate(&certificate.build())?;
    server.set_private_key(&key)?;
    let mut client = context(SslMethod::tls_client())?;
    client.set_verify(SslVerifyMode::NONE);
    let mut ends = (Ssl::new(&client.build())?, Ssl::new(&server.build())?);
    ends.0.set_connect_state();
    ends.1.set_accept_state();
    Ok(ends)
}

fn context(method: SslMethod) -> Result<SslContextBuilder, ErrorStack> {
    let mut context = SslContextBuilder::new(method)?;
    context.set_max_proto_version(Some(SslVersion::TLS1_2))?;
    method::allow(&mut context);
    Ok(context)
}

/// Bytes on their way in one direction.
#[derive(Clone, Default)]
struct Wire(Rc<RefCell<VecDeque<u8>>>);

/// The reader and writer of one end.
struct End {
    read: Wire,
    written: Wire,
}

impl Read for End {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.read.0.borrow_mut().read(room)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
