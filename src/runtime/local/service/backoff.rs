//! How long to wait before a process that died is started again.

use std::time::Duration;

/// A process that lived so long counts as healthy again.
const HEALTHY: Duration = Duration::from_secs(5);
/// The first pause after a quick death that follows another one.
const FIRST: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses that grow while a process dies again and again, and are none for one that has lived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    quick_deaths: u32,
}

impl Backoff {
    /// The pause after a process that lived so long.
    pub(super) fn after(&mut self, lived: Duration) -> Duration {
        self.quick_deaths = if lived >= HEALTHY { 0 } else { self.quick_deaths.saturating_add(1) };
        match self.quick_deaths {
            0 | 1 => Duration::ZERO,
            deaths => FIRST.saturating_mul(1 << (deaths - 2).min(16)).min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_later_ones_wait_longer_up_to_a_bound() {
        let mut backoff = Backoff::default();
        let quick = Duration::from_millis(1);
        let pauses: Vec<u128> = (0..5).map(|_| backoff.after(quick).as_millis()).collect();
        assert_eq!(pauses, [0, 20, 40, 80, 160]);
        (0..100).for_each(|_| assert!(backoff.after(quick) <= LONGEST));
        assert_eq!(backoff.after(HEALTHY), Duration::ZERO);
    }
}
