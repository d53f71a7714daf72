//! The form in which output is kept: that of the Container Runtime Interface, which collectors of logs read. An entry is a
//! line `<RFC 3339 time> stdout <tags> <text>`; the tag `F` ends a line of output, `P` does not. A second tag, after a
//! colon, counts how often the container was started before, if it was.

use std::io::Write as _;

use crate::model::time::Timestamp;

/// Part of a line of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// When it was printed, in RFC 3339.
    pub(super) at: &'a str,
    /// How often the container was started before.
    pub(super) run: u32,
    /// Whether the line ends with it.
    pub(super) is_end: bool,
    /// What was printed, without the end of the line.
    pub(super) text: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads an entry; nothing if it is none.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let at = std::str::from_utf8(parts.next()?).ok()?;
        let (_stream, tags) = (parts.next()?, std::str::from_utf8(parts.next()?).ok()?);
        let (tag, run) = tags.split_once(':').unwrap_or((tags, "0"));
        Some(Self { at, run: run.parse().ok()?, is_end: tag == "F", text: parts.next()? })
    }

    /// When it was printed.
    pub(super) fn time(&self) -> Option<Timestamp> {
        let at: jiff::Timestamp = self.at.parse().ok()?;
        Some(Timestamp(at.as_millisecond()))
    }
}

/// Output as entries.
pub(super) fn entries(output: &[u8], at: Timestamp, run: u32) -> Vec<u8> {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    let run = if run == 0 { String::new() } else { format!(":{run}") };
    let mut entries = Vec::with_capacity(output.len() * 2);
    for piece in output.split_inclusive(|byte| *byte == b'\n') {
        let (text, tag) = match piece.strip_suffix(b"\n") {
            Some(text) => (text, 'F'),
            None => (piece, 'P'),
        };
        // Memory takes all that is written to it.
        write!(entries, "{at:.3} stdout {tag}{run} ").ok();
        entries.extend_from_slice(text);
        entries.push(b'\n');
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp(1_764_000_000_123);

    #[test]
    fn lines_and_parts_of_lines_are_read_as_they_were_printed() {
        let written = entries(b"one\n\n two \xff", AT, 0);
        let lines: Vec<&[u8]> = written.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines[0], b"2025-11-24T16:00:00.123Z stdout F one\n");
        let read: Vec<Entry<'_>> = lines.iter().filter_map(|line| Entry::parse(line)).collect();
        let told: Vec<_> = read.iter().map(|entry| (entry.text, entry.is_end, entry.run)).collect();
        assert_eq!(told, [(&b"one"[..], true, 0), (b"", true, 0), (b" two \xff", false, 0)]);
        assert!(read.iter().all(|entry| entry.time() == Some(AT)));
    }

    #[test]
    fn entries_of_later_runs_and_of_other_writers_are_read() {
        let later = entries(b"x\n", AT, 2);
        assert_eq!(later, b"2025-11-24T16:00:00.123Z stdout F:2 x\n");
        assert_eq!(Entry::parse(&later).map(|entry| entry.run), Some(2));
        let nanoseconds = b"2016-10-06T00:17:09.669794202Z stderr P log content 1\n";
        let read = Entry::parse(nanoseconds).unwrap();
        assert_eq!(
            (read.text, read.is_end, read.time()),
            (&b"log content 1"[..], false, Some(Timestamp(1_475_713_029_669)))
        );
        for none in [&b"\n"[..], b"torn", b"2016-10-06T00:17:09Z stdout"] {
            assert_eq!(Entry::parse(none), None);
        }
    }
}
