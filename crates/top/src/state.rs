//! State of the screen, and the effects of keys.

use crate::api::{Order, Seen, Server};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The order of servers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    #[default]
    State,
    Sessions,
    Out,
    Name,
}

impl Sort {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Sort::State => "state",
            Sort::Sessions => "sessions",
            Sort::Out => "bytes out",
            Sort::Name => "name",
        }
    }

    const fn next(self) -> Sort {
        match self {
            Sort::State => Sort::Sessions,
            Sort::Sessions => Sort::Out,
            Sort::Out => Sort::Name,
            Sort::Name => Sort::State,
        }
    }
}

/// The place that keys go to.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    #[default]
    List,
    Filter,
    Help,
    /// An order that is carried out after a `y`.
    Asked(Vec<Order>),
}

/// An effect of a key beside the screen.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    Nothing,
    Leave,
    Orders(Vec<Order>),
}

/// The screen.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) seen: Seen,
    /// Reason for the lack of newer figures.
    pub(crate) trouble: Option<String>,
    pub(crate) address: String,
    pub(crate) mode: Mode,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    pub(crate) is_paused: bool,
    /// The row under the cursor, of those that are shown.
    pub(crate) row: usize,
    /// Servers that are ticked: backend and name.
    pub(crate) ticked: BTreeSet<(String, String)>,
    /// The outcome of the last order.
    pub(crate) status: String,
}

impl State {
    /// Takes the console's figures.
    pub(crate) fn take(&mut self, seen: Seen) {
        self.ticked.retain(|(backend, name)| seen.servers.iter().any(|server| server.backend == *backend && server.name == *name));
        let under = self.servers().get(self.row).map(|server| (server.backend.clone(), server.name.clone()));
        (self.seen, self.trouble) = (seen, None);
        // A tick is meant for the server that was seen under the cursor, wherever the order has taken it.
        let shown = self.servers();
        let found =
            under.and_then(|(backend, name)| shown.iter().position(|server| server.backend == backend && server.name == name));
        self.row = found.unwrap_or(self.row.min(shown.len().saturating_sub(1)));
    }

    /// Whether servers may be changed.
    pub(crate) fn may_change(&self) -> bool {
        self.seen.summary.rights == "change"
    }

    /// The servers that are shown, in their order.
    pub(crate) fn servers(&self) -> Vec<&Server> {
        let filter = self.filter.to_lowercase();
        let is_shown =
            |server: &&Server| filter.is_empty() || format!("{}/{}", server.backend, server.name).to_lowercase().contains(&filter);
        let mut shown: Vec<&Server> = self.seen.servers.iter().filter(is_shown).collect();
        match self.sort {
            Sort::State => shown.sort_by(|a, b| rank(&a.state).cmp(&rank(&b.state)).then_with(|| named(a).cmp(&named(b)))),
            Sort::Sessions => shown.sort_by_key(|server| Reverse(server.sessions)),
            Sort::Out => shown.sort_by_key(|server| Reverse(server.bytes_out)),
            Sort::Name => shown.sort_by(|a, b| named(a).cmp(&named(b))),
        }
        shown
    }

    /// Carries out a key's action.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Wish::Leave;
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Wish::Nothing;
        }
        self.status.clear();
        match std::mem::take(&mut self.mode) {
            Mode::Help => Wish::Nothing,
            Mode::Asked(orders) => match key.code {
                KeyCode::Char('y') => {
                    self.ticked.clear();
                    Wish::Orders(orders)
                }
                _ => {
                    self.status = "Nothing was changed.".into();
                    Wish::Nothing
                }
            },
            Mode::Filter => {
                self.edit_filter(key.code);
                Wish::Nothing
            }
            Mode::List => self.list_key(key.code),
        }
    }

    fn edit_filter(&mut self, key: KeyCode) {
        self.mode = Mode::Filter;
        match key {
            KeyCode::Enter => self.mode = Mode::List,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::List;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(sign) if !sign.is_control() && self.filter.len() < MOST_FILTER => self.filter.push(sign),
            _ => {}
        }
        self.row = 0;
    }

    fn list_key(&mut self, key: KeyCode) -> Wish {
        let last = self.servers().len().saturating_sub(1);
        match key {
            KeyCode::Char('q') => return Wish::Leave,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('j') | KeyCode::Down => self.row = (self.row + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => self.row = self.row.saturating_sub(1),
            KeyCode::PageDown => self.row = (self.row + PAGE).min(last),
            KeyCode::PageUp => self.row = self.row.saturating_sub(PAGE),
            KeyCode::Home => self.row = 0,
            KeyCode::End => self.row = last,
            KeyCode::Char('x' | 'd' | 'r' | 'm') if !self.may_change() => {
                self.status = "This console shows only: 'console ADDRESS user USER:PASSWORD' lets servers be changed.".into();
            }
            KeyCode::Char('x') => {
                if let Some(server) = self.servers().get(self.row) {
                    let name = (server.backend.clone(), server.name.clone());
                    if !self.ticked.remove(&name) {
                        self.ticked.insert(name);
                    }
                    self.row = (self.row + 1).min(last);
                }
            }
            KeyCode::Char('d') => self.ask("drain"),
            KeyCode::Char('r') => self.ask("ready"),
            KeyCode::Char('m') => self.ask("maint"),
            _ => {}
        }
        Wish::Nothing
    }

    /// Asks whether the ticked servers are to be changed.
    fn ask(&mut self, action: &'static str) {
        if self.ticked.is_empty() {
            self.status = "No server is ticked: x ticks the one under the cursor.".into();
            return;
        }
        let mut orders: Vec<Order> = Vec::new();
        for (backend, name) in &self.ticked {
            match orders.last_mut() {
                Some(order) if order.backend == *backend => order.servers.push(name.clone()),
                _ => orders.push(Order { backend: backend.clone(), servers: vec![name.clone()], action }),
            }
        }
        self.mode = Mode::Asked(orders);
    }
}

fn named(server: &Server) -> (&str, &str) {
    (&server.backend, &server.name)
}

/// Rank of a state: servers that are down come first, then those in transition, those taken out, and those that are up.
fn rank(state: &str) -> u8 {
    match state {
        state if state.starts_with("DOWN") => 0,
        state if state.contains('/') || state.starts_with("NOLB") => 1,
        state if state.starts_with("DRAIN") => 2,
        state if state.starts_with("MAINT") => 3,
        _ => 4,
    }
}

/// Rows that a key for pages moves by.
const PAGE: usize = 10;
/// Bytes of a filter.
const MOST_FILTER: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Summary, tests::servers};

    pub(crate) fn state(rights: &str) -> State {
        let mut state = State::default();
        state.take(Seen { summary: Summary { rights: rights.into(), ..Summary::default() }, servers: servers() });
        state
    }

    fn press(state: &mut State, keys: &str) -> Wish {
        let code = |sign| match sign {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            sign => KeyCode::Char(sign),
        };
        keys.chars().map(|sign| state.press(KeyEvent::from(code(sign)))).last().unwrap()
    }

    fn names(state: &State) -> Vec<&str> {
        state.servers().iter().map(|server| &*server.name).collect()
    }

    #[test]
    fn servers_have_an_order_and_a_filter() {
        let mut state = state("look");
        assert_eq!(names(&state), ["three", "two", "four", "one"], "down, drain, the rest");
        press(&mut state, "s");
        assert_eq!(names(&state), ["one", "four", "two", "three"], "by sessions");
        press(&mut state, "s");
        assert_eq!(names(&state)[0], "one");
        press(&mut state, "s");
        assert_eq!(names(&state), ["four", "one", "three", "two"]);
        press(&mut state, "/P/Ox\x08");
        assert_eq!((names(&state), &state.mode), (vec!["one"], &Mode::Filter));
        press(&mut state, "q\n");
        assert_eq!((names(&state), &state.mode), (vec![], &Mode::List), "a letter of the filter");
        assert_eq!((press(&mut state, "\x1b"), names(&state).len()), (Wish::Nothing, 4));
        assert_eq!(press(&mut state, "q"), Wish::Leave);
        assert_eq!(state.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Wish::Leave);
    }

    #[test]
    fn servers_are_changed_after_a_question() {
        let mut state = state("change");
        assert_eq!(press(&mut state, "d"), Wish::Nothing);
        assert!(state.status.contains("No server is ticked"));
        press(&mut state, "xjxkkxxd");
        let wanted = Order { backend: "app".into(), servers: vec!["three".into(), "two".into()], action: "drain" };
        assert_eq!(state.mode, Mode::Asked(vec![wanted.clone()]), "{:?}", state.ticked);
        assert_eq!((press(&mut state, "n"), &state.mode), (Wish::Nothing, &Mode::List));
        assert_eq!(press(&mut state, "dy"), Wish::Orders(vec![wanted]));
        assert!(state.ticked.is_empty());
        // Ticks of servers that are gone go, too.
        press(&mut state, "x");
        state.take(Seen::default());
        assert!(state.ticked.is_empty() && state.row == 0);
    }

    #[test]
    fn a_console_that_only_shows_says_so() {
        let mut state = state("look");
        for key in ["x", "d", "r", "m"] {
            state.status.clear();
            assert_eq!(press(&mut state, key), Wish::Nothing);
            assert!(state.status.contains("user USER:PASSWORD") && state.ticked.is_empty());
        }
    }

    #[test]
    fn the_cursor_stays_with_its_server() {
        let mut state = state("change");
        press(&mut state, "jjj");
        assert_eq!(state.servers()[state.row].name, "one");
        let mut seen = state.seen.clone();
        seen.servers.iter_mut().find(|server| server.name == "one").unwrap().state = "DOWN".into();
        state.take(seen);
        assert_eq!(state.servers()[state.row].name, "one");
    }
}
