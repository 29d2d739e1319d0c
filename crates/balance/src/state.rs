//! States of a server, and their transitions: pure functions of (state, event).
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
//! Health counts checks: 0 is down. Passing adds 1, and from `rise` on it jumps to `rise + fall - 1`, well. Failing
//! takes 1, and below `rise` it drops to 0. So `rise` good checks bring a server up and `fall` bad ones bring it down.
//!
//! The administrative state ([`Admin`]) is apart from it: maintenance takes the server out and pauses its checks, drain
//! leaves it to requests that persistence sends there.

/// Operational state of a server, as far as checks have shown. The numbers are those of `show servers state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operation {
    /// Down.
    Stopped = 0,
    /// Up, its weight still growing (`slowstart`).
    Starting = 1,
    /// Up.
    Running = 2,
    /// Up, but it takes no new clients.
    Stopping = 3,
}

impl Operation {
    /// The operation of that number.
    pub(crate) const fn of_number(number: u32) -> Option<Operation> {
        match number {
            0 => Some(Operation::Stopped),
            1 => Some(Operation::Starting),
            2 => Some(Operation::Running),
            3 => Some(Operation::Stopping),
            _ => None,
        }
    }
}

/// Administrative state of a server: a set of flags, with the numbers of `show servers state`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Admin(pub u8);

impl Admin {
    /// No flag.
    pub const READY: Admin = Admin(0);
    /// In maintenance.
    pub const FORCED_MAINT: Admin = Admin(0x01);
    /// The server that it tracks is in maintenance.
    pub const INHERITED_MAINT: Admin = Admin(0x02);
    /// Its configuration has `disabled`: the origin of its maintenance; the flag has no effect by itself.
    pub const CONFIGURED_MAINT: Admin = Admin(0x04);
    /// Draining.
    pub const FORCED_DRAIN: Admin = Admin(0x08);
    /// The server that it tracks is draining.
    pub const INHERITED_DRAIN: Admin = Admin(0x10);
    /// Its name has no address.
    pub const UNRESOLVED: Admin = Admin(0x20);

    /// Whether it is in maintenance.
    pub const fn is_maint(self) -> bool {
        self.has(Admin(Admin::FORCED_MAINT.0 | Admin::INHERITED_MAINT.0 | Admin::UNRESOLVED.0))
    }

    /// Whether it drains.
    pub const fn is_drain(self) -> bool {
        self.has(Admin(Admin::FORCED_DRAIN.0 | Admin::INHERITED_DRAIN.0))
    }

    /// Whether its name has no address.
    pub const fn is_unresolved(self) -> bool {
        self.has(Admin::UNRESOLVED)
    }

    pub(crate) const fn is_forced_maint(self) -> bool {
        self.has(Admin::FORCED_MAINT)
    }

    pub(crate) const fn is_inherited_maint(self) -> bool {
        self.has(Admin::INHERITED_MAINT)
    }

    pub(crate) const fn is_configured_maint(self) -> bool {
        self.has(Admin::CONFIGURED_MAINT)
    }

    pub(crate) const fn is_forced_drain(self) -> bool {
        self.has(Admin::FORCED_DRAIN)
    }

    /// Returns the state with or without an operator's maintenance.
    pub(crate) const fn forced(self, maint: bool) -> Admin {
        self.set(Admin::FORCED_MAINT, maint)
    }

    /// Returns the state with or without an operator's drain.
    pub(crate) const fn drained(self, drains: bool) -> Admin {
        self.set(Admin::FORCED_DRAIN, drains)
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

    /// Returns the state with or without a flag.
    const fn set(self, flag: Admin, on: bool) -> Admin {
        if on { self.with(flag) } else { self.without(flag) }
    }
}

/// An operator's command for a server (`set server <b>/<s> state`, `enable server`, `disable server`).
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

/// Event that can change a server's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A check passed.
    Passed,
    /// A check passed, but the server takes no new clients (`http-check disable-on-404`).
    PassedStopping,
    /// A check failed.
    Failed,
    /// An operator gave a command.
    Admin(AdminOrder),
    /// An operator set the health (`set server <b>/<s> health`).
    Health(Operation),
    /// Requests failed too often (`on-error`): at most so many failed checks remain before the server is down.
    Weakened(u32),
    /// Its agent reports that it is up (true) or down.
    Agent(bool),
    /// Its agent reports the same as a part of an answer; the server's transition comes after that.
    AgentHealth(bool),
    /// Its weight has grown to its full size.
    Grown,
    /// Its name has an address (true), or none.
    Resolved(bool),
    /// The server that it tracks is in this state now.
    Tracked(State),
}

/// State in which a server starts (`init-state`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum InitialState {
    /// Up; all checks must fail.
    FullyUp,
    /// Up; the next failed check brings it down.
    #[default]
    Up,
    /// Down; the next check that passes brings it up.
    Down,
    /// Down; all checks must pass.
    FullyDown,
}

/// The part of a server's state that events change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Operational state.
    pub operation: Operation,
    /// Administrative state.
    pub admin: Admin,
    /// Count of checks: 0 to `rise + fall - 1`.
    pub health: u32,
    /// Whether its agent reports it as down.
    pub denied: bool,
}

/// Settings of a server that its transitions depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whether its health is checked.
    pub checked: bool,
    /// Checks that must pass to bring it up, at least 1.
    pub rise: u32,
    /// Checks that must fail to bring it down, at least 1.
    pub fall: u32,
    /// State at the start.
    pub initial: InitialState,
    /// Whether its weight grows when it comes up (`slowstart`).
    pub slow: bool,
}

impl Rules {
    /// Health of a server that is well.
    pub const fn best(self) -> u32 {
        self.rise.saturating_add(self.fall).saturating_sub(1)
    }
}

impl State {
    /// State at the start: up, but a failed check brings it down, unless the server's line sets otherwise. In
    /// maintenance when it is `disabled`, or when its name has no address.
    pub const fn initial(rules: Rules, disabled: bool, unresolved: bool) -> State {
        let mut admin = Admin::READY;
        if disabled {
            admin = admin.with(Admin::FORCED_MAINT).with(Admin::CONFIGURED_MAINT);
        }
        let admin = admin.set(Admin::UNRESOLVED, unresolved);
        if admin.is_maint() {
            let health = if rules.checked { 0 } else { rules.rise };
            return State { operation: Operation::Stopped, admin, health, denied: false };
        }
        let (operation, health) = State::start(rules);
        State { operation, admin, health, denied: false }
    }

    /// State of a server that was added at run time: in maintenance.
    pub const fn added(rules: Rules, unresolved: bool) -> State {
        let state = State::initial(rules, true, unresolved);
        State { admin: state.admin.without(Admin::CONFIGURED_MAINT), ..state }
    }

    /// Operation and health before any check.
    const fn start(rules: Rules) -> (Operation, u32) {
        match rules.initial {
            InitialState::FullyUp => (Operation::Running, rules.best()),
            InitialState::Down if rules.checked => (Operation::Stopped, rules.rise - 1),
            InitialState::FullyDown if rules.checked => (Operation::Stopped, 0),
            _ => (Operation::Running, rules.rise),
        }
    }

    /// State after the event. Checks and changes of health have no effect in maintenance.
    pub fn next(self, rules: Rules, event: Event) -> State {
        match event {
            Event::Admin(order) => self.ordered(rules, order),
            Event::Resolved(found) => self.administered(rules, self.admin.set(Admin::UNRESOLVED, !found)),
            Event::Tracked(leader) => self.tracked(rules, leader),
            Event::AgentHealth(up) => State { denied: !up, ..self },
            // Agents are asked in maintenance, too: their answer counts when it ends.
            Event::Agent(up) if self.admin.is_maint() => State { denied: !up, ..self },
            _ if self.admin.is_maint() => self,
            Event::Failed => match self.health.saturating_sub(1) {
                health if health >= rules.rise => State { health, ..self },
                _ => State { health: 0, operation: Operation::Stopped, ..self },
            },
            Event::Passed => self.passed(rules, Operation::Running),
            Event::PassedStopping => self.passed(rules, Operation::Stopping),
            Event::Health(Operation::Stopped) => State { health: 0, operation: Operation::Stopped, ..self },
            Event::Health(operation) => State { health: rules.best(), operation, ..self },
            Event::Weakened(left) => State { health: self.health.min(rules.rise.saturating_add(left)), ..self },
            Event::Grown if self.operation == Operation::Starting => State { operation: Operation::Running, ..self },
            Event::Grown => self,
            Event::Agent(false) => State { denied: true, operation: Operation::Stopped, ..self },
            Event::Agent(true) if self.operation == Operation::Stopped && (!rules.checked || self.health >= rules.rise) => {
                State { denied: false, operation: Operation::Running, ..self }.risen(rules, self.operation)
            }
            Event::Agent(true) => State { denied: false, ..self },
        }
    }

    fn passed(self, rules: Rules, operation: Operation) -> State {
        match self.health + 1 {
            // Its agent decides, too.
            health if self.denied => State { health: if health >= rules.rise { rules.best() } else { health }, ..self },
            health if health >= rules.rise => {
                // A weight that grows goes on growing.
                let grows = operation == Operation::Running && self.operation == Operation::Starting;
                let operation = if grows { Operation::Starting } else { operation };
                State { health: rules.best(), operation, ..self }.risen(rules, self.operation)
            }
            health => State { health, ..self },
        }
    }

    /// Returns the state after a rise from the given operation: with `slowstart`, a server that was down begins with
    /// little weight.
    const fn risen(self, rules: Rules, before: Operation) -> State {
        match (self.operation, before) {
            (Operation::Running, Operation::Stopped) if rules.slow => State { operation: Operation::Starting, ..self },
            _ => self,
        }
    }

    fn ordered(self, rules: Rules, order: AdminOrder) -> State {
        let admin = match order {
            AdminOrder::Ready => self.admin.without(Admin::FORCED_MAINT).without(Admin::FORCED_DRAIN),
            AdminOrder::Drain => self.admin.without(Admin::FORCED_MAINT).with(Admin::FORCED_DRAIN),
            AdminOrder::Maint => self.admin.without(Admin::FORCED_DRAIN).with(Admin::FORCED_MAINT),
            AdminOrder::Enable => self.admin.without(Admin::FORCED_MAINT),
        };
        self.administered(rules, admin)
    }

    /// Returns the state with another administrative state.
    fn administered(self, rules: Rules, admin: Admin) -> State {
        match (self.admin.is_maint(), admin.is_maint()) {
            (false, true) => {
                State { admin, operation: Operation::Stopped, health: if rules.checked { 0 } else { self.health }, ..self }
            }
            // Taken for up at once, but the first failed check brings it down again. The agent's last report still
            // counts.
            (true, false) => {
                let (operation, health) = State::start(rules);
                let operation = if self.denied { Operation::Stopped } else { operation };
                State { admin, operation, health, ..self }.risen(rules, Operation::Stopped)
            }
            _ => State { admin, ..self },
        }
    }

    /// Returns the state with that of the tracked server taken over.
    fn tracked(self, rules: Rules, leader: State) -> State {
        let admin = self.admin.set(Admin::INHERITED_MAINT, leader.admin.is_maint());
        let admin = admin.set(Admin::INHERITED_DRAIN, leader.admin.is_drain());
        if admin.is_maint() {
            return self.administered(rules, admin);
        }
        match leader.operation {
            Operation::Stopped => State { admin, operation: Operation::Stopped, health: 0, ..self },
            operation => State { admin, operation, health: rules.best(), ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { checked: true, rise: 2, fall: 3, initial: InitialState::Up, slow: false };

    fn after(events: &[Event]) -> State {
        events.iter().fold(State::initial(RULES, false, false), |state, event| state.next(RULES, *event))
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
        let disabled = State::initial(RULES, true, false);
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
            State { operation: Operation::Stopped, admin: Admin::READY, health: 0, denied: false }
        );
    }

    #[test]
    fn a_server_starts_as_its_line_says() {
        let of = |initial| State::initial(Rules { initial, ..RULES }, false, false);
        let first = |initial, event| of(initial).next(RULES, event).operation;
        assert_eq!(first(InitialState::FullyUp, Event::Failed), Operation::Running);
        assert_eq!(first(InitialState::Up, Event::Failed), Operation::Stopped);
        assert_eq!(
            (of(InitialState::Down).operation, first(InitialState::Down, Event::Passed)),
            (Operation::Stopped, Operation::Running)
        );
        assert_eq!(first(InitialState::FullyDown, Event::Passed), Operation::Stopped);
    }

    #[test]
    fn an_agent_has_a_say_beside_checks() {
        let denied = after(&[Event::Passed, Event::Agent(false)]);
        assert_eq!((denied.operation, denied.health), (Operation::Stopped, 4));
        let checked = denied.next(RULES, Event::Failed).next(RULES, Event::Passed).next(RULES, Event::Passed);
        assert_eq!(checked.operation, Operation::Stopped, "checks alone do not bring it back");
        assert_eq!(checked.next(RULES, Event::Agent(true)).operation, Operation::Running);
        let failed = after(&[Event::Agent(false), Event::Failed, Event::Agent(true)]);
        assert_eq!(failed.operation, Operation::Stopped, "nor does the agent alone");
        assert_eq!(after(&[Event::Agent(true)]).operation, Operation::Running);
        let maint = denied.next(RULES, Event::Admin(AdminOrder::Maint));
        assert_eq!(maint.next(RULES, Event::Admin(AdminOrder::Ready)).operation, Operation::Stopped);
        let allowed = maint.next(RULES, Event::Agent(true)).next(RULES, Event::Admin(AdminOrder::Ready));
        assert_eq!(allowed.operation, Operation::Running);
    }

    #[test]
    fn a_name_without_an_address_is_maintenance() {
        let lost = State::initial(RULES, false, true);
        assert_eq!((lost.operation, lost.admin.0), (Operation::Stopped, 0x20));
        assert_eq!(lost.next(RULES, Event::Admin(AdminOrder::Ready)), lost, "an operator cannot give it one");
        let found = lost.next(RULES, Event::Resolved(true));
        assert_eq!((found.operation, found.admin, found.health), (Operation::Running, Admin::READY, 2));
        assert_eq!(found.next(RULES, Event::Resolved(false)).operation, Operation::Stopped);
    }

    #[test]
    fn who_tracks_a_server_is_what_it_is() {
        let rules = Rules { checked: false, ..RULES };
        let own = State::initial(rules, false, false);
        let follow = |leader: State| own.next(rules, Event::Tracked(leader));
        let down = follow(after(&[Event::Failed]));
        assert_eq!((down.operation, down.health), (Operation::Stopped, 0));
        assert_eq!(down.next(rules, Event::Tracked(after(&[Event::Passed]))).operation, Operation::Running);
        assert_eq!(follow(after(&[Event::Admin(AdminOrder::Maint)])).admin, Admin::INHERITED_MAINT);
        assert_eq!(follow(after(&[Event::Admin(AdminOrder::Drain)])).admin, Admin::INHERITED_DRAIN);
        let back = follow(after(&[Event::Admin(AdminOrder::Maint)])).next(rules, Event::Tracked(after(&[])));
        assert_eq!((back.operation, back.admin), (Operation::Running, Admin::READY));
    }

    #[test]
    fn what_comes_up_slowly_starts() {
        let rules = Rules { slow: true, ..RULES };
        let up = [Event::Failed, Event::Passed, Event::Passed].iter().fold(after(&[]), |state, event| state.next(rules, *event));
        assert_eq!(up.operation, Operation::Starting);
        assert_eq!(up.next(rules, Event::Passed).operation, Operation::Starting);
        assert_eq!(up.next(rules, Event::Grown).operation, Operation::Running);
        let weakened = |left| after(&[Event::Passed, Event::Weakened(left), Event::Failed]);
        assert_eq!((weakened(0).operation, weakened(1).operation), (Operation::Stopped, Operation::Running));
        assert_eq!(weakened(1).next(RULES, Event::Failed).operation, Operation::Stopped);
    }
}
