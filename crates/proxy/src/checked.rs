//! What expressions of health checks see: the process's plan, and the server that is checked.

use crate::plan::{Backend, Plan};
use std::sync::Arc;
use terse_balance::{Farm, Server};
use terse_sample::Env;

/// The server that is checked.
pub struct Checked {
    plan: Arc<Plan>,
    backend: usize,
    /// It.
    pub server: Arc<Server>,
}

impl Checked {
    /// A server of a farm of the plan.
    pub fn new(plan: Arc<Plan>, farm: &Farm, server: Arc<Server>) -> Option<Checked> {
        let backend = plan.backends.iter().position(|backend| std::ptr::eq(&*backend.farm, farm))?;
        Some(Checked { plan, backend, server })
    }

    /// The process's plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The server's backend.
    pub fn backend(&self) -> &Backend {
        &self.plan.backends[self.backend]
    }

    /// An identifier of the check (`unique-id-format` of the backend).
    pub fn unique_id(&self, env: &Env<'_>) -> Option<Vec<u8>> {
        let format = self.backend().unique_id.as_ref()?;
        let mut text = Vec::new();
        format.write(env, &mut text);
        Some(text)
    }
}
