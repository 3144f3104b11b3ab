//! What git makes of a file of the working tree before it keeps it: line ends, `$Id$`, encodings and the pointers of
//! Git LFS. The other way round is not needed: a file is as the commit has it when git would make the same blob of it.
//!
//! Written after `convert.c` of git 2.47. Must not run anything: a filter that is a program of the repository is never
//! called, so what it would make stays unknown.

use super::blob::blob_id;
use super::git::Settings;
use super::id::ObjectId;
use crate::model::hex;

/// A file larger than this is compared only as it lies there, and by its LFS pointer: line ends and encodings need all of
/// it in memory, twice.
pub(super) const MAX_CONVERTED: u64 = 64 << 20;

/// The attributes that say how a file is converted, in the order in which they are asked for.
pub(super) const ATTRIBUTES: [&str; 6] = ["text", "crlf", "eol", "ident", "working-tree-encoding", "filter"];

/// How contents become a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rules {
    /// By what git does itself.
    Builtin {
        /// What becomes of CR LF.
        ends: Ends,
        /// Whether `$Id: …$` becomes `$Id$`.
        ident: bool,
        /// What the file is in, if not in UTF-8.
        encoding: Option<Encoding>,
    },
    /// To a pointer of Git LFS.
    Lfs,
    /// In a way that cannot be followed here, for this reason: by the program of a filter, or from an encoding that is not
    /// known.
    Unknown(String),
}

/// What becomes of CR LF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// It stays.
    Kept,
    /// It becomes LF.
    Text,
    /// It becomes LF unless the file looks binary, or the blob has CR LF itself.
    Guessed,
}

/// Encodings of files that become UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-16 of either order, which a byte order mark says.
    Utf16,
    /// UTF-16, little-endian, without a mark.
    Utf16Le,
    /// UTF-16, big-endian, without a mark.
    Utf16Be,
}

impl Rules {
    /// What the values of [`ATTRIBUTES`] come to, with these settings.
    pub(super) fn of(values: &[&[u8]; 6], settings: Settings) -> Self {
        let Settings { autocrlf, lfs, file_mode: _ } = settings;
        let [text, crlf, eol, ident, encoding, filter] = *values;
        match filter {
            b"unspecified" | b"unset" | b"set" => {}
            b"lfs" if lfs => return Self::Lfs,
            b"lfs" => {
                return Self::Unknown("Git LFS is not set up here, and git would commit the file itself".to_owned());
            }
            other => return Self::Unknown(format!("the filter `{}` is not run", String::from_utf8_lossy(other))),
        }
        let said = |value: &[u8]| match value {
            b"set" | b"input" => Some(Ends::Text),
            b"unset" => Some(Ends::Kept),
            b"auto" => Some(Ends::Guessed),
            _ => None,
        };
        let ends = match (said(text).or_else(|| said(crlf)), eol) {
            (Some(Ends::Kept), _) => Ends::Kept,
            (Some(ends), _) => ends,
            // Whoever names the end of lines says that there are lines.
            (None, b"lf" | b"crlf") => Ends::Text,
            (None, _) if autocrlf => Ends::Guessed,
            (None, _) => Ends::Kept,
        };
        let encoding = match encoding {
            b"unspecified" | b"" => None,
            name => match Encoding::named(name) {
                Named::Utf8 => None,
                Named::Known(encoding) => Some(encoding),
                Named::Other => {
                    return Self::Unknown(format!("the encoding `{}` is not known", String::from_utf8_lossy(name)));
                }
            },
        };
        Self::Builtin { ends, ident: ident == b"set", encoding }
    }

    /// Whether git keeps the contents as they are.
    pub(super) fn keep_all(&self) -> bool {
        matches!(self, Self::Builtin { ends: Ends::Kept, ident: false, encoding: None })
    }

    /// Whether git makes the blob with this id of these contents, by built-in rules.
    pub(super) fn makes(&self, contents: &[u8], id: ObjectId) -> bool {
        let Self::Builtin { ends, ident, encoding } = self else { return false };
        let decoded = encoding.and_then(|encoding| encoding.decode(contents));
        // What is not in its encoding, git keeps as it is.
        let contents = decoded.as_deref().unwrap_or(contents);
        let finish = |contents: Vec<u8>| if *ident { without_ids(&contents) } else { contents };
        let is = |blob: &[u8]| blob_id(id, blob) == id;
        match ends {
            Ends::Kept => is(&finish(contents.to_vec())),
            Ends::Text => is(&finish(with_line_feeds(contents))),
            Ends::Guessed if Looks::of(contents).binary() => is(&finish(contents.to_vec())),
            Ends::Guessed => {
                // Which of the two git does depends on the blob, and if one of them is the blob, the blob is at hand.
                let kept = finish(contents.to_vec());
                let looks = Looks::of(&kept);
                (is(&kept) && (looks.crlf > 0) && !looks.binary()) || is(&finish(with_line_feeds(contents)))
            }
        }
    }
}

/// The pointer that Git LFS keeps in place of contents with this SHA-256 and size.
pub(super) fn lfs_pointer(sha256: &[u8], size: u64) -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {size}\n", hex(sha256))
}

enum Named {
    Utf8,
    Known(Encoding),
    Other,
}

impl Encoding {
    /// As git compares names: in any case, with or without the hyphen after `UTF`.
    fn named(name: &[u8]) -> Named {
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix(b"UTF").map(|rest| rest.strip_prefix(b"-").unwrap_or(rest));
        match name {
            Some(b"8") => Named::Utf8,
            Some(b"16" | b"16LE-BOM") => Named::Known(Self::Utf16),
            Some(b"16LE") => Named::Known(Self::Utf16Le),
            Some(b"16BE") => Named::Known(Self::Utf16Be),
            _ => Named::Other,
        }
    }

    /// The contents in UTF-8. None where they are not in this encoding, or have a mark where none may be or none where
    /// one must be.
    fn decode(self, contents: &[u8]) -> Option<Vec<u8>> {
        let mark = contents.get(..2);
        let (little, body) = match (self, mark) {
            (Self::Utf16, Some(b"\xff\xfe")) => (true, &contents[2..]),
            (Self::Utf16, Some(b"\xfe\xff")) => (false, &contents[2..]),
            (Self::Utf16, _) | (Self::Utf16Le | Self::Utf16Be, Some(b"\xff\xfe" | b"\xfe\xff")) => return None,
            (Self::Utf16Le, _) => (true, contents),
            (Self::Utf16Be, _) => (false, contents),
        };
        let (pairs, rest) = body.as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        let units = pairs.iter().map(|pair| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().map(String::into_bytes)
    }
}

/// What git counts to tell text from what is none.
#[derive(Default)]
struct Looks {
    crlf: usize,
    lone_cr: usize,
    nul: usize,
    printable: usize,
    other: usize,
}

impl Looks {
    fn of(contents: &[u8]) -> Self {
        let mut looks = Self::default();
        let mut rest = contents.iter().peekable();
        while let Some(byte) = rest.next() {
            match byte {
                b'\r' if rest.peek() == Some(&&b'\n') => {
                    rest.next();
                    looks.crlf += 1;
                }
                b'\r' => looks.lone_cr += 1,
                b'\n' => {}
                0 => {
                    looks.nul += 1;
                    looks.other += 1;
                }
                // Backspace, tab, form feed, escape.
                8 | 9 | 12 | 27 => looks.printable += 1,
                0..32 | 127 => looks.other += 1,
                _ => looks.printable += 1,
            }
        }
        // The mark that DOS put at the end of a file.
        if contents.last() == Some(&0x1a) {
            looks.other -= 1;
        }
        looks
    }

    fn binary(&self) -> bool {
        self.lone_cr > 0 || self.nul > 0 || self.printable >> 7 < self.other
    }
}

fn with_line_feeds(contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(contents.len());
    for (at, byte) in contents.iter().enumerate() {
        if *byte != b'\r' || contents.get(at + 1) != Some(&b'\n') {
            out.push(*byte);
        }
    }
    out
}

/// `$Id: anything$` within a line becomes `$Id$`.
fn without_ids(contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(contents.len());
    let mut rest = contents;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 1..];
        let Some(inner) = rest.strip_prefix(b"Id:") else { continue };
        let Some(end) = inner.iter().position(|byte| *byte == b'$' || *byte == b'\n') else { continue };
        if inner[end] == b'$' {
            out.extend_from_slice(b"Id$");
            rest = &inner[end + 1..];
        }
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_within_a_line() {
        let cut = |text: &str| String::from_utf8(without_ids(text.as_bytes())).unwrap();
        assert_eq!(cut("a $Id: x$ b $Id$ c"), "a $Id$ b $Id$ c");
        assert_eq!(cut("$$Id: x$$"), "$$Id$$");
        assert_eq!(cut("$Id: x\n$Id: y$"), "$Id: x\n$Id$");
        assert_eq!(cut("$Id:$ $Id: x"), "$Id$ $Id: x");
        assert_eq!(cut("$Idx: x$"), "$Idx: x$");
    }

    #[test]
    fn attributes_add_up() {
        let rules = |text: &'static str, autocrlf| {
            let mut values: [&[u8]; 6] = [b"unspecified"; 6];
            for word in text.split_whitespace() {
                let (name, value) = word.split_once('=').unwrap();
                values[ATTRIBUTES.iter().position(|known| *known == name).unwrap()] = value.as_bytes();
            }
            Rules::of(&values, Settings { autocrlf, file_mode: true, lfs: true })
        };
        let ends = |text, autocrlf| match rules(text, autocrlf) {
            Rules::Builtin { ends, .. } => ends,
            other => panic!("{other:?}"),
        };
        assert_eq!(ends("", false), Ends::Kept);
        assert_eq!(ends("", true), Ends::Guessed);
        assert_eq!(ends("text=unset eol=crlf", true), Ends::Kept);
        assert_eq!(ends("text=set", false), Ends::Text);
        assert_eq!(ends("eol=crlf", false), Ends::Text);
        assert_eq!(ends("text=auto eol=lf", false), Ends::Guessed);
        assert_eq!(ends("crlf=input", false), Ends::Text);
        assert_eq!(ends("text=what crlf=unset", true), Ends::Kept);
        assert_eq!(rules("filter=lfs", false), Rules::Lfs);
        assert_eq!(rules("filter=x", false), Rules::Unknown("the filter `x` is not run".to_owned()));
        assert!(matches!(rules("working-tree-encoding=utf8", false), Rules::Builtin { encoding: None, .. }));
        assert!(matches!(rules("working-tree-encoding=SHIFT-JIS", false), Rules::Unknown(_)));
        assert!(matches!(
            rules("working-tree-encoding=UTF-16", false),
            Rules::Builtin { encoding: Some(Encoding::Utf16), .. }
        ));
    }
}
