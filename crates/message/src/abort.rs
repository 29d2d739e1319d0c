//! Causes of a stream's early end: party, phase, cause. One to one with HAProxy's termination state (its log field `%ts`).

/// Party that ended a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The client closed or reset (`C`).
    Client,
    /// The client was silent too long (`c`).
    ClientTimeout,
    /// The server closed, reset or refused (`S`).
    Server,
    /// The server was silent too long (`s`).
    ServerTimeout,
    /// A rule of the configuration, or a broken message (`P`).
    Proxy,
    /// Answered here: a redirect, a page of ours (`L`).
    Local,
    /// A limit of this process: memory, sockets, buffers (`R`).
    Resource,
    /// A fault of this program (`I`).
    Internal,
    /// The server was marked down (`D`).
    Down,
    /// The server is a backup, and a server that is none has come up (`U`).
    Replaced,
    /// An operator's command (`K`).
    Killed,
}

/// Phase of a stream in which it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Reading or judging the request (`R`).
    Request,
    /// Waiting for a free server (`Q`).
    Queue,
    /// Connecting (`C`).
    Connect,
    /// Waiting for the response's head, or judging it (`H`).
    Headers,
    /// Moving the body (`D`).
    Data,
    /// Pushing the last bytes to the client (`L`).
    Last,
    /// Held back on purpose (`T`).
    Tarpit,
    /// It had ended well (`-`).
    Done,
}

/// Cause of an end, for counters and for the response that the client gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The peer closed in the middle.
    Closed,
    /// The peer reset the connection, or writing to it failed.
    Reset,
    /// The port is closed, or there is no route.
    Refused,
    /// A timeout of the configuration passed.
    Timeout,
    /// The message breaks the protocol.
    Malformed,
    /// The message's head is larger than the limit.
    TooLarge,
    /// No server is up.
    NoServer,
    /// The queue was full, or the time in it ran out.
    QueueFull,
    /// A coded body comes out larger than it may.
    Inflated,
    /// A rule denied it.
    Denied,
    /// A limit of this process.
    Exhausted,
    /// A fault of this program.
    Fault,
}

/// An early end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abort {
    /// Party that ended it.
    pub who: Who,
    /// Phase in which it ended.
    pub phase: Phase,
    /// Its cause.
    pub cause: Cause,
}

impl Abort {
    /// An abort of these three parts.
    pub const fn new(who: Who, phase: Phase, cause: Cause) -> Abort {
        Abort { who, phase, cause }
    }

    /// The first two letters of the termination state, `PR` and the like.
    pub const fn letters(self) -> [u8; 2] {
        [self.who.letter(), self.phase.letter()]
    }
}

impl Who {
    /// The first letter of the termination state.
    pub const fn letter(self) -> u8 {
        match self {
            Who::Client => b'C',
            Who::ClientTimeout => b'c',
            Who::Server => b'S',
            Who::ServerTimeout => b's',
            Who::Proxy => b'P',
            Who::Local => b'L',
            Who::Resource => b'R',
            Who::Internal => b'I',
            Who::Down => b'D',
            Who::Replaced => b'U',
            Who::Killed => b'K',
        }
    }
}

impl Phase {
    /// The second letter of the termination state.
    pub const fn letter(self) -> u8 {
        match self {
            Phase::Request => b'R',
            Phase::Queue => b'Q',
            Phase::Connect => b'C',
            Phase::Headers => b'H',
            Phase::Data => b'D',
            Phase::Last => b'L',
            Phase::Tarpit => b'T',
            Phase::Done => b'-',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_haproxys() {
        assert_eq!(Abort::new(Who::Proxy, Phase::Request, Cause::Denied).letters(), *b"PR");
        assert_eq!(Abort::new(Who::ServerTimeout, Phase::Headers, Cause::Timeout).letters(), *b"sH");
    }
}
