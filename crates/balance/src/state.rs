//! What a server may be used for, and how that changes: pure functions of (state, event).
//!
//! ```text
//!              fall checks fail, set_health down
//!   Running ------------------------------------> Stopped
//!      ^  <------------------------------------      ^
//!      |       rise checks pass, set_health up       | maintenance
//!      v                                             |
//!   Stopping (set_health stopping, 404)  ------------+
//! ```
//!
//! Health counts checks: 0 is down; passing adds one, and from `rise` on it jumps to `rise + fall - 1`, well; failing takes one, and
//! below `rise` it drops to 0. So `rise` good checks bring a server up and `fall` bad ones bring it down.
//!
//! Beside it stands what an operator said ([`Admin`]): maintenance takes the server out and pauses its checks, drain leaves it to
//! requests that persistence sends there.

/// Whether a server answers, as far as is known. The numbers are those of `show servers state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operation {
    /// Down.
    Stopped = 0,
    /// Up, its weight still growing.
    Starting = 1,
    /// Up.
    Running = 2,
    /// Up, but it wants no new clients.
    Stopping = 3,
}

/// What operators said about a server: a set of flags, with the numbers of `show servers state`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Admin(pub u8);

impl Admin {
    /// Nothing was said.
    pub const READY: Admin = Admin(0);
    /// In maintenance by a word at run time.
    pub const FORCED_MAINT: Admin = Admin(0x01);
    /// In maintenance by its configuration (`disabled`).
    pub const CONFIGURED_MAINT: Admin = Admin(0x04);
    /// Draining by a word at run time.
    pub const FORCED_DRAIN: Admin = Admin(0x08);

    /// Whether it is in maintenance, for whatever reason.
    pub const fn is_maint(self) -> bool {
        self.0 & 0x27 != 0
    }

    /// Whether it drains, for whatever reason.
    pub const fn is_drain(self) -> bool {
        self.0 & 0x18 != 0
    }
}

/// An operator's word about a server (`set server <b>/<s> state`, `enable server`, `disable server`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdminOrder {
    /// `ready`: back to work.
    Ready,
    /// `drain`: only persistence sends it requests.
    Drain,
    /// `maint`: out of work, no checks.
    Maint,
}
