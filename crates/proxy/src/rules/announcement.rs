//! The PROXY protocol on connections that a rule chooses: `expect-proxy layer4`.

use super::{Action, ActionWord, CONNECTION, Flow, done};
use crate::stream::Stream;

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "expect-proxy",
    CONNECTION,
    "layer4",
    "Reads a head of the PROXY protocol from the connection.",
    |args, _, _| match args.need("layer4")? {
        "layer4" => Ok(Box::new(ExpectProxy)),
        other => Err(args.fault(format!("only supports 'layer4', not '{other}'"))),
    },
)];

struct ExpectProxy;

impl Action for ExpectProxy {
    fn run(&self, stream: &mut Stream) -> Flow {
        stream.facts.session.expects_proxy.set(true);
        Flow::Next
    }
}
