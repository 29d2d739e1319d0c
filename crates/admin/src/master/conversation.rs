//! A client's conversation with the master.
//!
//! Unlike that of a stats socket it goes on after a line until the client closes, and prompts for each command rather
//! than each line.

use super::{Office, commands, relay, route};
use crate::answer::{Message, render};
use crate::client::{Client, Ending, Mode, clock};
use crate::input::Input;
use crate::manner::Manner;
use crate::serve::{Read, read_line, write};
use crate::settings::StatsSocket;
use crate::words;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use terse_tls::Secret;
use tokio::io::{AsyncRead, AsyncWrite};

/// A conversation.
pub(super) struct Conversation<'a, S> {
    stream: &'a mut S,
    client: Client,
    office: &'a Office,
    input: Input,
    /// Worker for commands without a prefix; `None`: the master.
    here: Option<u32>,
}

impl Client {
    /// A client of the master.
    pub(super) fn of_office(socket: &StatsSocket, timeout: Duration) -> Client {
        Client { mode: Mode::Interactive, plain: Mode::Interactive, ..Client::new(socket, timeout) }
    }
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Conversation<'a, S> {
    /// Begins a conversation.
    pub(super) fn new(stream: &'a mut S, client: Client, office: &'a Office) -> Conversation<'a, S> {
        Conversation { stream, client, office, input: Input::default(), here: None }
    }

    /// Answers until the client closes or is sent away.
    ///
    /// # Errors
    /// The client went away, or was silent for too long.
    pub(super) async fn hold(mut self) -> io::Result<()> {
        loop {
            let (line, mut payload) = match read_line(self.stream, &mut self.input, &self.client).await? {
                Read::Line(line) => line,
                Read::TooLong(what) => return self.say(what.as_bytes()).await,
                Read::End => return Ok(()),
            };
            if let Some((designation, rest)) = route::whole_line(&line) {
                self.pass_line(designation, rest, payload).await?;
                self.prompt().await?;
                continue;
            }
            let mut commands = words::split(&line).peekable();
            while let Some(command) = commands.next() {
                // The payload belongs to the command that it follows.
                let payload = payload.take_if(|_| commands.peek().is_none());
                if self.take(command, payload).await?.is_break() {
                    return Ok(());
                }
                self.prompt().await?;
            }
        }
    }

    /// Carries out a command: the master's, or a worker's.
    async fn take(&mut self, command: &[u8], payload: Option<Secret>) -> io::Result<ControlFlow<()>> {
        let (target, command, prefixed) = match route::prefix(command) {
            None => (self.here, command, false),
            Some((designation, rest)) => match self.office.find(designation) {
                Err(message) => {
                    self.refuse(message).await?;
                    return Ok(ControlFlow::Continue(()));
                }
                Ok(target) if rest.is_empty() => {
                    self.here = target;
                    return Ok(ControlFlow::Continue(()));
                }
                Ok(target) => (target, rest, true),
            },
        };
        let words = words::words(command);
        let about_the_client = || words.as_ref().is_ok_and(|words| commands::is_about_the_client(words));
        match target.filter(|_| prefixed || !about_the_client()) {
            Some(pid) => {
                drop(words);
                let mut said = Secret::from(command.to_vec());
                self.append_payload(&mut said, payload);
                let manner = Manner::of(&self.client, Mode::Single);
                if let Err(trouble) = relay::command(self.stream, &self.client, self.office, (pid, manner), &said).await? {
                    self.refuse(trouble).await?;
                }
                Ok(ControlFlow::Continue(()))
            }
            None => {
                let answer = commands::answer(words, &mut self.client, self.office);
                self.say(&answer).await?;
                match self.client.ending {
                    None => Ok(ControlFlow::Continue(())),
                    Some(Ending::Reload { hard }) => self.reload(hard).await.map(ControlFlow::Break),
                    Some(Ending::Close | Ending::HandOver) => Ok(ControlFlow::Break(())),
                }
            }
        }
    }

    /// Passes a line to a worker, which answers until it ends the conversation. A line without a command opens a
    /// conversation of more lines.
    async fn pass_line(&mut self, designation: &[u8], line: &[u8], payload: Option<Secret>) -> io::Result<()> {
        let pid = match self.office.find(designation) {
            Ok(Some(pid)) => pid,
            Ok(None) => return self.refuse(Message::error("'@@' leads to workers: write '@@1'.")).await,
            Err(message) => return self.refuse(message).await,
        };
        let mode = if line.is_empty() { self.client.mode } else { Mode::Single };
        let mut said = Secret::from(line.to_vec());
        self.append_payload(&mut said, payload);
        said.extend(&self.input.take_rest());
        let manner = Manner::of(&self.client, mode);
        match relay::line(self.stream, &self.client, self.office, (pid, manner), &said).await? {
            Ok(()) => Ok(()),
            Err(trouble) => self.refuse(trouble).await,
        }
    }

    /// Appends the end of a line, and its payload as it came.
    fn append_payload(&self, line: &mut Secret, payload: Option<Secret>) {
        if let Some(payload) = payload {
            let mark = self.input.mark();
            [b" <<", mark, b"\n", &payload, mark].into_iter().for_each(|part| line.extend(part));
        }
        line.extend(b"\n");
    }

    /// Reloads; the connection closes after it, whatever the outcome.
    async fn reload(&mut self, hard: bool) -> io::Result<()> {
        // A master that ends sends no outcome any more.
        let Ok(reloaded) = self.office.overseer.reload(hard).await else { return Ok(()) };
        let mut text = format!("Success={}\n", u8::from(reloaded.success));
        let log = commands::without_empty_lines(&reloaded.log);
        if !log.is_empty() {
            text = text + "--\n" + &log;
        }
        self.say((text + "\n").as_bytes()).await
    }

    async fn prompt(&mut self) -> io::Result<()> {
        if self.client.mode != Mode::Prompt {
            return Ok(());
        }
        let workers = || self.office.overseer.workers();
        let (name, since) = match self.here {
            Some(pid) => (pid.to_string(), workers().iter().find(|worker| worker.pid == pid).map(|worker| worker.started)),
            None => {
                let failed = self.office.overseer.reloads().failed > 0;
                (if failed { "master[ReloadFailed]" } else { "master" }.to_owned(), Some(self.office.started))
            }
        };
        let clock = match since {
            _ if !self.client.timed => String::new(),
            Some(since) => clock(since.elapsed()) + " ",
            None => "[gone] ".into(),
        };
        let modes = match (self.client.experimental, self.client.expert) {
            (false, false) => "",
            (true, false) => "(x)",
            (false, true) => "(e)",
            (true, true) => "(xe)",
        };
        self.say(format!("{clock}{name}{modes}> ").as_bytes()).await
    }

    async fn refuse(&mut self, message: Message) -> io::Result<()> {
        let text = render(Err(message), self.client.severity);
        self.say(&text).await
    }

    async fn say(&mut self, text: &[u8]) -> io::Result<()> {
        write(self.stream, text, self.client.timeout).await
    }
}
