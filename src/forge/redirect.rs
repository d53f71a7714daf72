//! Where a redirect of the API leads with a token. Gitea answers so for a repository that was renamed or handed over.

use http::{HeaderValue, StatusCode};
use reqwest::Url;

/// A renamed owner, a renamed repository, and some patience.
pub(super) const LIMIT: usize = 5;

/// Where an answer leads, if that is on the host that was asked: only this one gets the token. The request stays what it
/// was, also where a browser would make a GET of a POST.
pub(super) fn on_the_same_host(from: &Url, status: StatusCode, location: Option<&HeaderValue>) -> Option<Url> {
    if !matches!(status.as_u16(), 301 | 302 | 307 | 308) {
        return None;
    }
    let target = from.join(location?.to_str().ok()?).ok()?;
    let becomes_encrypted = from.scheme() == "http" && target.scheme() == "https" && target.port().is_none();
    let is_same = from.origin() == target.origin() || (becomes_encrypted && from.host() == target.host());
    (is_same && target.username().is_empty() && target.password().is_none()).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_host_is_followed() {
        let from = "https://git.example/api/v1/repos/acme/shop/statuses/1";
        let renamed = "https://git.example/api/v1/repos/acme/store/statuses/1";
        let plain = from.replace("https", "http");
        let cases = [
            (from, 307, renamed, Some(renamed)),
            (from, 301, "/api/v1/repos/acme/store/statuses/1", Some(renamed)),
            (from, 308, renamed, Some(renamed)),
            (from, 303, renamed, None),
            (from, 304, renamed, None),
            (from, 200, renamed, None),
            (from, 307, "https://other.example/api/v1/repos/acme/shop", None),
            (from, 307, "https://git.example:8443/api/v1/repos/acme/shop", None),
            (from, 307, "https://git.example.evil.example/", None),
            (from, 307, "https://git.example@evil.example/", None),
            (from, 307, "https://user@git.example/", None),
            (from, 307, "//evil.example/", None),
            (from, 307, "http://git.example/api/v1/repos/acme/store", None),
            (&plain, 301, from, Some(from)),
            (&plain, 301, "https://git.example:8443/", None),
            (from, 307, "https://", None),
        ];
        for (from, status, location, expected) in cases {
            let from = Url::parse(from).unwrap();
            let location = HeaderValue::from_str(location).unwrap();
            let found = on_the_same_host(&from, StatusCode::from_u16(status).unwrap(), Some(&location));
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{status} {location:?}");
        }
        let from = Url::parse(from).unwrap();
        assert_eq!(on_the_same_host(&from, StatusCode::TEMPORARY_REDIRECT, None), None);
    }
}
