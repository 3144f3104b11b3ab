//! Values that nobody is to see, and their removal from what is shown and kept.
//!
//! A value is found as it is written: neither encoded, nor with line ends or colours inside.

use std::fmt;

/// Bytes that a value must have to be looked for: a shorter one is in every other word, and would leave nothing to read.
const SHORTEST: usize = 4;

/// Bytes from which a line of a value with several counts by itself. Keys are printed line by line, and a line with a
/// brace is in every file.
const SHORTEST_LINE: usize = 8;

/// The values of variables that are marked secret.
#[derive(Clone, Default)]
pub struct Secrets {
    /// What to look for and what to write instead, the longest first.
    patterns: Vec<(Vec<u8>, String)>,
    /// Which bytes one of them begins with.
    starts: Starts,
    too_short: Vec<String>,
}

#[derive(Clone)]
struct Starts([bool; 256]);

impl Default for Starts {
    fn default() -> Self {
        Self([false; 256])
    }
}

// By hand, so that no value is shown by accident.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.patterns.len())
    }
}

impl Secrets {
    /// Takes names and values. A name may come with several values.
    pub fn new<'a>(values: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut secrets = Self::default();
        for (name, value) in values {
            let value = value.trim_ascii();
            if value.len() < SHORTEST {
                if !value.is_empty() && !secrets.too_short.iter().any(|short| short == name) {
                    secrets.too_short.push(name.to_owned());
                }
                continue;
            }
            secrets.add(name, value);
            // Messages have what is no text in this form.
            secrets.add(name, String::from_utf8_lossy(value).as_bytes());
            for line in value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
                if line.len() >= SHORTEST_LINE {
                    secrets.add(name, line);
                }
            }
        }
        secrets.patterns.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        secrets
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        if !self.patterns.iter().any(|(known, _)| known == value) {
            self.starts.0[usize::from(value[0])] = true;
            self.patterns.push((value.to_owned(), format!("[secret {name}]")));
        }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The names whose values are too short to be looked for.
    pub fn too_short(&self) -> &[String] {
        &self.too_short
    }

    /// Whether one of the values is in there.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        (0..bytes.len()).any(|at| self.at(&bytes[at..]).is_some())
    }

    /// The text, with `[secret NAME]` in the place of each value.
    pub fn conceal(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let mut concealer = Concealer::new(self);
        let mut out = Vec::with_capacity(text.len());
        concealer.push(text.as_bytes(), &mut out);
        concealer.finish(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The longest value that `bytes` begins with.
    fn at(&self, bytes: &[u8]) -> Option<&(Vec<u8>, String)> {
        let first = bytes.first()?;
        if !self.starts.0[usize::from(*first)] {
            return None;
        }
        self.patterns.iter().find(|(value, _)| bytes.starts_with(value))
    }

    fn longest(&self) -> usize {
        self.patterns.first().map_or(0, |(value, _)| value.len())
    }
}

/// Removes values from a stream that comes piece by piece, wherever the pieces are cut.
#[derive(Debug)]
pub struct Concealer<'a> {
    secrets: &'a Secrets,
    /// What may be the beginning of a value.
    held: Vec<u8>,
    /// How many of the bytes to come belong to a value that was found.
    covered: usize,
}

impl<'a> Concealer<'a> {
    /// At the beginning of a stream.
    pub fn new(secrets: &'a Secrets) -> Self {
        Self { secrets, held: Vec::new(), covered: 0 }
    }

    /// Takes the next piece, and appends to `out` what is known by now.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(piece);
        // Where a whole value still fits, no more needs to be known.
        let ready = (self.held.len() + 1).saturating_sub(self.secrets.longest().max(1));
        self.advance(ready, out);
    }

    /// Takes the end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.advance(self.held.len(), out);
    }

    fn advance(&mut self, count: usize, out: &mut Vec<u8>) {
        for at in 0..count {
            if let Some((value, instead)) = self.secrets.at(&self.held[at..]) {
                // One that begins inside another one is part of the same gap.
                if self.covered == 0 {
                    out.extend_from_slice(instead.as_bytes());
                }
                self.covered = self.covered.max(value.len());
            }
            if self.covered == 0 {
                out.push(self.held[at]);
            } else {
                self.covered -= 1;
            }
        }
        self.held.drain(..count);
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
    fn of_two_values_that_begin_alike_the_longer_one_goes_and_of_two_that_overlap_both() {
        let secrets = secrets(&[("SHORT", "abcd"), ("LONG", "abcdefgh"), ("TAIL", "ghij")]);
        assert_eq!(secrets.conceal("abcdefgh abcdef abcdefghij"), "[secret LONG] [secret SHORT]ef [secret LONG]");
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
