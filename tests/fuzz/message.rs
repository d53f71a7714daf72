//! An input that is a message: lines `name: value`, an empty line, and a body. Without an empty line it is all body.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Its headers, as far as HTTP could carry them, and its body.
pub(crate) fn parts(input: &[u8]) -> (HeaderMap, &[u8]) {
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = end.map_or((&b""[..], input), |end| (&input[..end], &input[end + 2..]));
    let mut headers = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.try_append(name, value).unwrap_or_default(); // beyond what fits, HTTP carries none either
        }
    }
    (headers, body)
}
