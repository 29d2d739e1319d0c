//! Result of the memory for a response.

use crate::named::named;

named! {
    /// Result of the memory for a compressed response: for the log, a sample fetch and a metric.
    Recall {
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
        /// The response is for a single user.
        Private = "private",
        /// `compression memory off`.
        Off = "off",
    }
}
