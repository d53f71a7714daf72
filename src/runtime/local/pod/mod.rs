//! A pod: what is written down of it, what its processes find, and what became of it.

pub(crate) mod adopted;
pub(crate) mod container;
pub(crate) mod data;
mod endpoints;
mod entry;
pub(crate) mod environment;
pub(crate) mod exec;
pub(crate) mod expand;
pub(crate) mod follow;
mod index;
pub(crate) mod launch;
pub(crate) mod lines;
pub(crate) mod logs;
pub(crate) mod lost;
pub(crate) mod mask;
pub(crate) mod paths;
pub(crate) mod quantity;
pub(crate) mod record;
mod refresh;
mod scale;
pub(crate) mod start;
pub(crate) mod status;
mod strangers;
mod streams;
mod surroundings;
pub(crate) mod table;
pub(crate) mod volume;
