//! Git's packets: four hex digits of length, then the content.

use std::io::{self, Read};

/// The largest packet that the protocol knows, its length included.
const MAX_PACKET: usize = 65_520;
const HEADER: usize = 4;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    Data(Vec<u8>),
    Flush,
    Delimiter,
    ResponseEnd,
}

impl Packet {
    /// The content as text without its line end; `None` for the special packets.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Packet::Data(data) => Some(String::from_utf8_lossy(data).trim_end_matches('\n').to_owned()),
            _ => None,
        }
    }
}

/// Ends a message.
pub(super) const FLUSH: &[u8] = b"0000";
/// Stands between a command's capabilities and its arguments.
pub(super) const DELIMITER: &[u8] = b"0001";

/// Appends a packet with `line` in it; content that does not fit into one is cut.
pub(super) fn push_line(buffer: &mut Vec<u8>, line: &[u8]) {
    let line = line.get(..MAX_PACKET - HEADER).unwrap_or(line);
    buffer.extend_from_slice(format!("{:04x}", line.len() + HEADER).as_bytes());
    buffer.extend_from_slice(line);
}

/// Reads the next packet; an end of the stream is an error of kind `UnexpectedEof`.
pub(super) fn read_packet(input: &mut impl Read) -> io::Result<Packet> {
    let mut header = [0; HEADER];
    input.read_exact(&mut header)?;
    match packet_length(header)? {
        0 => Ok(Packet::Flush),
        1 => Ok(Packet::Delimiter),
        2 => Ok(Packet::ResponseEnd),
        length => {
            let mut data = vec![0; length - HEADER];
            input.read_exact(&mut data)?;
            Ok(Packet::Data(data))
        }
    }
}

fn packet_length(header: [u8; HEADER]) -> io::Result<usize> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not in Git's protocol");
    let digits = std::str::from_utf8(&header).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let length = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()).ok_or_else(invalid)?;
    if length == 3 || length > MAX_PACKET { Err(invalid()) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_written() {
        let mut bytes = Vec::new();
        push_line(&mut bytes, b"command=ls-refs\n");
        bytes.extend_from_slice(DELIMITER);
        bytes.extend_from_slice(b"0004");
        bytes.extend_from_slice(FLUSH);
        let mut input = bytes.as_slice();
        assert_eq!(read_packet(&mut input).expect("data").text().as_deref(), Some("command=ls-refs"));
        assert_eq!(read_packet(&mut input).expect("delimiter"), Packet::Delimiter);
        assert_eq!(read_packet(&mut input).expect("empty"), Packet::Data(Vec::new()));
        assert_eq!(read_packet(&mut input).expect("flush"), Packet::Flush);
        assert_eq!(read_packet(&mut input).expect_err("end").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        for bytes in [&b"<html>"[..], b"0003", b"fff1", b"+00a", b"00 a"] {
            assert_eq!(read_packet(&mut &*bytes).expect_err("refused").kind(), io::ErrorKind::InvalidData);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_content_comes_back(content in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            let mut bytes = Vec::new();
            push_line(&mut bytes, &content);
            proptest::prop_assert_eq!(read_packet(&mut bytes.as_slice()).expect("read"), Packet::Data(content));
        }
    }
}
