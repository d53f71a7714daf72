//! Lists as Bitbucket gives them.

use serde::Deserialize;

use crate::forge::paging::{More, Page};

/// A page of a list, and what is said there of what follows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing<T> {
    #[serde(default = "Vec::new")]
    pub(super) values: Vec<T>,
    /// Where Bitbucket Cloud has the next page.
    next: Option<String>,
    /// Whether Bitbucket Data Center has no more.
    is_last_page: Option<bool>,
    /// Where it goes on, which need not be behind as many as were given: those that nobody may see are left out.
    next_page_start: Option<usize>,
}

impl<T> Listing<T> {
    /// One of Bitbucket Cloud, whose pages are numbered.
    pub(super) fn numbered(self) -> Page<T> {
        let more = if self.next.is_some() { More::Next } else { More::Unsaid };
        Page::new(self.values, more)
    }

    /// One of Bitbucket Data Center, which says where the next begins.
    pub(super) fn placed(self) -> Page<T> {
        let start = self.next_page_start.filter(|_| self.is_last_page == Some(false));
        Page::new(self.values, start.map_or(More::Nothing, More::At))
    }
}
