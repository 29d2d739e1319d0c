//! A proxy's own responses: error pages and the monitor's page.

pub(crate) mod message;

use super::{done, in_front, settings};
use crate::reply::{Answer, Page};
use crate::rules::answer;
use crate::rules::order::{self, Turn};
use crate::settings::{ErrorSetUse, ErrorSettings, ErrorSource};
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Scope, Sections};
use terse_sample::{Condition, Needs, Registry};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    Keyword {
        sections: Sections::PROXY.or(Sections::HTTP_ERRORS),
        ..done(
            "errorfile",
            "<status> <file>",
            "Answers with a file's head and body; an empty file closes without an answer.",
            errorfile,
        )
    },
    done("errorloc", "<status> <url>", "Answers by a redirect with status 302.", |args, scope| errorloc(args, scope, 302)),
    done("errorloc302", "<status> <url>", "Answers by a redirect with status 302.", |args, scope| errorloc(args, scope, 302)),
    done("errorloc303", "<status> <url>", "Answers by a redirect with status 303.", |args, scope| errorloc(args, scope, 303)),
    done("errorfiles", "<name> [<status>...]", "Answers with the pages of an 'http-errors' section.", errorfiles),
    done(
        "http-error",
        "status <status> [content-type <type>] [default-errorfiles | errorfile <file> | errorfiles <name> | file <file> | \
         lf-file <file> | string <text> | lf-string <fmt>] [hdr <name> <fmt>]...",
        "Answers with a page that is written here.",
        http_error,
    ),
    done("monitor-uri", "<uri>", "Requests for this target are answered with 200, and not logged.", monitor_uri),
    Keyword {
        sections: Sections::PROXY_ONLY,
        ..done(
            "monitor fail",
            "{if | unless} <condition>",
            "Requests for 'monitor-uri' are answered with 503 while this holds.",
            monitor_fail,
        )
    },
];

fn errorfile(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let status = status(args)?;
    let page = read_page(args, scope)?;
    args.end()?;
    errors(scope).push(ErrorSource::Page(status, Page::Ready(Arc::new(page))));
    Ok(())
}

/// Reads the page that the next argument names.
pub(crate) fn read_page(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Answer, Fault> {
    let bytes = read_file(args, scope)?;
    message::parse(&bytes).map_err(|reason| args.fault(format!("'{}': {reason}", args.taken())))
}

/// Reads the file that the next argument names.
pub(crate) fn read_file(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Vec<u8>, Fault> {
    let name = args.need("<file>")?;
    let files = scope.shared.entry::<Registry>().files.clone().ok_or_else(|| args.fault("files cannot be read here"))?;
    files.read(name).map_err(|reason| args.fault(format!("error opening file '{name}': {reason}")))
}

fn errorloc(args: &mut Args<'_>, scope: &mut Scope<'_>, redirect: u16) -> Result<(), Fault> {
    let status = status(args)?;
    let url = args.need_bytes("<url>")?;
    if url.iter().any(u8::is_ascii_control) {
        return Err(args.fault("control characters cannot stand in a URL"));
    }
    args.end()?;
    let page = Answer::elsewhere(redirect, url.to_vec());
    errors(scope).push(ErrorSource::Page(status, Page::Ready(Arc::new(page))));
    Ok(())
}

fn errorfiles(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.rest().first().map_or_else(|| scope.place.clone(), |word| scope.place.at(word.span.clone()));
    let name = args.need("<name>")?.to_owned();
    let mut statuses = Vec::new();
    while args.peek().is_some() {
        statuses.push(status(args)?);
    }
    errors(scope).push(ErrorSource::Set(ErrorSetUse { name, statuses, place }));
    Ok(())
}

fn http_error(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let source = answer::error_page(args, scope)?;
    args.end()?;
    errors(scope).push(source);
    Ok(())
}

fn monitor_uri(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let uri = args.need_bytes("<uri>")?.to_vec();
    args.end()?;
    if in_front(scope) {
        settings(scope).monitor_uri = Some(uri);
    }
    Ok(())
}

fn monitor_fail(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let condition = Condition::parse(args, scope, Needs::REQUEST)?;
    let condition =
        condition.ok_or_else(|| Fault::new(args.position(), "requires either 'if' or 'unless' followed by a condition"))?;
    if in_front(scope) {
        order::note(Turn::Monitor, scope);
        settings(scope).monitor_failures.push(condition);
    }
    Ok(())
}

/// A status that has an error page.
fn status(args: &mut Args<'_>) -> Result<u16, Fault> {
    let word = args.need("<status>")?;
    let status = word.parse().ok().filter(|status| STATUSES.contains(status));
    status.ok_or_else(|| args.fault(format!("status code '{word}' not handled")).hint(format!("one of {STATUSES:?}")))
}

fn errors<'a>(scope: &'a mut Scope<'_>) -> &'a mut Vec<ErrorSource> {
    &mut scope.section.settings.entry::<ErrorSettings>().sources
}

/// Statuses that HAProxy has a page for; 200 is the monitor's.
pub(crate) const STATUSES: [u16; 21] =
    [200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502, 503, 504];

#[cfg(test)]
mod tests {
    use super::super::tests::{load_with, proxy, said_in};
    use super::*;
    use terse_config::Settings;
    use terse_sample::PatternFiles;

    struct Files;

    impl PatternFiles for Files {
        fn read(&self, name: &str) -> Result<Vec<u8>, String> {
            match name {
                "page" => Ok(b"HTTP/1.0 503 Sorry\r\nX-Page: yes\r\n\r\nDown.\n".to_vec()),
                "empty" => Ok(Vec::new()),
                "bad" => Ok(b"sorry\n".to_vec()),
                _ => Err("No such file or directory".into()),
            }
        }
    }

    fn load(text: &str) -> (Vec<ErrorSource>, Vec<String>) {
        let mut shared = Settings::default();
        shared.entry::<Registry>().files = Some(Arc::new(Files));
        let (config, said) = load_with(text, shared);
        let last = config.sections.last().and_then(|section| section.settings.get::<ErrorSettings>()).cloned();
        (last.unwrap_or_default().sources, said)
    }

    #[test]
    fn files_and_redirects() {
        let (sources, said) = load(
            "defaults\n errorfile 503 page\nlisten l\n errorfile 408 empty\n errorloc303 404 /gone\n errorfiles set 500 502\n",
        );
        assert_eq!(said, [""; 0]);
        let [ErrorSource::Page(503, page), ErrorSource::Page(408, empty), ErrorSource::Page(404, gone), ErrorSource::Set(set)] =
            &sources[..]
        else {
            panic!("{sources:?}")
        };
        let (Page::Ready(page), Page::Ready(empty), Page::Ready(gone)) = (page, empty, gone) else { panic!("{sources:?}") };
        assert_eq!((page.status, &*page.reason, &*page.body, page.close), (503, "Sorry", &b"Down.\n"[..], false));
        assert!(empty.is_nothing());
        assert_eq!((gone.status, gone.close), (303, false));
        assert_eq!(gone.fields[1], (Arc::from(&b"Location"[..]), b"/gone".to_vec()));
        assert_eq!((set.name.as_str(), &set.statuses[..]), ("set", &[500, 502][..]));
    }

    #[test]
    fn pages_written_in_the_configuration() {
        let (sources, said) = load(
            "listen l\n http-error status 404 errorfile page\n http-error status 500 content-type text/plain string no hdr x %[path]\n \
             http-error status 404 default-errorfiles\n http-error errorfiles set status 503\n http-error status 400\n",
        );
        assert_eq!(said, [""; 0]);
        let [
            ErrorSource::Page(404, Page::Ready(_)),
            ErrorSource::Page(500, Page::Written(text)),
            ErrorSource::BuiltIn(404),
            ErrorSource::Set(set),
            ErrorSource::Page(400, Page::Written(empty)),
        ] = &sources[..]
        else {
            panic!("{sources:?}")
        };
        assert_eq!((text.status, text.fields.len(), empty.status, empty.fields.len()), (500, 1, 400, 0));
        assert_eq!((set.name.as_str(), &set.statuses[..]), ("set", &[503][..]));
    }

    #[test]
    fn the_monitors_page() {
        let settings =
            proxy("defaults\n monitor-uri /up\nfrontend f\n acl no always_false\n monitor fail if no\n monitor fail unless no\n");
        assert_eq!((settings.monitor_uri.as_deref(), settings.monitor_failures.len()), (Some(&b"/up"[..]), 2));
    }

    #[test]
    fn sections_of_error_files() {
        let (sources, said) = load("http-errors e\n errorfile 503 page\n");
        assert!(said.is_empty() && sources.len() == 1, "{said:?}");
        assert!(load("http-errors e\n mode http\n").1[0].contains("not allowed in 'http-errors' section"));
    }

    #[test]
    fn faults() {
        for line in [
            "errorfile",
            "errorfile 503",
            "errorfile 999 page",
            "errorfile 503 none",
            "errorfile 503 bad",
            "errorfile 503 page x",
            "errorloc 503",
            "errorloc x /",
            "errorfiles",
            "errorfiles e 999",
            "http-error",
            "http-error string x",
            "http-error status 599",
            "http-error status 404 string x",
            "http-error status 404 if TRUE",
            "monitor-uri",
            "monitor-uri / x",
            "monitor fail",
            "monitor fail when x",
            "monitor fail if nothing",
        ] {
            let (_, said) = load(&format!("listen l\n {line}\n"));
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
        assert!(said_in("listen l", "errorfile 503 page")[0].contains("files cannot be read here"));
    }
}
