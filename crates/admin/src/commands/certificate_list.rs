//! Lists of certificates changed while the process runs, and the names that clients can ask for.

use super::certificate::{command, reason};
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use crate::words::Word;
use terse_tls::Refusal;

pub(super) const COMMANDS: &[Command] = &[
    command(
        "add ssl crt-list",
        "add ssl crt-list <list> <cert> | <payload>",
        "add a certificate to a list or folder",
        Level::Admin,
        add,
    ),
    command("del ssl crt-list", "del ssl crt-list <list> <cert[:line]>", "remove a certificate of a list", Level::Admin, remove),
    command("show ssl crt-list", "show ssl crt-list [-n] [<list>]", "list lists of certificates, or show one", Level::Admin, show),
    command(
        "show ssl sni",
        "show ssl sni [-f <frontend>] [-A] [-t <offset>]",
        "list the names of certificates",
        Level::User,
        names,
    ),
];

fn add(call: &mut Call<'_>) -> Outcome {
    let payload = call.client.payload.take();
    let (list, certificate) = (call.arg(0), call.arg(1));
    if list.is_empty() || (payload.is_none() && certificate.is_empty()) {
        return Err(Message::error("'add ssl crtlist' expects a filename and a certificate name"));
    }
    let failed = |reason: &str| Message::error(format!("Can't edit the crt-list: {reason}"));
    let payload = payload.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    let line = payload.as_deref().unwrap_or(certificate);
    if line.contains('\n') {
        return Err(failed("only one line of payload is supported!"));
    }
    let named = line.split_whitespace().next().unwrap_or_default();
    let shown = list.trim_end_matches('/');
    match call.context.plan.vault.add_to_list(list, line) {
        Ok((certificate, count)) => {
            let dots = ".".repeat(count);
            Ok(Answer::Text(format!("Inserting certificate '{certificate}' in crt-list '{shown}'{dots}\nSuccess!\n")))
        }
        Err(Refusal::Contexts(reason)) => {
            Ok(Answer::Text(format!("Inserting certificate '{named}' in crt-list '{shown}'\n{reason}\nFailed!\n")))
        }
        Err(refusal) => Err(failed(&reason(refusal))),
    }
}

fn remove(call: &mut Call<'_>) -> Outcome {
    let (list, named) = (call.arg(0), call.arg(1));
    if list.is_empty() || named.is_empty() {
        return Err(Message::error("'del ssl crtlist' expects a filename and a certificate name"));
    }
    let failed = |reason: &str| Message::error(format!("Can't delete the entry: {reason}"));
    let (certificate, number) = match named.split_once(':') {
        None => (named, None),
        Some((certificate, number)) => {
            let number = number.parse().map_err(|_| failed(&format!("wrong line number after colons in '{named}'!")))?;
            // As in HAProxy, no line is line 0.
            (certificate, Some(number).filter(|number| *number > 0))
        }
    };
    let removed = call.context.plan.vault.delete_from_list(list, certificate, number);
    removed.map_err(|refusal| failed(&reason(refusal)))?;
    let list = list.trim_end_matches('/');
    Ok(Answer::Said(Message::info(format!("Entry '{certificate}' deleted in crtlist '{list}'!"))))
}

fn show(call: &mut Call<'_>) -> Outcome {
    let vault = &call.context.plan.vault;
    let numbers = call.arg(0) == "-n";
    match call.arg(usize::from(numbers)) {
        "" if numbers => Err(Message::error("'show ssl crt-list -n' expects a filename or a directory")),
        "" => Ok(Answer::Text(vault.lists().into_iter().map(|name| name + "\n").collect())),
        name => {
            let missing = || Message::error("didn't find the specified filename");
            vault.show_list(name, numbers).map(Answer::Text).ok_or_else(missing)
        }
    }
}

fn names(call: &mut Call<'_>) -> Outcome {
    let (mut frontend, mut expired, mut offset_s) = (None, false, 0);
    let mut args = call.args.iter().map(Word::as_str);
    while let Some(arg) = args.next() {
        match arg {
            "-f" => {
                let name = args.next().ok_or_else(|| Message::error("'-f' requires a frontend name!"))?;
                let found = call.frontend(name).ok_or_else(|| Message::error("Couldn't find the specified frontend!"))?;
                frontend = Some(&*found.name);
            }
            "-A" => expired = true,
            "-t" => {
                let offset = args.next().ok_or_else(|| Message::error("'-t' requires an offset argument!"))?;
                let wrong = || Message::error(format!("'-t {offset}' : expects a number, and s, m, h or d behind it"));
                offset_s = seconds(offset).ok_or_else(wrong)?;
            }
            _ => return Err(Message::error("Invalid parameters, 'show ssl sni' only supports '-f', '-A' or '-t' options!")),
        }
    }
    let now = call.context.host.world().now().seconds;
    let until = expired.then(|| now.saturating_add(offset_s));
    Ok(Answer::Text(call.context.plan.vault.names(frontend, until)))
}

/// A time in seconds, or in the unit after the number; here it may be years.
fn seconds(text: &str) -> Option<i64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let each = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<u32>().ok().map(|number| i64::from(number) * each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_units() {
        assert_eq!(["5", "5s", "2m", "1h", "60d"].map(seconds), [5, 5, 120, 3_600, 5_184_000].map(Some));
        assert_eq!(["", "d", "5x", "-5", "5dd", "99999999999"].map(seconds), [None; 6]);
    }
}
