//! What a read of many records finds, where one of them may be damaged.

use crate::error::{Failure, Result};

use super::RecordKey;

/// Records, and those that are there and cannot be read: they keep nobody from the others.
///
/// Whoever concludes something from what is absent, such as that it may be deleted, asks for the [`Listing::whole`], or looks
/// among what is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// What was read.
    pub found: Vec<T>,
    /// What could not be.
    pub damaged: Vec<Damaged>,
}

/// A record that is there and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Which.
    pub key: RecordKey,
    /// Why, and what to do, for people.
    pub problem: String,
}

impl<T> Listing<T> {
    /// Everything that is there.
    ///
    /// # Errors
    /// If a part of it cannot be read.
    pub fn whole(self) -> Result<Vec<T>> {
        self.damaged.first().map_or(Ok(self.found), |damaged| Err(damaged.failure()))
    }

    /// The first one of which something is so.
    ///
    /// # Errors
    /// If it is not there, unless it is among what cannot be read.
    pub fn find(self, is_so: impl Fn(&T) -> bool) -> Result<Option<T>> {
        match self.found.into_iter().find(is_so) {
            None => self.damaged.first().map_or(Ok(None), |damaged| Err(damaged.failure())),
            found => Ok(found),
        }
    }
}

impl<T> FromIterator<Result<T, Damaged>> for Listing<T> {
    fn from_iter<I: IntoIterator<Item = Result<T, Damaged>>>(rows: I) -> Self {
        let mut listing = Self { found: Vec::new(), damaged: Vec::new() };
        for row in rows {
            match row {
                Ok(record) => listing.found.push(record),
                Err(damaged) => listing.damaged.push(damaged),
            }
        }
        listing
    }
}

impl<T> From<Vec<T>> for Listing<T> {
    fn from(found: Vec<T>) -> Self {
        Self { found, damaged: Vec::new() }
    }
}

impl Damaged {
    /// What is said to whoever needs it.
    pub fn failure(&self) -> Failure {
        Failure::stalled(format!("`{}` cannot be read: {}", self.key, self.problem))
    }
}
