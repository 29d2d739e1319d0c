//! The terminal: keys, a thread that looks at the console, and the screen.

use crate::api::{Console, Order, Seen, Wrong};
use crate::state::{State, Wish};
use crate::view;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(2);
/// Time that a key or an answer is waited for before the other is looked at.
const MOMENT: Duration = Duration::from_millis(50);

/// What the thread is told.
enum Ask {
    Look,
    Change(Vec<Order>),
}

/// What it tells.
enum Tell {
    Seen(Result<Seen, Wrong>),
    Changed(Result<u64, Wrong>),
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
    let mut terminal = ratatui::try_init()?;
    let shown = run(&mut terminal, &mut state, &ask, &told);
    ratatui::restore();
    shown
}

fn run(terminal: &mut DefaultTerminal, state: &mut State, ask: &Sender<Ask>, told: &Receiver<Tell>) -> Result<(), Wrong> {
    let (mut looked, mut waits) = (Instant::now(), false);
    loop {
        terminal.draw(|frame| view::draw(frame, state))?;
        if event::poll(MOMENT)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match state.press(key) {
                    Wish::Nothing => {}
                    Wish::Leave => return Ok(()),
                    // A thread that is gone says nothing more, and the screen says so.
                    Wish::Orders(orders) => drop(ask.send(Ask::Change(orders))),
                },
                _ => {}
            }
        }
        while let Ok(tell) = told.try_recv() {
            match tell {
                Tell::Seen(Ok(seen)) => {
                    state.take(seen);
                    waits = false;
                }
                Tell::Seen(Err(wrong)) => (state.trouble, waits) = (Some(wrong.to_string()), false),
                Tell::Changed(Ok(changed)) => state.status = format!("{changed} servers were changed."),
                Tell::Changed(Err(wrong)) => state.status = wrong.to_string(),
            }
        }
        if !waits && !state.is_paused && looked.elapsed() >= EVERY {
            (looked, waits) = (Instant::now(), ask.send(Ask::Look).is_ok());
        }
    }
}

/// Does what is asked for, until nothing more can be.
fn attend(console: &Console, asked: &Receiver<Ask>, tell: &Sender<Tell>) {
    for ask in asked {
        if let Ask::Change(orders) = ask
            && tell.send(Tell::Changed(orders.iter().map(|order| console.order(order)).sum())).is_err()
        {
            return;
        }
        if tell.send(Tell::Seen(console.look())).is_err() {
            return;
        }
    }
}
