//! Sending a request again, or on a connection that carried another: `retries`, `retry-on`, `option redispatch`, `http-reuse`,
//! `max-keep-alive-queue`.

use super::{done, in_back, settings};
use crate::settings::{RetryOn, Reuse};
use terse_config::near::nearest;
use terse_config::{Args, Fault, Keyword, Kind, Scope, Sections};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    done("retries", "<number>", "Attempts after the first.", retries),
    Keyword {
        sections: Sections::BACK,
        ..done("retry-on", "<event>...", "The failures after which a request is sent again.", retry_on)
    },
    Keyword {
        kind: Kind::Switch(redispatch),
        ..done(
            "option redispatch",
            "[<interval>]",
            "The last attempt, or every so manieth, may go to another server than persistence says.",
            redispatch,
        )
    },
    done(
        "http-reuse",
        "never | safe | aggressive | always",
        "Which requests go on connections that carried others' requests.",
        reuse,
    ),
    done(
        "max-keep-alive-queue",
        "<number>",
        "Requests that may wait for the server of the one before, with 'option prefer-last-server', before another is taken.",
        |args, scope| {
            let most = args.integer("<number>", -1..=i64::from(u32::MAX))?;
            args.end()?;
            if in_back(scope) {
                settings(scope).options.most_queued = u32::try_from(most).ok();
            }
            Ok(())
        },
    ),
];

fn retries(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let number = args.integer("<number>", 0..=MOST_RETRIES)?;
    args.end()?;
    if in_back(scope) {
        settings(scope).retries = u32::try_from(number).ok();
    }
    Ok(())
}

fn retry_on(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let first = args.need("<event>")?;
    let mut on = RetryOn { connect: false, ..RetryOn::default() };
    let mut event = Some(first);
    while let Some(word) = event {
        match word {
            "none" if word == first && args.peek().is_none() => {}
            "none" => return Err(args.fault("'none' stands alone")),
            "conn-failure" => on.connect = true,
            "empty-response" => on.empty = true,
            "junk-response" => on.junk = true,
            "response-timeout" => on.timeout = true,
            "0rtt-rejected" => on.early = true,
            "all-retryable-errors" => {
                (on.connect, on.empty, on.junk, on.timeout, on.early) = (true, true, true, true, true);
                on.statuses.extend([500, 502, 503, 504]);
            }
            _ => match word.parse().ok().filter(|status| STATUSES.contains(status)) {
                Some(status) => on.statuses.push(status),
                None => {
                    let near = nearest(word, EVENTS.iter().copied());
                    let hint = near.first().map_or_else(|| EVENTS.join(" "), |near| format!("did you mean '{near}'?"));
                    return Err(args.fault(format!("unknown event '{word}'")).hint(hint));
                }
            },
        }
        event = args.take();
    }
    on.statuses.sort_unstable();
    on.statuses.dedup();
    settings(scope).retry_on = Some(on);
    Ok(())
}

fn redispatch(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let interval = match args.peek() {
        Some(_) => args.integer("<interval>", -MOST_RETRIES..=MOST_RETRIES)?,
        None => LAST_ATTEMPT,
    };
    args.end()?;
    if in_back(scope) {
        let interval = if scope.negated { 0 } else { interval };
        settings(scope).redispatch = i32::try_from(interval).unwrap_or_default();
    }
    Ok(())
}

fn reuse(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let reuse = match args.need("'never', 'safe', 'aggressive' or 'always'")? {
        "never" => Reuse::Never,
        "safe" => Reuse::Safe,
        "aggressive" => Reuse::Aggressive,
        "always" => Reuse::Always,
        _ => return Err(args.fault("only supports 'never', 'safe', 'aggressive', 'always'")),
    };
    args.end()?;
    if in_back(scope) {
        settings(scope).reuse = Some(reuse);
    }
    Ok(())
}

/// More attempts than the servers of any configuration.
const MOST_RETRIES: i64 = 100_000;

/// Value of `option redispatch` without a number.
const LAST_ATTEMPT: i64 = -1;

/// The statuses that `retry-on` knows.
const STATUSES: [u16; 12] = [401, 403, 404, 408, 421, 425, 429, 500, 501, 502, 503, 504];

/// Further events of `retry-on`.
const EVENTS: [&str; 7] =
    ["none", "conn-failure", "empty-response", "junk-response", "response-timeout", "0rtt-rejected", "all-retryable-errors"];

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};
    use super::*;

    #[test]
    fn attempts() {
        let settings = proxy("defaults\n retries 2\n option redispatch 3\nbackend b\n option redispatch\n http-reuse always\n");
        assert_eq!((settings.retries, settings.redispatch, settings.reuse), (Some(2), -1, Some(Reuse::Always)));
        let settings = proxy("defaults\n option redispatch 3\nbackend b\n no option redispatch\n");
        assert_eq!((settings.retries, settings.redispatch, settings.reuse), (None, 0, None));
    }

    #[test]
    fn events() {
        let of = |words: &str| proxy(&format!("backend b\n retry-on {words}\n")).retry_on.unwrap();
        let none = RetryOn { connect: false, ..RetryOn::default() };
        assert_eq!(of("none"), none);
        assert_eq!(of("conn-failure"), RetryOn::default());
        assert_eq!(of("503 empty-response 404 503"), RetryOn { empty: true, statuses: vec![404, 503], ..none });
        let all = of("all-retryable-errors 0rtt-rejected");
        assert_eq!(
            all,
            RetryOn { connect: true, empty: true, junk: true, timeout: true, early: true, statuses: vec![500, 502, 503, 504] }
        );
    }

    #[test]
    fn faults() {
        for line in [
            "retries",
            "retries -1",
            "retries x",
            "retry-on",
            "retry-on none 503",
            "retry-on 503 none",
            "retry-on 200",
            "retry-on conn-failed",
            "option redispatch x",
            "option redispatch 1 2",
            "http-reuse",
            "http-reuse sometimes",
            "http-reuse safe x",
        ] {
            let said = said_in("backend b", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
