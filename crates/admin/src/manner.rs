//! Settings of a client of the master, sent to a worker with the client's commands.

use crate::client::{Client, Mode};
use crate::settings::{Level, SeverityForm};

/// Settings of a client of the master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    pub(crate) level: Level,
    pub(crate) severity: SeverityForm,
    pub(crate) mode: Mode,
    pub(crate) timed: bool,
    pub(crate) experimental: bool,
    pub(crate) expert: bool,
}

impl Manner {
    /// Length of the encoded form.
    pub const BYTES: usize = 6;

    /// Settings of a client, for a conversation in that mode.
    pub(crate) fn of(client: &Client, mode: Mode) -> Manner {
        let Client { level, severity, timed, experimental, expert, .. } = *client;
        Manner { level, severity, mode, timed, experimental, expert }
    }

    /// Encodes the settings.
    pub fn to_bytes(self) -> [u8; Manner::BYTES] {
        let Manner { level, severity, mode, timed, experimental, expert } = self;
        let place = |at: Option<usize>| at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX);
        [
            place(LEVELS.iter().position(|other| *other == level)),
            place(SEVERITIES.iter().position(|other| *other == severity)),
            place(MODES.iter().position(|other| *other == mode)),
            u8::from(timed),
            u8::from(experimental),
            u8::from(expert),
        ]
    }

    /// Decodes the settings; `None` for any other bytes.
    pub fn of_bytes(bytes: [u8; Manner::BYTES]) -> Option<Manner> {
        let [level, severity, mode, switches @ ..] = bytes;
        if switches.iter().any(|switch| *switch > 1) {
            return None;
        }
        let [timed, experimental, expert] = switches.map(|switch| switch == 1);
        Some(Manner {
            level: *LEVELS.get(usize::from(level))?,
            severity: *SEVERITIES.get(usize::from(severity))?,
            mode: *MODES.get(usize::from(mode))?,
            timed,
            experimental,
            expert,
        })
    }
}

const LEVELS: [Level; 3] = [Level::User, Level::Operator, Level::Admin];
const SEVERITIES: [SeverityForm; 3] = [SeverityForm::None, SeverityForm::Number, SeverityForm::Text];
const MODES: [Mode; 3] = [Mode::Single, Mode::Interactive, Mode::Prompt];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_comes_back(bytes in proptest::array::uniform6(0u8..4)) {
            let read = Manner::of_bytes(bytes);
            prop_assert_eq!(read.is_some(), bytes[..3].iter().all(|byte| *byte < 3) && bytes[3..].iter().all(|byte| *byte < 2));
            prop_assert!(read.is_none_or(|manner| manner.to_bytes() == bytes));
        }
    }
}
