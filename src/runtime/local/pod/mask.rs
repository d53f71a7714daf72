//! The values of the Secrets that a pod refers to, plain and in base64, taken out of what it prints before that is kept
//! or told. So whatever is made of its output, a log, a message, a status, holds none of them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::data;
use super::record::PodRecord;
use crate::model::masking::{self, SHORTEST};
use crate::model::object::Kind;

/// What stands in the place of a secret, however long that is.
const MASK: &str = "***";
/// A longer text is searched for in pieces of this length, so that no more than that of the output is ever held back. It is
/// the length of a line of base64 in PEM.
const PIECE: usize = 64;
/// The length of a line that `base64` prints.
const BASE64_LINE: usize = 76;
/// The most bytes of values that are searched for, the shortest values first: finding them takes about hundred times that
/// of memory for each pod.
const MOST_BYTES: usize = 64 << 10;

/// Finds secrets. It never shows them itself.
#[derive(Clone, Default)]
pub(crate) struct Mask(Option<Arc<Finder>>);

struct Finder {
    /// What is searched for, sorted; none holds a line break.
    patterns: Vec<Vec<u8>>,
    automaton: AhoCorasick,
    longest: usize,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask(…)")
    }
}

impl Mask {
    /// Finds the values of all Secrets that a pod refers to.
    pub(crate) fn of(record: &PodRecord) -> Self {
        let secrets = record.objects.iter().filter(|object| object.key.kind == Kind::Secret);
        // A Secret that cannot be decoded reaches no pod.
        let entries = secrets.filter_map(|object| data::entries(&object.key.kind, &object.content).ok());
        Self::new(entries.flat_map(|entries| entries.into_values()))
    }

    /// Finds these values.
    pub(crate) fn new(values: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut values: Vec<Vec<u8>> = values.into_iter().collect();
        values.sort_by_key(Vec::len);
        let mut left = MOST_BYTES;
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        for value in values.into_iter().filter(|value| masking::lines(value).next().is_some()) {
            let Some(rest) = left.checked_sub(value.len()) else { break };
            left = rest;
            masking::lines(&value).for_each(|line| cut(line, PIECE, &mut patterns));
            add_base64(&value, &mut patterns);
        }
        patterns.sort();
        patterns.dedup();
        // Most pods have nothing to be masked, and shims are small.
        let Some(longest) = patterns.iter().map(Vec::len).max() else { return Self::default() };
        // The smallest kind: each pod has one, and few print much. Only one of gigabytes could not be built.
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&patterns);
        Self(automaton.ok().map(|automaton| Arc::new(Finder { patterns, automaton, longest })))
    }

    /// A whole message without its secrets.
    pub(crate) fn text(&self, message: &str) -> String {
        let (mut masked, mut stream) = (Vec::new(), self.stream());
        stream.push(message.as_bytes(), |clean| masked.extend_from_slice(clean));
        stream.end(|clean| masked.extend_from_slice(clean));
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Takes secrets out of output that comes bit by bit.
    pub(crate) fn stream(&self) -> Masked {
        Masked { mask: self.clone(), held: Vec::new(), told: None }
    }
}

/// Adds a text, or the pieces that it consists of.
fn cut(text: &[u8], length: usize, patterns: &mut Vec<Vec<u8>>) {
    patterns.extend(text.chunks(length).filter(|piece| piece.len() >= SHORTEST).map(<[u8]>::to_vec));
    // The end that is too short for a piece of its own is part of one that overlaps the one before.
    if let Some(start) = text.len().checked_sub(length) {
        patterns.extend(text.get(start..).map(<[u8]>::to_vec));
    }
}

/// Adds what a value looks like in base64: encoded alone, and as part of something, wherever it begins in there.
fn add_base64(value: &[u8], patterns: &mut Vec<Vec<u8>>) {
    let trimmed = value.trim_ascii();
    for alone in [value, trimmed, &[trimmed, b"\n"].concat()] {
        let encoded = STANDARD.encode(alone).into_bytes();
        add_spellings(&encoded, PIECE, patterns);
        add_spellings(&encoded, BASE64_LINE, patterns);
    }
    for before in 0..3 {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(trimmed.iter().copied()).collect();
        let encoded = STANDARD_NO_PAD.encode(&padded);
        // A character holds six bits; those at both ends hold some of a neighbour's.
        let own = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
        add_spellings(encoded.as_bytes().get(own).unwrap_or_default(), PIECE, patterns);
    }
}

/// Adds a text in base64, also in the alphabet for addresses.
fn add_spellings(encoded: &[u8], length: usize, patterns: &mut Vec<Vec<u8>>) {
    cut(encoded, length, patterns);
    if encoded.iter().any(|byte| matches!(byte, b'+' | b'/')) {
        let other = |byte: &u8| match byte {
            b'+' => b'-',
            b'/' => b'_',
            other => *other,
        };
        cut(&encoded.iter().map(other).collect::<Vec<_>>(), length, patterns);
    }
}

impl Finder {
    /// Where secrets are, in order; those that touch are one. The first `told` bytes are known to be part of one.
    fn find(&self, output: &[u8], told: Option<usize>) -> Vec<Range<usize>> {
        let found = self.automaton.find_overlapping_iter(output).map(|found| found.range());
        let mut found: Vec<Range<usize>> = told.map(|told| 0..told).into_iter().chain(found).collect();
        found.sort_by_key(|range| range.start);
        found.dedup_by(|next, before| {
            let touches = next.start <= before.end;
            if touches {
                before.end = before.end.max(next.end);
            }
            touches
        });
        found
    }

    /// How much of the end of some output may be the beginning of a secret whose rest has not come yet.
    fn begun(&self, output: &[u8]) -> usize {
        let most = output.len().min(self.longest - 1);
        let goes_on = |length: &usize| {
            let end = output.get(output.len() - length..).unwrap_or_default();
            let first = self.patterns.partition_point(|pattern| pattern.as_slice() < end);
            let candidates = self.patterns.iter().skip(first).take_while(|pattern| pattern.starts_with(end));
            candidates.take(2).any(|pattern| pattern.len() > *length)
        };
        (1..=most).rev().find(goes_on).unwrap_or(0)
    }
}

/// Output that comes bit by bit, without its secrets. No secret that is searched for holds a line break, so a whole line is
/// never held back, and of the beginning of one at most [`BASE64_LINE`] bytes.
pub(crate) struct Masked {
    mask: Mask,
    held: Vec<u8>,
    /// How much of what is held belongs to a secret whose mask was passed on already.
    told: Option<usize>,
}

impl fmt::Debug for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Masked(…)")
    }
}

impl Masked {
    /// Takes some output; passes on what is sure.
    pub(crate) fn push(&mut self, output: &[u8], mut sink: impl FnMut(&[u8])) {
        let Some(finder) = self.mask.0.clone() else { return sink(output) };
        self.held.extend_from_slice(output);
        let sure = self.held.len() - finder.begun(&self.held);
        if sure > 0 {
            sink(&self.take(&finder, sure));
        }
    }

    /// No more comes: passes on what is held. A secret that was cut off by the end is none the less one.
    pub(crate) fn end(&mut self, mut sink: impl FnMut(&[u8])) {
        let (held, told) = (std::mem::take(&mut self.held), self.told.take());
        match held.get(told.unwrap_or(0)..).unwrap_or_default() {
            [] => {}
            _ if held.len() >= SHORTEST && told.is_some() => {}
            _ if held.len() >= SHORTEST => sink(MASK.as_bytes()),
            rest => sink(rest),
        }
    }

    /// The first `sure` bytes of what is held, masked.
    fn take(&mut self, finder: &Finder, sure: usize) -> Vec<u8> {
        let told = self.told.take();
        let (mut clean, mut at) = (Vec::with_capacity(sure), 0);
        for secret in finder.find(&self.held, told).into_iter().take_while(|secret| secret.start < sure) {
            clean.extend_from_slice(self.held.get(at..secret.start).unwrap_or_default());
            if secret.start > 0 || told.is_none() {
                clean.extend_from_slice(MASK.as_bytes());
            }
            at = secret.end.min(sure);
            self.told = secret.end.checked_sub(sure);
        }
        clean.extend_from_slice(self.held.get(at..sure).unwrap_or_default());
        self.held.drain(..sure);
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(values: &[&str]) -> Mask {
        Mask::new(values.iter().map(|value| value.as_bytes().to_vec()))
    }

    /// What comes out when `output` comes in pieces of each length.
    fn in_pieces(mask: &Mask, output: &str) -> String {
        let whole = mask.text(output);
        for length in [1, 2, 3, 7, 63, 64, 65] {
            let (mut clean, mut stream) = (Vec::new(), mask.stream());
            for piece in output.as_bytes().chunks(length) {
                stream.push(piece, |some| clean.extend_from_slice(some));
                assert!(stream.held.len() < BASE64_LINE);
            }
            stream.end(|some| clean.extend_from_slice(some));
            assert_eq!(String::from_utf8(clean).unwrap(), whole, "in pieces of {length}");
        }
        whole
    }

    #[test]
    fn a_value_is_masked_wherever_the_output_is_cut() {
        let mask = mask(&["hunter2!\n", "5432"]);
        for (output, expected) in [
            ("psql -h db -p 5432 -W hunter2! failed\n", "psql -h db -p 5432 -W *** failed\n"),
            ("hunter2!hunter2!", "***"),
            ("hunter2 is not it, hunt", "hunter2 is not it, hunt"),
            ("it was hunter2", "it was ***"),
            ("hunthunter2!er2!", "hunt***er2!"),
            ("", ""),
        ] {
            assert_eq!(in_pieces(&mask, output), expected);
        }
    }

    #[test]
    fn values_that_contain_or_overlap_each_other_leave_nothing() {
        let mask = mask(&["swordfish", "swordfish-and-chips", "chips-and-dips", "fish-an"]);
        for (output, expected) in [
            ("swordfish", "***"),
            ("swordfish-and-chip", "***"),
            ("swordfish-and-chip!", "***d-chip!"),
            ("swordfish-and-chips-and-dips!", "***!"),
            ("a swordfish-and-chips, b", "a ***, b"),
            ("swordfish-anx", "***x"),
            ("swordfish-axx", "***-axx"),
        ] {
            assert_eq!(in_pieces(&mask, output), expected);
        }
    }

    #[test]
    fn base64_is_masked_alone_in_lines_and_as_part_of_something() {
        let long: String = (0..40).map(|number| format!("k{number}?>~")).collect();
        for value in ["hunter2!", "hunter22!", "hunter222!", &long] {
            let mask = mask(&[value]);
            for around in ["{}", "{}\n", "user:{}", "u:{}@host", "us:{} "] {
                let encoded = STANDARD.encode(around.replace("{}", value));
                let for_addresses = encoded.replace('+', "-").replace('/', "_");
                let wrapped = |length| {
                    let lines =
                        encoded.as_bytes().chunks(length).map(|line| String::from_utf8_lossy(line).into_owned());
                    lines.collect::<Vec<_>>().join("\n")
                };
                // What is around it, a few bits of its first and last byte, and a last line that is short.
                let most = (around.len() - 2) * 4 / 3 + 6;
                let shows = |text: &str| in_pieces(&mask, text).replace("***", "").replace('\n', "").len();
                assert!(shows(&encoded) <= most && shows(&for_addresses) <= most, "{around}: {encoded}");
                if around.trim() == "{}" {
                    assert!(shows(&wrapped(64)) <= most && shows(&wrapped(76)) <= most, "{around}: {encoded}");
                }
            }
            assert_eq!(in_pieces(&mask, &STANDARD.encode(value)), "***");
        }
    }

    #[test]
    fn each_line_of_a_key_is_masked_and_a_whole_line_is_never_held_back() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n";
        let mask = mask(&[key]);
        assert_eq!(in_pieces(&mask, &format!("using {key}")), "using ***\n***\n***\n");
        let (mut clean, mut stream) = (Vec::new(), mask.stream());
        stream.push(b"MIIEvQIBADANBg\nMII\n", |some| clean.extend_from_slice(some));
        assert_eq!(clean, b"***\nMII\n");
    }

    #[test]
    fn memory_is_bounded_and_short_values_come_first() {
        let many = (0..100).map(|number| format!("{number:03}-{}", "long-value ".repeat(1000)));
        let mask = Mask::new(many.map(String::into_bytes).chain([b"hunter2!".to_vec()]));
        assert_eq!(mask.text("hunter2!"), "***");
        let bytes = mask.0.as_ref().unwrap().automaton.memory_usage();
        assert!(bytes < 100 * MOST_BYTES, "{bytes}");
    }

    #[test]
    fn nothing_shows_the_values() {
        let mask = mask(&["hunter2!"]);
        let mut stream = mask.stream();
        stream.push(b"hunter", |_| {});
        assert_eq!(format!("{mask:?} {stream:?}"), "Mask(…) Masked(…)");
    }

    proptest::proptest! {
        #[test]
        fn no_value_gets_through_however_it_is_cut(
            values in proptest::collection::vec("[ab]{6,9}", 1..4),
            output in "[ab\n]{0,60}",
            cuts in proptest::collection::vec(1_usize..9, 60),
        ) {
            let mask = Mask::new(values.iter().map(|value| value.clone().into_bytes()));
            let (mut clean, mut stream, mut rest) = (Vec::new(), mask.stream(), output.as_bytes());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                stream.push(piece, |some| clean.extend_from_slice(some));
                rest = after;
            }
            stream.end(|some| clean.extend_from_slice(some));
            let clean = String::from_utf8(clean).unwrap();
            proptest::prop_assert!(!values.iter().any(|value| clean.contains(value)), "{clean}");
            if !values.iter().any(|value| output.contains(value)) && output.ends_with('\n') {
                proptest::prop_assert_eq!(clean, output);
            }
        }
    }
}
