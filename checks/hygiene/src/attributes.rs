//! What `.gitattributes` files say about the `filter` of a path.
//!
//! Nothing else of them is of interest here: `filter=lfs` is how a file is given to Git LFS. The rules are git's: a file
//! deeper in the tree wins over one above it, a later line over an earlier one, and a later word of a line over an
//! earlier one; macros are defined at the top only. What git reads outside of the tree, such as `.git/info/attributes`,
//! is not seen, and neither is a `.gitattributes` that was not granted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use probity_sdk::{Mount, ReadFailed};

use crate::pattern::Pattern;

const FILE: &str = ".gitattributes";

/// The attributes of a tree, read as they are needed: a folder's file only once a path below it is asked for.
pub(crate) struct Attributes<'a> {
    tree: Mount<'a>,
    files: BTreeMap<String, Vec<Line>>,
    macros: BTreeMap<String, Vec<Word>>,
}

/// What is said about the paths that match a pattern.
struct Line {
    pattern: Pattern,
    words: Vec<Word>,
}

/// One attribute of a line. Of the states git knows, only a value matters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// `filter=VALUE`.
    Filter(String),
    /// `filter`, `-filter` or `!filter`: there is no value.
    NoFilter,
    /// The name of an attribute that is set, and may be a macro.
    Set(String),
    /// Another attribute that is unset or has a value.
    Other,
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(tree: Mount<'a>) -> Self {
        Self { tree, files: BTreeMap::new(), macros: BTreeMap::new() }
    }

    /// The value of `filter` for a path.
    pub(crate) fn filter(&mut self, path: &str) -> Result<Option<String>, ReadFailed> {
        // The top has the macros, so it is read first, and looked at last.
        self.read("")?;
        let mut folder = path;
        loop {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            self.read(folder)?;
            let below = path[folder.len()..].trim_start_matches('/');
            for line in self.files.get(folder).into_iter().flatten().rev() {
                if line.pattern.matches(below.as_bytes())
                    && let Some(word) = self.last_filter(&line.words, &mut BTreeSet::new())
                {
                    return Ok(match word {
                        Word::Filter(value) => Some(value.clone()),
                        Word::NoFilter | Word::Set(_) | Word::Other => None,
                    });
                }
            }
            if folder.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The word that decides about `filter`, if there is one. A macro can use macros, so those that were `seen` to say
    /// nothing are not looked at again: a hostile file could otherwise make that take for ever.
    fn last_filter<'w>(&'w self, words: &'w [Word], seen: &mut BTreeSet<&'w str>) -> Option<&'w Word> {
        words.iter().rev().find_map(|word| match word {
            Word::Filter(_) | Word::NoFilter => Some(word),
            Word::Set(name) => {
                let words = self.macros.get(name)?;
                if seen.insert(name) { self.last_filter(words, seen) } else { None }
            }
            Word::Other => None,
        })
    }

    fn read(&mut self, folder: &str) -> Result<(), ReadFailed> {
        if self.files.contains_key(folder) {
            return Ok(());
        }
        let path = if folder.is_empty() { FILE.to_owned() } else { format!("{folder}/{FILE}") };
        let contents = match self.tree.file_type(&path) {
            // Git does not follow a link here either.
            Ok(found) if !found.is_file() => Vec::new(),
            Ok(_) => self.tree.read(&path)?,
            Err(error) if is_absent(error.kind()) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut lines = Vec::new();
        for line in contents.split(|&byte| byte == b'\n') {
            match parse(line) {
                Some(Parsed::Line(line)) => lines.push(line),
                Some(Parsed::Macro(name, words)) if folder.is_empty() => {
                    self.macros.insert(name, words);
                }
                Some(Parsed::Macro(..)) | None => {}
            }
        }
        self.files.insert(folder.to_owned(), lines);
        Ok(())
    }
}

fn is_absent(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

enum Parsed {
    Line(Line),
    Macro(String, Vec<Word>),
}

fn parse(line: &[u8]) -> Option<Parsed> {
    let line = line.trim_ascii();
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    let (pattern, rest) = line.strip_prefix(b"\"").and_then(unquote).unwrap_or_else(|| {
        let end = line.iter().position(u8::is_ascii_whitespace);
        let (pattern, rest) = line.split_at(end.unwrap_or(line.len()));
        (pattern.to_vec(), rest)
    });
    let words = String::from_utf8_lossy(rest);
    let words: Option<Vec<Word>> = words.split_ascii_whitespace().map(word).collect();
    // Git passes over a whole line for one word it cannot read.
    let words = words?;
    match pattern.strip_prefix(b"[attr]") {
        Some(name) if !name.is_empty() => {
            let name = String::from_utf8_lossy(name).into_owned();
            is_name(&name).then_some(Parsed::Macro(name, words))
        }
        _ => Pattern::new(&pattern).map(|pattern| Parsed::Line(Line { pattern, words })),
    }
}

/// Reads one word of a line. None if that is no attribute.
fn word(text: &str) -> Option<Word> {
    let (is_set, rest) = match text.strip_prefix(['-', '!']) {
        Some(rest) => (false, rest),
        None => (true, text),
    };
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    };
    let word = match (name, value) {
        ("filter", Some(value)) if is_set => Word::Filter(value.to_owned()),
        ("filter", _) => Word::NoFilter,
        (_, None) if is_set => Word::Set(name.to_owned()),
        // A macro that is unset or given a value is not expanded, and the others do not matter.
        _ => Word::Other,
    };
    is_name(name).then_some(word)
}

fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_part)
}

/// Reads a pattern in quotes, as C would, after its first quote. None if it has no end or an unknown escape.
fn unquote(mut text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut pattern = Vec::new();
    loop {
        let (&byte, rest) = text.split_first()?;
        text = rest;
        match byte {
            b'"' => return Some((pattern, text)),
            b'\\' => {
                let (&escape, rest) = text.split_first()?;
                text = rest;
                pattern.push(match escape {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 0x0b,
                    b'\\' | b'"' => escape,
                    b'0'..=b'3' => {
                        let (digits, rest) = text.split_at_checked(2)?;
                        text = rest;
                        let mut value = escape - b'0';
                        for digit in digits {
                            if !matches!(digit, b'0'..=b'7') {
                                return None;
                            }
                            value = value * 8 + (digit - b'0');
                        }
                        value
                    }
                    _ => return None,
                });
            }
            _ => pattern.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Case;

    fn filter(files: &[(&str, &str)], path: &str) -> Option<String> {
        let mut case = Case::new("large-files");
        for (path, contents) in files {
            case = case.file(path, contents.as_bytes());
        }
        Attributes::new(Mount::at(case.root())).filter(path).unwrap()
    }

    fn top(attributes: &str, path: &str) -> Option<String> {
        filter(&[(FILE, attributes)], path)
    }

    #[test]
    fn the_last_line_that_matches_wins() {
        assert_eq!(top("*.bin filter=lfs", "x/a.bin").as_deref(), Some("lfs"));
        assert_eq!(top("*.bin filter=lfs\na.bin filter=x", "a.bin").as_deref(), Some("x"));
        assert_eq!(top("* filter=lfs\r\na.bin -filter\r\n", "a.bin"), None);
        assert_eq!(top("* filter=lfs\na.bin !filter", "a.bin"), None);
        assert_eq!(top("* filter=lfs\na.bin filter", "a.bin"), None);
        assert_eq!(top("* filter=lfs\na.bin diff=lfs -text", "a.bin").as_deref(), Some("lfs"));
        assert_eq!(top("* filter=lfs -filter", "a.bin"), None);
    }

    #[test]
    fn a_deeper_file_wins_over_one_above() {
        let files = [(FILE, "*.bin filter=lfs"), ("x/.gitattributes", "/a.bin -filter\ny/*.bin filter=other")];
        assert_eq!(filter(&files, "x/b.bin").as_deref(), Some("lfs"));
        assert_eq!(filter(&files, "x/a.bin"), None);
        assert_eq!(filter(&files, "a.bin").as_deref(), Some("lfs"));
        assert_eq!(filter(&files, "x/y/a.bin").as_deref(), Some("other"));
        assert_eq!(filter(&files, "xy/a.bin").as_deref(), Some("lfs"));
    }

    #[test]
    fn macros_of_the_top_are_expanded() {
        let files = [
            (FILE, "[attr]big filter=lfs -text\n[attr]huge big\n*.bin huge\n*.raw -huge\n[attr]loop loop\n*.l loop"),
            ("x/.gitattributes", "[attr]mine filter=x\n*.m mine"),
        ];
        assert_eq!(filter(&files, "x/a.bin").as_deref(), Some("lfs"));
        assert_eq!(filter(&files, "a.raw"), None);
        assert_eq!(filter(&files, "x/a.m"), None);
        assert_eq!(filter(&files, "a.l"), None);
    }

    #[test]
    fn macros_of_macros_take_no_longer_than_their_text() {
        let mut attributes = String::new();
        for number in 0..200 {
            let inner = format!(" m{}", number + 1).repeat(10);
            attributes.push_str(&format!("[attr]m{number}{inner}\n"));
        }
        attributes.push_str("* m0\n");
        assert_eq!(top(&attributes, "a"), None);
        attributes.push_str("[attr]m200 filter=lfs\n");
        assert_eq!(top(&attributes, "a").as_deref(), Some("lfs"));
    }

    #[test]
    fn quoted_patterns_can_have_spaces() {
        assert_eq!(top("\"a b.bin\" filter=lfs", "a b.bin").as_deref(), Some("lfs"));
        assert_eq!(top(r#""\303\251\n\"" filter=lfs"#, "é\n\"").as_deref(), Some("lfs"));
        assert_eq!(top("a b.bin filter=lfs", "a b.bin"), None);
        assert_eq!(top("\"a filter=lfs", "\"a").as_deref(), Some("lfs"));
    }

    #[test]
    fn comments_and_lines_without_sense_are_passed_over() {
        assert_eq!(top("# a filter=lfs\n\n   \n!a filter=lfs\na/ filter=lfs\n", "a"), None);
        assert_eq!(top("  a   text\tfilter=lfs  ", "a").as_deref(), Some("lfs"));
    }

    #[test]
    fn a_line_with_a_word_that_is_no_attribute_counts_for_nothing() {
        assert_eq!(top("a filter=lfs --x", "a"), None);
        assert_eq!(top("\"a\"b filter=lfs", "a").as_deref(), Some("lfs"));
        assert_eq!(top("\"a\"/b filter=lfs", "a"), None);
        assert_eq!(top("[attr]a/b filter=lfs\n* a/b", "a"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_attributes_file_is_not_followed() {
        let case = Case::new("large-files").file("attributes", b"* filter=lfs");
        std::os::unix::fs::symlink("attributes", case.root().join(FILE)).unwrap();
        let mut attributes = Attributes::new(Mount::at(case.root()));
        assert_eq!(attributes.filter("a").unwrap(), None);
    }
}
