//! The lines of a `userlist`.

use super::{Password, UserList, UserLists, crypt};
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections};
use terse_sample::Registry;

/// The table.
pub(crate) const KEYWORDS: &[Keyword] = &[
    done("group", "<name> [users <user>,...]", "Names a group, and users in it.", group),
    done(
        "user",
        "<name> [password <hash> | insecure-password <password>] [groups <group>,...]",
        "Names a user, with a password as crypt(3) hashes it or as it is.",
        user,
    ),
];

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::USER_LIST, arguments, summary, kind: Kind::Done(parser) }
}

fn list(scope: &mut Scope<'_>) -> Arc<UserList> {
    let name = scope.section.name.clone();
    scope.shared.entry::<Registry>().own::<UserLists>().list(&name)
}

fn group(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    let at = args.position() - 1;
    let users = if args.accept("users") { names(args, "<user>,...")? } else { Vec::new() };
    args.end()?;
    if !list(scope).add_group(name, users) {
        scope.warn(at, format!("ignores this line: there is a group '{name}' already"));
    }
    Ok(())
}

fn user(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    let at = args.position() - 1;
    let (mut password, mut groups) = (Password::None, Vec::new());
    while let Some(word) = args.take() {
        match word {
            "password" => {
                let hash = args.need("<hash>")?;
                if !crypt::is_known(hash) {
                    return Err(args
                        .fault("is no hash of a method that the system's crypt(3) knows")
                        .hint("'mkpasswd' makes one; 'insecure-password' takes the password itself"));
                }
                password = Password::Hashed(hash.into());
            }
            "insecure-password" => password = Password::Plain(args.need_bytes("<password>")?.into()),
            "groups" => groups = names(args, "<group>,...")?,
            other => {
                return Err(args
                    .fault(format!("'{other}' is no word of a user's line"))
                    .hint("one of password, insecure-password, groups"));
            }
        }
    }
    if !list(scope).add_user(name, password, groups) {
        scope.warn(at, format!("ignores this line: there is a user '{name}' already"));
    }
    Ok(())
}

fn names(args: &mut Args<'_>, what: &str) -> Result<Vec<Box<str>>, Fault> {
    Ok(args.need(what)?.split(',').filter(|name| !name.is_empty()).map(Box::from).collect())
}
