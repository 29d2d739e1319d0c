//! Memory that load took and the allocator keeps: given back to the system once the load is over.
//!
//! The allocator (jemalloc) keeps freed memory in arenas, which give it back as they are used: a process that has nothing to do any more
//! would keep it. Giving all of it back walks the arenas under their locks, so it waits until workers have little to do, and is done once
//! after each spell of work.

use super::sys;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use terse_proxy::plan::Plan;
use tokio::time::{MissedTickBehavior, interval};

/// Gives memory back after each spell of work, for as long as the process serves.
pub async fn watch(plan: Arc<Plan>) {
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut spell = Spell::default();
    loop {
        tick.tick().await;
        let busiest = plan.busy_percents.iter().map(|percent| percent.load(Relaxed)).max().unwrap_or(0);
        if spell.has_ended(busiest) {
            sys::give_memory_back();
        }
    }
}

/// A time of work.
#[derive(Default, Debug)]
struct Spell {
    has_worked: bool,
    quiet: u32,
}

impl Spell {
    /// Takes the load of the busiest worker, in percent; returns true, once, when a spell of load has ended.
    fn has_ended(&mut self, percent: u8) -> bool {
        if percent >= BUSY_PERCENT {
            *self = Spell { has_worked: true, quiet: 0 };
            return false;
        }
        self.quiet += 1;
        self.quiet >= QUIET_LOOKS && std::mem::take(self).has_worked
    }
}

/// Interval between looks.
const LOOK: Duration = Duration::from_secs(1);

/// From here on a worker works.
const BUSY_PERCENT: u8 = 3;

/// So many looks without work are quiet.
const QUIET_LOOKS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spell_ends_once_after_some_quiet() {
        let mut spell = Spell::default();
        let mut looks = |percents: &[u8]| percents.iter().filter(|percent| spell.has_ended(**percent)).count();
        assert_eq!(looks(&[0; 20]), 0, "there was no work");
        assert_eq!(looks(&[90, 0, 0, 0, 0, 3, 0, 0, 0, 0]), 0, "never quiet for long");
        assert_eq!(looks(&[0]), 1);
        assert_eq!(looks(&[0; 20]), 0, "once is enough");
        assert_eq!(looks(&[5, 0, 0, 0, 0, 0, 0]), 1);
    }
}
