//! Terminal: keys, a thread that looks at the console, and the screen.

use crate::api::{Console, Order, Seen, Wrong};
use crate::state::{State, Wish};
use crate::view;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Interval of looks.
const EVERY: Duration = Duration::from_secs(2);
/// Time limit of a wait for a key or an answer before the other is looked at.
const MOMENT: Duration = Duration::from_millis(50);

/// Orders to the thread.
enum Ask {
    Look,
    Change(Vec<Order>),
}

/// Its answers.
enum Tell {
    Seen(Result<Seen, Wrong>),
    /// Number of servers that were changed, and the reason why others were not.
    Changed(u64, Option<Wrong>),
}

/// Shows the console until the user leaves.
///
/// # Errors
/// The console does not answer the first time, or the terminal does not work.
pub(crate) fn show(console: Console) -> Result<(), Wrong> {
    let mut state = State { address: console.address().to_owned(), ..State::default() };
    state.take(console.look()?);
    let (ask, asked) = channel();
    let (tell, told) = channel();
    std::thread::Builder::new().name("console".into()).spawn(move || attend(&console, &asked, &tell))?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        signal_hook::flag::register(signal, ended.clone())?;
    }
    let shown =
        ratatui::try_init().map_err(Wrong::from).and_then(|mut terminal| run(&mut terminal, &mut state, &ended, &ask, &told));
    ratatui::restore();
    shown
}

fn run(
    terminal: &mut DefaultTerminal,
    state: &mut State,
    ended: &AtomicBool,
    ask: &Sender<Ask>,
    told: &Receiver<Tell>,
) -> Result<(), Wrong> {
    let (mut looked, mut waits, mut is_drawn) = (Instant::now(), false, false);
    loop {
        if !std::mem::replace(&mut is_drawn, true) {
            terminal.draw(|frame| view::draw(frame, state))?;
        }
        if ended.load(Relaxed) {
            return Ok(());
        }
        if event::poll(MOMENT)? {
            is_drawn = false;
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match state.press(key) {
                    Wish::Nothing => {}
                    Wish::Leave => return Ok(()),
                    // A thread that is gone is seen below.
                    Wish::Orders(orders) => drop(ask.send(Ask::Change(orders))),
                },
                _ => {}
            }
        }
        loop {
            let tell = match told.try_recv() {
                Ok(tell) => tell,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(std::io::Error::other("what looks at the console has ended").into()),
            };
            is_drawn = false;
            match tell {
                Tell::Seen(Ok(seen)) => {
                    state.take(seen);
                    waits = false;
                }
                Tell::Seen(Err(wrong)) => (state.trouble, waits) = (Some(wrong.to_string()), false),
                Tell::Changed(changed, None) => state.status = format!("{changed} servers were changed."),
                Tell::Changed(0, Some(wrong)) => state.status = wrong.to_string(),
                Tell::Changed(changed, Some(wrong)) => {
                    state.status = format!("{changed} servers were changed, others not: {wrong}")
                }
            }
        }
        if !waits && !state.is_paused && looked.elapsed() >= EVERY {
            (looked, waits) = (Instant::now(), ask.send(Ask::Look).is_ok());
        }
    }
}

/// Carries out requests, until no more can come.
fn attend(console: &Console, asked: &Receiver<Ask>, tell: &Sender<Tell>) {
    for ask in asked {
        if let Ask::Change(orders) = ask {
            let (changed, wrong) = carry_out(console, &orders);
            if tell.send(Tell::Changed(changed, wrong)).is_err() {
                return;
            }
        }
        if tell.send(Tell::Seen(console.look())).is_err() {
            return;
        }
    }
}

/// Gives orders until one is refused. Earlier changes stay.
fn carry_out(console: &Console, orders: &[Order]) -> (u64, Option<Wrong>) {
    let mut changed = 0_u64;
    for order in orders {
        match console.order(order) {
            Ok(more) => changed = changed.saturating_add(more),
            Err(wrong) => return (changed, Some(wrong)),
        }
    }
    (changed, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::tests::{ok, serving};

    #[test]
    fn what_was_changed_before_a_refusal_is_counted() {
        let refused = ok(r#"{"error":"not shown"}"#).replace("200 OK", "403 Forbidden");
        let (address, asked) = serving(vec![ok(r#"{"changed":2}"#), refused]);
        let console = Console::new(&format!("http://{address}/")).unwrap();
        let of = |backend: &str| Order { backend: backend.into(), servers: vec!["one".into()], action: "drain" };
        let (changed, wrong) = carry_out(&console, &[of("a"), of("b"), of("c")]);
        assert_eq!((changed, asked.join().unwrap().len()), (2, 2));
        assert!(wrong.unwrap().to_string().contains("not shown"));
    }
}
