//! How much a launchable may hold, and what its build may take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result};

/// Bounds of one launchable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes, of an archive as well as of what comes out of it.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
    /// Folders in folders.
    pub depth: usize,
    /// What `bin/build` may take while it runs.
    pub build: BuildLimits,
}

/// Bounds of a build while it runs. What it leaves behind is bounded like any other launchable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildLimits {
    /// How long it may take.
    pub time: Duration,
    /// Bytes of memory of each process, and of all together where the machine has control groups for that.
    pub memory: u64,
    /// Processes at once.
    pub processes: u64,
    /// Bytes that its tree and its home take of the disk together, and that a file may have.
    pub disk: u64,
}

impl Default for BuildLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(15 * 60), memory: 4 << 30, processes: 4096, disk: 8 << 30 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 2 << 30, entries: 1_000_000, depth: 128, build: BuildLimits::default() }
    }
}

/// What is left of the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    limits: Limits,
    bytes: u64,
    entries: u64,
}

impl Budget {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, bytes: limits.bytes, entries: limits.entries }
    }

    /// Takes an entry at a depth.
    pub(super) fn take_entry(&mut self, depth: usize) -> Result<()> {
        if depth > self.limits.depth {
            return Err(too_large(&format!("folders deeper than {}", self.limits.depth), "depth"));
        }
        self.entries = self
            .entries
            .checked_sub(1)
            .ok_or_else(|| too_large(&format!("more than {} entries", self.limits.entries), "entries"))?;
        Ok(())
    }

    /// Takes bytes.
    pub(super) fn take_bytes(&mut self, count: u64) -> Result<()> {
        self.bytes = self
            .bytes
            .checked_sub(count)
            .ok_or_else(|| too_large(&format!("more than {} bytes", self.limits.bytes), "launchable"))?;
        Ok(())
    }
}

fn too_large(what: &str, key: &str) -> Failure {
    Failure::stalled(format!("the launchable has {what}")).hint(format!(
        "leave out what is not needed, or raise the repository's `limits.{key}` in the daemon's configuration"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_may_be_reached_and_not_passed() {
        let mut budget = Budget::new(Limits { bytes: 10, entries: 2, depth: 3, ..Limits::default() });
        assert!(budget.take_bytes(10).is_ok() && budget.take_bytes(0).is_ok());
        assert_eq!(budget.take_bytes(1).unwrap_err().to_string(), "the launchable has more than 10 bytes");
        assert!(budget.take_entry(3).is_ok());
        assert_eq!(budget.take_entry(4).unwrap_err().to_string(), "the launchable has folders deeper than 3");
        assert!(budget.take_entry(1).is_ok());
        assert_eq!(budget.take_entry(1).unwrap_err().to_string(), "the launchable has more than 2 entries");
    }
}
