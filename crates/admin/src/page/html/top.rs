//! Part of the page about the whole process: savings, ten minutes, advice, reasons, codings, memories, engines.

use crate::dictionaries::OfAll;
use crate::numbers::{age, bytes, count, escape, exact, micros, percent};
use crate::page::advice::Advice;
use crate::page::api::View;
use crate::page::{advice, chart};
use crate::savings::{OfCoding, OfMemory, OfReason, Savings, permille};
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::offload::Standing;

/// Writes the whole part.
pub(in crate::page) fn write(view: &View<'_>, out: &mut String) {
    let savings = view.savings();
    let (_, advice) = advice::find(&view.context.plan, Some(&savings), view.shows);
    process(view, out);
    headline(view, &savings, out);
    if view.settings.scope.is_empty() {
        chart::draw(&view.context.rates.history.series(), out);
    }
    to_do(&savings, &advice, out);
    out.push_str("<div class=\"grid\">\n");
    reasons(&savings.reasons, out);
    codings(&savings.codings, out);
    memories(&savings.memory, out);
    savings.dictionaries.iter().for_each(|all| dictionaries(all, out));
    engines(view, &savings, out);
    out.push_str("</div>\n");
}

fn process(view: &View<'_>, out: &mut String) {
    let context = view.context;
    let _ = writeln!(
        out,
        "<p class=\"dim\">up {}, {} workers, {} busy, {} of {} connections{}</p>",
        age(context.process.started.elapsed().as_secs()),
        context.plan.process.workers,
        percent(context.rates.busy.now().min(1000)),
        count(context.connections.load(Relaxed) as u64),
        count(context.plan.limits.connections.load(Relaxed) as u64),
        if context.host.is_stopping() { ", <b>draining</b>" } else { "" },
    );
}

fn headline(view: &View<'_>, savings: &Savings, out: &mut String) {
    if savings.sent.bytes == 0 {
        out.push_str("<p class=\"big\">Nothing was sent yet.</p>\n");
        let listens = view.context.plan.binds.iter().filter(|bind| bind.tls.is_none()).map(|bind| bind.label());
        if let Some(port) = listens.filter_map(|label| label.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok())).next()
        {
            let _ = writeln!(out, "<p>Try <code>curl --compressed -sD- -o page http://127.0.0.1:{port}/</code></p>");
        }
        return;
    }
    out.push_str("<p class=\"big\"><b>");
    let _ = write!(out, "{} saved</b>: ", percent(savings.saved_permille()));
    exact(&bytes(savings.sent.bytes), savings.sent.bytes, " bytes", out);
    out.push_str(" sent instead of ");
    exact(&bytes(savings.sent.before), savings.sent.before, " bytes", out);
    out.push_str("</p>\n");
    let all = &savings.compression;
    if all.answers > 0 {
        let part = percent(permille(all.bytes_in.saturating_sub(all.bytes_out), all.bytes_in));
        let _ = write!(out, "<p class=\"dim\">Of {} answers that were compressed {part}: ", count(all.answers));
        exact(&bytes(all.bytes_in), all.bytes_in, " bytes", out);
        out.push_str(" became ");
        exact(&bytes(all.bytes_out), all.bytes_out, " bytes", out);
        out.push('.');
        if let (Some(spent), Some(spared)) = (all.coder_us, all.spared_us) {
            let _ = write!(out, " Coders took {}, the memory of bodies spared {}.", micros(spent), micros(spared));
        }
        out.push_str("</p>\n");
    }
}

fn to_do(savings: &Savings, advice: &[Advice], out: &mut String) {
    let is_idle = savings.codings.is_empty() && savings.sent.bytes > 0;
    if advice.is_empty() && !is_idle {
        return;
    }
    out.push_str("<section><h2>What to do</h2><ol>\n");
    if is_idle {
        out.push_str(
            "<li>Nothing is compressed: add <code>compression on</code> to a frontend, or to <code>defaults</code>.</li>\n",
        );
    }
    for one in advice {
        out.push_str("<li>");
        if one.server.is_some() {
            out.push_str("<span class=\"s down\">▲</span> ");
        }
        escape(&one.text, out);
        if let Some(line) = one.line.as_deref().filter(|_| !is_idle) {
            out.push_str(". Change it by <code>");
            escape(line, out);
            out.push_str("</code>");
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol></section>\n");
}

fn reasons(reasons: &[OfReason], out: &mut String) {
    if reasons.is_empty() {
        return;
    }
    table("Why not", &["Reason", "Answers", "Bytes", "Why"], out);
    for one in reasons {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th><td>{}</td><td>", one.name, count(one.answers));
        exact(&bytes(one.bytes), one.bytes, " bytes", out);
        out.push_str("</td><td class=\"l\">");
        escape(one.reason.advice().text, out);
        out.push_str("</td></tr>\n");
    }
    end(out);
}

fn codings(codings: &[OfCoding], out: &mut String) {
    if codings.is_empty() {
        return;
    }
    table("By coding", &["Coding", "Answers", "Before", "After", "Saved", "Coders"], out);
    for one in codings {
        let saved = percent(permille(one.bytes_in.saturating_sub(one.bytes_out), one.bytes_in));
        let _ = write!(out, "<tr><th scope=\"row\">{}</th><td>{}</td><td>", one.name, count(one.answers));
        exact(&bytes(one.bytes_in), one.bytes_in, " bytes", out);
        out.push_str("</td><td>");
        exact(&bytes(one.bytes_out), one.bytes_out, " bytes", out);
        let spent = one.coder_us.map(micros).unwrap_or_default();
        let _ = writeln!(out, "</td><td>{saved}</td><td>{spent}</td></tr>");
    }
    end(out);
}

fn memories(memories: &[OfMemory], out: &mut String) {
    if memories.is_empty() {
        return;
    }
    table("Memory of compressed bodies", &["Memory", "Held", "Of", "Bodies", "Hits", "Of lookups"], out);
    for one in memories {
        out.push_str("<tr><th scope=\"row\">");
        escape(&one.name, out);
        let part = percent(permille(one.hits, one.hits + one.misses));
        let _ = writeln!(
            out,
            "</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{part}</td></tr>",
            bytes(one.bytes),
            bytes(one.limit),
            count(one.bodies),
            count(one.hits),
        );
    }
    end(out);
}

fn dictionaries(all: &OfAll, out: &mut String) {
    table("Dictionaries", &["Held", "Bytes", "Oldest", "Offered", "Used", "Before", "After", "Not worth", "Unknown"], out);
    let _ = write!(out, "<tr><th scope=\"row\">{}</th><td>", count(all.count));
    exact(&bytes(all.held), all.held, " bytes", out);
    let oldest = all.oldest_s.map(age).unwrap_or_default();
    let _ = write!(out, "</td><td>{oldest}</td><td>{}</td><td>{}</td><td>", count(all.offered), count(all.used));
    exact(&bytes(all.bytes_in), all.bytes_in, " bytes", out);
    out.push_str("</td><td>");
    exact(&bytes(all.bytes_out), all.bytes_out, " bytes", out);
    let _ = writeln!(out, "</td><td>{}</td><td>{}</td></tr>", count(all.not_worth), count(all.unknown));
    end(out);
}

fn engines(view: &View<'_>, savings: &Savings, out: &mut String) {
    let Some(queue) = savings.queue else { return };
    let lanes = view.context.queue.as_deref().map(terse_compress::Queue::engines).unwrap_or_default();
    if queue.jobs == 0 && lanes.is_empty() {
        return;
    }
    table("Beside the workers", &["", "Jobs", "Waiting", "Mean wait", "Turned away"], out);
    let _ = writeln!(
        out,
        "<tr><th scope=\"row\">threads</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        count(queue.jobs),
        count(queue.waiting),
        micros(queue.mean_wait_us),
        count(queue.full),
    );
    for lane in lanes {
        let (numbers, (waiting, _)) = (lane.numbers(), lane.depth());
        let (class, word) = match lane.standing() {
            Standing::Up => ("up", "UP"),
            Standing::Starting => ("unchecked", "STARTING"),
            Standing::Probing => ("going", "PROBING"),
            Standing::Down => ("down", "DOWN"),
        };
        out.push_str("<tr><th scope=\"row\">engine ");
        escape(&lane.settings().name, out);
        let _ = writeln!(
            out,
            " <span class=\"s {class}\">{word}</span></th><td>{}</td><td>{}</td><td></td><td>{}</td></tr>",
            count(numbers.jobs.load(Relaxed)),
            count(waiting as u64),
            count(numbers.falls.load(Relaxed)),
        );
    }
    end(out);
}

fn table(title: &str, heads: &[&str], out: &mut String) {
    let _ = write!(
        out,
        "<section><h2>{title}</h2><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\"><table><thead><tr>"
    );
    for (at, head) in heads.iter().enumerate() {
        let class = if at == 0 || *head == "Why" { " class=\"l\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{head}</th>");
    }
    out.push_str("</tr></thead><tbody>\n");
}

fn end(out: &mut String) {
    out.push_str("</tbody></table></div></section>\n");
}
