//! The patterns of `.gitattributes`.
//!
//! A pattern comes from the tree, so it can be hostile. It is matched by keeping the set of places in the pattern that
//! can be reached, which takes at most pattern × path steps, where trying one way after the other could take for ever.

/// A pattern, ready to be matched against paths relative to the folder of its `.gitattributes`.
#[derive(Debug)]
pub(crate) struct Pattern {
    steps: Vec<Step>,
    /// Whether it is about the last component of a path only, in any folder.
    is_name: bool,
}

#[derive(Debug)]
enum Step {
    Byte(u8),
    /// Any byte but `/`.
    One,
    /// Any of a set of bytes, never `/`.
    Class(Box<[bool; 256]>),
    /// Any bytes but `/`, or none.
    Star,
    /// Any number of whole folders, or none: skips itself and the next step, which is always `Inside`.
    Folders,
    /// Inside the folders of the step before.
    Inside,
    /// Everything below a folder, at least one byte.
    Rest,
}

impl Pattern {
    /// Reads a pattern. None if it can never match a file: one for a folder, an exclusion, or one that is malformed.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        if text.is_empty() || text.starts_with(b"!") || text.ends_with(b"/") {
            return None;
        }
        let is_name = !text.contains(&b'/');
        let text = text.strip_prefix(b"/").unwrap_or(text);
        let steps = if is_name { steps(text, false)? } else { steps(text, true)? };
        Some(Self { steps, is_name })
    }

    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let text = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) if self.is_name => &path[slash + 1..],
            _ => path,
        };
        let mut reached = vec![false; self.steps.len() + 1];
        reached[0] = true;
        self.skip(&mut reached);
        for &byte in text {
            let mut next = vec![false; reached.len()];
            for (at, step) in self.steps.iter().enumerate() {
                if !reached[at] {
                    continue;
                }
                match step {
                    Step::Byte(expected) => next[at + 1] |= byte == *expected,
                    Step::One => next[at + 1] |= byte != b'/',
                    Step::Class(class) => next[at + 1] |= class[usize::from(byte)],
                    Step::Star => next[at] |= byte != b'/',
                    Step::Folders => {}
                    Step::Inside => {
                        next[at] = true;
                        next[at + 1] |= byte == b'/';
                    }
                    Step::Rest => {
                        next[at] = true;
                        next[at + 1] = true;
                    }
                }
            }
            reached = next;
            self.skip(&mut reached);
        }
        reached[self.steps.len()]
    }

    /// Goes on over steps that match nothing at all.
    fn skip(&self, reached: &mut [bool]) {
        for (at, step) in self.steps.iter().enumerate() {
            if reached[at] {
                match step {
                    Step::Star => reached[at + 1] = true,
                    Step::Folders => {
                        reached[at + 1] = true;
                        reached[at + 2] = true;
                    }
                    _ => {}
                }
            }
        }
    }
}

fn steps(mut text: &[u8], is_path: bool) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    // Whether the next byte is the first of a component: `**` is special only where it is a whole one.
    let mut is_first = true;
    while let Some((&byte, rest)) = text.split_first() {
        let was_first = std::mem::replace(&mut is_first, byte == b'/');
        text = rest;
        match byte {
            b'*' => {
                let stars = rest.iter().take_while(|&&byte| byte == b'*').count();
                text = &rest[stars..];
                if stars == 1 && is_path && was_first && text.is_empty() {
                    steps.push(Step::Rest);
                } else if stars == 1 && is_path && was_first && text.starts_with(b"/") {
                    text = &text[1..];
                    is_first = true;
                    steps.push(Step::Folders);
                    steps.push(Step::Inside);
                } else {
                    steps.push(Step::Star);
                }
            }
            b'?' => steps.push(Step::One),
            b'[' => {
                let (class, rest) = class(text)?;
                text = rest;
                steps.push(Step::Class(class));
            }
            b'\\' => {
                let (&escaped, rest) = text.split_first()?;
                text = rest;
                steps.push(Step::Byte(escaped));
            }
            _ => steps.push(Step::Byte(byte)),
        }
    }
    Some(steps)
}

/// Reads a bracket expression after its `[`, and returns what is after its `]`. None if it has no end.
fn class(mut text: &[u8]) -> Option<(Box<[bool; 256]>, &[u8])> {
    let mut members = Box::new([false; 256]);
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    if is_negated {
        text = &text[1..];
    }
    let mut is_first = true;
    loop {
        let (&byte, rest) = text.split_first()?;
        text = rest;
        if byte == b']' && !is_first {
            break;
        }
        is_first = false;
        if byte == b'['
            && let Some(named) = text.strip_prefix(b":")
        {
            let end = named.windows(2).position(|pair| pair == b":]")?;
            add_named(&mut members, &named[..end])?;
            text = &named[end + 2..];
            continue;
        }
        let low = if byte == b'\\' { take(&mut text)? } else { byte };
        let mut high = low;
        if let [b'-', next, ..] = text
            && *next != b']'
        {
            text = &text[1..];
            high = take(&mut text)?;
            if high == b'\\' {
                high = take(&mut text)?;
            }
        }
        for member in low..=high {
            members[usize::from(member)] = true;
        }
    }
    if is_negated {
        for member in members.iter_mut() {
            *member = !*member;
        }
    }
    members[usize::from(b'/')] = false;
    Some((members, text))
}

fn take(text: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = text.split_first()?;
    *text = rest;
    Some(byte)
}

/// Adds a class such as `alpha`. None if there is no such class, which makes the pattern malformed.
fn add_named(members: &mut [bool; 256], name: &[u8]) -> Option<()> {
    let test: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    for (member, byte) in members.iter_mut().zip(0..=u8::MAX) {
        *member |= test(&byte);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let parsed = Pattern::new(pattern.as_bytes());
        let matches = |path: &str| parsed.as_ref().is_some_and(|it| it.matches(path.as_bytes()));
        for path in matching {
            assert!(matches(path), "{pattern} should match {path}");
        }
        for path in others {
            assert!(!matches(path), "{pattern} should not match {path}");
        }
    }

    #[test]
    fn a_pattern_without_a_slash_is_about_names() {
        check("*.bin", &["a.bin", "x/y/a.bin", ".bin"], &["a.bin/x", "a.binx"]);
        check("a", &["a", "x/a"], &["a/x", "ab"]);
        check("**", &["a", "x/a"], &[]);
        check("a?c", &["abc", "x/a c"], &["ac", "abbc"]);
    }

    #[test]
    fn a_pattern_with_a_slash_starts_at_its_folder() {
        check("/a", &["a"], &["x/a", "a/x"]);
        check("x/*", &["x/a", "x/.b"], &["x/y/a", "y/x/a", "x"]);
        check("x/*.bin", &["x/a.bin"], &["x/y/a.bin"]);
        check("x/a?c", &["x/abc"], &["x/a/c"]);
    }

    #[test]
    fn two_stars_match_folders() {
        check("**/a", &["a", "x/a", "x/y/a"], &["xa", "x/ya"]);
        check("x/**", &["x/a", "x/y/a"], &["x", "y/x/a"]);
        check("x/**/a", &["x/a", "x/y/a", "x/y/z/a"], &["xa", "x/ya", "a"]);
        check("**/x/**/a", &["x/a", "q/x/r/s/a"], &["x", "q/a"]);
        check("x/**y/a", &["x/y/a", "x/zy/a"], &["x/z/y/a"]);
        check("/**", &["a", "x/a"], &[]);
    }

    #[test]
    fn brackets_match_one_byte() {
        check("[ab]", &["a", "x/b"], &["c", "ab"]);
        check("[!a-c]", &["d", "-"], &["a", "b", "c"]);
        check("[^a]", &["b"], &["a"]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[[:digit:]x]", &["5", "x"], &["y", ":"]);
        check("[\\]]", &["]"], &["\\"]);
        check("x[!a]y", &["xby"], &["x/y"]);
        check("z/x[!a]y", &["z/xby"], &["z/x/y"]);
        check("[a", &[], &["a", "[a"]);
        check("[[:nothing:]]", &[], &["a"]);
    }

    #[test]
    fn a_backslash_takes_the_meaning_away() {
        check("\\*", &["*"], &["a"]);
        check("\\[a]", &["[a]"], &["a"]);
        check("a\\", &[], &["a", "a\\"]);
    }

    #[test]
    fn folders_and_exclusions_match_no_file() {
        check("x/", &[], &["x", "x/a"]);
        check("!a", &[], &["a", "!a"]);
        check("", &[], &["a"]);
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_others() {
        let pattern = Pattern::new("*a".repeat(200).as_bytes()).unwrap();
        assert!(!pattern.matches("a".repeat(199).as_bytes()));
        assert!(!pattern.matches(format!("{}b", "a".repeat(1_000)).as_bytes()));
        assert!(pattern.matches("a".repeat(1_000).as_bytes()));
    }
}
