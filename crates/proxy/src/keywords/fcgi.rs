//! `fcgi-app`: parameters of a FastCGI application. An application concerns only the backends that use it, and `use-fcgi-app`
//! is refused: so its lines change nothing here, and a file that merely declares an application loads.

use terse_config::{Keyword, Kind, Sections};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    accepted("acl", "<name> <criterion> [<flags>] [<value>...]", "Names a condition for the application's other lines."),
    accepted("docroot", "<path>", "The folder of the application's scripts."),
    accepted("index", "<name>", "The script where a path ends in a slash."),
    accepted("log-stderr", "global | <target> [len <length>] [format <format>]", "Where the application's errors are logged."),
    accepted("option get-values", "", "Asks the application for its limits."),
    accepted("option keep-conn", "", "Lets the application keep its connections."),
    accepted("option max-reqs", "<number>", "How many requests the application takes at a time."),
    accepted("option mpxs-conns", "", "The application takes several requests on a connection."),
    accepted(
        "pass-header",
        "<name> [{ if | unless } <condition>]",
        "Fields that are passed although others of their kind are not.",
    ),
    accepted("path-info", "<regex>", "What of a path is the script's name, and what is behind it."),
    accepted("set-param", "<name> <format> [{ if | unless } <condition>]", "A parameter for the application."),
];

const fn accepted(name: &'static str, arguments: &'static str, summary: &'static str) -> Keyword {
    let kind = Kind::Accepted("no backend can use an application: 'use-fcgi-app' is refused");
    Keyword { name, old_names: &[], sections: Sections::FCGI_APP, arguments, summary, kind }
}
