//! Settings that keywords fill: for each section a value of a type of the owning crate's.

use crate::section::Sections;
use std::any::{Any, TypeId};
use std::collections::HashMap;

/// A crate's part of a section, such as the balancing settings of a backend.
pub trait Setting: Any + Default + Send {
    /// The setting of a section whose `defaults` section holds `self`.
    fn inherit(&self) -> Self;

    /// Sections that may start with it; by default all.
    fn heirs(&self) -> Heirs {
        Heirs::ANY
    }
}

/// Sections that may start with the settings of a `defaults` section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heirs {
    /// Kinds of the sections that may.
    pub kinds: Sections,
    /// Whether, of frontends and backends, only the one or the other may.
    pub one_side: bool,
    /// The cause, for messages: `'tcp-request connection' rules`.
    pub because: &'static str,
}

impl Heirs {
    /// All sections.
    pub const ANY: Heirs = Heirs { kinds: Sections::PROXY, one_side: false, because: "" };
}

/// Settings of any types, at most one of each.
#[derive(Default)]
pub struct Settings {
    map: HashMap<TypeId, Box<dyn Slot>>,
}

impl Settings {
    /// The setting of that type, when a keyword has made one.
    pub fn get<T: Setting>(&self) -> Option<&T> {
        self.map.get(&TypeId::of::<T>()).and_then(|slot| slot.any().downcast_ref())
    }

    /// The setting of that type, made now if it is not there.
    pub fn entry<T: Setting>(&mut self) -> &mut T {
        let slot = self.map.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        match slot.any_mut().downcast_mut() {
            Some(setting) => setting,
            None => unreachable!("the key is the type"),
        }
    }

    /// Takes the setting of that type out.
    pub fn take<T: Setting>(&mut self) -> Option<T> {
        let slot = self.map.remove(&TypeId::of::<T>())?;
        slot.into_any().downcast().ok().map(|boxed| *boxed)
    }

    /// Restrictions of these settings on the sections that may start with them.
    pub fn heirs(&self) -> impl Iterator<Item = Heirs> {
        self.map.values().map(|slot| slot.heirs()).filter(|heirs| *heirs != Heirs::ANY)
    }

    /// The settings of a section that starts with these defaults.
    pub fn inherit(&self) -> Settings {
        Settings { map: self.map.iter().map(|(id, slot)| (*id, slot.inherit())).collect() }
    }
}

trait Slot: Send {
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn inherit(&self) -> Box<dyn Slot>;
    fn heirs(&self) -> Heirs;
}

impl<T: Setting> Slot for T {
    fn any(&self) -> &dyn Any {
        self
    }
    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
    fn inherit(&self) -> Box<dyn Slot> {
        Box::new(Setting::inherit(self))
    }
    fn heirs(&self) -> Heirs {
        Setting::heirs(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, PartialEq, Debug)]
    struct Limit(u32);
    impl Setting for Limit {
        fn inherit(&self) -> Limit {
            Limit(self.0 + 1)
        }
    }

    #[test]
    fn one_value_of_each_type() {
        let mut s = Settings::default();
        assert_eq!(s.get::<Limit>(), None);
        s.entry::<Limit>().0 = 4;
        assert_eq!(s.inherit().get::<Limit>(), Some(&Limit(5)));
        assert_eq!(s.take::<Limit>(), Some(Limit(4)));
        assert_eq!(s.get::<Limit>(), None);
    }
}
