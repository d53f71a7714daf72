//! Characters in the target of a request that are none of a URI's, and that everybody passes on all the same: quotes in a
//! query, as `curl` sends them, or angle brackets. hyper would refuse them; written as a URI writes them, they mean what
//! they meant.

/// Not in URIs (RFC 3986, appendix A), and taken by HAProxy and nginx.
const TAKEN: &[u8] = b"\"<>`";

/// A head with its target as a URI writes it, if it begins with a whole request line that needs that.
pub(super) fn as_uri(head: &[u8]) -> Option<Vec<u8>> {
    let end = head.iter().skip_while(|byte| matches!(byte, b'\r' | b'\n'));
    let start = head.len() - end.count();
    let rest = head.get(start..)?;
    let line = rest.get(..rest.iter().position(|byte| *byte == b'\n')?)?;
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_line = is_method(method) && version.starts_with(b"HTTP/1.") && words.next().is_none();
    if !is_line || !target.iter().any(|byte| TAKEN.contains(byte)) {
        return None;
    }
    let mut written = head.get(..start + method.len() + 1)?.to_vec();
    for byte in target {
        match TAKEN.contains(byte) {
            true => written.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            false => written.push(*byte),
        }
    }
    written.extend_from_slice(rest.get(method.len() + 1 + target.len()..)?);
    Some(written)
}

fn is_method(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_uri_is_written_as_one_and_nothing_else_is_touched() {
        let table = [
            (
                "GET /a?q={\"b\":1} HTTP/1.1\r\nX: \"<>\"\r\n\r\n",
                Some("GET /a?q={%22b%22:1} HTTP/1.1\r\nX: \"<>\"\r\n\r\n"),
            ),
            ("GET /<a>`b HTTP/1.0\n\n", Some("GET /%3Ca%3E%60b HTTP/1.0\n\n")),
            ("\r\nGET /\"\" HTTP/1.1\r\n", Some("\r\nGET /%22%22 HTTP/1.1\r\n")),
            ("M-SEARCH /\" HTTP/1.1\n\"body\"", Some("M-SEARCH /%22 HTTP/1.1\n\"body\"")),
            ("GET /a?b={c}|d^e[f]\\ HTTP/1.1\r\nX: <y>\r\n\r\n", None),
            ("GET /\" HTTP/1.1", None),
            ("GET /\" b HTTP/1.1\r\n", None),
            ("GET /\" SIP/2.0\r\n", None),
            ("Link: <a> HTTP/1.1\r\n", None),
            ("k: </\"> b\r\n", None),
            ("", None),
            ("\r\n", None),
        ];
        for (head, expected) in table {
            let written = as_uri(head.as_bytes()).map(|head| String::from_utf8(head).unwrap());
            assert_eq!(written.as_deref(), expected, "{head:?}");
        }
    }
}
