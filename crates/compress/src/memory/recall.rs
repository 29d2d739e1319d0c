//! What the memory did for a response.

macro_rules! recalls {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal),* $(,)?) => {
        /// What the memory did for a compressed response: for the log, a sample fetch and a metric.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Recall {
            $($(#[doc = $doc])+ $variant),*
        }

        impl Recall {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Recall] = &[$(Recall::$variant),*];

            /// The stable short name: `hit`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Recall::$variant => $name),*
                }
            }
        }
    };
}

recalls! {
    /// The compressed form was there.
    Hit = "hit",
    /// The body was seen for the first time: it was compressed, and only its name was noted.
    New = "new",
    /// The body had been seen before: it was compressed, and its form is kept.
    Kept = "kept",
    /// The same, but there was no room: all that is kept is asked for as often.
    Full = "full",
    /// The body was not held as a whole: it paused, or it is larger than `compression collect`.
    Stream = "stream",
    /// The response is one user's own.
    Private = "private",
    /// `compression memory off`.
    Off = "off",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        assert!(Recall::ALL.iter().enumerate().all(|(i, recall)| *recall as usize == i));
    }
}
