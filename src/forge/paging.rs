//! Lists that a host gives page by page. A page with less than was asked for need not be the last one: whoever administers
//! the host may have set a lower limit. Hosts say in their own ways whether more follows.

use http::HeaderMap;
use http::header::LINK;

/// Pages that are read of a list.
const PAGES: usize = 20;

/// What is known of what follows a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// The host does not say: another page follows one that has as much as was asked for.
    Unsaid,
    /// The host never says: another page follows one that has anything.
    Perhaps,
    /// Another page follows.
    Next,
    /// What follows begins there.
    At(usize),
    /// So many are on all pages.
    Of(usize),
    /// Nothing follows, or nothing that is wanted.
    Nothing,
}

impl More {
    /// What the headers of an answer say: Gitea's count of all, GitLab's next page, and the links that most hosts give.
    pub(super) fn told(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(all) = text("x-total-count").and_then(|all| all.trim().parse().ok()) {
            return Self::Of(all);
        }
        let links = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
        let is_linked = links.flat_map(|links| links.split(',')).any(|link| link.contains("rel=\"next\""));
        let is_named = text("x-next-page").is_some_and(|page| !page.trim().is_empty());
        if is_linked || is_named { Self::Next } else { Self::Unsaid }
    }

    /// The same of a host with a limit of its own, which may be lower than any that is known.
    pub(super) fn or_perhaps(self) -> Self {
        if self == Self::Unsaid { Self::Perhaps } else { self }
    }

    /// Where the next page is, given where this one is, what it has, what was read with it, and what was asked for.
    pub(super) fn next(self, at: usize, here: usize, read: usize, asked: usize) -> Option<usize> {
        let follows = match self {
            Self::At(next) => return Some(next).filter(|next| *next > at),
            Self::Nothing => false,
            Self::Unsaid => here >= asked,
            Self::Perhaps => here > 0,
            Self::Next => true,
            Self::Of(all) => here >= asked || (here > 0 && read < all),
        };
        follows.then_some(at + 1)
    }
}

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page<T> {
    /// What is wanted of it.
    pub(super) items: Vec<T>,
    /// How many are on it.
    pub(super) here: usize,
    /// What follows it.
    pub(super) more: More,
}

impl<T> Page<T> {
    /// One of which all is wanted.
    pub(super) fn new(items: Vec<T>, more: More) -> Self {
        Self { here: items.len(), items, more }
    }
}

/// Reads page after page, as long as more follows; nothing, if there is not even a first one. Pages are numbered from 0, unless
/// one says where the next begins.
pub(super) async fn pages<T, E, F: Future<Output = Result<Option<Page<T>>, E>>>(
    asked: usize,
    page: impl FnMut(usize) -> F,
) -> Result<Option<Vec<T>>, E> {
    some_pages(asked, usize::MAX, page).await
}

/// The same until so many were on what was read.
pub(super) async fn some_pages<T, E, F: Future<Output = Result<Option<Page<T>>, E>>>(
    asked: usize,
    enough: usize,
    mut page: impl FnMut(usize) -> F,
) -> Result<Option<Vec<T>>, E> {
    let (mut all, mut at, mut read) = (None, 0, 0);
    for _page in 0..PAGES {
        let Some(Page { items, here, more }) = page(at).await? else { break };
        all.get_or_insert_with(Vec::new).extend(items);
        read += here;
        match more.next(at, here, read, asked) {
            Some(next) if read < enough => at = next,
            _ => break,
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(headers: &[(&'static str, &str)]) -> More {
        let header = |(name, value): &(&'static str, &str)| Some((name.parse().ok()?, value.parse().ok()?));
        More::told(&headers.iter().filter_map(header).collect())
    }

    #[test]
    fn hosts_say_in_their_own_ways_what_follows() {
        let both = r#"<https://host.example/?page=2>; rel="next", <https://host.example/?page=9>; rel="last""#;
        let last = r#"<https://host.example/?page=1>; rel="first", <https://host.example/?page=8>; rel="prev""#;
        for (headers, expected) in [
            (&[][..], More::Unsaid),
            (&[("link", both)], More::Next),
            (&[("link", last)], More::Unsaid),
            (&[("link", last), ("link", both)], More::Next),
            (&[("x-next-page", "2")], More::Next),
            (&[("x-next-page", "")], More::Unsaid),
            (&[("x-total-count", "61"), ("link", both)], More::Of(61)),
            (&[("x-total-count", "many")], More::Unsaid),
        ] {
            assert_eq!(told(headers), expected, "{headers:?}");
        }
    }

    /// Pages of a host that gives ten, where fifty are asked for.
    async fn read(all: usize, enough: usize, more: impl Fn(usize, bool) -> More) -> (usize, Vec<usize>) {
        let (mut asked, more) = (Vec::new(), &more);
        let found = some_pages(50, enough, |at| {
            asked.push(at);
            let from = if matches!(more(at, false), More::At(_)) { at } else { at * 10 };
            let items: Vec<usize> = (from..all).take(10).collect();
            let page = Page::new(items, more(at, from + 10 >= all));
            async move { Ok::<_, ()>(Some(page)) }
        });
        let found = found.await.ok().flatten().unwrap_or_default();
        (found.len(), asked)
    }

    #[tokio::test]
    async fn a_page_that_is_shorter_than_asked_for_is_the_last_one_only_if_nothing_says_otherwise() {
        let every = usize::MAX;
        assert_eq!(read(25, every, |_, _| More::Of(25)).await, (25, vec![0, 1, 2]));
        assert_eq!(read(25, every, |_, is_last| if is_last { More::Unsaid } else { More::Next }).await.0, 25);
        assert_eq!(read(25, every, |_, _| More::Perhaps).await, (25, vec![0, 1, 2, 3]));
        assert_eq!(read(30, every, |_, _| More::Of(30)).await, (30, vec![0, 1, 2]));
        let moved = |at: usize, is_last| if is_last { More::Nothing } else { More::At(at + 10) };
        assert_eq!(read(25, every, moved).await, (25, vec![0, 10, 20]));
        assert_eq!(read(25, every, |_, _| More::Unsaid).await, (10, vec![0]));
        assert_eq!(read(25, 20, |_, _| More::Of(25)).await, (20, vec![0, 1]));
    }

    #[tokio::test]
    async fn a_host_that_says_more_for_ever_is_not_asked_for_ever() {
        assert_eq!(read(10_000, usize::MAX, |_, _| More::Next).await.1.len(), PAGES);
        assert_eq!(read(10_000, usize::MAX, |at, _| More::At(at)).await.1, [0]);
        assert_eq!(read(0, usize::MAX, |_, _| More::Of(7)).await.1, [0], "a count that is wrong");
        let none = pages(50, |_| async { Ok::<Option<Page<()>>, ()>(None) }).await;
        assert_eq!(none, Ok(None));
    }
}
