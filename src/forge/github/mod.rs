//! GitHub: calls about pushes. Statuses of repositories there are written as Git notes, see [`super::plain`].

mod webhook;

pub(super) use webhook::DIALECT;
