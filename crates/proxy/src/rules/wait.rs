//! Rules that wait: `pause`, `wait-for-body`, `wait-for-handshake`, `do-resolve`.

use super::variable::in_parentheses;
use super::{Action, ActionWord, BOTH, CONTENT, Flow, REQUEST, RuleSet, done};
use crate::stream::Stream;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use terse_config::units::parse_time;
use terse_config::{Args, Fault, Scope};
use terse_names::{Families, Resolvers, ResolversUses};
use terse_sample::vars::Target;
use terse_sample::{Expr, Registry, Value};
use terse_tls::Secured;

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done(
        "do-resolve(",
        REQUEST | CONTENT,
        "<variable>,<resolvers>[,{ ipv4 | ipv6 }]) <expression>",
        "Looks a name up, and sets a variable to its address.",
        do_resolve,
    ),
    done("pause", BOTH, "{<time> | <expression>}", "Waits; an expression counts milliseconds.", pause),
    done(
        "wait-for-body",
        BOTH,
        "time <time> [at-least <bytes>]",
        "Waits until the body, so much of it, or as much as a buffer holds is there; an error when that takes too long.",
        wait_for_body,
    ),
    done("wait-for-handshake", REQUEST, "", "Waits for the TLS handshake of a request that came ahead of it.", |_, _, _| {
        Ok(Box::new(HandshakeWait))
    }),
];

/// Event that a rule waits for.
#[derive(Clone, Debug)]
pub enum Wait {
    /// For time to pass.
    Pause(Duration),
    /// For the message's body.
    Body(BodyWait),
    /// For the client's handshake.
    Handshake,
    /// For the address of a name.
    Name(Box<NameWait>),
}

/// The name whose address is waited for.
#[derive(Clone, Debug)]
pub struct NameWait {
    /// The name.
    pub name: String,
    /// The resolvers that are asked.
    pub resolvers: Arc<Resolvers>,
    /// Which addresses are wanted.
    pub families: Families,
    /// The variable that is set to the address.
    pub target: Target,
}

impl NameWait {
    /// Waits, and sets the variable if there is an address.
    pub async fn run(self, stream: &mut Stream) {
        if let Some(ip) = self.resolvers.address(&self.name, self.families).await {
            self.target.set(&stream.env().vars, Value::Addr(ip));
        }
    }
}

struct DoResolve {
    resolvers: Arc<str>,
    families: Families,
    target: Target,
    name: Expr,
}

impl Action for DoResolve {
    fn run(&self, stream: &mut Stream) -> Flow {
        let env = stream.env();
        let Some(name) = self.name.eval(&env).and_then(Value::into_octets) else { return Flow::Next };
        let name = String::from_utf8_lossy(&name).into_owned();
        // An address is its own.
        if let Ok(ip) = name.parse::<IpAddr>() {
            self.target.set(&env.vars, Value::Addr(ip));
            return Flow::Next;
        }
        let section = stream.facts.session.worker.plan.resolvers.iter().find(|section| section.name == self.resolvers);
        let Some(resolvers) = section.cloned() else { return Flow::Next };
        Flow::Wait(Wait::Name(Box::new(NameWait { name, resolvers, families: self.families, target: self.target })))
    }
}

fn do_resolve(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let text = in_parentheses(args)?;
    let mut words = text.split(',');
    let (variable, section) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if section.is_empty() {
        return Err(args.fault("expects the name of a 'resolvers' section behind the variable"));
    }
    let families = match words.next() {
        None | Some("ipv6") => Families::V6First,
        Some("ipv4") => Families::V4First,
        Some(other) => return Err(args.fault(format!("'{other}' is neither 'ipv4' nor 'ipv6'"))),
    };
    let registry: &mut Registry = scope.shared.entry();
    let target = Target::parse(variable, &mut registry.names).map_err(|reason| args.fault(reason))?;
    let uses: &mut ResolversUses = scope.shared.entry();
    uses.uses.push((section.into(), scope.place.clone()));
    let resolvers = section.into();
    Ok(Box::new(DoResolve { resolvers, families, target, name: Expr::parse(args, scope, set.have())? }))
}

/// Time limit and amount of a wait for a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyWait {
    /// Time limit; `None`: no limit.
    pub time: Option<Duration>,
    /// Bytes that are enough; 0: the whole body.
    pub at_least: u64,
}

enum Pause {
    Fixed(Duration),
    Made(Expr),
}

impl Action for Pause {
    fn run(&self, stream: &mut Stream) -> Flow {
        let time = match self {
            Pause::Fixed(time) => Some(*time),
            Pause::Made(value) => {
                let ms = value.eval(&stream.env()).and_then(|value| value.into_int()).and_then(|ms| u64::try_from(ms).ok());
                ms.map(|ms| Duration::from_millis(ms).min(LONGEST))
            }
        };
        time.filter(|time| !time.is_zero()).map_or(Flow::Next, |time| Flow::Wait(Wait::Pause(time)))
    }
}

/// HAProxy's limit of times: 24 days.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

impl Action for BodyWait {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Wait(Wait::Body(*self))
    }
}

struct HandshakeWait;

impl Action for HandshakeWait {
    fn run(&self, stream: &mut Stream) -> Flow {
        match stream.facts.session.tls().is_some_and(Secured::is_early) {
            true => Flow::Wait(Wait::Handshake),
            false => Flow::Next,
        }
    }
}

fn pause(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    if let Some(Ok(time)) = args.peek().map(parse_time) {
        args.take();
        return match time.is_zero() {
            true => Err(args.fault("a pause of nothing is none")),
            false => Ok(Box::new(Pause::Fixed(time))),
        };
    }
    Ok(Box::new(Pause::Made(Expr::parse(args, scope, set.have())?)))
}

fn wait_for_body(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let (mut time, mut at_least) = (None, 0);
    loop {
        match args.peek() {
            Some("time") => {
                args.take();
                time = Some(args.time("<time>")?);
            }
            Some("at-least") => {
                args.take();
                at_least = args.size("<bytes>")?;
            }
            Some("use-large-buffer") => {
                args.take();
                return Err(args.fault("there is one size of buffers: 'tune.bufsize'"));
            }
            _ => break,
        }
    }
    match time {
        Some(_) => Ok(Box::new(BodyWait { time, at_least })),
        None => Err(args.fault("expects 'time <time>'").hint("write 'wait-for-body time 1s'")),
    }
}
