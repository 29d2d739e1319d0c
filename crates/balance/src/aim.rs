//! Where a server's checks go and its agent is asked: what its line says, and what the stats socket has made of that.

use crate::settings::{AgentSettings, CheckSettings};
use std::net::IpAddr;
use std::sync::Arc;

/// Where checks go, and where an agent is and what it is told. What is not said here is the server's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aim {
    /// Where checks connect.
    pub check_address: Option<IpAddr>,
    /// At which port.
    pub check_port: Option<u16>,
    /// Where the agent is.
    pub agent_address: Option<IpAddr>,
    /// At which port.
    pub agent_port: Option<u16>,
    /// What the agent is told first.
    pub agent_send: Arc<[u8]>,
}

impl Aim {
    /// What a line says.
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
