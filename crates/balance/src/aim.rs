//! Destination of a server's health checks and agent checks: settings of the server's line, as the stats socket has
//! changed them.

use crate::settings::{AgentSettings, CheckSettings};
use std::net::IpAddr;
use std::sync::Arc;

/// Destination of health checks, and the agent's address and first text. Unset parts are the server's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aim {
    /// Address of checks.
    pub check_address: Option<IpAddr>,
    /// Port of checks.
    pub check_port: Option<u16>,
    /// Address of the agent.
    pub agent_address: Option<IpAddr>,
    /// Port of the agent.
    pub agent_port: Option<u16>,
    /// Text that is sent to the agent first.
    pub agent_send: Arc<[u8]>,
}

impl Aim {
    /// The settings of a server's line.
    pub(crate) fn of(check: &CheckSettings, agent: &AgentSettings) -> Aim {
        Aim {
            check_address: check.address,
            check_port: check.port.or(check.address_port),
            agent_address: agent.address,
            agent_port: agent.port,
            agent_send: agent.send.clone(),
        }
    }
}
