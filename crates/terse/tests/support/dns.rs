//! A name server that answers as a test tells it to, and counts the questions.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Answer for a name and a kind of record.
#[derive(Clone, Debug)]
pub enum Said {
    /// Records of the answer, and additional ones.
    Records(Vec<Record>, Vec<Record>),
    /// A code of RFC 1035: 2 a failure, 3 no such name, 5 refused.
    Code(u8),
    /// Nothing.
    Silence,
}

/// A record, below its owner.
#[derive(Clone, Debug)]
pub enum Record {
    /// A or AAAA.
    Address(String, IpAddr),
    /// CNAME.
    Alias(String, String),
    /// SRV: priority, weight, port, target.
    Service(String, u16, u16, u16, String),
}

/// Answers, by name and type of record; for other names the answer is that there are none.
pub type Zone = Arc<Mutex<HashMap<(String, u16), Said>>>;

/// Types of records.
pub const A: u16 = 1;
pub const AAAA: u16 = 28;
pub const SRV: u16 = 33;

/// A name server; dropping it ends it.
pub struct NameServer {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Questions so far.
#[derive(Clone, Default, Debug)]
pub struct Seen {
    /// Number of questions, by name and type.
    pub counts: HashMap<(String, u16), usize>,
    /// From which addresses.
    pub from: HashSet<SocketAddr>,
    /// The numbers of questions, in order.
    pub numbers: Vec<u16>,
}

impl NameServer {
    /// Starts it.
    pub fn start(zone: &Zone) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (seen, ended) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
        let (zone, notes, ends) = (zone.clone(), seen.clone(), ended.clone());
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 2048];
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                if ends.load(SeqCst) {
                    return;
                }
                let Some((name, kind)) = asked(&bytes[..length]) else { continue };
                let said = lock(&zone).get(&(name.clone(), kind)).cloned().unwrap_or(Said::Code(3));
                {
                    let mut notes = lock(&notes);
                    *notes.counts.entry((name.clone(), kind)).or_default() += 1;
                    notes.from.insert(from);
                    notes.numbers.push(u16::from_be_bytes([bytes[0], bytes[1]]));
                }
                if let Some(answer) = answer(&bytes[..length], &name, &said) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        NameServer { address, seen, ended, thread: Some(thread) }
    }

    /// Address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the questions so far.
    pub fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }

    /// Returns the number of questions for a name.
    pub fn count(&self, name: &str, kind: u16) -> usize {
        self.seen().counts.get(&(name.to_owned(), kind)).copied().unwrap_or(0)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.ended.store(true, SeqCst);
        let woken = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", self.address));
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            let _ = thread.join();
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name, in small letters, and the type of a question.
fn asked(bytes: &[u8]) -> Option<(String, u16)> {
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        match usize::from(*bytes.get(at)?) {
            0 => break,
            length => {
                labels.push(String::from_utf8_lossy(bytes.get(at + 1..at + 1 + length)?).to_lowercase());
                at += 1 + length;
            }
        }
    }
    Some((labels.join("."), u16::from_be_bytes([*bytes.get(at + 1)?, *bytes.get(at + 2)?])))
}

fn answer(question: &[u8], name: &str, said: &Said) -> Option<Vec<u8>> {
    let (code, records, others) = match said {
        Said::Records(records, others) => (0, &records[..], &others[..]),
        Said::Code(code) => (*code, &[][..], &[][..]),
        Said::Silence => return None,
    };
    let end = 12 + wire(name).len() + 4;
    let mut bytes = question[..2].to_vec();
    bytes.extend([0x81, 0x80 | code, 0, 1]);
    bytes.extend((records.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend((others.len() as u16).to_be_bytes());
    bytes.extend(&question[12..end]);
    for record in records.iter().chain(others) {
        let (owner, kind, data) = match record {
            Record::Address(owner, IpAddr::V4(ip)) => (owner, A, ip.octets().to_vec()),
            Record::Address(owner, IpAddr::V6(ip)) => (owner, AAAA, ip.octets().to_vec()),
            Record::Alias(owner, target) => (owner, 5, wire(target)),
            Record::Service(owner, priority, weight, port, target) => {
                let numbers = [priority, weight, port].into_iter().flat_map(|number| number.to_be_bytes());
                (owner, SRV, numbers.chain(wire(target)).collect())
            }
        };
        bytes.extend(wire(owner));
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 1]);
        bytes.extend((data.len() as u16).to_be_bytes());
        bytes.extend(data);
    }
    Some(bytes)
}

/// A name as messages have it.
fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}
