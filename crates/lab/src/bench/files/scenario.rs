//! Measurements on files.

/// A file, and the commands that compress it.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) struct FileScenario {
    /// Name for `--only` and in the tables.
    pub(in crate::bench) name: &'static str,
    /// For the reader of the results.
    pub(in crate::bench) about: &'static str,
    /// Input to compress.
    pub(super) input: Input,
    /// Commands that compress it.
    pub(super) contestants: &'static [Contestant],
}

/// A file to compress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input {
    /// The beginning of an image of /usr by genisoimage.
    Image,
    /// The Canterbury corpus as one tar.
    Corpus,
    /// The same so many times over.
    CorpusTimes(usize),
}

/// A way to compress it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contestant {
    /// Name in the tables.
    pub(super) name: &'static str,
    /// The program.
    pub(super) tool: Tool,
    /// Its arguments, beside the file's name.
    pub(super) arguments: &'static [&'static str],
    /// Number of processes that are started at once.
    pub(super) at_once: usize,
    /// Limit of the rounds that it takes part in.
    pub(super) most_rounds: usize,
}

/// A program that compresses files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tool {
    /// gzip.
    Gzip,
    /// `terse gzip`.
    Terse,
    /// The same with the test card as its engine.
    TerseWithCard,
}

impl Contestant {
    const fn new(name: &'static str, tool: Tool, arguments: &'static [&'static str]) -> Contestant {
        Contestant { name, tool, arguments, at_once: 1, most_rounds: usize::MAX }
    }

    const fn rounds(self, most_rounds: usize) -> Contestant {
        Contestant { most_rounds, ..self }
    }

    const fn two(self, name: &'static str) -> Contestant {
        Contestant { name, at_once: 2, ..self }
    }
}

const GZIP: Contestant = Contestant::new("gzip", Tool::Gzip, &[]);
const TERSE: Contestant = Contestant::new("terse", Tool::Terse, &[]);
const TERSE_1: Contestant = Contestant::new("terse -1", Tool::Terse, &["-1"]);
const TERSE_2: Contestant = Contestant::new("terse -2", Tool::Terse, &["-2"]);
const TERSE_3: Contestant = Contestant::new("terse -3", Tool::Terse, &["-3"]);
const CARD: Contestant = Contestant::new(WITH_CARD, Tool::TerseWithCard, &[]);

/// Names that goals know too.
pub(in crate::bench) const WITH_CARD: &str = "terse, card";
/// See [`WITH_CARD`].
pub(in crate::bench) const WITH_CARD_TWICE: &str = "terse, card, two at once";

/// All of them.
pub(in crate::bench) const FILE_SCENARIOS: &[FileScenario] = &[
    FileScenario {
        name: "gzip-iso",
        about: "terse gzip of 533,000,000 bytes, the beginning of an image of this machine's /usr by genisoimage, beside gzip; all on \
                two cores. At most three rounds of gzip",
        input: Input::Image,
        contestants: &[GZIP.rounds(3), TERSE, TERSE_1, Contestant::new("terse --zstd", Tool::Terse, &["--zstd"])],
    },
    FileScenario {
        name: "gzip-canterbury",
        about: "the Canterbury corpus as one tar, by terse gzip and gzip. Without a level it is 6",
        input: Input::Corpus,
        contestants: &[
            Contestant::new("gzip -1", Tool::Gzip, &["-1"]),
            Contestant::new("gzip -3", Tool::Gzip, &["-3"]),
            GZIP,
            Contestant::new("gzip -9", Tool::Gzip, &["-9"]),
            TERSE_1,
            TERSE_3,
            TERSE,
            Contestant::new("terse -9", Tool::Terse, &["-9"]),
        ],
    },
    FileScenario {
        name: "gzip-canterbury-100",
        about: "the same tar a hundred times over: the rate without the start of a program",
        input: Input::CorpusTimes(100),
        contestants: &[TERSE_1, TERSE_2, TERSE_3, TERSE],
    },
    FileScenario {
        name: "card-file",
        about: "simulated: the image of gzip-iso through a test card of 2.5 Gbit/s that answers from results made beforehand, one file \
                and two at once, as in the founding document; beside it terse gzip in software, and gzip. At most three rounds, and \
                one of gzip",
        input: Input::Image,
        contestants: &[
            CARD.rounds(3),
            CARD.rounds(3).two(WITH_CARD_TWICE),
            TERSE.rounds(3),
            TERSE.rounds(3).two("terse, two at once"),
            GZIP.rounds(1),
            GZIP.rounds(1).two("gzip, two at once"),
        ],
    },
];
