//! Questions and answers (RFC 1035, RFC 2782, RFC 6891).

use simple_dns::rdata::{OPT, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Kind of the records that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// Addresses of IPv4.
    A,
    /// Addresses of IPv6.
    Aaaa,
    /// Places of a service.
    Service,
}

/// Content of an answer.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Answer {
    /// Addresses of the name that was asked for, in the answer's order.
    pub(crate) addresses: Vec<IpAddr>,
    /// Places of the service.
    pub(crate) services: Vec<Service>,
    /// Whether aliases led to them.
    pub(crate) aliased: bool,
    /// Addresses of other names, which were sent unasked.
    pub(crate) others: Vec<(String, IpAddr)>,
}

/// A place of a service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Service {
    /// Lower is better.
    pub(crate) priority: u16,
    /// Its share among its equals.
    pub(crate) weight: u16,
    /// The port.
    pub(crate) port: u16,
    /// The host's name, in small letters.
    pub(crate) target: String,
}

/// Problem of a received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The message does not belong to the question.
    #[error("not an answer to this question")]
    Foreign,
    /// The message cannot be read.
    #[error("malformed")]
    Malformed,
    /// The message was truncated.
    #[error("truncated")]
    Truncated,
    /// There is no such name.
    #[error("no such name")]
    Absent,
    /// The name server does not want to answer.
    #[error("refused")]
    Refused,
    /// The message has no record of the kind that was asked for.
    #[error("no record")]
    Empty,
    /// The message names an alias, and no record at its target.
    #[error("an alias that leads nowhere")]
    DeadAlias,
    /// Any other error.
    #[error("failed")]
    Other,
}

/// Writes a question. `None`: this cannot be a name.
pub(crate) fn question(id: u16, name: &str, kind: Kind, payload_bytes: u16) -> Option<Vec<u8>> {
    let name = Name::new(name.strip_suffix('.').unwrap_or(name)).ok()?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(name, kind.asked(), QCLASS::CLASS(CLASS::IN), false));
    *packet.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: payload_bytes, version: 0 });
    packet.build_bytes_vec().ok()
}

/// Reads an answer to a question.
pub(crate) fn answer(bytes: &[u8], id: u16, name: &str, kind: Kind) -> Result<Answer, Problem> {
    let packet = Packet::parse(bytes).map_err(|_| Problem::Malformed)?;
    fitting(&packet, id, name, kind)?;
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return Err(Problem::Truncated);
    }
    content(&packet, name, kind)
}

/// The content of a truncated answer. Of a service that is better than none; addresses count only as a whole, as with
/// HAProxy.
pub(crate) fn cut_answer(bytes: &[u8], id: u16, name: &str, kind: Kind) -> Result<Answer, Problem> {
    let packet = Packet::parse(bytes).map_err(|_| Problem::Malformed)?;
    fitting(&packet, id, name, kind)?;
    match kind {
        Kind::Service => content(&packet, name, kind),
        Kind::A | Kind::Aaaa => Err(Problem::Truncated),
    }
}

/// Whether an answer is one to this question.
fn fitting(packet: &Packet<'_>, id: u16, name: &str, kind: Kind) -> Result<(), Problem> {
    let wanted = normal(name);
    if packet.id() != id || !packet.has_flags(PacketFlag::RESPONSE) {
        return Err(Problem::Foreign);
    }
    match &packet.questions[..] {
        [asked] if normal(&asked.qname.to_string()) == wanted && asked.qtype == kind.asked() => {}
        // A refusal may leave the question out.
        [] if packet.rcode() != RCODE::NoError => {}
        _ => return Err(Problem::Foreign),
    }
    Ok(())
}

fn content(packet: &Packet<'_>, name: &str, kind: Kind) -> Result<Answer, Problem> {
    match packet.rcode() {
        RCODE::NoError => {}
        RCODE::NameError => return Err(Problem::Absent),
        RCODE::Refused => return Err(Problem::Refused),
        _ => return Err(Problem::Other),
    }
    let mut found = Answer::default();
    // Aliases lead from name to name (RFC 1034 section 3.6.2), in whatever order they stand.
    let records = packet.answers.iter().take(MOST_RECORDS);
    let aliases: HashMap<String, String> = records
        .filter_map(|record| match &record.rdata {
            RData::CNAME(to) => Some((normal(&record.name.to_string()), normal(&to.0.to_string()))),
            _ => None,
        })
        .collect();
    let mut owner = normal(name);
    // A chain has no more steps than there are aliases; one that goes round ends there.
    for _ in 0..aliases.len() {
        let Some(next) = aliases.get(&owner) else { break };
        (owner, found.aliased) = (next.clone(), true);
    }
    for record in packet.answers.iter().take(MOST_RECORDS) {
        let of = normal(&record.name.to_string());
        match (&record.rdata, kind) {
            (RData::SRV(service), Kind::Service) if of == owner => found.services.push(Service {
                priority: service.priority,
                weight: service.weight,
                port: service.port,
                target: normal(&service.target.to_string()),
            }),
            (data, Kind::A | Kind::Aaaa) if of == owner => {
                found.addresses.extend(address(data).filter(|ip| ip.is_ipv4() == (kind == Kind::A)));
            }
            _ => {}
        }
    }
    for record in packet.additional_records.iter().take(MOST_RECORDS) {
        found.others.extend(address(&record.rdata).map(|ip| (normal(&record.name.to_string()), ip)));
    }
    match found.addresses.is_empty() && found.services.is_empty() {
        true if found.aliased => Err(Problem::DeadAlias),
        true => Err(Problem::Empty),
        false => Ok(found),
    }
}

impl Kind {
    fn asked(self) -> QTYPE {
        QTYPE::TYPE(match self {
            Kind::A => TYPE::A,
            Kind::Aaaa => TYPE::AAAA,
            Kind::Service => TYPE::SRV,
        })
    }
}

fn address(data: &RData<'_>) -> Option<IpAddr> {
    match data {
        RData::A(a) => Some(IpAddr::V4(Ipv4Addr::from(a.address))),
        RData::AAAA(aaaa) => Some(IpAddr::V6(Ipv6Addr::from(aaaa.address))),
        _ => None,
    }
}

/// A name as it is compared (RFC 4343).
pub(crate) fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Most records of a section of an answer that are read.
const MOST_RECORDS: usize = 4096;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, AAAA, CNAME, SRV};

    /// An answer of a name server to a question.
    pub(crate) fn reply(question: &[u8], records: &[(&str, RData<'static>)], rcode: RCODE) -> Vec<u8> {
        let asked = Packet::parse(question).unwrap();
        let mut packet = Packet::new_reply(asked.id());
        packet.questions = asked.questions.clone();
        *packet.rcode_mut() = rcode;
        for (name, data) in records {
            packet.answers.push(ResourceRecord::new(Name::new(name).unwrap().into_owned(), CLASS::IN, 60, data.clone()));
        }
        packet.build_bytes_vec().unwrap()
    }

    pub(crate) fn a(ip: [u8; 4]) -> RData<'static> {
        RData::A(A { address: u32::from_be_bytes(ip) })
    }

    #[test]
    fn answers_of_every_kind() {
        let asked = question(7, "App.example.", Kind::A, 512).unwrap();
        let alias = RData::CNAME(CNAME(Name::new("b.example").unwrap().into_owned()));
        let records = [
            ("B.example", a([10, 0, 0, 1])),
            ("app.example", alias),
            ("b.example", RData::AAAA(AAAA { address: 1 })),
            ("c", a([1; 4])),
        ];
        let found = answer(&reply(&asked, &records, RCODE::NoError), 7, "app.example", Kind::A).unwrap();
        assert_eq!((found.addresses, found.aliased), (vec![IpAddr::from([10, 0, 0, 1])], true));
        let asked = question(8, "_http._tcp.example", Kind::Service, 512).unwrap();
        let target = Name::new("H.example").unwrap().into_owned();
        let record = [("_http._tcp.example", RData::SRV(SRV { priority: 1, weight: 2, port: 80, target }))];
        let found = answer(&reply(&asked, &record, RCODE::NoError), 8, "_http._tcp.example", Kind::Service).unwrap();
        assert_eq!(found.services, [Service { priority: 1, weight: 2, port: 80, target: "h.example".into() }]);
    }

    #[test]
    fn chains_of_aliases_are_as_long_as_answers() {
        let asked = question(7, "n0.example", Kind::A, 4096).unwrap();
        let names: Vec<String> = (0..=100).map(|step| format!("n{step}.example")).collect();
        let alias = |to: &str| RData::CNAME(CNAME(Name::new(to).unwrap().into_owned()));
        let mut records: Vec<(&str, RData<'static>)> = names.windows(2).map(|pair| (&*pair[0], alias(&pair[1]))).collect();
        records.push(("n100.example", a([10, 0, 0, 1])));
        for _ in 0..2 {
            let found = answer(&reply(&asked, &records, RCODE::NoError), 7, "n0.example", Kind::A).unwrap();
            assert_eq!(found.addresses, [IpAddr::from([10, 0, 0, 1])]);
            records.reverse();
        }
    }

    /// Only records of the name, or of the targets of its aliases, count.
    #[test]
    fn records_of_other_owners_do_not_count() {
        let asked = question(7, "a.example", Kind::A, 512).unwrap();
        let alias = |to: &str| RData::CNAME(CNAME(Name::new(to).unwrap().into_owned()));
        let of = |records: &[(&str, RData<'static>)]| answer(&reply(&asked, records, RCODE::NoError), 7, "a.example", Kind::A);
        let own = ("a.example", a([10, 0, 0, 1]));
        let found = of(&[("x.example", alias("y.example")), ("y.example", a([6; 4])), own.clone()]).unwrap();
        assert_eq!((found.addresses, found.aliased), (vec![IpAddr::from([10, 0, 0, 1])], false));
        let found = of(&[("x.example", alias("a.example")), own.clone()]).unwrap();
        assert!(!found.aliased);
        assert_eq!(of(&[("x.example", alias("a.example")), ("x.example", a([6; 4]))]), Err(Problem::Empty));
        assert_eq!(of(&[("a.example", alias("b.example")), ("c.example", a([6; 4]))]), Err(Problem::DeadAlias));
        let found = of(&[("a.example", alias("b.example")), own, ("b.example", a([10, 0, 0, 2]))]).unwrap();
        assert_eq!((found.addresses, found.aliased), (vec![IpAddr::from([10, 0, 0, 2])], true));
    }

    /// Addresses that are sent unasked are kept apart from those that were asked for.
    #[test]
    fn additional_records_are_apart() {
        let asked = question(7, "_a.example", Kind::Service, 512).unwrap();
        let target = Name::new("H.example").unwrap().into_owned();
        let place = RData::SRV(SRV { priority: 1, weight: 2, port: 80, target });
        let mut packet = Packet::parse(&asked).unwrap().into_reply();
        packet.answers.push(ResourceRecord::new(Name::new("_a.example").unwrap(), CLASS::IN, 60, place));
        packet.additional_records.push(ResourceRecord::new(Name::new("H.example").unwrap(), CLASS::IN, 60, a([10, 0, 0, 3])));
        let found = answer(&packet.build_bytes_vec().unwrap(), 7, "_a.example", Kind::Service).unwrap();
        assert_eq!((found.addresses, found.others), (Vec::new(), vec![("h.example".to_owned(), [10, 0, 0, 3].into())]));
        assert_eq!(found.services[0].target, "h.example");
    }

    #[test]
    fn what_is_no_answer_says_why() {
        let asked = question(7, "a.example", Kind::A, 512).unwrap();
        let of = |records: &[(&str, RData<'static>)], rcode, id, name| answer(&reply(&asked, records, rcode), id, name, Kind::A);
        let good = [("a.example", a([1; 4]))];
        assert_eq!(of(&good, RCODE::NoError, 8, "a.example"), Err(Problem::Foreign));
        assert_eq!(of(&good, RCODE::NoError, 7, "b.example"), Err(Problem::Foreign));
        assert_eq!(of(&[], RCODE::NoError, 7, "a.example"), Err(Problem::Empty));
        assert_eq!(of(&[], RCODE::NameError, 7, "a.example"), Err(Problem::Absent));
        assert_eq!(of(&[], RCODE::Refused, 7, "a.example"), Err(Problem::Refused));
        assert_eq!(of(&[], RCODE::ServerFailure, 7, "a.example"), Err(Problem::Other));
        assert_eq!(answer(&asked, 7, "a.example", Kind::A), Err(Problem::Foreign), "a question is no answer");
        assert_eq!(question(7, &"a".repeat(64), Kind::A, 512), None);
        let around = [
            ("a.example", RData::CNAME(CNAME(Name::new("b.example").unwrap().into_owned()))),
            ("b.example", RData::CNAME(CNAME(Name::new("a.example").unwrap().into_owned()))),
        ];
        assert_eq!(of(&around, RCODE::NoError, 7, "a.example"), Err(Problem::DeadAlias), "aliases that go round end");
        let mut cut = reply(&asked, &good, RCODE::NoError);
        cut[2] |= 2;
        assert_eq!(answer(&cut, 7, "a.example", Kind::A), Err(Problem::Truncated));
        assert_eq!(cut_answer(&cut, 7, "a.example", Kind::A), Err(Problem::Truncated));
        assert_eq!(cut_answer(&cut, 8, "a.example", Kind::A), Err(Problem::Foreign));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = answer(&bytes, 7, "a.example", Kind::A);
        }

        #[test]
        fn any_change_of_an_answer_is_read_or_refused(at in 0usize..60, byte in any::<u8>()) {
            let asked = question(7, "a.example", Kind::A, 512).unwrap();
            let mut bytes = reply(&asked, &[("a.example", a([1; 4]))], RCODE::NoError);
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = answer(&bytes, 7, "a.example", Kind::A);
        }
    }
}
