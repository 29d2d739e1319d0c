//! Counters set back to 0, and kept for the next process.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use crate::stats_file;
use std::sync::atomic::Ordering::Relaxed;
use terse_balance::Server;
use terse_proxy::counters::Tally;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "clear counters",
        usage: "clear counters [all|server <bk>/<srv> [force]]",
        summary: "forget peaks, or set all counters or those of a server to 0",
        level: Level::Operator,
        run: clear,
    },
    Command {
        name: "dump stats-file",
        usage: "dump stats-file",
        summary: "print the counters of what has a 'guid', for the line 'stats-file'",
        level: Level::User,
        run: |call| Ok(Answer::Text(stats_file::dump(&call.context.plan))),
    },
];

fn clear(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "server" => {
            call.require(Level::Admin)?;
            let (_, server) = call.server(1)?;
            clear_server(&server);
            server.clear_peaks();
            Ok(Answer::Said(Message::info("Server counters cleared.")))
        }
        "all" => {
            call.require(Level::Admin)?;
            clear_all(call);
            clear_peaks(call);
            Ok(Answer::Done)
        }
        _ => {
            clear_peaks(call);
            Ok(Answer::Done)
        }
    }
}

fn clear_all(call: &Call<'_>) {
    let plan = &call.context.plan;
    plan.backends.spliced_out.store(0, Relaxed);
    plan.types.clear();
    plan.dictionaries.all().for_each(|dictionary| dictionary.counters.clear());
    plan.frontends.iter().for_each(|front| front.tally.clear());
    plan.binds.iter().filter_map(|bind| bind.tally.as_deref()).for_each(Tally::clear);
    plan.binds.iter().filter_map(|bind| bind.tls.as_deref()).for_each(|acceptor| acceptor.counts().clear());
    for back in plan.backends.now().iter() {
        back.tally.clear();
        back.farm.counters.clear();
        back.farm.handshakes.clear();
        back.farm.durations.clear();
        back.farm.servers().iter().for_each(|server| clear_server(server));
    }
}

fn clear_server(server: &Server) {
    server.counters.clear();
    server.durations.clear();
    server.connector().into_iter().for_each(|connector| connector.counts().clear());
}

fn clear_peaks(call: &Call<'_>) {
    let plan = &call.context.plan;
    plan.frontends.iter().for_each(|front| front.tally.clear_peaks());
    plan.binds.iter().filter_map(|bind| bind.tally.as_deref()).for_each(Tally::clear_peaks);
    for back in plan.backends.now().iter() {
        back.tally.clear_peaks();
        back.farm.clear_peak();
        back.farm.durations.clear_peaks();
        for server in back.farm.servers().iter() {
            server.clear_peaks();
            server.durations.clear_peaks();
        }
    }
    call.context.rates.clear_peaks();
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use crate::settings::Level;
    use std::sync::atomic::Ordering::Relaxed;
    use terse_balance::Count;

    #[test]
    fn one_server_or_all() {
        let mut talk = Talk::new(WEB);
        let plan = talk.context.plan.clone();
        let (a, b) = (&plan.backends.now()[0].farm.servers()[0], &plan.backends.now()[0].farm.servers()[1]);
        [a, b].iter().for_each(|server| server.counters.bump(Count::Sessions));
        plan.frontends[0].tally.of(1).requests.add(5);
        assert_eq!(talk.says("clear counters server be/a"), "Server counters cleared.\n\n");
        assert_eq!((a.counters.total(Count::Sessions), b.counters.total(Count::Sessions)), (0, 1));
        assert_eq!(talk.says("clear counters"), "\n");
        assert_eq!(plan.frontends[0].tally.totals().requests, 5);
        plan.backends.spliced_out.store(7, Relaxed);
        assert_eq!(talk.says("clear counters all"), "\n");
        assert_eq!((plan.frontends[0].tally.totals().requests, b.counters.total(Count::Sessions)), (0, 0));
        assert_eq!(plan.backends.spliced_out.load(Relaxed), 0);
        assert_eq!(talk.says("clear counters server x/a"), "No such backend.\n\n");
        assert_eq!(talk.says("clear counters server be/x"), "No such server.\n\n");
    }

    #[test]
    fn peaks_are_the_most_that_an_operator_may_forget() {
        let mut talk = Talk::new(WEB);
        let plan = talk.context.plan.clone();
        let counters = plan.frontends[0].tally.of(0);
        counters.enter();
        counters.enter();
        counters.current.sub(1);
        talk.client.level = Level::Operator;
        assert_eq!(talk.says("clear counters"), "\n");
        assert_eq!(plan.frontends[0].tally.totals().current_max, 1);
        assert_eq!(talk.says("clear counters all"), "Permission denied\n\n");
        assert_eq!(talk.says("clear counters server be/a"), "Permission denied\n\n");
    }
}
