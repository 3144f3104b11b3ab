//! Globs: an ordered list of patterns that says which paths are meant.
//!
//! `*` and `?` stay within a name, `**` as a whole component crosses folders, `{a,b}` and `[a-z]` are choices,
//! `\` takes a character for itself, and a leading `!` excludes. The last pattern that matches decides; a path that
//! none matches is not meant. Paths are relative and `/`-separated. As in globset, `?` is one byte.
//!
//! Must not trust a pattern: packs supply some, so their number, length and compiled size are bounded.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

/// A list longer than this is made by a machine, which can write a folder's name instead.
pub const MAX_GLOBS: usize = 1000;

/// Bytes of one pattern. A path has at most 4096, and a pattern has no need to spell one out.
pub const MAX_GLOB_LENGTH: usize = 1024;

/// Bytes of all patterns of a list once they are regular expressions. Time and memory of compiling and matching grow
/// with it: at this size, compiling was measured to take 0.1 s and matching a path of 4096 bytes 0.6 ms, in a debug
/// build. A thousand ordinary patterns need a quarter.
pub const MAX_COMPILED_SIZE: usize = 256 * 1024;

/// How many patterns without braces one pattern may stand for: whoever reads it expands it in the mind, and nested
/// braces multiply.
pub const MAX_ALTERNATIVES: u64 = 1024;

/// Why a list of globs is refused. Texts of patterns are as they were written: whoever shows them escapes them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// More patterns than [`MAX_GLOBS`].
    #[error("{0} globs are more than {MAX_GLOBS}")]
    TooMany(usize),
    /// A pattern longer than [`MAX_GLOB_LENGTH`].
    #[error("a glob of {0} bytes is longer than {MAX_GLOB_LENGTH}")]
    TooLong(usize),
    /// A pattern whose braces multiply to more than [`MAX_ALTERNATIVES`].
    #[error("the braces of the glob `{0}` stand for more than {MAX_ALTERNATIVES} alternatives")]
    TooManyAlternatives(String),
    /// All patterns together are larger than [`MAX_COMPILED_SIZE`].
    #[error("the globs are too complex: compiled they take {0} bytes, more than {MAX_COMPILED_SIZE}")]
    TooComplex(usize),
    /// A pattern that could not match any path.
    #[error("the glob `{pattern}` matches nothing: {reason}")]
    NeverMatches {
        /// The pattern.
        pattern: String,
        /// Why not, and what to write.
        reason: &'static str,
    },
    /// A list that excludes without having included anything.
    #[error("the globs match nothing: all of them exclude; put `**` first to mean everything else")]
    OnlyExcludes,
    /// A pattern that is not well formed.
    #[error("the glob `{pattern}` is not valid: {reason}")]
    Syntax {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A list of globs, ready to match. Cheap to clone.
#[derive(Clone)]
pub struct Globs(Arc<Inner>);

struct Inner {
    patterns: Vec<String>,
    set: GlobSet,
}

impl Globs {
    /// Compiles a list. An empty one is allowed and matches nothing.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, GlobError> {
        if patterns.len() > MAX_GLOBS {
            return Err(GlobError::TooMany(patterns.len()));
        }
        let mut builder = GlobSetBuilder::new();
        let mut size = 0;
        for pattern in patterns {
            let glob = compile(pattern.as_ref())?;
            size += glob.regex().len();
            builder.add(glob);
        }
        if size > MAX_COMPILED_SIZE {
            return Err(GlobError::TooComplex(size));
        }
        let patterns: Vec<String> = patterns.iter().map(|pattern| pattern.as_ref().to_owned()).collect();
        if !patterns.is_empty() && patterns.iter().all(|pattern| pattern.starts_with('!')) {
            return Err(GlobError::OnlyExcludes);
        }
        // What passes the bounds above stays far below the limit of the regex engine, which this would report.
        let set = builder.build().map_err(|_| GlobError::TooComplex(size))?;
        Ok(Self(Arc::new(Inner { patterns, set })))
    }

    /// Checks one pattern alone, so that all mistakes of a list can be told at once.
    pub fn check(pattern: &str) -> Result<(), GlobError> {
        compile(pattern).map(|_| ())
    }

    /// Whether the path is meant: relative, `/`-separated, in the bytes that the file system has.
    pub fn matches(&self, path: impl AsRef<[u8]>) -> bool {
        let last = self.0.set.matches(OsStr::from_bytes(path.as_ref())).into_iter().max();
        last.and_then(|index| self.0.patterns.get(index)).is_some_and(|pattern| !pattern.starts_with('!'))
    }

    /// Whether something below this folder could be meant, as far as the beginnings of the patterns say: for folders that
    /// nobody can look into. In doubt it could.
    pub fn may_match_below(&self, folder: impl AsRef<[u8]>) -> bool {
        let below = [folder.as_ref(), b"/"].concat();
        let special = |c: char| "*?[]{}\\!".contains(c);
        self.0.patterns.iter().fold(false, |may, pattern| match pattern.strip_prefix('!') {
            None => {
                let plain = pattern.split(special).next().unwrap_or_default();
                let plain = plain.as_bytes();
                may || below.starts_with(plain) || plain.starts_with(&below)
            }
            Some(excluded) => {
                let whole = excluded.strip_suffix("/**").filter(|whole| !whole.contains(special));
                may && !whole.is_some_and(|whole| below.starts_with(format!("{whole}/").as_bytes()))
            }
        })
    }

    /// The patterns as they were written.
    pub fn patterns(&self) -> &[String] {
        &self.0.patterns
    }
}

impl fmt::Debug for Globs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Globs").field(&self.0.patterns).finish()
    }
}

impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        self.0.patterns == other.0.patterns
    }
}

impl Eq for Globs {}

fn compile(pattern: &str) -> Result<globset::Glob, GlobError> {
    if pattern.len() > MAX_GLOB_LENGTH {
        return Err(GlobError::TooLong(pattern.len()));
    }
    let body = pattern.strip_prefix('!').unwrap_or(pattern);
    if let Some(reason) = never_matches(body) {
        return Err(GlobError::NeverMatches { pattern: pattern.to_owned(), reason });
    }
    let shape = Shape::of(body);
    if shape.alternatives > MAX_ALTERNATIVES {
        return Err(GlobError::TooManyAlternatives(pattern.to_owned()));
    }
    if shape.wide_class {
        // globset matches bytes, so that `[é]` would mean the first or the second half of the letter.
        let reason = "only ASCII characters can be in `[…]`; write `{é,è}` for others".to_owned();
        return Err(GlobError::Syntax { pattern: pattern.to_owned(), reason });
    }
    // Each option is named, because globset's defaults depend on the platform.
    let glob = GlobBuilder::new(body)
        .literal_separator(true)
        .backslash_escape(true)
        .case_insensitive(false)
        .empty_alternates(true)
        .allow_unclosed_class(false)
        .build();
    glob.map_err(|error| GlobError::Syntax { pattern: pattern.to_owned(), reason: error.kind().to_string() })
}

/// Patterns that no relative path of a file can match are slips, and silence about them would be a check that sees
/// nothing.
fn never_matches(body: &str) -> Option<&'static str> {
    if body.is_empty() {
        return Some("it is empty");
    }
    if body.starts_with('/') {
        return Some("paths are relative, without a leading `/`");
    }
    if body.ends_with('/') {
        return Some("paths of files do not end with `/`; write `folder/**` for all that is in a folder");
    }
    if body.contains('\0') {
        return Some("no path has a NUL character");
    }
    body.split('/').find_map(|component| match component {
        "" => Some("paths have no empty components, so write `/` once"),
        "." => Some("paths have no `.` components; leave it out"),
        ".." => Some("paths have no `..` components"),
        _ => None,
    })
}

/// What can be said of a pattern without compiling it.
struct Shape {
    /// How many patterns without braces it stands for.
    alternatives: u64,
    /// Whether a class has characters of more than one byte.
    wide_class: bool,
}

impl Shape {
    fn of(body: &str) -> Self {
        let mut wide_class = false;
        let mut product = 1_u64;
        // For each open brace: what stood before it, and the alternatives within it so far.
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut chars = body.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    chars.next();
                }
                '[' => wide_class |= class(&mut chars),
                '{' => {
                    open.push((product, 0));
                    product = 1;
                }
                ',' => {
                    if let Some((_, sum)) = open.last_mut() {
                        *sum = sum.saturating_add(product);
                        product = 1;
                    }
                }
                '}' => {
                    if let Some((before, sum)) = open.pop() {
                        product = before.saturating_mul(sum.saturating_add(product));
                    }
                }
                _ => {}
            }
        }
        let alternatives =
            open.iter().fold(product, |product, (before, sum)| product.saturating_mul(*before).saturating_add(*sum));
        Self { alternatives, wide_class }
    }
}

/// Reads a class to its end. A `]` that comes first in it stands for itself.
fn class(chars: &mut std::str::Chars<'_>) -> bool {
    let mut wide = false;
    let mut first = true;
    let mut rest = chars.clone();
    if matches!(rest.next(), Some('!' | '^')) {
        chars.next();
    }
    for c in chars.by_ref() {
        if c == ']' && !first {
            break;
        }
        first = false;
        wide |= !c.is_ascii();
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], yes: &[&str], no: &[&str]) {
        let globs = Globs::new(patterns).unwrap();
        for path in yes {
            assert!(globs.matches(path), "{patterns:?} should match {path}");
        }
        for path in no {
            assert!(!globs.matches(path), "{patterns:?} should not match {path}");
        }
    }

    #[test]
    fn stars_stay_within_their_component() {
        check(&["*.rs"], &["a.rs", ".rs"], &["src/a.rs", "a.rsx"]);
        check(&["**/*.rs"], &["a.rs", "src/a.rs", "a/b/c.rs"], &["a.rs/b"]);
        check(&["src/**"], &["src/a", "src/a/b"], &["src", "srcs/a", "x/src/a"]);
        check(&["**"], &["a", "a/b", ".git/x", "é"], &[]);
        check(&["a/**/b"], &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/bb"]);
        check(&["a/*/b"], &["a/x/b"], &["a/b", "a/x/y/b"]);
        check(&["?.c"], &["a.c"], &["ab.c", "/.c"]);
        check(&["[a-c][!x].c", "[]].d"], &["ay.c", "].d"], &["ax.c", "dy.c", "a/.c"]);
        check(&["*.{md,txt}", "{src,tests}/**/*.rs"], &["a.md", "src/x.rs", "tests/a/b.rs"], &["a.rs"]);
        check(&["A.rs"], &["A.rs"], &["a.rs"]);
    }

    #[test]
    fn names_that_are_no_text_are_matched_too() {
        let globs = Globs::new(&["**/*.txt", "!lat?.txt"]).unwrap();
        assert!(globs.matches(b"a/\xff.txt") && globs.matches(b"la\xe9.txt") && !globs.matches(b"lat\xe9.txt"));
        let globs = Globs::new(&["**", "!a/**"]).unwrap();
        assert!(globs.may_match_below(b"\xe9") && !globs.may_match_below(b"a/\xe9"));
    }

    #[test]
    fn the_last_match_wins() {
        check(&["**", "!vendor/**"], &["a", "x/vendor/a"], &["vendor/a"]);
        check(&["**", "!vendor/**", "vendor/ours/**"], &["vendor/ours/a"], &["vendor/a"]);
        check(&["vendor/ours/**", "!vendor/**"], &[], &["vendor/ours/a", "other"]);
        check(&["!a", "**"], &["a"], &[]);
    }

    #[test]
    fn special_characters_can_be_escaped() {
        check(&["\\!a", "b\\*", "c[*]", "\\{x\\}"], &["!a", "b*", "c*", "{x}"], &["a", "bb", "cc", "x"]);
    }

    #[test]
    fn an_empty_list_matches_nothing() {
        check(&[], &[], &["a", ""]);
    }

    #[test]
    fn globs_keep_their_source() {
        let globs = Globs::new(&["**", "!a"]).unwrap();
        assert_eq!(globs.patterns(), ["**", "!a"]);
        assert_eq!(globs, globs.clone());
        assert_ne!(globs, Globs::new(&["**"]).unwrap());
        assert_eq!(format!("{globs:?}"), r#"Globs(["**", "!a"])"#);
    }

    #[test]
    fn what_cannot_match_is_refused() {
        for bad in ["", "!", "/a", "!/a", "./a", "a/./b", "../a", "a/..", "a//b", "a/", "!a/", ".", "..", "a\0"] {
            assert!(matches!(Globs::new(&[bad]), Err(GlobError::NeverMatches { .. })), "{bad:?}");
        }
        assert_eq!(Globs::new(&["!a", "!b"]), Err(GlobError::OnlyExcludes));
        for good in ["...", ".a", "a..b", "..a/b.", "*/.*"] {
            assert!(Globs::new(&[good]).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for bad in ["[", "[a", "{a", "a}", "[z-a]", "a\\", "[é]", "[!a-é]", "{a,{b}"] {
            assert!(matches!(Globs::new(&[bad]), Err(GlobError::Syntax { .. })), "{bad:?}");
        }
        insta::assert_snapshot!(Globs::check("a/[z-a]").unwrap_err(), @"the glob `a/[z-a]` is not valid: invalid range; 'z' > 'a'");
        insta::assert_snapshot!(Globs::check("[é]").unwrap_err(), @"the glob `[é]` is not valid: only ASCII characters can be in `[…]`; write `{é,è}` for others");
        insta::assert_snapshot!(Globs::check("src/").unwrap_err(), @"the glob `src/` matches nothing: paths of files do not end with `/`; write `folder/**` for all that is in a folder");
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let many = vec!["a"; MAX_GLOBS + 1];
        assert_eq!(Globs::new(&many), Err(GlobError::TooMany(1001)));
        assert!(Globs::new(&many[1..]).is_ok());
        let long = "a".repeat(MAX_GLOB_LENGTH + 1);
        assert_eq!(Globs::check(&long), Err(GlobError::TooLong(1025)));
        assert!(Globs::check(&long[1..]).is_ok());
        let heavy = vec!["?".repeat(MAX_GLOB_LENGTH); MAX_GLOBS];
        assert!(matches!(Globs::new(&heavy), Err(GlobError::TooComplex(_))));
    }

    #[test]
    fn braces_that_multiply_are_refused() {
        let shape = |body: &str| Shape::of(body).alternatives;
        assert_eq!(shape("a"), 1);
        assert_eq!(shape("{a,b}"), 2);
        assert_eq!(shape("{a,b}/{c,d,}"), 6);
        assert_eq!(shape("{a,{b,c},d}x,y"), 4);
        assert_eq!(shape("\\{a,b}[{,}]{x,y}"), 2);
        for bad in
            ["{a,b}".repeat(11), "{".repeat(90) + "a,b" + &"},c".repeat(90) + &"{a,b}".repeat(10), "{a,b}".repeat(200)]
        {
            assert!(matches!(Globs::check(&bad), Err(GlobError::TooManyAlternatives(_))), "{bad}");
        }
        assert!(Globs::check(&"{a,b}".repeat(10)).is_ok());
        assert!(matches!(
            Globs::check(&"{".repeat(1000)),
            Err(GlobError::Syntax { .. } | GlobError::TooManyAlternatives(_))
        ));
    }

    #[test]
    fn what_may_lie_in_a_folder_that_nobody_can_look_into() {
        let may = |patterns: &[&str], folder| Globs::new(patterns).unwrap().may_match_below(folder);
        for (patterns, folder) in [
            (&["**"][..], "a"),
            (&["**/*.rs"], "a/b"),
            (&["a/b/c.txt"], "a"),
            (&["a/b/c.txt"], "a/b"),
            (&["a/*/x"], "a/b"),
            (&["{a,b}/x"], "c"),
            (&["**", "!b/**"], "a"),
            (&["**", "!a/*.rs"], "a"),
            (&["**", "!a/**", "a/b/**"], "a"),
        ] {
            assert!(may(patterns, folder), "{patterns:?} {folder}");
        }
        for (patterns, folder) in [
            (&[][..], "a"),
            (&["b/**"], "a"),
            (&["ab/**"], "a"),
            (&["a.txt"], "a"),
            (&["**", "!a/**"], "a"),
            (&["**", "!a/**"], "a/b"),
        ] {
            assert!(!may(patterns, folder), "{patterns:?} {folder}");
        }
    }
}
