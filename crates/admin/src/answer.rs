//! Answers of commands: a text, or a message with a severity.

use crate::settings::SeverityForm;
use std::fmt;
use terse_tls::Secret;

/// Answer of a command that has done its work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Nothing.
    Done,
    /// Lines; each ends with a line feed.
    Text(String),
    /// Lines that show bytes of clients or servers.
    Bytes(Vec<u8>),
    /// A message.
    Said(Message),
}

/// A line for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// Severity.
    pub(crate) severity: Severity,
    /// The line or lines, without the last line end.
    pub(crate) text: String,
}

/// Severity of a message, in syslog's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Severity {
    /// The command was wrong, or not allowed.
    Error = 3,
    /// Success.
    Info = 6,
}

/// Output that is too large to be held at once: it is made as the client takes it, and written before the answer's end.
pub(crate) struct Pieces(Box<dyn FnMut() -> Option<Vec<u8>> + Send + Sync>);

impl Pieces {
    /// Creates an output. Each call of `next` returns some lines, or none yet if it had enough to do; `None` at the
    /// end.
    pub(crate) fn new<P: Into<Vec<u8>>>(mut next: impl FnMut() -> Option<P> + Send + Sync + 'static) -> Pieces {
        Pieces(Box::new(move || next().map(Into::into)))
    }

    /// The next lines.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        (self.0)()
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pieces")
    }
}

/// An answer, or the message of a failure.
pub(crate) type Outcome = Result<Answer, Message>;

impl Message {
    /// Message of a failed command.
    pub(crate) fn error(text: impl Into<String>) -> Message {
        Message { severity: Severity::Error, text: text.into() }
    }

    /// Message for a client whose level is too low.
    pub(crate) fn denied() -> Message {
        Message::error("Permission denied")
    }

    /// Message of a success.
    pub(crate) fn info(text: impl Into<String>) -> Message {
        Message { severity: Severity::Info, text: text.into() }
    }
}

/// Answer as it is sent, with the empty line after it.
pub(crate) fn render(outcome: Outcome, form: SeverityForm) -> Secret {
    let whole = |mut lines: Secret| {
        lines.extend(b"\n");
        lines
    };
    let message = match outcome {
        Ok(Answer::Done) => return whole(Secret::default()),
        Ok(Answer::Text(text)) => return whole(Secret::from(text)),
        Ok(Answer::Bytes(bytes)) => return whole(Secret::from(bytes)),
        Ok(Answer::Said(message)) | Err(message) => message,
    };
    let Message { severity, text } = message;
    Secret::from(match form {
        SeverityForm::None => format!("{text}\n\n"),
        SeverityForm::Number => format!("[{}]: {text}\n\n", severity as u8),
        SeverityForm::Text => format!("[{}]: {text}\n\n", severity.word()),
    })
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Severity::Error => "err",
            Severity::Info => "info",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_ends_every_answer() {
        let render = |outcome, form| String::from_utf8(super::render(outcome, form).to_vec()).unwrap();
        let wrong = || Err(Message::error("No such server."));
        assert_eq!(render(Ok(Answer::Done), SeverityForm::Number), "\n");
        assert_eq!(render(Ok(Answer::Text("a\nb\n".into())), SeverityForm::Number), "a\nb\n\n");
        assert_eq!(render(wrong(), SeverityForm::None), "No such server.\n\n");
        assert_eq!(render(wrong(), SeverityForm::Number), "[3]: No such server.\n\n");
        assert_eq!(render(Ok(Answer::Said(Message::info("Done."))), SeverityForm::Text), "[info]: Done.\n\n");
    }
}
