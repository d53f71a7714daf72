//! How much may be written to a host in a while, so that its limits are kept for certain.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::model::time::Timestamp;

/// No more than so many writes in each of these times.
#[derive(Debug)]
pub(super) struct Budget {
    limits: &'static [(usize, Duration)],
    /// When was written, oldest first, within the longest of the times.
    spent: Mutex<VecDeque<Timestamp>>,
}

impl Budget {
    pub(super) const fn new(limits: &'static [(usize, Duration)]) -> Self {
        Self { limits, spent: Mutex::new(VecDeque::new()) }
    }

    /// Takes one write; or says when there is room again.
    ///
    /// # Errors
    /// If all are spent: the time from which on one more may be written.
    pub(super) fn spend(&self, now: Timestamp) -> Result<(), Timestamp> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = self.limits.iter().map(|(_, within)| *within).max().unwrap_or_default();
        while spent.front().is_some_and(|at| *at + longest <= now) {
            spent.pop_front();
        }
        let full = self.limits.iter().filter_map(|(most, within)| {
            let oldest = spent.iter().rev().nth(most.saturating_sub(1))?;
            Some(*oldest + *within).filter(|room| *room > now)
        });
        match full.max() {
            Some(room) => Err(room),
            None => {
                spent.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const LIMITS: &[(usize, Duration)] = &[(2, Duration::from_secs(10)), (3, MINUTE)];

    #[test]
    fn what_is_spent_comes_back_with_time() {
        let budget = Budget::new(LIMITS);
        let at = |seconds: i64| Timestamp(seconds * 1000);
        for (now, expected) in
            [(0, Ok(())), (1, Ok(())), (2, Err(10)), (10, Ok(())), (11, Err(60)), (60, Ok(())), (60, Err(61))]
        {
            assert_eq!(budget.spend(at(now)), expected.map_err(at), "{now}");
        }
    }

    proptest! {
        #[test]
        fn no_window_holds_more_than_its_limit(steps in proptest::collection::vec(0_i64..9_000, 1..200)) {
            let budget = Budget::new(LIMITS);
            let (mut now, mut written) = (0, Vec::new());
            for step in steps {
                now += step;
                if budget.spend(Timestamp(now)).is_ok() {
                    written.push(now);
                }
            }
            for (most, within) in LIMITS {
                let within = i64::try_from(within.as_millis()).unwrap();
                for at in &written {
                    prop_assert!(written.iter().filter(|other| (*at..*at + within).contains(*other)).count() <= *most);
                }
            }
        }
    }
}
