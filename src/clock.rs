//! The only place that reads the time, and where new identities come from.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::model::time::Timestamp;

/// Where the time comes from.
pub trait Clock: Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }
}

/// A clock that a test sets by hand.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.0))
    }

    /// Moves it forward.
    pub fn advance(&self, by: std::time::Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Moves it forward to `to`, never back.
    pub fn advance_to(&self, to: Timestamp) {
        self.0.fetch_max(to.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A time as RFC 3339 in UTC, such as `2026-11-21T08:30:00.125Z`.
pub fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "unknown".to_owned(), |time| time.to_string())
}

/// The same with all three digits of the milliseconds: such texts sort as the times do.
pub fn rfc3339_sorting(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "unknown".to_owned(), |time| format!("{time:.3}"))
}

/// A time that somebody has written as RFC 3339, to the millisecond; nothing, if it is none.
pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|time| Timestamp(time.as_millisecond()))
}

/// Where new identities come from.
pub trait Ids: Debug + Send + Sync {
    /// An identity that was never given before and sorts after those given earlier.
    fn next(&self, now: Timestamp) -> String;
}

/// ULIDs: the time, then randomness.
#[derive(Debug, Default)]
pub struct Ulids(std::sync::Mutex<u128>);

impl Ids for Ulids {
    fn next(&self, now: Timestamp) -> String {
        let milliseconds = u64::try_from(now.0).unwrap_or(0);
        let fresh = u128::from(milliseconds) << 80 | ulid::Ulid::generate().random();
        let mut last = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = fresh.max(*last + 1);
        ulid::Ulid(*last).to_string()
    }
}

/// Numbers, for tests.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicI64);

impl CountingIds {
    /// Begins after this number, apart from others that count.
    pub fn after(number: i64) -> Self {
        Self(AtomicI64::new(number))
    }
}

impl Ids for CountingIds {
    fn next(&self, _now: Timestamp) -> String {
        format!("{:08}", self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
