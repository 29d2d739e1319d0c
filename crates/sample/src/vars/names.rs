//! Names of variables, and their slots.

use super::late::Late;
use super::{VarScope, VarSlot};
use std::collections::HashMap;
use std::sync::Arc;

/// The names of all scopes, each with its slot.
#[derive(Clone, Default, Debug)]
pub struct VarNames {
    scopes: [Names; VarScope::ALL.len()],
    /// Once the configuration is read: table for new names of the process.
    late: Option<Arc<Late>>,
}

/// Names of a scope.
#[derive(Clone, Default, Debug)]
struct Names {
    index: HashMap<Arc<str>, u32>,
    /// The names by slot.
    names: Vec<Arc<str>>,
}

impl VarNames {
    /// The slot of a name with its scope, `txn.name`; a new name gets a new slot.
    ///
    /// # Errors
    /// The reason why the name is invalid.
    pub fn slot(&mut self, name: &str) -> Result<VarSlot, String> {
        let (scope, rest) = split(name)?;
        let names = &mut self.scopes[scope as usize];
        let index = match names.index.get(rest) {
            Some(&index) => index,
            None if let Some(late) = &self.late => match scope {
                VarScope::Process => late.slot(rest)?,
                _ => return Err(format!("no line of the configuration names '{name}': only names of 'proc.' may come later")),
            },
            None => {
                let (index, rest) = (names.names.len() as u32, Arc::<str>::from(rest));
                names.names.push(rest.clone());
                names.index.insert(rest, index);
                index
            }
        };
        Ok(VarSlot { scope, index })
    }

    /// The slot of a name that is known already.
    pub fn find(&self, name: &str) -> Option<VarSlot> {
        let (scope, rest) = split(name).ok()?;
        let known = self.scopes[scope as usize].index.get(rest).copied();
        let late = || self.late.as_ref().filter(|_| scope == VarScope::Process)?.find(rest);
        Some(VarSlot { scope, index: known.or_else(late)? })
    }

    /// The same names; those that come from now on are added to `late`.
    pub(super) fn followed_by(self, late: Arc<Late>) -> VarNames {
        VarNames { late: Some(late), ..self }
    }

    /// Number of names of a scope.
    pub fn count(&self, scope: VarScope) -> usize {
        self.scopes[scope as usize].names.len()
    }

    /// The names of a scope without the scope's, by slot.
    pub fn of(&self, scope: VarScope) -> impl Iterator<Item = &str> {
        self.scopes[scope as usize].names.iter().map(|name| &**name)
    }
}

/// The scope, and the name within it.
pub(super) fn split(name: &str) -> Result<(VarScope, &str), String> {
    let found = name.split_once('.').and_then(|(scope, rest)| {
        let scope = match scope {
            "psess" | "ptxn" | "preq" | "pres" => VarScope::Parent,
            scope => VarScope::ALL.into_iter().find(|s| s.name() == scope && !scope.is_empty())?,
        };
        (!rest.is_empty()).then_some((scope, rest))
    });
    let (scope, rest) = found.ok_or_else(|| {
        format!(
            "invalid variable name '{name}': it must start with its scope, which is one of proc, sess, txn, req, res, check, psess, \
             ptxn, preq and pres, and a dot"
        )
    })?;
    match rest.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.')) {
        Some(wrong) => Err(format!("invalid character '{wrong}' in variable name '{name}': expects letters, digits, '_' and '.'")),
        None => Ok((scope, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slots_once() {
        let mut names = VarNames::default();
        let a = names.slot("txn.a").unwrap();
        let b = names.slot("txn.b.c.d_e").unwrap();
        assert_eq!((a.index, b.index), (0, 1));
        assert_eq!(names.slot("txn.a").unwrap(), a);
        assert_eq!(names.slot("sess.a").unwrap().index, 0);
        assert_eq!(names.find("txn.none"), None);
        assert_eq!(names.of(VarScope::Transaction).collect::<Vec<_>>(), ["a", "b.c.d_e"]);
        for wrong in ["", "a", "txn.", "foo.a", "txn.a b", ".a", "txn.a-b", "parent.a"] {
            assert!(names.slot(wrong).is_err(), "{wrong}");
        }
        for parents in ["psess.a", "ptxn.a", "preq.a", "pres.a"] {
            assert_eq!(names.slot(parents).unwrap().scope, VarScope::Parent);
        }
    }
}
