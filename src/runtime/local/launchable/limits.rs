//! How much a launchable may hold.

use crate::error::{Failure, Result};

/// Bounds of one launchable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, of an archive as well as of what comes out of it.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
    /// Folders in folders.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 2 << 30, entries: 1_000_000, depth: 128 }
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
            return Err(too_large(&format!("folders deeper than {}", self.limits.depth)));
        }
        self.entries = self
            .entries
            .checked_sub(1)
            .ok_or_else(|| too_large(&format!("more than {} entries", self.limits.entries)))?;
        Ok(())
    }

    /// Takes bytes.
    pub(super) fn take_bytes(&mut self, count: u64) -> Result<()> {
        self.bytes = self
            .bytes
            .checked_sub(count)
            .ok_or_else(|| too_large(&format!("more than {} bytes", self.limits.bytes)))?;
        Ok(())
    }
}

fn too_large(what: &str) -> Failure {
    Failure::stalled(format!("the launchable has {what}"))
        .hint("leave out what is not needed, or raise the repository's `limits` in the daemon's configuration")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_may_be_reached_and_not_passed() {
        let mut budget = Budget::new(Limits { bytes: 10, entries: 2, depth: 3 });
        assert!(budget.take_bytes(10).is_ok() && budget.take_bytes(0).is_ok());
        assert_eq!(budget.take_bytes(1).unwrap_err().to_string(), "the launchable has more than 10 bytes");
        assert!(budget.take_entry(3).is_ok());
        assert_eq!(budget.take_entry(4).unwrap_err().to_string(), "the launchable has folders deeper than 3");
        assert!(budget.take_entry(1).is_ok());
        assert_eq!(budget.take_entry(1).unwrap_err().to_string(), "the launchable has more than 2 entries");
    }
}
