//! From files to declared objects: reading, defaults, validation. Pure.

pub mod problem;
pub mod yaml;
