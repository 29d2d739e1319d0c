//! A client's conversation: its settings, and its commands one by one. No socket here.
//!
//! ```text
//!             "prompt n", "prompt"                        "prompt p", "prompt"
//!   Prompt ------------------------> Single (at first) -------------------------> Prompt
//!      \                               |  ^                                        ^
//!       \------- "prompt i" ---------> |  | "prompt n"                             |
//!                                      v  |                                        |
//!                                   Interactive ----------- "prompt", "prompt p" --/
//!
//!   Single: the connection closes after the answers to one line
//! ```

use crate::answer::{Answer, Message, Outcome, Pieces, render};
use crate::command::{self, Call};
use crate::commands::waiting::Waiting;
use crate::context::Context;
use crate::guests::Guest;
use crate::help;
use crate::manner::Manner;
use crate::settings::{Level, SeverityForm, StatsSocket};
use crate::words::{MOST_WORDS, TooManyWords, Word};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use terse_proxy::log::{Framing, Ring};
use terse_tls::Secret;
use tokio::net::UnixStream;
use tokio::sync::watch;

/// A client of a command socket.
#[derive(Debug)]
pub(crate) struct Client {
    /// Origin of its changes in log lines.
    pub(crate) called: &'static str,
    /// Permission level.
    pub(crate) level: Level,
    /// Mode of the conversation after a line.
    pub(crate) mode: Mode,
    /// Mode without a prompt: what `prompt` goes back to.
    pub(crate) plain: Mode,
    /// Whether the prompt shows the process's uptime.
    pub(crate) timed: bool,
    /// Limit of idle time.
    pub(crate) timeout: Duration,
    /// Form of the severity of messages.
    pub(crate) severity: SeverityForm,
    /// Whether it may get the listening sockets.
    pub(crate) may_take_listeners: bool,
    /// Whether it has enabled commands that may change: `experimental-mode on`.
    pub(crate) experimental: bool,
    /// Whether it has enabled commands of experts: `expert-mode on`.
    pub(crate) expert: bool,
    /// Condition to wait for before the answer.
    pub(crate) waiting: Option<Waiting>,
    /// Ring that it is shown before its next command.
    pub(crate) following: Option<Following>,
    /// End of the conversation, once that is known.
    pub(crate) ending: Option<Ending>,
    /// Payload of the command.
    pub(crate) payload: Option<Secret>,
    /// Pieces that are written before the answer.
    pub(crate) pieces: Option<Pieces>,
    /// Answer of a command of another part of the program, which comes out of this socket.
    pub(crate) guest: Option<UnixStream>,
    /// Signal that the process leaves: then received commands are still answered, and nothing more.
    pub(crate) leave: Option<Leave>,
}

/// A ring that a client reads.
#[derive(Clone, Debug)]
pub(crate) struct Following {
    /// Ring.
    pub(crate) ring: Arc<Ring>,
    /// Number of the next event.
    pub(crate) from: u64,
    /// Separation of events.
    pub(crate) framing: Framing,
    /// Whether the client waits for more events.
    pub(crate) waits: bool,
}

/// Mode of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Mode {
    /// A single line is answered.
    #[default]
    Single,
    /// Lines are answered until the client goes.
    Interactive,
    /// Lines are answered until the client goes, each after a prompt.
    Prompt,
}

/// Signal that the process leaves.
#[derive(Clone, Debug)]
pub struct Leave(watch::Receiver<bool>);

impl Leave {
    /// Creates the signal, and its sender: `true`.
    pub fn new() -> (watch::Sender<bool>, Leave) {
        let (say, hear) = watch::channel(false);
        (say, Leave(hear))
    }

    /// Whether the signal was sent.
    pub(crate) fn is_said(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the signal.
    pub(crate) async fn said(leave: Option<&Leave>) {
        match leave {
            // A signal whose sender is gone counts as sent.
            Some(Leave(hear)) => drop(hear.clone().wait_for(|is_said| *is_said).await),
            None => std::future::pending().await,
        }
    }
}

/// End of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The connection closes.
    Close,
    /// The listening sockets go over the connection.
    HandOver,
    /// The connection closes once a master has tried to reload.
    Reload {
        /// Whether running streams are cut.
        hard: bool,
    },
}

impl Client {
    /// A client of a socket.
    pub(crate) fn new(socket: &StatsSocket, timeout: Duration) -> Client {
        Client {
            called: COMMANDS,
            level: socket.level,
            mode: Mode::default(),
            plain: Mode::default(),
            timed: false,
            timeout,
            severity: socket.severity,
            may_take_listeners: socket.exposes_listeners,
            experimental: false,
            expert: false,
            waiting: None,
            following: None,
            ending: None,
            payload: None,
            pieces: None,
            guest: None,
            leave: None,
        }
    }

    /// A script, which has all rights of an operator.
    pub(crate) fn of_script(timeout: Duration) -> Client {
        let (level, severity, mode) = (Level::Admin, SeverityForm::None, Mode::Single);
        let manner = Manner { level, severity, mode, timed: false, experimental: false, expert: false };
        Client { called: "Lua script", ..Client::of_master(manner, timeout) }
    }

    /// A client that the master has passed on.
    pub(crate) fn of_master(manner: Manner, timeout: Duration) -> Client {
        let Manner { level, severity, mode, timed, experimental, expert } = manner;
        Client {
            called: COMMANDS,
            level,
            mode,
            plain: Mode::default(),
            timed,
            timeout,
            severity,
            may_take_listeners: false,
            experimental,
            expert,
            waiting: None,
            following: None,
            ending: None,
            payload: None,
            pieces: None,
            guest: None,
            leave: None,
        }
    }

    /// Answer to a command, which is sent after [`Client::pieces`].
    pub(crate) fn answer(&mut self, words: Result<Vec<Word>, TooManyWords>, context: &Context) -> Secret {
        context.tally.commands.fetch_add(1, Relaxed);
        let words = match words {
            Ok(words) if words.is_empty() => return Secret::from(b"\n".to_vec()),
            Ok(words) => words,
            Err(TooManyWords) => {
                let message = format!("Too many arguments. Commands must have at most {MOST_WORDS} arguments.");
                return render(Err(Message::error(message)), self.severity);
            }
        };
        if words == ["_getsocks"] {
            // Not a command for people: a process that takes this one's place sends it, and reads sockets, not text.
            self.ending = Some(if self.may_take_listeners { Ending::HandOver } else { Ending::Close });
            return Secret::default();
        }
        let outcome = match command::find(&words) {
            Some((command, _)) if command.level > self.level => Err(Message::denied()),
            Some((command, args)) => (command.run)(&mut Call { args, client: self, context }),
            None => match context.settings.link.guests().find(&words) {
                Some(guest) => self.visit(&*guest, &words),
                None => Err(help::unknown(&words)),
            },
        };
        match self.ending {
            None if self.guest.is_some() => Secret::default(),
            None if self.following.is_none() && self.waiting.is_none() => render(outcome, self.severity),
            _ => Secret::default(),
        }
    }

    /// Begins a command of another part of the program.
    fn visit(&mut self, guest: &dyn Guest, words: &[Word]) -> Outcome {
        let begin = || -> Result<UnixStream, String> {
            let (near, far) = std::os::unix::net::UnixStream::pair().map_err(|error| error.to_string())?;
            near.set_nonblocking(true).and_then(|()| far.set_nonblocking(true)).map_err(|error| error.to_string())?;
            guest.begin(words.iter().map(|word| word.bytes().to_vec()).collect(), far)?;
            UnixStream::from_std(near).map_err(|error| error.to_string())
        };
        self.guest = Some(begin().map_err(Message::error)?);
        Ok(Answer::Done)
    }

    /// Prompt for the next line; empty without one.
    pub(crate) fn prompt(&self, context: &Context, now: Instant) -> String {
        if self.mode != Mode::Prompt {
            return String::new();
        }
        if !self.timed {
            return "> ".into();
        }
        format!("{}> ", clock(now.saturating_duration_since(context.process.started)))
    }

    /// Prompt for the rest of a payload.
    pub(crate) fn payload_prompt(&self) -> &'static str {
        if self.mode == Mode::Prompt { "+ " } else { "" }
    }
}

/// Origin of changes by a client of a stats socket.
const COMMANDS: &str = "stats socket command";

/// Uptime of a process, in the form of prompts.
pub(crate) fn clock(since: Duration) -> String {
    let s = since.as_secs();
    format!("[{}:{:02}:{:02}:{:02}]", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use crate::command;
    use crate::commands;
    use crate::commands::fixture::{Talk, WEB};
    use proptest::prelude::*;

    fn line() -> impl Strategy<Value = String> {
        let names = command::all(commands::FAMILIES).map(|command| command.name).chain(["show", "set", "add server"]);
        // Commands that wait are answered later.
        let names: Vec<&str> = names.filter(|name| *name != "wait").collect();
        let words = "(be/a|be/b|be/x|x/y|be|fe|raw|#3|cli|server|all|state|drain|maint|health|down|weight|addr|port\
                     |typed|json|desc|-1|0|7|50%|127.0.0.1|.{0,5})";
        (proptest::sample::select(names), proptest::collection::vec(words, 0..5))
            .prop_map(|(name, words)| format!("{name} {}", words.join(" ")))
    }

    proptest! {
        #[test]
        fn every_answer_ends_with_its_only_empty_line(line in line()) {
            let mut talk = Talk::new(WEB);
            let answer = talk.says(&line.replace(';', ""));
            if talk.client.ending.is_none() {
                prop_assert!(answer == "\n" || answer.find("\n\n") == Some(answer.len() - 2) && !answer.starts_with('\n'), "{answer:?}");
            }
        }
    }
}
