//! Dynamic cookies of backends, switched and keyed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::sync::Arc;
use terse_proxy::plan::Backend;
use terse_proxy::settings::Mode;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "enable dynamic-cookie backend",
        usage: "enable dynamic-cookie backend <bk>",
        summary: "give servers without a cookie a value that is made of their addresses",
        level: Level::Admin,
        run: |call| switch(call, true),
    },
    Command {
        name: "disable dynamic-cookie backend",
        usage: "disable dynamic-cookie backend <bk>",
        summary: "take these values back",
        level: Level::Admin,
        run: |call| switch(call, false),
    },
    Command {
        name: "set dynamic-cookie-key backend",
        usage: "set dynamic-cookie-key backend <bk> <key>",
        summary: "change the secret that these values are made of",
        level: Level::Admin,
        run: set_key,
    },
];

fn switch(call: &mut Call<'_>, is_on: bool) -> Outcome {
    backend(call)?.farm.dynamic_cookies().switch(is_on);
    Ok(Answer::Done)
}

fn set_key(call: &mut Call<'_>) -> Outcome {
    let backend = backend(call)?;
    match call.arg(1) {
        "" => Err(Message::error("String value expected.")),
        key => {
            backend.farm.dynamic_cookies().set_key(key);
            Ok(Answer::Done)
        }
    }
}

fn backend(call: &Call<'_>) -> Result<Arc<Backend>, Message> {
    let name = call.arg(0);
    if name.is_empty() {
        return Err(Message::error("A backend name is expected."));
    }
    let backend = call.backend(name).ok_or_else(|| Message::error("No such backend."))?;
    match backend.mode {
        Mode::Http | Mode::Tcp => Ok(backend),
        Mode::Log => Err(Message::error("Not available.")),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn cookies_are_switched_and_keyed() {
        let mut talk = Talk::new(&format!("{WEB}\nbackend lines\n mode log\n server l udp@127.0.0.1:9\n"));
        for (command, said) in [
            ("enable dynamic-cookie backend", "A backend name is expected."),
            ("disable dynamic-cookie backend no", "No such backend."),
            ("enable dynamic-cookie backend lines", "Not available."),
            ("set dynamic-cookie-key backend be", "String value expected."),
        ] {
            assert_eq!(talk.says(command), format!("{said}\n\n"), "{command}");
        }
        let mut cookies = |command: &str| {
            let said = talk.says(command);
            assert!(said.trim().is_empty(), "{command}: {said}");
            let backends = talk.context.plan.backends.now();
            let farm = &backends.named(b"be").unwrap().farm;
            farm.servers().iter().map(|server| farm.cookie_of(server).map(|value| value.into_owned())).collect::<Vec<_>>()
        };
        assert_eq!(cookies("enable dynamic-cookie backend be"), [Some("one".into()), None, None]);
        let keyed = cookies("set dynamic-cookie-key backend be secret");
        assert!(keyed[0].as_deref() == Some("one") && keyed[1].is_some() && keyed[2].is_some() && keyed[1] != keyed[2]);
        assert_ne!(cookies("set dynamic-cookie-key backend be other")[1], keyed[1]);
        assert_eq!(cookies("disable dynamic-cookie backend be"), [Some("one".into()), None, None]);
    }
}
