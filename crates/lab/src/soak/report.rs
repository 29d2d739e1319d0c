//! Report of a run: tables, and conditions that do not hold.

use super::work::Kind;
use super::{Course, Done};
use std::sync::atomic::Ordering::Relaxed;

/// Prints the work and its leftovers.
pub(super) fn print(courses: &[Course], kinds: &[Kind]) {
    println!();
    print!("| {:<22} |", "work");
    for course in courses {
        print!(" {:>8} | MB received | compressed | again | faults |", course.proxy.name());
    }
    print!("\n|---|");
    courses.iter().for_each(|_| print!("---:|---:|---:|---:|---:|"));
    println!();
    for kind in kinds {
        print!("| {:<22} |", kind.name);
        for course in courses {
            match done(course, kind) {
                Some(done) => print!(
                    " {:>8} | {:>11.1} | {:>10} | {:>5} | {:>6} |",
                    done.answers,
                    done.bytes as f64 / 1e6,
                    done.coded,
                    done.again,
                    done.faults
                ),
                None => print!(" {:>8} | {:>11} | {:>10} | {:>5} | {:>6} |", "", "", "", "", ""),
            }
        }
        println!();
    }
    println!();
    print!("| {:<44} |", "afterwards");
    courses.iter().for_each(|course| print!(" {:>10} |", course.proxy.name()));
    print!("\n|---|");
    courses.iter().for_each(|_| print!("---:|"));
    println!();
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    type Cell<'a> = &'a dyn Fn(&Course) -> String;
    let rows: [(&str, Cell<'_>); 10] = [
        ("reloads", &|course| course.proxy.reloads().to_string()),
        ("processes before", &|course| course.before.processes.to_string()),
        ("processes after", &|course| course.after.processes.to_string()),
        ("descriptors before", &|course| course.before.descriptors.to_string()),
        ("descriptors after", &|course| course.after.descriptors.to_string()),
        ("sessions after", &|course| course.after.sessions.to_string()),
        ("resident MB before", &|course| megabytes(course.before.resident_bytes)),
        ("resident MB at most", &|course| megabytes(course.peak_bytes.load(Relaxed))),
        ("resident MB after", &|course| megabytes(course.after.resident_bytes)),
        ("of them memory of bodies, by the proxy's count", &|course| megabytes(course.after.bodies_bytes)),
    ];
    for (name, cell) in rows {
        print!("| {name:<44} |");
        courses.iter().for_each(|course| print!(" {:>10} |", cell(course)));
        println!();
    }
    println!();
    for course in courses {
        if course.left.is_empty() {
            println!("{}: all given back {:.0} s after the work.", course.proxy.name(), course.settled.as_secs_f64().ceil());
        } else if !course.proxy.is_terse() {
            println!("{}: {}.", course.proxy.name(), course.left.join("; "));
        }
        for (name, done) in kinds.iter().filter_map(|kind| Some((kind.name, done(course, kind)?))) {
            done.words.iter().for_each(|words| println!("{}: {name}: {words}", course.proxy.name()));
        }
    }
}

/// Messages about conditions that do not hold.
pub(super) fn failures(courses: &[Course], kinds: &[Kind]) -> Vec<String> {
    let mut failures = Vec::new();
    for course in courses.iter().filter(|course| course.proxy.is_terse()) {
        failures.extend(course.left.iter().cloned());
        for kind in kinds {
            match done(course, kind) {
                None => failures.push(format!("{}: no visit was ended", kind.name)),
                Some(done) if done.faults > 0 => failures.push(format!("{}: {} faults", kind.name, done.faults)),
                Some(done) if done.answers == 0 => failures.push(format!("{}: nothing was done", kind.name)),
                Some(done) if kind.is_coded && done.coded == 0 => failures.push(format!("{}: nothing was compressed", kind.name)),
                Some(_) => {}
            }
        }
    }
    failures
}

fn done(course: &Course, kind: &Kind) -> Option<Done> {
    course.ledger.lock().ok()?.get(kind.name).cloned()
}
