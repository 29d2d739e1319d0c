//! Limits on a frontend's connections.

use super::{done, in_front, settings};
use terse_config::{Args, Fault, Keyword, Scope};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    done("maxconn", "<number>", "The most connections of the frontend at a time; more wait in the kernel.", maxconn),
    done(
        "rate-limit sessions",
        "<number>",
        "The most new connections of the frontend in a second; more wait in the kernel. 0, which is the default: any.",
        session_rate,
    ),
    done("backlog", "<number>", "The most connections that wait in the kernel to be accepted.", backlog),
    done(
        "max-session-srv-conns",
        "<number>",
        "The most idle connections to servers that stay with a client's connection, for its own requests alone; 5 where nothing is said.",
        own_connections,
    ),
];

fn maxconn(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let number = args.integer("<number>", 0..=i64::from(i32::MAX))?;
    args.end()?;
    if in_front(scope) {
        settings(scope).maxconn = usize::try_from(number).ok();
    }
    Ok(())
}

fn session_rate(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let number = args.integer("<number>", 0..=i64::from(i32::MAX))?;
    args.end()?;
    if in_front(scope) {
        settings(scope).session_rate = u64::try_from(number).ok();
    }
    Ok(())
}

fn backlog(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let number = args.integer("<number>", 0..=i64::from(i32::MAX))?;
    args.end()?;
    if in_front(scope) {
        settings(scope).backlog = u32::try_from(number).ok().filter(|number| *number > 0);
    }
    Ok(())
}

fn own_connections(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let number = args.integer("<number>", 0..=i64::from(i32::MAX))?;
    args.end()?;
    if in_front(scope) {
        settings(scope).own_connections = usize::try_from(number).ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};

    #[test]
    fn limits_are_inherited() {
        let settings = proxy("defaults\n maxconn 4096\n backlog 100\nfrontend f\n backlog 0\n");
        assert_eq!((settings.maxconn, settings.backlog), (Some(4096), None));
    }

    #[test]
    fn faults() {
        for line in ["maxconn", "maxconn many", "maxconn -1", "maxconn 1 2", "backlog 1k", "rate-limit sessions x"] {
            let said = said_in("frontend f", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
