//! From byte offsets to lines and columns, as the contract counts them: lines end with LF, columns count Unicode scalar
//! values, and bytes where the line is not UTF-8.

use crate::Position;

/// The column of the byte at `offset` of `line`, from 1. Only a whole line says whether it is UTF-8, so all of it has to
/// be given, with or without its LF. An offset inside a character counts as the character.
pub fn column(line: &[u8], offset: usize) -> u32 {
    let offset = offset.min(line.len());
    let before = match std::str::from_utf8(line) {
        Err(_) => offset,
        Ok(text) => {
            let start = text.floor_char_boundary(offset);
            text[..start].chars().count()
        }
    };
    number(before as u64 + 1)
}

/// Line and column numbers are 32 bits wide in the contract; beyond that they stay at the largest.
fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Finds lines and columns in contents that are all in memory.
#[derive(Debug)]
pub struct LineIndex<'a> {
    contents: &'a [u8],
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    /// Goes through the contents once.
    pub fn new(contents: &'a [u8]) -> Self {
        let ends = contents.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { contents, starts }
    }

    /// Where a byte is. The end of the contents is a place too; offsets beyond it count as the end.
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.contents.len());
        // The first line starts at 0, so there is always one before.
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let start = self.starts[line];
        let end = self.starts.get(line + 1).copied();
        let text = &self.contents[start..end.unwrap_or(self.contents.len())];
        Position { line: number(line as u64 + 1), column: column(text, offset - start) }
    }
}

/// Counts the columns of one line that arrives in pieces, for contents that are too large for a [`LineIndex`].
///
/// Whether columns are characters or bytes is only known at the end of the line. So a place is first marked, and its
/// column asked for after the last piece.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    mark: Mark,
    /// The start of a character whose end is in the next piece: at most three bytes.
    split: Vec<u8>,
    is_broken: bool,
}

/// A place in the line of a [`Columns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    bytes: u64,
    scalars: u64,
}

impl Mark {
    /// How many bytes of the line are before it.
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

impl Columns {
    /// Takes the next piece of the line.
    pub fn push(&mut self, mut piece: &[u8]) {
        self.mark.bytes += piece.len() as u64;
        while !self.split.is_empty() && !self.is_broken {
            let Some((&byte, rest)) = piece.split_first() else {
                return;
            };
            piece = rest;
            self.split.push(byte);
            match std::str::from_utf8(&self.split) {
                Ok(_) => {
                    self.mark.scalars += 1;
                    self.split.clear();
                }
                Err(error) => self.is_broken = error.error_len().is_some(),
            }
        }
        if self.is_broken {
            return;
        }
        let valid = match std::str::from_utf8(piece) {
            Ok(text) => text,
            Err(error) => {
                let (valid, rest) = piece.split_at(error.valid_up_to());
                match error.error_len() {
                    Some(_) => self.is_broken = true,
                    None => self.split.extend_from_slice(rest),
                }
                // It was just found to be valid up to here.
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        self.mark.scalars += valid.chars().count() as u64;
    }

    /// The place after everything that was pushed. It should not be inside a character.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The column of a place, once the whole line was pushed.
    pub fn column(&self, mark: Mark) -> u32 {
        let is_text = !self.is_broken && self.split.is_empty();
        number(1 + if is_text { mark.scalars } else { mark.bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(contents: &[u8], offset: usize) -> (u32, u32) {
        let position = LineIndex::new(contents).position(offset);
        (position.line, position.column)
    }

    #[test]
    fn positions_count_lines_by_lf_and_columns_by_scalar_value() {
        let text = "añ🦀z\r\nb\rc\n".as_bytes();
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, 3), (1, 3));
        assert_eq!(position(text, 7), (1, 4));
        assert_eq!(position(text, 9), (1, 6), "the LF itself is on its line");
        assert_eq!(position(text, 10), (2, 1));
        assert_eq!(position(text, 12), (2, 3), "a lone CR ends no line");
        assert_eq!(position(text, 14), (3, 1));
        assert_eq!(position(text, 99), (3, 1));
    }

    #[test]
    fn an_offset_inside_a_character_is_that_character() {
        assert_eq!(position("a🦀z".as_bytes(), 3), (1, 2));
    }

    #[test]
    fn columns_count_bytes_only_on_lines_that_are_not_utf8() {
        let text = b"\xc3\xa9x\n\xc3\xa9\xffx\n";
        assert_eq!(position(text, 2), (1, 2));
        assert_eq!(position(text, 7), (2, 4));
    }

    #[test]
    fn empty_contents_have_one_place() {
        assert_eq!(position(b"", 0), (1, 1));
    }

    #[test]
    fn a_line_in_pieces_has_the_columns_of_the_whole_line() {
        for line in ["plain", "añ🦀z é", ""].map(str::as_bytes).into_iter().chain([
            &b"\xc3\xa9\xff x"[..],
            b"ab\xf0\x9f",
            b"\x80",
            b"\xc3\xa9\xed\xa0\x80z",
        ]) {
            for cut in 0..=line.len() {
                for second in cut..=line.len() {
                    let mut columns = Columns::default();
                    columns.push(&line[..cut]);
                    columns.push(&line[cut..second]);
                    columns.push(&line[second..]);
                    let end = columns.mark();
                    assert_eq!(columns.column(end), column(line, line.len()), "{line:?} {cut} {second}");
                }
            }
        }
    }
}
