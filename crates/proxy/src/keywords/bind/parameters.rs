//! The parameters of `bind` lines.

use super::workers;
use crate::settings::BindSettings;
use terse_balance::guid::Guid;
use terse_balance::signature::Signature;
use terse_config::{Args, Fault, Param, ParamKind};
use terse_message::Protocol;

/// The table.
pub(super) const TABLE: &[Param<BindSettings>] = &[
    done("name", "<name>", "Its name in statistics.", |args, bind| {
        bind.name = Some(args.need("<name>")?.to_owned());
        Ok(())
    }),
    done("id", "<number>", "Its number in statistics.", |args, bind| {
        bind.id = Some(whole(args, "<number>", 1..=i64::from(i32::MAX))?);
        Ok(())
    }),
    done("guid-prefix", "<prefix>", "Names its addresses for files of statistics: '<prefix>-0' and so on.", |args, bind| {
        bind.guid_prefix = Some(Guid::parse(args, &bind.place)?);
        Ok(())
    }),
    done("maxconn", "<number>", "The most connections of this address at a time.", |args, bind| {
        bind.maxconn = Some(whole::<usize>(args, "<number>", 0..=i64::from(i32::MAX))?).filter(|most| *most > 0);
        Ok(())
    }),
    done("backlog", "<number>", "The most connections that wait in the kernel.", |args, bind| {
        bind.backlog = Some(whole::<u32>(args, "<number>", 0..=i64::from(i32::MAX))?).filter(|most| *most > 0);
        Ok(())
    }),
    done("interface", "<name>", "Only connections that come in by this network interface.", |args, bind| {
        bind.interface = Some(args.need("<name>")?.to_owned());
        Ok(())
    }),
    done("mode", "<mode>", "The permissions of a unix socket's file, such as 660.", |args, bind| {
        let word = args.need("<mode>")?;
        let mode = u32::from_str_radix(word, 8).ok().filter(|mode| *mode <= 0o777);
        bind.mode = Some(mode.ok_or_else(|| args.fault(format!("'{word}' is not a mode such as 660")))?);
        Ok(())
    }),
    done("user", "<name>", "The owner of a unix socket's file.", |args, bind| {
        bind.user = Some(args.need("<name>")?.to_owned());
        Ok(())
    }),
    done("uid", "<number>", "The owner of a unix socket's file, by number.", |args, bind| {
        bind.user = Some(whole::<u32>(args, "<number>", 0..=i64::from(u32::MAX - 1))?.to_string());
        Ok(())
    }),
    done("group", "<name>", "The group of a unix socket's file.", |args, bind| {
        bind.group = Some(args.need("<name>")?.to_owned());
        Ok(())
    }),
    done("gid", "<number>", "The group of a unix socket's file, by number.", |args, bind| {
        bind.group = Some(whole::<u32>(args, "<number>", 0..=i64::from(u32::MAX - 1))?.to_string());
        Ok(())
    }),
    done("v4v6", "", "An IPv6 socket takes IPv4 too.", |_, bind| {
        bind.v6only = Some(false);
        Ok(())
    }),
    done("v6only", "", "An IPv6 socket takes nothing but IPv6.", |_, bind| {
        bind.v6only = Some(true);
        Ok(())
    }),
    done("transparent", "", "The address need not be one of this machine.", |_, bind| {
        bind.transparent = true;
        Ok(())
    }),
    done("accept-proxy", "", "Connections begin with a head of the PROXY protocol, version 1 or 2.", |_, bind| {
        bind.accept_proxy = true;
        Ok(())
    }),
    done("defer-accept", "", "Connections are accepted once their first bytes are there.", |_, bind| {
        bind.defer_accept = true;
        Ok(())
    }),
    done(
        "tcp-ss",
        "<mode>",
        "Keeps the packet that opens a connection ('fc_saved_syn'); 0: no, 1: from the IP header on, 2: from the Ethernet header on.",
        |args, bind| {
            bind.save_syn = whole(args, "<mode>", 0..=2)?;
            Ok(())
        },
    ),
    done("tfo", "", "TCP fast open.", |_, bind| {
        bind.fast_open = true;
        Ok(())
    }),
    done("mss", "<bytes>", "The largest TCP segment that is announced.", |args, bind| {
        bind.mss = Some(whole(args, "<bytes>", 1..=65535)?);
        Ok(())
    }),
    done("tcp-ut", "<time>", "How long sent bytes may go without an acknowledgement.", |args, bind| {
        bind.user_timeout = Some(args.time("<time>")?);
        Ok(())
    }),
    done(
        "idle-ping",
        "<time>",
        "How often idle HTTP/2 clients are pinged; those that do not answer until the next time are gone.",
        |args, bind| {
            let time = args.time("<time>")?;
            bind.idle_ping = (!time.is_zero()).then_some(time);
            Ok(())
        },
    ),
    done("tcp-md5sig", "<password>", "Takes and sends only segments that are signed by a password (RFC 2385).", |args, bind| {
        bind.signature = Some(Signature::parse(args)?);
        Ok(())
    }),
    done("cc", "<algorithm>", "How TCP avoids congestion: 'bbr', 'cubic' and what else the system has.", |args, bind| {
        bind.congestion = Some(args.need("<algorithm>")?.into());
        Ok(())
    }),
    done(
        "thread",
        "<workers>[,<workers>]...",
        "The workers that accept: 'all', 'odd', 'even', numbers and ranges.",
        |args, bind| {
            bind.workers = workers::parse(args.need("<workers>")?).map_err(|reason| args.fault(reason))?;
            Ok(())
        },
    ),
    done("process", "<workers>", "An old word for 'thread'.", |args, bind| {
        args.warn("'process' is an old name for 'thread'");
        bind.workers = workers::parse(args.need("<workers>")?).map_err(|reason| args.fault(reason))?;
        Ok(())
    }),
    done(
        "proto",
        "h1|h2|none",
        "The version of HTTP that is spoken from the first byte on, whatever ALPN says; 'none': never HTTP, in mode tcp.",
        |args, bind| {
            let name = args.need("<protocol>")?;
            let unknown = || args.fault(format!("protocol '{name}' is not spoken with clients")).hint("one of h1, h2, none");
            (bind.protocol, bind.carries_bytes) = match name {
                "none" => (None, true),
                name => (Some(Protocol::of(name).ok_or_else(unknown)?), false),
            };
            Ok(())
        },
    ),
    accepted("nice", "<nice>", "How urgent its connections are.", "a worker takes its connections in the order in which they come"),
    accepted("shards", "<number>", "How many sockets it has.", "each worker has a socket of its own"),
    accepted("level", "<level>", "What a stats socket lets its clients do.", "it speaks of stats sockets, and this is none"),
    accepted("severity-output", "<form>", "How a stats socket writes severities.", "it speaks of stats sockets, and this is none"),
    accepted("expose-fd", "<what>", "Whether a stats socket hands sockets over.", "it speaks of stats sockets, and this is none"),
    accepted("label", "<label>", "Its name for other words of the file.", "no other word speaks of it"),
    refused("accept-netscaler-cip", "<magic>", "Connections begin with NetScaler's head.", "that protocol is not built"),
    refused("namespace", "<name>", "The network namespace.", "network namespaces are not built"),
    refused("nbconn", "<number>", "How many connections are reversed.", "connections are not reversed"),
    refused("quic-cc-algo", "<algorithm>", "QUIC's congestion control.", QUIC),
    refused("quic-force-retry", "", "QUIC's address validation.", QUIC),
    refused("quic-socket", "<mode>", "Sockets of QUIC connections.", QUIC),
];

const QUIC: &str = "there is no QUIC yet";

const fn done(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    parser: fn(&mut Args<'_>, &mut BindSettings) -> Result<(), Fault>,
) -> Param<BindSettings> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}

const fn accepted(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Param<BindSettings> {
    Param { name, arguments, summary, kind: ParamKind::Accepted(why) }
}

const fn refused(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Param<BindSettings> {
    Param { name, arguments, summary, kind: ParamKind::Refused(why) }
}

fn whole<T: TryFrom<i64>>(args: &mut Args<'_>, what: &str, range: std::ops::RangeInclusive<i64>) -> Result<T, Fault> {
    T::try_from(args.integer(what, range)?).map_err(|_| args.fault(format!("{what} is out of range")))
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{proxy, said_in};
    use terse_message::Protocol;

    #[test]
    fn each_fills_its_field() {
        let settings = proxy(
            "frontend f\n bind :80 name n id 3 maxconn 4 backlog 5 interface eth0 mode 660 user u group g v6only transparent defer-accept tcp-ss 2 tfo mss 1400 \
             thread 1-2 proto h1 nice -5 shards by-thread\n bind :81 uid 7 gid 8 v4v6 maxconn 0 proto h2\n",
        );
        let [a, b] = &settings.binds[..] else { panic!("{:?}", settings.binds) };
        assert_eq!((a.name.as_deref(), a.id, a.maxconn, a.backlog), (Some("n"), Some(3), Some(4), Some(5)));
        assert_eq!(
            (a.interface.as_deref(), a.mode, a.user.as_deref(), a.group.as_deref()),
            (Some("eth0"), Some(0o660), Some("u"), Some("g"))
        );
        assert_eq!(
            (a.v6only, a.transparent, a.defer_accept, a.save_syn, a.fast_open, a.mss, a.workers),
            (Some(true), true, true, 2, true, Some(1400), 3)
        );
        assert_eq!(
            (b.user.as_deref(), b.group.as_deref(), b.v6only, b.maxconn, b.workers),
            (Some("7"), Some("8"), Some(false), None, 0)
        );
        assert_eq!((a.protocol, b.protocol), (Some(Protocol::Http1), Some(Protocol::Http2)));
        assert_eq!(b.tls.own.alpn.as_deref(), Some(&["h2".into()][..]), "what the line speaks is what it offers");
    }

    #[test]
    fn what_is_not_built_is_named() {
        for (words, reason) in [
            ("ssl ech folder", "the system's OpenSSL has none"),
            ("proto h3", "not spoken with clients"),
            ("mode 999", "mode"),
            ("tcp-ss 3", "<mode>"),
        ] {
            let said = said_in("frontend f", &format!("bind :80 {words}"));
            assert!(said.len() == 1 && said[0].contains(reason), "{said:?}");
        }
    }
}
