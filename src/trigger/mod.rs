//! What makes launchway look at a repository again. A trigger carries no state: it only says "look".

pub mod coalesce;
pub mod poll;
pub mod schedule;
pub mod watch;
