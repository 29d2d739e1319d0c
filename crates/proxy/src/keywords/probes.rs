//! TCP's own probes of silent peers: `clitcpka-idle` and its like. `option clitcpka` and `option srvtcpka` switch them on.

use super::{done, in_back, in_front, settings};
use crate::settings::{Options, Probes};
use std::time::Duration;
use terse_config::{Args, Fault, Keyword, Scope, TimeUnit};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    done("clitcpka-idle", "<time>", "How long clients may be silent before they are probed.", |args, scope| {
        let idle = seconds(args)?;
        front(scope, |probes| probes.idle = Some(idle));
        Ok(())
    }),
    done("clitcpka-intvl", "<time>", "The time between two probes of a client.", |args, scope| {
        let interval = seconds(args)?;
        front(scope, |probes| probes.interval = Some(interval));
        Ok(())
    }),
    done("clitcpka-cnt", "<number>", "Probes without an answer after which a client's connection is dead.", |args, scope| {
        let count = count(args)?;
        front(scope, |probes| probes.count = Some(count));
        Ok(())
    }),
    done("srvtcpka-idle", "<time>", "How long servers may be silent before they are probed.", |args, scope| {
        let idle = seconds(args)?;
        back(scope, |probes| probes.idle = Some(idle));
        Ok(())
    }),
    done("srvtcpka-intvl", "<time>", "The time between two probes of a server.", |args, scope| {
        let interval = seconds(args)?;
        back(scope, |probes| probes.interval = Some(interval));
        Ok(())
    }),
    done("srvtcpka-cnt", "<number>", "Probes without an answer after which a server's connection is dead.", |args, scope| {
        let count = count(args)?;
        back(scope, |probes| probes.count = Some(count));
        Ok(())
    }),
];

fn front(scope: &mut Scope<'_>, change: impl FnOnce(&mut Probes)) {
    if in_front(scope) {
        change(&mut options(scope).client_probes);
    }
}

fn back(scope: &mut Scope<'_>, change: impl FnOnce(&mut Probes)) {
    if in_back(scope) {
        change(&mut options(scope).server_probes);
    }
}

fn options<'a>(scope: &'a mut Scope<'_>) -> &'a mut Options {
    &mut settings(scope).options
}

/// The kernel counts in seconds, of which it takes 1 to 32,767.
fn seconds(args: &mut Args<'_>) -> Result<Duration, Fault> {
    let time = args.time_in("<time>", TimeUnit::Seconds)?;
    match (1..=32_767).contains(&time.as_secs()) {
        true => args.end().map(|()| time),
        false => Err(args.fault("the time is not between 1 and 32767 seconds")),
    }
}

/// The kernel takes 1 to 127.
fn count(args: &mut Args<'_>) -> Result<u32, Fault> {
    let count = args.integer("<number>", 1..=127)?;
    args.end()?;
    Ok(count as u32)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};
    use super::*;

    #[test]
    fn times_are_seconds_unless_a_unit_says_otherwise() {
        let options = proxy(
            "defaults\n clitcpka-cnt 3\n clitcpka-idle 10\n srvtcpka-intvl 2m\nlisten l\n clitcpka-intvl 5s\n option clitcpka\n",
        )
        .options;
        let client =
            Probes { on: true, idle: Some(Duration::from_secs(10)), interval: Some(Duration::from_secs(5)), count: Some(3) };
        assert_eq!(options.client_probes, client);
        assert_eq!(options.server_probes, Probes { interval: Some(Duration::from_secs(120)), ..Probes::default() });
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        for (line, said) in [
            ("clitcpka-idle 0", "between 1 and 32767 seconds"),
            ("srvtcpka-intvl 10h", "between 1 and 32767 seconds"),
            ("srvtcpka-cnt 128", "128"),
            ("clitcpka-idle", "<time>"),
        ] {
            assert!(said_in("listen l", line)[0].contains(said), "{line}: {:?}", said_in("listen l", line));
        }
    }
}
