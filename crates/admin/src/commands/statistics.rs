//! `show stat`: a line for each frontend, address that is counted on its own, server and backend.

use super::resolvers;
use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::figures::{Row, csv, json, typed};
use crate::halves::{self, Half};
use crate::rows::{Selection, Sight};
use crate::settings::Level;
use std::time::Instant;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show stat",
    usage: "show stat [domain <domain>] [<proxy> <types> <id>] [typed|json] [desc] [up] [no-maint]",
    summary: "show the figures of proxies and servers",
    level: Level::User,
    run: show,
}];

/// Selection and form of rows.
struct Wish<'a> {
    /// Number of a proxy.
    proxy: Option<u32>,
    /// Sum of two to the power of each wanted kind's number.
    kinds: i64,
    /// Number of a server.
    server: Option<u32>,
    /// Only servers that are up.
    up: bool,
    /// No servers in maintenance.
    no_maint: bool,
    form: Form,
    /// Whether each figure has a description.
    texts: bool,
    call: &'a Call<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    Typed,
    Json,
}

fn show(call: &mut Call<'_>) -> Outcome {
    if let [first, domain, rest @ ..] = call.args
        && *first == "domain"
        && *domain == "resolvers"
    {
        return Ok(Answer::Text(resolvers::statistics(&call.context.plan, rest)));
    }
    let wish = Wish::of(call)?;
    let rows = wish.rows();
    let mut out = String::new();
    match wish.form {
        Form::Csv => {
            csv::header(&mut out);
            rows.iter().for_each(|row| csv::line(row, &mut out));
        }
        Form::Typed => rows.iter().for_each(|row| typed::row(row, wish.texts, &mut out)),
        Form::Json => json::rows(rows.iter(), &mut out),
    }
    Ok(Answer::Text(out))
}

impl<'a> Wish<'a> {
    fn of(call: &'a Call<'a>) -> Result<Wish<'a>, Message> {
        let mut args = call.args;
        if let [first, domain, rest @ ..] = args
            && *first == "domain"
        {
            if *domain != "proxy" {
                return Err(Message::error("Invalid statistics domain."));
            }
            args = rest;
        }
        let mut wish =
            Wish { proxy: None, kinds: -1, server: None, up: false, no_maint: false, form: Form::Csv, texts: false, call };
        if let [proxy, kinds, server, rest @ ..] = args
            && let Ok(kinds) = kinds.parse()
        {
            args = rest;
            wish.kinds = kinds;
            wish.proxy = wish.find(proxy)?;
            wish.server = server.parse::<i64>().ok().and_then(|id| u32::try_from(id).ok());
        }
        for word in args {
            match word.as_str() {
                "typed" => wish.form = Form::Typed,
                "json" => wish.form = Form::Json,
                "desc" => wish.texts = true,
                "up" => wish.up = true,
                "no-maint" => wish.no_maint = true,
                // HAProxy ignores other arguments.
                _ => {}
            }
        }
        Ok(wish)
    }

    /// Number of a proxy, by its name or number; `None` for all of them. A number need not exist.
    fn find(&self, word: &str) -> Result<Option<u32>, Message> {
        match word.parse::<i64>() {
            Ok(id) => Ok(u32::try_from(id).ok()),
            Err(_) => {
                let plan = &self.call.context.plan;
                let named = halves::of(plan, &plan.backends.now()).into_iter().find(|half| half.name() == word).map(Half::id);
                named.map(Some).ok_or_else(|| Message::error("No such proxy."))
            }
        }
    }

    fn rows(&self) -> Vec<Row> {
        let context = self.call.context;
        let sight = Sight {
            plan: &context.plan,
            rates: Some(&context.rates),
            is_stopping: context.host.is_stopping(),
            legends: self.call.client.level >= Level::Operator,
            now: Instant::now(),
        };
        let Wish { kinds, server, up, no_maint, .. } = *self;
        let proxies = |half: Half<'_>| self.proxy.is_none_or(|proxy| proxy == half.id());
        sight.rows(&Selection { proxies: &proxies, kinds, server, up, no_maint })
    }
}

#[cfg(test)]
mod tests;
