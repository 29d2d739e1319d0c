//! What keywords leave behind: one value of a type of the owning crate's for each section.

use std::any::{Any, TypeId};
use std::collections::HashMap;

/// A crate's part of a section, such as the balancing settings of a backend.
pub trait Setting: Any + Default {
    /// What a section starts with when its `defaults` section holds `self`.
    fn inherit(&self) -> Self;
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

    /// What a section starts with under these defaults.
    pub fn inherit(&self) -> Settings {
        Settings { map: self.map.iter().map(|(id, slot)| (*id, slot.inherit())).collect() }
    }
}

trait Slot {
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn inherit(&self) -> Box<dyn Slot>;
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
