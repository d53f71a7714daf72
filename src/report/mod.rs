//! What is told to people and machines about a revision.

pub mod ledger;
pub mod status;
