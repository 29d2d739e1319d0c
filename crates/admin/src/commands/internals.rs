//! Internals that HAProxy shows, as far as this program has them: memory, threads, descriptors and libraries.

use super::certificate::command;
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::figures::Column;
use crate::settings::Level;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const COMMANDS: &[Command] = &[
    command("show activity", "show activity", "show what workers do", Level::Operator, |call| activity(call)),
    command("show anon", "show anon", "show whether answers hide names: they do not", Level::User, |_| {
        Ok(Answer::Text("Anonymized mode disabled\n".into()))
    }),
    command("show dev", "show dev", "show what developers ask for", Level::Operator, |call| device(call)),
    command("show fd", "show fd [<number>]", "show the open descriptors, or one", Level::Operator, |call| descriptors(call)),
    command("show libs", "show libs", "show the libraries in use", Level::Operator, |_| libraries()),
    command("show pools", "show pools", "show the memory that is counted", Level::Operator, |call| pools(call)),
    command("show profiling", "show profiling", "show what is measured of functions: nothing", Level::Operator, |_| {
        Ok(Answer::Text(PROFILING.into()))
    }),
    command("show schema json", "show schema json", "show the shape of figures in JSON", Level::User, |_| {
        Ok(Answer::Text(schema()))
    }),
    command("show tasks", "show tasks", "show how much waits for a thread", Level::Operator, |call| tasks(call)),
    command("show threads", "show threads", "show the workers", Level::Operator, |call| threads(call)),
    command("show trace", "show trace", "show what is traced: nothing", Level::Operator, |_| {
        Ok(Answer::Text("Supported trace sources and states (.=stopped, w=waiting, R=running) :\n none\n".into()))
    }),
    command("debug counters", "debug counters", "show events of the program's code: none is counted", Level::Admin, |_| {
        Ok(Answer::Text("Count     Type Location function(): \"condition\" [comment]\n".into()))
    }),
    command("set profiling", "set profiling <what> <on|auto|off>", "measure functions", Level::Admin, |_| {
        Err(Message::error("Functions are not measured here: use 'perf record -p <pid>'."))
    }),
];

const PROFILING: &str = "Per-task CPU profiling              : off\nMemory usage profiling              : off\n";

fn workers(call: &Call<'_>) -> usize {
    call.context.plan.process.workers
}

fn waiting(call: &Call<'_>) -> u64 {
    call.context.queue.as_ref().map_or(0, |queue| queue.numbers().waiting.load(Relaxed))
}

fn activity(call: &Call<'_>) -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let uptime = call.context.process.started.elapsed();
    let busy: Vec<_> = call.context.plan.busy_percents.iter().map(|percent| percent.load(Relaxed).to_string()).collect();
    Ok(Answer::Text(format!(
        "thread_id: 0 (1..{})\ndate_now: {}.{:06}\nuptime_now: {}.{:06}\nbusy_pct: [ {} ]\nconnections: {}\n",
        workers(call),
        now.as_secs(),
        now.subsec_micros(),
        uptime.as_secs(),
        uptime.subsec_micros(),
        busy.join(" "),
        call.context.connections.load(Relaxed),
    )))
}

fn threads(call: &Call<'_>) -> Outcome {
    let percents = call.context.plan.busy_percents.iter().map(|percent| percent.load(Relaxed));
    Ok(Answer::Text(percents.enumerate().map(|(at, busy)| format!("  Thread {} : worker, busy={busy}%\n", at + 1)).collect()))
}

fn tasks(call: &Call<'_>) -> Outcome {
    Ok(Answer::Text(format!("Running tasks: {} ({} threads)\n", waiting(call), workers(call))))
}

fn pools(call: &Call<'_>) -> Outcome {
    let plan = &call.context.plan;
    let mut text = String::from("Dumping pools usage.\n");
    let (used, bytes, refused) = (plan.memory.used(), plan.memory.bytes(), plan.memory.refused());
    let _ = writeln!(text, "  - Pool buffers : {used} bytes used, of {bytes}, {refused} failures");
    let _ = writeln!(text, "  - Pool coders : {} bytes used, part of buffers", plan.coders_memory.limit().used());
    let _ = writeln!(text, "  - Pool records : {} bytes used, part of buffers", plan.records_memory.limit().used());
    let _ = writeln!(text, "Total: 3 pools, {used} bytes used.");
    Ok(Answer::Text(text))
}

fn device(call: &Call<'_>) -> Outcome {
    let process = &call.context.process;
    Ok(Answer::Text(format!(
        "Platform info\n  machine arch: {}\n  os: {}\nProcess info\n  version: {} (terse {})\n  pid: {}\n  node: {}\n  workers: {}\n  fd limit: {}\n",
        std::env::consts::ARCH,
        std::env::consts::OS,
        process.version,
        process.own_version,
        process.pid,
        process.node,
        workers(call),
        process.descriptors,
    )))
}

/// List of descriptors by the kernel.
fn descriptors(call: &Call<'_>) -> Outcome {
    let wanted = match call.arg(0) {
        "" => None,
        word => Some(word.parse::<u32>().map_err(|_| Message::error("Expects the number of a descriptor."))?),
    };
    let listed = std::fs::read_dir("/proc/self/fd").map_err(|error| Message::error(format!("/proc/self/fd: {error}")))?;
    let open: BTreeMap<u32, String> = listed
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            // The listing has a descriptor too, which is closed by now.
            let target = std::fs::read_link(entry.path()).ok()?;
            Some((number, target.to_string_lossy().into_owned()))
        })
        .collect();
    let shown = open.into_iter().filter(|(number, _)| wanted.is_none_or(|wanted| wanted == *number));
    let text: String = shown.map(|(number, target)| format!("{number:>7} : {}\n", target.escape_default())).collect();
    if text.is_empty() { Err(Message::error("No such descriptor.")) } else { Ok(Answer::Text(text)) }
}

/// Files that code was loaded from, and their addresses.
fn libraries() -> Outcome {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| Message::error(format!("/proc/self/maps: {error}")))?;
    let mut ranges: Vec<(u64, u64, &str)> = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let (Some((from, to)), Some(path)) = (range, words.nth(4).filter(|path| path.starts_with('/'))) else { continue };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else { continue };
        match ranges.last_mut().filter(|(.., last)| *last == path) {
            Some(range) => range.1 = to,
            None => ranges.push((from, to, path)),
        }
    }
    let line = |(from, to, path): (u64, u64, &str)| format!("0x{from:012x}-0x{to:012x} ({:#09x}) {path}\n", to - from);
    Ok(Answer::Text(ranges.into_iter().map(line).collect()))
}

/// JSON Schema of the answers to `show info json` and `show stat json`.
fn schema() -> String {
    let field = r#"{"type":"object","properties":{"pos":{"type":"integer","minimum":0},"name":{"type":"string"}},"required":["pos","name"]}"#;
    let tags = r#"{"type":"object","properties":{"origin":{"type":"string"},"nature":{"type":"string"},"scope":{"type":"string"}},"required":["origin","nature","scope"]}"#;
    let value = r#"{"type":"object","properties":{"type":{"enum":["u32","u64","str"]},"value":{"type":["integer","string"]}},"required":["type","value"]}"#;
    let common = format!(r#""field":{field},"processNum":{{"type":"integer","minimum":1}},"tags":{tags},"value":{value}"#);
    let names: Vec<_> = Column::ALL.iter().map(|column| column.name()).collect();
    format!(
        concat!(
            r#"{{"$schema":"http://json-schema.org/draft-04/schema#","oneOf":["#,
            r#"{{"title":"Info","type":"array","items":{{"title":"InfoItem","type":"object","properties":{{{common}}},"required":["field","processNum","tags","value"]}}}},"#,
            r#"{{"title":"Stat","description":"Columns: {names}","type":"array","items":{{"title":"InfoItem","type":"array","items":{{"type":"object","properties":{{"objType":{{"enum":["Frontend","Backend","Listener","Server"]}},"proxyId":{{"type":"integer","minimum":0}},"id":{{"type":"integer","minimum":0}},{common}}},"required":["objType","proxyId","id","field","processNum","tags","value"]}}}}}}]}}"#,
            "\n"
        ),
        common = common,
        names = names.join(",")
    )
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use crate::settings::Level;

    #[test]
    fn what_there_is_of_insides() {
        let mut talk = Talk::new(WEB);
        for (command, part) in [
            ("show activity", "busy_pct: [ 0 0 ]\nconnections: 3\n"),
            ("show anon", "disabled"),
            ("show dev", "version: 3.5-dev5 (terse 0.9.0)"),
            ("show fd", "      0 : "),
            ("show fd 0", "      0 : "),
            ("show fd 99999", "No such descriptor."),
            ("show libs", " /"),
            ("show pools", "Pool buffers : 0 bytes used, of 1048576, 0 failures"),
            ("show schema json", r#"{"$schema":"http://json-schema.org/draft-04/schema#","oneOf":[{"title":"Info""#),
            ("show tasks", "Running tasks: 0 (2 threads)"),
            ("show threads", "  Thread 2 : worker, busy=0%\n"),
        ] {
            let said = talk.says(command);
            assert!(said.contains(part) && said.ends_with("\n\n") && !said.contains("\n\n\n"), "{command}: {said}");
        }
        talk.client.level = Level::User;
        assert_eq!(talk.says("show fd;set profiling tasks on"), "Permission denied\n\nPermission denied\n\n");
    }

    #[test]
    fn braces_of_the_schema_are_even() {
        let text = super::schema();
        let count = |byte| text.bytes().filter(|b| *b == byte).count();
        assert_eq!((count(b'{'), count(b'[')), (count(b'}'), count(b']')));
    }
}
