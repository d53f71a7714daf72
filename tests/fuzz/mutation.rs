//! Changes that bring an input that is understood to where readers make mistakes: most keep it text.

use proptest::prelude::Rng as _;
use proptest::test_runner::TestRng;

/// No input grows larger, in bytes.
const LARGEST: usize = 32 << 10;
/// Changes to one input.
const CHANGES: usize = 6;
/// What readers trip over, beside the words of the corpus.
const TRAPS: [&str; 28] = [
    "",
    "0",
    "-1",
    "1e400",
    "2147483648",
    "18446744073709551616",
    "null",
    "~",
    "{}",
    "[]",
    "\"",
    "'",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    ">-\n",
    "---\n",
    "\t",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "${X}",
    "${{X}}",
    "%00",
    "0000",
    "ffff",
];

/// Makes inputs of others.
pub(crate) struct Mutator {
    random: TestRng,
    words: Vec<Vec<u8>>,
}

impl Mutator {
    /// One that knows the words of a corpus.
    pub(crate) fn new(random: TestRng, corpus: &[Vec<u8>]) -> Self {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./$".contains(byte);
        let of = |input: &Vec<u8>| input.split(|byte| !is_word(byte)).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let mut words: Vec<Vec<u8>> = corpus.iter().flat_map(of).filter(|word| !word.is_empty()).collect();
        words.extend(TRAPS.map(|trap| trap.as_bytes().to_vec()));
        words.sort();
        words.dedup();
        Self { random, words }
    }

    /// Another input, made of one or two of these.
    pub(crate) fn mutate(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut input = inputs[self.below(inputs.len())].clone();
        for _ in 0..=self.below(CHANGES) {
            self.change(&mut input, inputs);
            input.truncate(LARGEST);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, others: &[Vec<u8>]) {
        let (from, to) = self.range(input.len());
        match self.below(9) {
            0 => drop(input.drain(from..to)),
            1 => drop(input.splice(from..from, self.word())),
            2 => drop(input.splice(from..to, self.word())),
            3 => self.flip(input),
            4 => self.repeat(input, from, to),
            5 => {
                let other = &others[self.below(others.len())];
                let (from_there, to_there) = self.range(other.len());
                drop(input.splice(from..to, other[from_there..to_there].iter().copied()));
            }
            6 => self.replace_word(input, from),
            7 => self.swap_lines(input),
            _ => self.indent(input, from),
        }
    }

    /// A part, of a few bytes or of many.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length + 1);
        let most = if self.below(2) == 0 { 8 } else { length };
        (from, (from + self.below(most + 1)).min(length))
    }

    fn word(&mut self) -> Vec<u8> {
        let word = self.below(self.words.len());
        self.words[word].clone()
    }

    fn flip(&mut self, input: &mut [u8]) {
        if !input.is_empty() {
            let at = self.below(input.len());
            input[at] ^= 1 << self.below(8);
        }
    }

    fn repeat(&mut self, input: &mut Vec<u8>, from: usize, to: usize) {
        let times = 1 << self.below(10);
        let most = LARGEST.saturating_sub(input.len());
        let repeated: Vec<u8> = input[from..to].iter().copied().cycle().take(((to - from) * times).min(most)).collect();
        drop(input.splice(from..from, repeated));
    }

    /// The next word from there is another one.
    fn replace_word(&mut self, input: &mut Vec<u8>, from: usize) {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric();
        let Some(begin) = input[from..].iter().position(is_letter).map(|at| from + at) else { return };
        let end = input[begin..].iter().position(|byte| !is_letter(byte)).map_or(input.len(), |at| begin + at);
        drop(input.splice(begin..end, self.word()));
    }

    fn swap_lines(&mut self, input: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let (one, other) = (self.below(lines.len()), self.below(lines.len()));
        lines.swap(one, other);
        *input = lines.join(&b'\n');
    }

    /// The next line begins further right, or left.
    fn indent(&mut self, input: &mut Vec<u8>, from: usize) {
        let Some(line) = input[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at + 1) else { return };
        let blanks = input[line..].iter().take_while(|byte| **byte == b' ').count();
        let other = vec![b' '; self.below(blanks + 4)];
        drop(input.splice(line..line + blanks, other));
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64()).unwrap_or_default() % bound.max(1)
    }
}
