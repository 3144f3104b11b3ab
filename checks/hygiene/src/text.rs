//! Reading text line by line, without ever holding more of a file than one piece.
//!
//! A file counts as binary, and is skipped, if there is a NUL byte in its first 8 KiB: the same test that git makes. So
//! UTF-16 counts as binary. Everything else is text, in whatever encoding, and is judged byte by byte.

use memchr::{memchr, memchr_iter};
use probity_sdk::{Columns, Context, Entry, Mark, Position, ReadFailed, Reader};

/// How much of a file decides whether it is binary.
pub(crate) const BINARY_TEST: usize = 8 * 1024;

/// How a piece of a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the LF of its line, which is not part of the piece.
    Lf,
    /// With the file, in a line that has no LF.
    File,
    /// Somewhere in its line, which goes on in the next piece.
    Open,
}

/// A line, or a part of one where lines are long or a read ended inside it. A piece is never cut inside a UTF-8
/// character.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// Where it starts in the file.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether its line starts here.
    pub(crate) is_start: bool,
    pub(crate) end: End,
}

/// The entries whose contents can be judged.
pub(crate) fn files<'a>(ctx: &Context<'a>) -> impl Iterator<Item = &'a Entry> + use<'a> {
    ctx.files().iter().filter(|entry| entry.has_contents())
}

pub(crate) fn is_binary(start: &[u8]) -> bool {
    memchr(0, &start[..start.len().min(BINARY_TEST)]).is_some()
}

/// Calls `each` for every piece of the file, and says whether it is text. Of a binary file there are no pieces.
pub(crate) fn for_each_piece(reader: &mut Reader, mut each: impl FnMut(Piece<'_>)) -> Result<bool, ReadFailed> {
    let mut buffer = vec![0; reader.next_len()];
    let mut kept = 0;
    let mut is_start = true;
    let mut offset = 0;
    while !reader.is_at_end() {
        let len = buffer.len().min(kept + reader.next_len());
        let filled = kept + reader.fill(&mut buffer[kept..len])?;
        if offset == 0 && is_binary(&buffer[..filled]) {
            return Ok(false);
        }
        let is_last = reader.is_at_end();
        let cut = if is_last { filled } else { filled - split_character(&buffer[..filled]) };

        let chunk = &buffer[..cut];
        let mut start = 0;
        for lf in memchr_iter(b'\n', chunk) {
            each(Piece { offset: offset + start as u64, bytes: &chunk[start..lf], is_start, end: End::Lf });
            is_start = true;
            start = lf + 1;
        }
        if start < cut || (is_last && !is_start) {
            each(Piece {
                offset: offset + start as u64,
                bytes: &chunk[start..],
                is_start,
                end: if is_last { End::File } else { End::Open },
            });
            is_start = false;
        }

        buffer.copy_within(cut..filled, 0);
        kept = filled - cut;
        offset += cut as u64;
    }
    Ok(true)
}

/// How many bytes at the end are the start of a UTF-8 character that goes on: at most three.
fn split_character(bytes: &[u8]) -> usize {
    let length = |byte: u8| match byte {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 0,
    };
    let last = bytes.iter().rev().take(3).enumerate();
    for (back, &byte) in last {
        if !(0x80..0xC0).contains(&byte) {
            return if length(byte) > back + 1 { back + 1 } else { 0 };
        }
    }
    0
}

/// Finds the places of two offsets, the first not after the second, by going through the whole file.
pub(crate) fn locate(reader: &mut Reader, first: u64, second: u64) -> Result<(Position, Position), ReadFailed> {
    let mut lines = Locator::new(first, second);
    reader.seek(0)?;
    for_each_piece(reader, |piece| lines.take(piece))?;
    Ok(lines.finish())
}

struct Locator {
    wanted: [u64; 2],
    marks: [Option<Mark>; 2],
    found: [Option<Position>; 2],
    line: u32,
    columns: Columns,
}

impl Locator {
    fn new(first: u64, second: u64) -> Self {
        Self { wanted: [first, second], marks: [None; 2], found: [None; 2], line: 1, columns: Columns::default() }
    }

    fn take(&mut self, piece: Piece<'_>) {
        let end = piece.offset + piece.bytes.len() as u64;
        // A whole line without any of the places needs no columns.
        let is_wanted = |at: u64| (piece.offset..=end).contains(&at);
        if piece.is_start && piece.end == End::Lf && !self.wanted.into_iter().any(is_wanted) {
            self.line = self.line.saturating_add(1);
            return;
        }
        let mut rest = piece.bytes;
        let mut offset = piece.offset;
        for index in 0..2 {
            let at = self.wanted[index];
            // An offset at the end of an open piece is found again at the start of the next, at the same mark.
            if is_wanted(at) {
                // It lies in the piece, which is in memory.
                let (before, after) = rest.split_at(usize::try_from(at - offset).unwrap_or(0));
                self.columns.push(before);
                self.marks[index] = Some(self.columns.mark());
                (rest, offset) = (after, at);
            }
        }
        self.columns.push(rest);
        if piece.end == End::Lf {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        for (mark, found) in self.marks.iter_mut().zip(&mut self.found) {
            if let Some(mark) = mark.take() {
                *found = Some(Position::new(self.line, self.columns.column(mark)));
            }
        }
        self.line = self.line.saturating_add(1);
        self.columns = Columns::default();
    }

    fn finish(mut self) -> (Position, Position) {
        // What was not met so far is the end of the file.
        let end = Position::new(self.line, self.columns.column(self.columns.mark()));
        self.end_line();
        let [first, second] = self.found.map(|found| found.unwrap_or(end));
        (first, second)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use probity_sdk::{Kind, LineIndex, Mount};

    use super::*;

    fn with_reader<T>(contents: &[u8], look: impl FnOnce(&mut Reader) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), contents).unwrap();
        let entry = Entry {
            path: "file".to_owned(),
            kind: Kind::File,
            size: contents.len() as u64,
            tracked: true,
            base_path: None,
        };
        look(&mut Mount::at(folder.path()).open(&entry).unwrap())
    }

    /// Puts the pieces together again, and checks what they promise.
    fn lines(contents: &[u8]) -> Vec<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut last = End::Lf;
        let is_text = with_reader(contents, |reader| {
            for_each_piece(reader, |piece| {
                assert_eq!(piece.is_start, last != End::Open);
                assert_ne!(last, End::File);
                let start = usize::try_from(piece.offset).unwrap();
                assert_eq!(piece.bytes, &contents[start..start + piece.bytes.len()]);
                if piece.is_start {
                    lines.push(Vec::new());
                }
                lines.last_mut().unwrap().extend_from_slice(piece.bytes);
                last = piece.end;
            })
            .unwrap()
        });
        assert!(is_text);
        assert_ne!(last, End::Open);
        lines
    }

    #[test]
    fn lines_are_whole_however_the_reads_fall() {
        let chunk = Reader::CHUNK;
        for fill in [0, 1, 10, chunk - 3, chunk - 2, chunk - 1, chunk, chunk + 1, 3 * chunk] {
            for end in ["", "\n", "\r\nx", "\n\n", "é\nz", "🦀🦀\n🦀"] {
                let contents = format!("{}{end}", "x".repeat(fill));
                let mut expected: Vec<Vec<u8>> = contents.split('\n').map(|line| line.as_bytes().to_vec()).collect();
                if expected.last().unwrap().is_empty() {
                    expected.pop();
                }
                assert!(lines(contents.as_bytes()) == expected, "{fill} {end:?}");
            }
        }
    }

    #[test]
    fn pieces_are_not_cut_inside_a_character() {
        for shift in 0..4 {
            let contents = format!("{}{}", "x".repeat(shift), "🦀é".repeat(40_000));
            with_reader(contents.as_bytes(), |reader| {
                let mut pieces = 0;
                for_each_piece(reader, |piece| {
                    std::str::from_utf8(piece.bytes).unwrap();
                    pieces += 1;
                })
                .unwrap();
                assert!(pieces > 2);
            });
        }
    }

    #[test]
    fn bytes_that_are_no_characters_are_all_there() {
        let contents = vec![0xF0; 200_000];
        assert!(lines(&contents) == [contents]);
    }

    #[test]
    fn a_nul_in_the_first_8_kib_makes_a_file_binary() {
        let mut contents = vec![b'x'; 20_000];
        contents[BINARY_TEST] = 0;
        let is_text = |contents: &[u8]| with_reader(contents, |reader| for_each_piece(reader, |_| {}).unwrap());
        assert!(is_text(&contents));
        contents[BINARY_TEST - 1] = 0;
        assert!(!is_text(&contents));
    }

    #[test]
    fn places_are_those_of_a_line_index() {
        let long = "é".repeat(50_000);
        let text = format!("ab\r\n\né x\n{long}\nlast{long}");
        for contents in [text.as_bytes(), b"a\xff\xc3\xa9\n\n", b"\n\n\n", b"x"] {
            let index = LineIndex::new(contents);
            let len = contents.len();
            for first in [0, 1, 2, 3, 5, 9, 100_000, len - 1, len] {
                let first = first.min(len);
                for second in [first, (first + 1).min(len), len] {
                    let found = with_reader(contents, |reader| locate(reader, first as u64, second as u64).unwrap());
                    let at = |offset| index.position(offset);
                    // Inside a character the two differ on purpose; no check asks for that.
                    let text = std::str::from_utf8(contents).unwrap_or("");
                    if text.is_char_boundary(first) && text.is_char_boundary(second) {
                        assert_eq!(found, (at(first), at(second)), "{first} {second}");
                    }
                }
            }
        }
    }
}
