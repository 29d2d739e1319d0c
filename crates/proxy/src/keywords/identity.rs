//! Identity of a proxy: its kind of traffic, its number, its description, whether it is in use.

use super::{done, in_back, settings};
use crate::settings::Mode;
use terse_balance::guid::Guid;
use terse_config::{Args, Fault, Keyword, Scope, Sections, Word};
use terse_message::{FieldName, Known};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    Keyword {
        sections: Sections::BACK,
        ..done(
            "http-send-name-header",
            "<name>",
            "Tells the server its name in this field of each request, in the place of what was there.",
            name_header,
        )
    },
    done("mode", "tcp | http | log", "The kind of traffic: bytes, requests and responses, or, of a backend, lines of logs.", mode),
    Keyword { sections: Sections::PROXY_ONLY, ..done("id", "<number>", "The proxy's number in statistics.", id) },
    Keyword { sections: Sections::PROXY_ONLY, ..done("guid", "<name>", "Names the proxy for files of statistics.", guid) },
    Keyword { sections: Sections::PROXY_ONLY, ..done("description", "<text>...", "A text for people.", description) },
    done("disabled", "", "The proxy takes no traffic.", |args, scope| set_disabled(args, scope, true)),
    done("enabled", "", "Takes back 'disabled' of a defaults section.", |args, scope| set_disabled(args, scope, false)),
];

fn name_header(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    let field = FieldName::new(name.as_bytes()).ok_or_else(|| args.fault(format!("'{name}' is not a header's name")))?;
    if [Known::ContentLength, Known::TransferEncoding, Known::Connection].contains(&Known::of(name.as_bytes())) {
        return Err(args.fault(format!("'{name}' says how requests are framed")));
    }
    args.end()?;
    if in_back(scope) {
        settings(scope).name_header = Some(field);
    }
    Ok(())
}

fn mode(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let mode = match args.need("'tcp', 'http' or 'log'")? {
        "http" => Mode::Http,
        "tcp" => Mode::Tcp,
        "log" if scope.section.kind.is_front() => {
            return Err(args.fault("mode 'log' is for backends").hint("a section 'log-forward' takes messages in"));
        }
        "log" => Mode::Log,
        "health" => {
            let hint = "write 'mode http' and 'http-request return status 200'";
            return Err(args.fault("'mode health' is not supported any more").hint(hint));
        }
        other @ ("syslog" | "spop" | "haterm" | "peers") => {
            return Err(args.fault(format!("mode '{other}' is not supported: proxies carry TCP or HTTP here")));
        }
        other => return Err(args.fault(format!("unknown proxy mode '{other}'")).hint("it is 'tcp', 'http' or 'log'")),
    };
    args.end()?;
    let settings = settings(scope);
    (settings.mode, settings.says_mode) = (mode, true);
    Ok(())
}

fn id(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let id = args.integer("<number>", 1..=i64::from(i32::MAX))?;
    args.end()?;
    settings(scope).id = u32::try_from(id).ok();
    Ok(())
}

fn guid(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let guid = Guid::parse(args, &scope.place)?;
    args.end()?;
    settings(scope).guid = Some(guid);
    Ok(())
}

fn description(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    args.need_bytes("<text>")?;
    args.seek(args.position() - 1);
    let words: Vec<_> = args.take_rest().iter().map(Word::display).collect();
    settings(scope).description = Some(words.join(" "));
    Ok(())
}

fn set_disabled(args: &mut Args<'_>, scope: &mut Scope<'_>, disabled: bool) -> Result<(), Fault> {
    args.end()?;
    settings(scope).disabled = disabled;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};
    use super::*;

    #[test]
    fn words_of_identity() {
        let settings = proxy("defaults\n mode http\n disabled\nlisten l\n id 7\n description two words\n enabled\n");
        assert_eq!((settings.mode, settings.id, settings.disabled), (Mode::Http, Some(7), false));
        assert_eq!(settings.description.as_deref(), Some("two words"));
        let settings = proxy("defaults\n mode http\n disabled\nlisten l\n mode tcp\n");
        assert_eq!((settings.mode, settings.disabled), (Mode::Tcp, true));
    }

    #[test]
    fn faults() {
        for line in
            ["mode", "mode health", "mode spop", "mode htpp", "mode http x", "id", "id 0", "id x", "description", "disabled x"]
        {
            let said = said_in("listen l", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
