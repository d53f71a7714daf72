//! Azure DevOps.

mod webhook;

pub(in crate::forge) use webhook::DIALECT;
