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
    /// In maintenance.
    pub const FORCED_MAINT: Admin = Admin(0x01);
    /// Its configuration says `disabled`: tells where its maintenance came from, and does nothing by itself.
    pub const CONFIGURED_MAINT: Admin = Admin(0x04);
    /// Draining.
    pub const FORCED_DRAIN: Admin = Admin(0x08);

    /// Whether it is in maintenance.
    pub const fn is_maint(self) -> bool {
        self.has(Admin::FORCED_MAINT)
    }

    /// Whether it drains.
    pub const fn is_drain(self) -> bool {
        self.has(Admin::FORCED_DRAIN)
    }

    const fn has(self, flag: Admin) -> bool {
        self.0 & flag.0 != 0
    }

    const fn with(self, flag: Admin) -> Admin {
        Admin(self.0 | flag.0)
    }

    const fn without(self, flag: Admin) -> Admin {
        Admin(self.0 & !flag.0)
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
    /// `enable server`: out of maintenance; a drain goes on.
    Enable,
}

/// What can happen to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A check passed.
    Passed,
    /// A check passed, but the server wants no new clients (`http-check disable-on-404`).
    PassedStopping,
    /// A check failed.
    Failed,
    /// An operator spoke.
    Admin(AdminOrder),
    /// An operator said what its health is (`set server <b>/<s> health`).
    Health(Operation),
}

/// All of a server's state that events change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Whether it answers.
    pub operation: Operation,
    /// What operators said.
    pub admin: Admin,
    /// How well it does: 0 to `rise + fall - 1`.
    pub health: u32,
}

/// What of a server's configuration its transitions depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whether its health is checked.
    pub checked: bool,
    /// Checks that must pass to bring it up, at least 1.
    pub rise: u32,
    /// Checks that must fail to bring it down, at least 1.
    pub fall: u32,
}

impl Rules {
    /// The health of a server that is well.
    pub const fn best(self) -> u32 {
        self.rise.saturating_add(self.fall).saturating_sub(1)
    }
}

impl State {
    /// How a server starts: taken for up, but one failed check brings it down; in maintenance when it is `disabled`.
    pub const fn initial(rules: Rules, disabled: bool) -> State {
        if disabled {
            let admin = Admin::FORCED_MAINT.with(Admin::CONFIGURED_MAINT);
            State { operation: Operation::Stopped, admin, health: if rules.checked { 0 } else { rules.rise } }
        } else {
            State { operation: Operation::Running, admin: Admin::READY, health: rules.rise }
        }
    }

    /// What the event makes of it. Checks and words about health mean nothing in maintenance.
    pub fn next(self, rules: Rules, event: Event) -> State {
        match event {
            Event::Admin(order) => self.ordered(rules, order),
            _ if self.admin.is_maint() => self,
            Event::Failed => match self.health.saturating_sub(1) {
                health if health >= rules.rise => State { health, ..self },
                _ => State { health: 0, operation: Operation::Stopped, ..self },
            },
            Event::Passed => self.passed(rules, Operation::Running),
            Event::PassedStopping => self.passed(rules, Operation::Stopping),
            Event::Health(Operation::Stopped) => State { health: 0, operation: Operation::Stopped, ..self },
            Event::Health(operation) => State { health: rules.best(), operation, ..self },
        }
    }

    fn passed(self, rules: Rules, operation: Operation) -> State {
        match self.health + 1 {
            health if health >= rules.rise => State { health: rules.best(), operation, ..self },
            health => State { health, ..self },
        }
    }

    fn ordered(self, rules: Rules, order: AdminOrder) -> State {
        let admin = match order {
            AdminOrder::Ready => self.admin.without(Admin::FORCED_MAINT).without(Admin::FORCED_DRAIN),
            AdminOrder::Drain => self.admin.without(Admin::FORCED_MAINT).with(Admin::FORCED_DRAIN),
            AdminOrder::Maint => self.admin.without(Admin::FORCED_DRAIN).with(Admin::FORCED_MAINT),
            AdminOrder::Enable => self.admin.without(Admin::FORCED_MAINT),
        };
        match (self.admin.is_maint(), admin.is_maint()) {
            (false, true) => State { admin, operation: Operation::Stopped, health: if rules.checked { 0 } else { self.health } },
            // Taken for up at once, but the first failed check brings it down again.
            (true, false) => State { admin, operation: Operation::Running, health: rules.rise },
            _ => State { admin, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { checked: true, rise: 2, fall: 3 };

    fn after(events: &[Event]) -> State {
        events.iter().fold(State::initial(RULES, false), |state, event| state.next(RULES, *event))
    }

    #[test]
    fn the_first_failed_check_of_a_fresh_server_brings_it_down() {
        assert_eq!(after(&[Event::Failed]).operation, Operation::Stopped);
    }

    #[test]
    fn fall_checks_bring_it_down_and_rise_checks_up() {
        let well = after(&[Event::Passed]);
        assert_eq!((well.operation, well.health), (Operation::Running, 4));
        let mut state = well;
        for (health, operation) in
            [(3, Operation::Running), (2, Operation::Running), (0, Operation::Stopped), (0, Operation::Stopped)]
        {
            state = state.next(RULES, Event::Failed);
            assert_eq!((state.health, state.operation), (health, operation));
        }
        for (health, operation) in [(1, Operation::Stopped), (4, Operation::Running), (4, Operation::Running)] {
            state = state.next(RULES, Event::Passed);
            assert_eq!((state.health, state.operation), (health, operation));
        }
    }

    #[test]
    fn a_failure_on_the_way_up_starts_over() {
        let down = after(&[Event::Failed, Event::Passed, Event::Failed]);
        assert_eq!((down.health, down.operation), (0, Operation::Stopped));
    }

    #[test]
    fn maintenance_ignores_checks_and_ends_in_up() {
        let maint = after(&[Event::Passed, Event::Admin(AdminOrder::Maint), Event::Passed, Event::Passed]);
        assert_eq!((maint.operation, maint.admin, maint.health), (Operation::Stopped, Admin::FORCED_MAINT, 0));
        let ready = maint.next(RULES, Event::Admin(AdminOrder::Ready));
        assert_eq!((ready.operation, ready.admin, ready.health), (Operation::Running, Admin::READY, 2));
    }

    #[test]
    fn a_disabled_server_remembers_its_configuration() {
        let disabled = State::initial(RULES, true);
        assert_eq!(disabled.admin.0, 5);
        assert_eq!(disabled.next(RULES, Event::Admin(AdminOrder::Enable)).admin, Admin::CONFIGURED_MAINT);
    }

    #[test]
    fn drain_and_stopping_leave_it_up() {
        let drain = after(&[Event::Admin(AdminOrder::Drain)]);
        assert_eq!((drain.operation, drain.admin.0), (Operation::Running, 8));
        assert_eq!(after(&[Event::PassedStopping]).operation, Operation::Stopping);
        assert_eq!(after(&[Event::PassedStopping, Event::Passed]).operation, Operation::Running);
        assert_eq!(
            after(&[Event::Health(Operation::Stopped)]),
            State { operation: Operation::Stopped, admin: Admin::READY, health: 0 }
        );
    }
}
