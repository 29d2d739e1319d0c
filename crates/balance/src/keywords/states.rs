//! Source of servers' states when the process starts.

use super::{done, in_back, settings};
use crate::settings::StateSource;
use terse_config::{Keyword, Sections};

pub(super) const LOAD_STATE: Keyword = Keyword {
    sections: Sections::BACK,
    ..done(
        "load-server-state-from-file",
        "{ global | local | none }",
        "Starts servers in the states that a file says: that of 'server-state-file', or the backend's own.",
        |args, scope| {
            settings(scope).states = match args.need("<file>")? {
                "global" => StateSource::Global,
                "local" => StateSource::Local,
                "none" => StateSource::None,
                other => return Err(args.fault(format!("'{other}' is none of 'global', 'local' and 'none'"))),
            };
            Ok(())
        },
    )
};

pub(super) const STATE_FILE_NAME: Keyword = done(
    "server-state-file-name",
    "[use-backend-name | <file>]",
    "Names the backend's own file of states, in 'server-state-base'; without it, it has the backend's name.",
    |args, scope| {
        let name = args.take().filter(|name| *name != "use-backend-name");
        if in_back(scope) {
            settings(scope).state_file = name.map(Into::into);
        }
        Ok(())
    },
);
