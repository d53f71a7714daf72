//! Heads of messages on their way through: what belongs to one connection stays on it (RFC 9110, 7.6.1).

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Method, Response, StatusCode, Version};

/// Fields that concern one connection, besides those that `Connection` names.
const PER_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Whether a request asks for another protocol on its connection. One of HTTP/1.0 cannot (RFC 9110, 7.8).
pub(super) fn is_upgrade(version: Version, headers: &HeaderMap) -> bool {
    version >= Version::HTTP_11
        && headers.contains_key(UPGRADE)
        && connection_options(headers).any(|option| option.eq_ignore_ascii_case("upgrade"))
}

/// The transfer codings of a message, if there are others than the chunks that are taken apart here and made anew.
pub(super) fn other_codings(headers: &HeaderMap) -> Option<HeaderValue> {
    let values: Vec<&[u8]> = headers.get_all(TRANSFER_ENCODING).into_iter().map(HeaderValue::as_bytes).collect();
    let codings = values.join(b", ".as_slice());
    let is_plain = codings.is_empty() || codings.trim_ascii().eq_ignore_ascii_case(b"chunked");
    // Values of fields, joined like this, are one.
    if is_plain { None } else { HeaderValue::from_bytes(&codings).ok() }
}

/// Whether a request may be sent again when nobody knows whether it was received: RFC 9110, 9.2.2.
pub(super) fn is_idempotent(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE].contains(method)
}

/// Whether a request leaves open which host it is for: proxies and pods could choose different ones (RFC 9112, 3.2).
pub(super) fn has_several_hosts(headers: &HeaderMap) -> bool {
    headers.get_all(HOST).iter().nth(1).is_some()
}

/// Makes a client's request one of the proxy's own. `authority` is where the client connected to.
pub(super) fn prepare_request(head: &mut Parts, authority: &str) {
    let upgrade = is_upgrade(head.version, &head.headers).then(|| head.headers.get(UPGRADE).cloned()).flatten();
    let trailers = head.headers.get(TE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"));
    remove_per_connection(&mut head.headers);
    // Who speaks HTTP/1.0 knows of no answer to that before the last one (RFC 9110, 10.1.1).
    if head.version < Version::HTTP_11 {
        head.headers.remove(EXPECT);
    }
    keep_upgrade(&mut head.headers, upgrade);
    if trailers {
        head.headers.insert(TE, HeaderValue::from_static("trailers"));
        head.headers.append(CONNECTION, HeaderValue::from_static("te"));
    }
    set_host(head, authority);
    head.uri = origin_form(&head.uri);
    head.version = Version::HTTP_11;
}

/// Makes a pod's response one of the proxy's own.
pub(super) fn prepare_response<B>(response: &mut Response<B>) {
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let upgrade = switches.then(|| response.headers().get(UPGRADE).cloned()).flatten();
    let codings = other_codings(response.headers());
    remove_per_connection(response.headers_mut());
    keep_upgrade(response.headers_mut(), upgrade);
    // The body passes as it is: hyper ends it by chunks, and says so, if that is not the last of them.
    if let Some(codings) = codings {
        response.headers_mut().insert(TRANSFER_ENCODING, codings);
    }
    *response.version_mut() = Version::HTTP_11;
}

fn keep_upgrade(headers: &mut HeaderMap, upgrade: Option<HeaderValue>) {
    if let Some(protocol) = upgrade {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Removes what concerns one connection.
pub(super) fn remove_per_connection(headers: &mut HeaderMap) {
    // A body in chunks was read as such, whatever length was given as well (RFC 9112, 6.3).
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let named: Vec<HeaderName> = connection_options(headers).filter_map(|option| option.parse().ok()).collect();
    // Naming these would remove what a message cannot do without.
    let essential = [HOST, PROXY_AUTHENTICATE, CONTENT_LENGTH];
    for name in named.iter().filter(|name| !essential.contains(name)).chain(&PER_CONNECTION) {
        headers.remove(name);
    }
}

fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|option| !option.is_empty())
}

/// An absolute target names the host (RFC 9112, 3.2.2), and a client of HTTP/1.0 need not name any.
fn set_host(head: &mut Parts, authority: &str) {
    // Who asks is nobody's host (RFC 9110, 4.2.4).
    let host = head.uri.authority().map(|it| it.as_str().rsplit('@').next().unwrap_or_default().to_owned());
    let value = match host {
        Some(host) => host,
        None if head.headers.contains_key(HOST) => return,
        None => authority.to_owned(),
    };
    if let Ok(value) = HeaderValue::try_from(value) {
        head.headers.insert(HOST, value);
    }
}

fn origin_form(uri: &Uri) -> Uri {
    uri.path_and_query().cloned().map_or_else(|| Uri::from(PathAndQuery::from_static("/")), Uri::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn prepared(request: hyper::http::request::Builder) -> Parts {
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        prepare_request(&mut head, "127.128.0.1:80");
        head
    }

    #[test]
    fn the_length_of_a_body_in_chunks_is_nobodys_business() {
        let response = Response::builder().header("Content-Length", "3").header("Transfer-Encoding", "chunked");
        let mut response = response.body(()).unwrap();
        prepare_response(&mut response);
        assert!(response.headers().is_empty(), "{response:?}");
    }

    #[test]
    fn fields_of_one_connection_are_removed_and_all_others_stay() {
        let request = Request::get("/a?b=c")
            .header("Host", "shop.example")
            .header("Connection", "close, X-Private")
            .header("Keep-Alive", "timeout=5")
            .header("Transfer-Encoding", "chunked")
            .header("X-Private", "1")
            .header("X-Forwarded-For", "192.0.2.1")
            .header("Cookie", "a=1");
        let head = prepared(request);
        let names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["host", "x-forwarded-for", "cookie"]);
        assert_eq!((head.uri.to_string().as_str(), &head.headers[HOST]), ("/a?b=c", &"shop.example".parse().unwrap()));
    }

    #[test]
    fn the_length_of_a_body_cannot_be_named_away() {
        let head = prepared(Request::post("/").header("Connection", "content-length").header("Content-Length", "3"));
        assert_eq!(head.headers["content-length"], "3");
    }

    #[test]
    fn an_upgrade_is_kept_if_the_connection_names_it() {
        let request = |connection| Request::get("/").header("Upgrade", "websocket").header("Connection", connection);
        let head = prepared(request("keep-alive, Upgrade"));
        assert_eq!(
            (&head.headers[UPGRADE], &head.headers[CONNECTION]),
            (&HeaderValue::from_static("websocket"), &HeaderValue::from_static("upgrade"))
        );
        assert!(!prepared(request("keep-alive")).headers.contains_key(UPGRADE));
        assert!(!prepared(request("Upgrade").version(Version::HTTP_10)).headers.contains_key(UPGRADE));
    }

    #[test]
    fn every_request_has_a_host_and_a_target_without_one() {
        let absolute = prepared(Request::get("http://shop.example:8080/x").header("Host", "other"));
        assert_eq!(
            (absolute.uri.to_string().as_str(), &absolute.headers[HOST]),
            ("/x", &HeaderValue::from_static("shop.example:8080"))
        );
        assert_eq!(prepared(Request::get("http://ann:secret@shop.example/x")).headers[HOST], "shop.example");
        assert_eq!(prepared(Request::get("/").version(Version::HTTP_10)).headers[HOST], "127.128.0.1:80");
        assert_eq!(prepared(Request::options("*")).uri, "*");
    }

    #[test]
    fn only_who_can_be_told_to_go_on_may_expect_it() {
        for (version, is_kept) in [(Version::HTTP_10, false), (Version::HTTP_11, true)] {
            let head = prepared(Request::post("/").version(version).header("Expect", "100-continue"));
            assert_eq!(head.headers.contains_key(EXPECT), is_kept, "{version:?}");
        }
    }

    #[test]
    fn codings_that_are_not_taken_off_stay_said() {
        for (codings, left) in [
            (vec![], None),
            (vec!["chunked"], None),
            (vec!["Chunked "], None),
            (vec!["gzip, chunked"], Some("gzip, chunked")),
            (vec!["gzip", "chunked"], Some("gzip, chunked")),
            (vec!["gzip"], Some("gzip")),
        ] {
            let mut response = Response::new(());
            for coding in &codings {
                response.headers_mut().append(TRANSFER_ENCODING, HeaderValue::from_static(coding));
            }
            prepare_response(&mut response);
            let said = response.headers().get(TRANSFER_ENCODING).map(|codings| codings.to_str().unwrap());
            assert_eq!(said, left, "{codings:?}");
        }
    }

    #[test]
    fn a_response_loses_upgrade_unless_it_switches() {
        for (status, left) in [(StatusCode::SWITCHING_PROTOCOLS, 2), (StatusCode::OK, 0)] {
            let mut response = Response::new(());
            *response.status_mut() = status;
            response.headers_mut().insert(UPGRADE, HeaderValue::from_static("h2c"));
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
            prepare_response(&mut response);
            assert_eq!(response.headers().len(), left);
        }
    }
}
