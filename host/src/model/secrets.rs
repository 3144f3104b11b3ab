//! Values that nobody is to see, and their removal from what is shown and kept.
//!
//! A value is found as it is written: neither encoded, nor with line ends or colours inside.

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::{Anchored, nfa::contiguous::NFA};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that a value must have to be looked for: a shorter one is in every other word, and would leave nothing to read.
const SHORTEST: usize = 4;

/// Bytes from which a line of a value with several counts by itself. Keys are printed line by line, and a line with a
/// brace is in every file.
const SHORTEST_LINE: usize = 8;

/// The values of variables that are marked secret.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Patterns>>, Vec<String>);

/// What to look for, in one pass however much that is: a value can be a file of keys, and output has no end.
struct Patterns {
    automaton: NFA,
    /// What to write instead of each.
    instead: Vec<String>,
    longest: usize,
    /// Whether one of them goes on after the end of a line.
    across_lines: bool,
}

// By hand, so that no value is shown by accident.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.as_ref().map_or(0, |patterns| patterns.instead.len()))
    }
}

impl Secrets {
    /// Takes names and values. A name may come with several values.
    pub fn new<'a>(values: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut patterns: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        let mut too_short: Vec<String> = Vec::new();
        for (name, value) in values {
            let value = value.trim_ascii();
            if value.len() < SHORTEST {
                if !value.is_empty() && !too_short.iter().any(|short| short == name) {
                    too_short.push(name.to_owned());
                }
                continue;
            }
            let mut add = |value: &[u8]| {
                patterns.entry(value.to_owned()).or_insert_with(|| format!("[secret {name}]"));
            };
            add(value);
            // Messages have what is no text in this form.
            add(String::from_utf8_lossy(value).as_bytes());
            for line in value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
                if line.len() >= SHORTEST_LINE {
                    add(line);
                }
            }
        }
        Self(Patterns::new(patterns).map(Arc::new), too_short)
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The names whose values are too short to be looked for.
    pub fn too_short(&self) -> &[String] {
        &self.1
    }

    /// The text without them of the end of something: `bytes` begin [`Secrets::before`] the end, so that nothing is shown
    /// of a value that begins before.
    pub fn conceal_end(&self, bytes: &[u8]) -> Vec<u8> {
        let Some((before, end)) = bytes.split_at_checked(self.before()) else { return Vec::new() };
        let mut concealer = Concealer::new(self);
        let mut out = Vec::new();
        concealer.push(before, &mut out);
        out.clear();
        concealer.push(end, &mut out);
        concealer.finish(&mut out);
        out
    }

    /// How many bytes before the end of something tell all of the values in the end: a value may have begun before the
    /// first of them, and as many are held back in case that another one begins.
    pub fn before(&self) -> usize {
        2 * self.0.as_ref().map_or(0, |patterns| patterns.longest)
    }

    /// Whether one of the values is in there.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        let Some(patterns) = &self.0 else { return false };
        let mut state = patterns.start();
        bytes.iter().any(|byte| patterns.next(&mut state, *byte).is_some())
    }

    /// The text, with `[secret NAME]` in the place of each value.
    pub fn conceal(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        String::from_utf8_lossy(&self.conceal_bytes(text.as_bytes())).into_owned()
    }

    /// The same of bytes.
    pub fn conceal_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut concealer = Concealer::new(self);
        let mut out = Vec::with_capacity(bytes.len());
        concealer.push(bytes, &mut out);
        concealer.finish(&mut out);
        out
    }
}

impl Patterns {
    /// None where there is nothing to look for.
    fn new(patterns: BTreeMap<Vec<u8>, String>) -> Option<Self> {
        let longest = patterns.keys().map(Vec::len).max()?;
        let across_lines = patterns.keys().any(|value| value.contains(&b'\n'));
        // It fails for more bytes than a process can be given in its environment.
        #[expect(clippy::expect_used, reason = "to go on without it would show what is secret")]
        let automaton = NFA::new(patterns.keys()).expect("the values of variables are too large to be kept secret");
        Some(Self { automaton, instead: patterns.into_values().collect(), longest, across_lines })
    }

    fn start(&self) -> StateID {
        // An automaton of this kind starts anywhere.
        self.automaton.start_state(Anchored::No).unwrap_or_default()
    }

    /// Takes a byte: the longest value that ends with it, and how long that is.
    fn next(&self, state: &mut StateID, byte: u8) -> Option<(usize, usize)> {
        *state = self.automaton.next_state(Anchored::No, *state, byte);
        if !self.automaton.is_match(*state) {
            return None;
        }
        // The first of them is the longest: the others are ends of it.
        let pattern = self.automaton.match_pattern(*state, 0);
        Some((pattern.as_usize(), self.automaton.pattern_len(pattern)))
    }
}

/// Removes values from a stream that comes piece by piece, wherever the pieces are cut.
#[derive(Debug)]
pub struct Concealer<'a> {
    secrets: &'a Secrets,
    state: StateID,
    /// What may be the beginning of a value.
    held: Vec<u8>,
    /// Where in the stream that begins.
    at: usize,
    /// What is to go of what is held and was before it, in order: values that overlap are one gap.
    gaps: VecDeque<Gap>,
}

#[derive(Debug)]
struct Gap {
    bytes: Range<usize>,
    /// The longest value at its beginning.
    pattern: usize,
    /// Whether its place was written.
    told: bool,
}

impl<'a> Concealer<'a> {
    /// At the beginning of a stream.
    pub fn new(secrets: &'a Secrets) -> Self {
        let state = secrets.0.as_ref().map(|patterns| patterns.start()).unwrap_or_default();
        Self { secrets, state, held: Vec::new(), at: 0, gaps: VecDeque::new() }
    }

    /// Takes the next piece, and appends to `out` what is known by now.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let Some(patterns) = &self.secrets.0 else { return out.extend_from_slice(piece) };
        let mut end = self.at + self.held.len();
        self.held.extend_from_slice(piece);
        for byte in piece {
            end += 1;
            if let Some((pattern, length)) = patterns.next(&mut self.state, *byte) {
                self.cover(end - length..end, pattern);
            }
        }
        // No value that is still to be found begins before this; none goes on in the next line where none can.
        let mut to = (end + 1).saturating_sub(patterns.longest);
        if !patterns.across_lines {
            to = to.max(self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| self.at + last + 1));
        }
        self.advance(to, out);
    }

    /// Takes the end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.advance(self.at + self.held.len(), out);
    }

    /// Adds a value to the gaps, which ends where no other did.
    fn cover(&mut self, bytes: Range<usize>, pattern: usize) {
        let mut gap = Gap { bytes, pattern, told: false };
        while let Some(before) = self.gaps.pop_back_if(|before| before.bytes.end > gap.bytes.start) {
            // One that begins at the same place is longer than what began there before.
            if before.bytes.start < gap.bytes.start {
                gap.bytes.start = before.bytes.start;
                gap.pattern = before.pattern;
            }
            gap.told |= before.told;
        }
        self.gaps.push_back(gap);
    }

    fn advance(&mut self, to: usize, out: &mut Vec<u8>) {
        let Some(patterns) = &self.secrets.0 else { return };
        let begin = self.at;
        while self.at < to {
            match self.gaps.front_mut() {
                Some(gap) if gap.bytes.start <= self.at => {
                    if !gap.told {
                        out.extend_from_slice(patterns.instead[gap.pattern].as_bytes());
                        gap.told = true;
                    }
                    self.at = gap.bytes.end.min(to);
                    if self.at == gap.bytes.end {
                        self.gaps.pop_front();
                    }
                }
                gap => {
                    let next = gap.map_or(to, |gap| gap.bytes.start.min(to));
                    out.extend_from_slice(&self.held[self.at - begin..next - begin]);
                    self.at = next;
                }
            }
        }
        self.held.drain(..self.at - begin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(values: &[(&str, &str)]) -> Secrets {
        Secrets::new(values.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    #[test]
    fn a_value_goes_wherever_the_pieces_are_cut() {
        let secrets = secrets(&[("TOKEN", "s3cr3t!"), ("OTHER", "abab")]);
        let text = b"a s3cr3t! b ababab s3cr3s3cr3t! aba s3cr3t!s3cr3t! s3cr3t";
        let expected = "a [secret TOKEN] b [secret OTHER] s3cr3[secret TOKEN] aba [secret TOKEN][secret TOKEN] s3cr3t";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut concealer = Concealer::new(&secrets);
                let mut out = Vec::new();
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    concealer.push(piece, &mut out);
                }
                concealer.finish(&mut out);
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
    }

    #[test]
    fn a_whole_line_is_held_back_only_where_a_value_could_go_on_behind_it() {
        for (values, expected) in [
            (&[("A", "a-long-value")][..], "one\n[secret A]\n"),
            (&[("A", "a-long-value"), ("B", "first line\nsecond line")], ""),
        ] {
            let secrets = secrets(values);
            let mut concealer = Concealer::new(&secrets);
            let mut out = Vec::new();
            concealer.push(b"one\na-long-", &mut out);
            concealer.push(b"value\nlast", &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn of_two_values_that_begin_alike_the_longer_one_goes_and_of_two_that_overlap_both() {
        let secrets = secrets(&[("SHORT", "abcd"), ("LONG", "abcdefgh"), ("TAIL", "ghij")]);
        assert_eq!(secrets.conceal("abcdefgh abcdef abcdefghij"), "[secret LONG] [secret SHORT]ef [secret LONG]");
    }

    /// The same byte by byte, as it is easily seen to be right: at each place the longest value that begins there.
    fn simply(values: &[&str], text: &[u8]) -> Vec<u8> {
        let (mut covered, mut out) = (0, Vec::new());
        for at in 0..text.len() {
            let longest =
                values.iter().filter(|value| text[at..].starts_with(value.as_bytes())).max_by_key(|v| v.len());
            if let Some(value) = longest {
                if covered == 0 {
                    out.extend_from_slice(format!("[secret {value}]").as_bytes());
                }
                covered = covered.max(value.len());
            }
            if covered == 0 {
                out.push(text[at]);
            }
            covered = covered.saturating_sub(1);
        }
        out
    }

    #[test]
    fn whatever_values_overlap_in_whatever_way_the_same_goes() {
        let sets: [&[&str]; 5] = [
            &["aaaa", "aaaaa", "aaaaaaaa"],
            &["abab", "baba", "ababab"],
            &["aabb", "bbaa", "abba", "aabbaabb"],
            &["abcd", "bcda", "cdabcdab", "dabc"],
            &["bbbb", "abbbba", "bbbbbbb"],
        ];
        let mut random = 1_u64;
        for set in sets {
            let values: Vec<(&str, &str)> = set.iter().map(|value| (*value, *value)).collect();
            let secrets = secrets(&values);
            for _ in 0..300 {
                let mut text = Vec::new();
                let mut cuts = Vec::new();
                for _ in 0..60 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    text.push(set[0].as_bytes()[usize::try_from(random >> 60).unwrap() % set[0].len()]);
                    cuts.push((random >> 50).is_multiple_of(4));
                }
                let mut concealer = Concealer::new(&secrets);
                let (mut out, mut from) = (Vec::new(), 0);
                for at in (0..text.len()).filter(|at| cuts[*at]) {
                    concealer.push(&text[from..at], &mut out);
                    from = at;
                }
                concealer.push(&text[from..], &mut out);
                concealer.finish(&mut out);
                let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                assert_eq!(shown(&out), shown(&simply(set, &text)), "{}", shown(&text));
            }
        }
    }

    #[test]
    fn of_the_end_of_something_nothing_is_shown_of_a_value_that_began_before() {
        let secrets = secrets(&[("KEY", "0123456789")]);
        let text = b"..0123456789..0123456789..0123456789 the end";
        for from in 0..text.len() {
            let shown = String::from_utf8(secrets.conceal_end(&text[from..])).unwrap();
            let rest = shown.replace("[secret KEY]", "");
            assert!(!rest.contains(|c: char| c.is_ascii_digit()), "{from}: {shown}");
            assert!(from > 14 || shown.ends_with("[secret KEY] the end"), "{from}: {shown}");
        }
    }

    #[test]
    fn a_large_value_takes_no_longer_to_look_for() {
        let value: String = (0..100_000).map(|at| if at % 8 == 7 { '\n' } else { 'a' }).collect();
        let value = value + &"a".repeat(100_000);
        let secrets = secrets(&[("KEYS", &value)]);
        let mut concealer = Concealer::new(&secrets);
        let (piece, mut out) = ("aaaaaaa\n".repeat(8 << 10), Vec::new());
        let started = std::time::Instant::now();
        for _ in 0..64 {
            concealer.push(piece.as_bytes(), &mut out);
        }
        concealer.finish(&mut out);
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
        assert!(!String::from_utf8(out).unwrap().contains(&value));
    }

    #[test]
    fn short_values_are_named_and_not_looked_for() {
        let secrets = secrets(&[("PIN", "123"), ("EMPTY", ""), ("PIN", "12")]);
        assert!(secrets.is_empty());
        assert_eq!(secrets.too_short(), ["PIN"]);
        assert_eq!(secrets.conceal("123"), "123");
    }

    #[test]
    fn lines_of_a_value_go_by_themselves() {
        let secrets = secrets(&[("KEY", "-----BEGIN-----\nbGluZSBvbmU=\n{\n")]);
        assert_eq!(secrets.conceal("  bGluZSBvbmU=\r\n{"), "  [secret KEY]\r\n{");
        assert_eq!(secrets.conceal("-----BEGIN-----\nbGluZSBvbmU=\n{"), "[secret KEY]");
    }

    #[test]
    fn values_that_are_no_text_are_bytes_in_output_and_marks_in_messages() {
        let value: &[u8] = b"ab\xffcd";
        let secrets = Secrets::new([("RAW", value)].into_iter());
        assert!(secrets.are_in(b"x ab\xffcd"));
        assert_eq!(secrets.conceal(&format!("x {}", String::from_utf8_lossy(value))), "x [secret RAW]");
        assert_eq!(format!("{secrets:?}"), "Secrets(2)");
    }
}
