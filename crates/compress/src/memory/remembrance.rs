//! A body and the memory: named while it comes, looked up when it is whole, kept when it was compressed.

use super::{Form, Look, Memory, Name, Naming, Owner, Raise, Raiser, Recall};
use crate::budget::Budget;
use crate::coding::{Coding, Level};
use crate::policy::Plan;
use std::sync::Arc;
use terse_dictionary::Dictionary;

/// Handle of the memory for a body.
pub struct Remembrance {
    memory: Arc<Memory>,
    naming: Naming,
    /// The least level that will do.
    least: Level,
    /// The recompressor, and the highest level that may be tried.
    raiser: Option<(Arc<Raiser>, Level)>,
    /// The dictionary that forms are made with.
    dictionary: Option<Arc<Dictionary>>,
    /// The name to keep its form by.
    name: Option<Name>,
    /// Its name, once it is whole.
    whole: Option<Name>,
    recall: Recall,
}

/// A form that was there, and whether a better form should be tried for.
pub(crate) struct Found {
    pub(crate) form: Form,
    pub(crate) popular: Option<Popular>,
}

/// A body that is asked for often. A better form has been promised: one of the calls must follow.
pub(crate) struct Popular {
    memory: Arc<Memory>,
    raiser: Arc<Raiser>,
    name: Name,
    coding: Coding,
    level: Level,
    dictionary: Option<Arc<Dictionary>>,
}

impl Remembrance {
    /// In that memory, as a body of that owner; forms of a lower level than `least` will not do.
    pub fn new(memory: Arc<Memory>, owner: &Owner, least: Level) -> Remembrance {
        Remembrance {
            memory,
            naming: Naming::new(owner.clone()),
            least,
            raiser: None,
            dictionary: None,
            name: None,
            whole: None,
            recall: Recall::Stream,
        }
    }

    /// The same for forms that are made with a dictionary.
    #[must_use]
    pub fn with_dictionary(self, owner: &Owner, dictionary: Arc<Dictionary>) -> Remembrance {
        let naming = Naming::new(owner.with_dictionary(dictionary.hash()));
        Remembrance { naming, dictionary: Some(dictionary), ..self }
    }

    /// Lets better forms be tried for, up to that level: there is time for it.
    #[must_use]
    pub fn with_raiser(self, raiser: Arc<Raiser>, most: Level) -> Remembrance {
        Remembrance { raiser: Some((raiser, most)), ..self }
    }

    /// Result of the memory.
    pub fn recall(&self) -> Recall {
        self.recall
    }

    /// Takes note that so much of the body is there, and more may come.
    pub(crate) fn see(&mut self, body: &[u8]) {
        self.naming.see(body);
    }

    /// The form of the body, which is whole now.
    pub(crate) fn find(&mut self, body: &[u8], coding: Coding) -> Option<Found> {
        let name = self.naming.finish(body);
        self.whole = Some(name);
        // Reading the dictionary costs as much as coding its bytes.
        let read = self.dictionary.as_ref().map_or(0, |dictionary| dictionary.bytes().len());
        let to_raise = self.raiser.as_ref().map(|(_, most)| Raiser::level(coding, *most, body.len() + read));
        match self.memory.look(&name, coding, self.least, to_raise) {
            Look::Found { form, popular } => {
                self.recall = Recall::Hit;
                let popular = self.raiser.take().zip(to_raise).filter(|_| popular).map(|((raiser, _), level)| Popular {
                    memory: self.memory.clone(),
                    raiser,
                    name,
                    coding,
                    level,
                    dictionary: self.dictionary.take(),
                });
                Some(Found { form, popular })
            }
            Look::Known => {
                self.name = Some(name);
                None
            }
            Look::New => {
                self.recall = Recall::New;
                None
            }
        }
    }

    /// The name of the body, once it was looked for.
    pub(crate) fn whole_name(&self) -> Option<Name> {
        self.whole
    }

    /// Keeps the form of a body that was not found, and that took so long to make, if it is worth it.
    pub(crate) fn keep(&mut self, plan: Plan, cost_ns: u64, bytes: &[u8]) {
        if let Some(name) = self.name.take() {
            let Plan { coding, level } = plan;
            let kept = self.memory.keep(&name, Form { coding, level, bytes: bytes.into(), cost_ns });
            self.recall = if kept { Recall::Kept } else { Recall::Full };
        }
    }
}

impl Popular {
    /// Ends the promise without a try.
    pub(crate) fn decline(self) {
        self.memory.raise(&self.name, self.coding, None);
    }

    /// Hands over the body, and with it bytes that it holds of the budget.
    pub(crate) fn give(self, body: Vec<u8>, budget: (Arc<dyn Budget>, usize)) {
        self.raiser.offer(Raise::new((self.memory, self.name), (self.coding, self.level), self.dictionary, body, budget));
    }
}
