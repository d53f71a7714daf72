//! What generated values are derived from: made once for a store, and kept in it.

use std::fmt;

/// Thirty-two bytes that nobody is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Where no store is at hand: the values have their shape, and are nobody's.
    pub const NONE: Seed = Seed([0; 32]);

    /// A seed of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, for what is derived from them and for the store.
    pub fn reveal(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(…)")
    }
}
