//! The screen, drawn from the state.

use crate::plain;
use crate::state::{Mode, State};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, TableState};
use terse_admin::numbers::{bytes, micros};

/// Draws the screen, into whatever room there is.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &State) {
    let lines = head(state);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(frame.area().height.saturating_sub(4));
    let [top, list, bottom] =
        Layout::vertical([Constraint::Length(height), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(lines), top);
    servers(frame, list, state);
    frame.render_widget(Paragraph::new(foot(state)), bottom);
    if state.mode == Mode::Help {
        help(frame);
    }
}

fn head(state: &State) -> Vec<Line<'_>> {
    let summary = &state.seen.summary;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::raw(plain::process(summary)), Line::styled(plain::saved(summary), bold)];
    if let Some(trouble) = &state.trouble {
        lines.push(Line::styled(trouble.as_str(), Style::new().fg(Color::Red)));
    }
    for advice in &summary.advice {
        let mut line = vec![Span::styled("▸ ", Style::new().fg(Color::Yellow)), Span::raw(advice.text.as_str())];
        if !advice.line.is_empty() {
            line.extend([Span::raw(": "), Span::styled(advice.line.as_str(), bold)]);
        }
        lines.push(Line::from(line));
    }
    if !summary.reasons.is_empty() {
        let reasons: Vec<_> = summary.reasons.iter().take(4).map(plain::reason).collect();
        lines.push(Line::raw(format!("why not  {}", reasons.join(", "))));
    }
    let codings = summary.codings.iter().filter(|coding| coding.answers > 0).map(|coding| {
        let (before, after) = (bytes(coding.bytes_in), bytes(coding.bytes_out));
        format!("{} {}: {before} -> {after}, {}", coding.name, coding.answers, micros(coding.coder_us))
    });
    let codings: Vec<_> = codings.collect();
    if !codings.is_empty() {
        lines.push(Line::raw(codings.join(" | ")));
    }
    lines.extend(summary.memory.first().map(|memory| Line::raw(format!("memory {}", plain::remembered(memory)))));
    lines.extend(summary.dictionaries.as_ref().map(|all| Line::raw(format!("dictionaries {}", plain::dictionaries(all)))));
    lines.push(Line::raw(""));
    lines
}

fn servers(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let shown = state.servers();
    // Only visible rows are made; the first line is the head.
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    let first = (state.row + 1).saturating_sub(room);
    let rows = shown.iter().skip(first).take(room).map(|server| {
        let is_ticked = state.ticked.contains(&(server.backend.clone(), server.name.clone()));
        let mut cells = plain::cells(server);
        cells[0] = format!("{}{}", if is_ticked { "× " } else { "  " }, cells[0]);
        Row::new(cells).style(style(&server.state))
    });
    // Columns that do not fit a narrow terminal are left out, from the right.
    let mut used = 0;
    let fits = |width: &&u16| {
        used += **width + 1;
        used <= area.width + 1
    };
    let columns = WIDTHS.iter().take_while(fits).count().max(2);
    let constraint = |(at, width): (usize, &u16)| if at == 0 { Constraint::Min(*width) } else { Constraint::Length(*width) };
    let widths = WIDTHS.iter().take(columns).enumerate().map(constraint);
    let heads = Row::new(plain::HEADS.map(|head| if head == "server" { "  server" } else { head }));
    let table = Table::new(rows, widths)
        .header(heads.style(Style::new().add_modifier(Modifier::REVERSED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD));
    let mut place = TableState::default().with_selected((!shown.is_empty()).then(|| state.row.saturating_sub(first)));
    frame.render_stateful_widget(table, area, &mut place);
}

/// Widths of columns; the first takes the rest.
const WIDTHS: [u16; 8] = [20, 9, 8, 14, 8, 5, 9, 6];

fn style(server: &str) -> Style {
    match server {
        state if state.starts_with("DOWN") => Style::new().fg(Color::Red),
        state if state.contains('/') || state.starts_with("NOLB") => Style::new().fg(Color::Yellow),
        state if state.starts_with("DRAIN") || state.starts_with("MAINT") => Style::new().fg(Color::Blue),
        state if state.starts_with("UP") => Style::new().fg(Color::Green),
        _ => Style::new(),
    }
}

fn foot(state: &State) -> Line<'_> {
    match &state.mode {
        Mode::Filter => Line::raw(format!("/{}▏", state.filter)),
        Mode::Asked(orders) => {
            let servers: usize = orders.iter().map(|order| order.servers.len()).sum();
            let action = orders.first().map_or("", |order| order.action);
            let names: Vec<_> =
                orders.iter().flat_map(|order| order.servers.iter().map(move |name| format!("{}/{name}", order.backend))).collect();
            Line::styled(
                format!("{action} {servers} servers? y, or any other key: {}", names.join(" ")),
                Style::new().fg(Color::Yellow),
            )
        }
        Mode::List | Mode::Help if !state.status.is_empty() => Line::raw(state.status.as_str()),
        Mode::List | Mode::Help => {
            let filter = if state.filter.is_empty() { String::new() } else { format!("  filter: {}", state.filter) };
            let paused = if state.is_paused { "  paused" } else { "" };
            Line::raw(format!("{}  by {}{filter}{paused}  ? keys  q leaves", state.address, state.sort.name()))
        }
    }
}

fn help(frame: &mut Frame<'_>) {
    let all = frame.area();
    let (width, height) = (all.width.min(56), all.height.min(KEYS.len() as u16 + 2));
    let area = Rect::new((all.width - width) / 2, (all.height - height) / 2, width, height);
    let lines: Vec<_> = KEYS.iter().map(|line| Line::raw(*line)).collect();
    frame.render_widget(Clear, area);
    let block = Block::bordered().title("keys").title_alignment(Alignment::Center);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

const KEYS: [&str; 9] = [
    "q         leaves",
    "/         filters by name; Escape takes the filter away",
    "s         sorts: state, sessions, bytes out, name",
    "j k       the next server, the one before",
    "x         ticks the server",
    "d r m     drain, ready, maintenance for the ticked ones",
    "p         pauses, and goes on",
    "?         this",
    "any key   goes back",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Seen;
    use crate::api::tests::{SUMMARY, servers};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    fn screen(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    fn state() -> State {
        let mut state = State { address: "http://a/".into(), ..State::default() };
        state.take(Seen { summary: serde_json::from_str(SUMMARY).unwrap(), servers: servers() });
        state
    }

    #[test]
    fn a_screen_of_the_usual_size_has_everything() {
        let mut state = state();
        state.press(KeyEvent::from(KeyCode::Char('x')));
        let drawn = screen(&state, 80, 24);
        for part in [
            "terse 0.1.0  up 1 h 1 min  31 % busy",
            "20 % saved: 11.5 MB sent instead of 14.4 MB",
            "▸ 7.90 MB of application/wasm went as they were: compression type application/w",
            "why not  type-not-listed 72 (7.90 MB)",
            "zstd 30: 1.90 MB -> 340 kB, 100 ms",
            "  server              state     since    check          sessions queue out",
            "× app/three           DOWN      4 min    L4CON 0 ms     0        0     0 B",
            "  app/one             UP        4 min    L4CON 0 ms     82       0     7.20 MB",
            "http://a/  by state  ? keys  q leaves",
        ] {
            assert!(drawn.contains(part), "{part} is not in\n{drawn}");
        }
        state.press(KeyEvent::from(KeyCode::Char('d')));
        assert!(screen(&state, 80, 24).ends_with("drain 1 servers? y, or any other key: app/three"));
        state.press(KeyEvent::from(KeyCode::Char('n')));
        state.press(KeyEvent::from(KeyCode::Char('?')));
        assert!(screen(&state, 80, 24).contains("d r m     drain, ready, maintenance"));
    }

    #[test]
    fn any_size_is_drawn() {
        let mut state = state();
        state.trouble = Some("the console does not answer".into());
        for (width, height) in [(1, 1), (2, 40), (40, 10), (300, 3), (20, 100)] {
            for key in [KeyCode::Char('?'), KeyCode::Enter, KeyCode::Char('/'), KeyCode::Char('a'), KeyCode::Esc] {
                state.press(KeyEvent::from(key));
                screen(&state, width, height);
            }
        }
        let drawn = screen(&state, 40, 16);
        assert!(drawn.contains("app/three") && drawn.contains("DOWN"), "{drawn}");
        screen(&State::default(), 80, 24);
    }

    #[test]
    fn the_last_line_comes_back() {
        let mut state = state();
        state.press(KeyEvent::from(KeyCode::Char('d')));
        assert!(screen(&state, 80, 24).ends_with("under the cursor."));
        state.press(KeyEvent::from(KeyCode::Char('p')));
        assert!(screen(&state, 80, 24).contains("paused"));
    }
}
