//! Protocol that hands listening sockets over on a unix stream socket. HAProxy's protocol; all integers in the machine's order.
//!
//! ```text
//! new -> old   "_getsocks\n"
//! old -> new   i32: how many sockets follow
//! old -> new   up to BATCH descriptors (SCM_RIGHTS), with a record for each, in their order:
//!                  u8 length, name of the network namespace
//!                  u8 length, name of the device that it is bound to
//!                  i32: 0
//! new -> old   i32: how many have come so far, after each batch
//! ```

use std::mem::MaybeUninit;

/// Request for the sockets.
pub const REQUEST: &[u8] = b"_getsocks\n";

/// Descriptors in one message: the kernel's limit is 253, HAProxy's 252.
pub const BATCH: usize = 252;

/// Sockets that are ever expected.
pub const MOST: usize = 1 << 20;

/// The longest record: two names of 255 bytes.
pub const RECORD_BYTES: usize = 2 * (1 + 255) + 4;

/// Room for the descriptors of one message.
pub type Control = [MaybeUninit<u8>; rustix::cmsg_space!(ScmRights(253))];

/// Properties of a socket.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Record {
    /// The network namespace; empty for the process's own.
    pub namespace: String,
    /// The device; empty for any.
    pub interface: String,
}

impl Record {
    /// Writes the record. Names longer than the kernel's are cut at 255 bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        for name in [&self.namespace, &self.interface] {
            let name = &name.as_bytes()[..name.len().min(255)];
            out.push(name.len() as u8);
            out.extend_from_slice(name);
        }
        out.extend_from_slice(&[0; 4]);
    }

    /// Reads a record from the front; `None` when it is cut short.
    pub fn read(bytes: &mut &[u8]) -> Option<Record> {
        let mut name = || {
            let (&length, rest) = bytes.split_first()?;
            let (name, rest) = rest.split_at_checked(usize::from(length))?;
            *bytes = rest;
            Some(String::from_utf8_lossy(name).into_owned())
        };
        let record = Record { namespace: name()?, interface: name()? };
        *bytes = bytes.get(4..)?;
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let records = ["", "eth0"].map(|interface| Record { namespace: String::new(), interface: interface.into() });
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        assert_eq!(bytes[..6], [0; 6]);
        let mut rest = &bytes[..];
        assert_eq!([Record::read(&mut rest).unwrap(), Record::read(&mut rest).unwrap()], records);
        assert_eq!(Record::read(&mut rest), None);
    }

    #[test]
    fn what_is_cut_short_is_no_record() {
        let mut bytes = Vec::new();
        Record { namespace: "n".into(), interface: "eth0".into() }.write(&mut bytes);
        (0..bytes.len()).for_each(|end| assert_eq!(Record::read(&mut &bytes[..end]), None, "{end}"));
    }
}
