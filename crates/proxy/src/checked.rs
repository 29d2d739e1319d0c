//! Data of health checks for expressions: the process's plan, and the checked server.

use crate::plan::{Backend, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use terse_balance::{Farm, Server};
use terse_sample::Env;

/// The server that is checked.
pub struct Checked {
    plan: Arc<Plan>,
    backend: Arc<Backend>,
    /// It.
    pub server: Arc<Server>,
    /// The identifier is being written.
    writes_id: AtomicBool,
}

impl Checked {
    /// A server of a farm of the plan.
    pub fn new(plan: Arc<Plan>, farm: &Farm, server: Arc<Server>) -> Option<Checked> {
        let backend = plan.backends.now().iter().find(|backend| std::ptr::eq(&*backend.farm, farm)).cloned()?;
        Some(Checked { plan, backend, server, writes_id: AtomicBool::new(false) })
    }

    /// The process's plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The server's backend.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// An identifier of the check (`unique-id-format` of the backend).
    pub fn unique_id(&self, env: &Env<'_>) -> Option<Vec<u8>> {
        let format = self.backend().unique_id.as_ref()?;
        // A format that refers to itself finds no value there.
        if self.writes_id.swap(true, Relaxed) {
            return None;
        }
        let mut text = Vec::new();
        format.write(env, &mut text);
        self.writes_id.store(false, Relaxed);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;

    #[test]
    fn an_identifier_that_speaks_of_itself_is_not_written_for_ever() {
        let trial = Trial::new(
            "defaults\n mode http\n timeout client 5s\n timeout server 6s\n timeout connect 1s\n unique-id-format a%[unique-id]-%ID\n\
             listen l\n bind :80\n server s 127.0.0.1:81\n",
        );
        let plan = trial.session.worker.plan.clone();
        let farm = plan.backends.now()[0].farm.clone();
        let checked = Checked::new(plan, &farm, farm.servers()[0].clone()).unwrap();
        let stream = trial.stream("GET / HTTP/1.1\nHost: a");
        let env = Env { facts: &checked, ..stream.env() };
        for _ in 0..2 {
            assert_eq!(checked.unique_id(&env).as_deref(), Some(&b"a-"[..]));
        }
    }
}
