//! Inputs as lines of text, so that people can read and write them: one letter for what a line says, a space, and
//! fields with `|` between them. Whatever the bytes are, they are some lines; what makes no sense is left to the target.

/// The lines of an input: the letter, and the fields after it.
pub(crate) fn lines(input: &[u8]) -> impl Iterator<Item = (u8, Fields<'_>)> {
    input.split(|byte| *byte == b'\n').filter_map(|line| {
        let (letter, rest) = line.split_first()?;
        Some((*letter, Fields(Some(rest.strip_prefix(b" ").unwrap_or(rest)))))
    })
}

/// The fields of a line that were not taken yet.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(Option<&'a [u8]>);

impl<'a> Fields<'a> {
    /// The next field. Empty where there is none.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let rest = self.0.unwrap_or_default();
        let at = rest.iter().position(|byte| *byte == b'|');
        self.0 = at.map(|at| &rest[at + 1..]);
        &rest[..at.unwrap_or(rest.len())]
    }

    /// The next field as text; bytes that are none are replaced.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// The next field as a number, 0 where it is none. `-` and a number count down from the largest.
    pub(crate) fn number(&mut self) -> u64 {
        let text = self.text();
        let (text, down) = text.strip_prefix('-').map_or((text.as_str(), false), |text| (text, true));
        let number = text.parse().unwrap_or(0);
        if down { u64::MAX - number } else { number }
    }

    /// Whether all fields were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
