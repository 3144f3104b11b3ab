//! Which tests a file has: pairs of names with one part in common.
//!
//! Values only: whether such a file exists is not known here.

/// Stands for the part that both names have in common: any text, also with `/` in it.
const PART: &str = "{path}";

/// A file's name and the name of its test, each with `{path}` once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestsOf {
    file: (String, String),
    test: (String, String),
}

impl TestsOf {
    /// The pair. None where one of them has not the part, or has it twice.
    pub fn new(file: &str, test: &str) -> Option<Self> {
        let parts = |text: &str| {
            let (before, after) = text.split_once(PART)?;
            (!after.contains(PART)).then(|| (before.to_owned(), after.to_owned()))
        };
        Some(Self { file: parts(file)?, test: parts(test)? })
    }

    /// The test of a file, or the file itself where it is one. None where the pair says nothing of it.
    pub fn test(&self, path: &str) -> Option<String> {
        let part = |(before, after): &(String, String)| {
            let part = path.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?;
            (!part.is_empty()).then(|| part.to_owned())
        };
        if part(&self.test).is_some() {
            return Some(path.to_owned());
        }
        part(&self.file).map(|part| format!("{}{part}{}", self.test.0, self.test.1))
    }

    /// Both names, as they were written.
    pub fn names(&self) -> [String; 2] {
        [&self.file, &self.test].map(|(before, after)| format!("{before}{PART}{after}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_name_is_kept() {
        let pair = TestsOf::new("src/{path}.ts", "test/{path}.spec.ts").unwrap();
        assert_eq!(pair.test("src/a/b.ts").as_deref(), Some("test/a/b.spec.ts"));
        assert_eq!(pair.test("test/a.spec.ts").as_deref(), Some("test/a.spec.ts"), "a test is its own");
        for none in ["src/.ts", "lib/a.ts", "src/a.js", "src/"] {
            assert_eq!(pair.test(none), None, "{none}");
        }
        let beside = TestsOf::new("{path}.py", "{path}_test.py").unwrap();
        assert_eq!(beside.test("a/b.py").as_deref(), Some("a/b_test.py"));
        assert_eq!(beside.test("a/b_test.py").as_deref(), Some("a/b_test.py"));
        assert_eq!(TestsOf::new("src/a", "x"), None);
        assert_eq!(TestsOf::new("{path}{path}", "{path}"), None);
    }
}
