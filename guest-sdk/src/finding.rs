//! Building the values a check returns.

use crate::{Edit, Entry, Finding, Kind, Place, Position, Report, Severity};

impl Finding {
    /// A finding that fails the check. `rule` is the id of one of the check's rules; the message is a sentence that can be
    /// read alone.
    pub fn error(rule: &str, message: impl Into<String>) -> Self {
        Self::of(Severity::Error, rule, message)
    }

    /// A finding that is worth a look.
    pub fn warning(rule: &str, message: impl Into<String>) -> Self {
        Self::of(Severity::Warning, rule, message)
    }

    /// A finding that is worth knowing.
    pub fn note(rule: &str, message: impl Into<String>) -> Self {
        Self::of(Severity::Note, rule, message)
    }

    /// A finding of any severity.
    pub fn of(severity: Severity, rule: &str, message: impl Into<String>) -> Self {
        Self { rule: rule.to_owned(), severity, message: message.into(), place: None, help: None, edits: Vec::new() }
    }

    /// Says which file it is about, as a whole.
    #[must_use]
    pub fn in_file(mut self, path: &str) -> Self {
        self.place = Some(Place { path: path.to_owned(), start: None, end: None });
        self
    }

    /// Says where it is: from the first character to the one after the last.
    #[must_use]
    pub fn at(mut self, path: &str, start: Position, end: impl Into<Option<Position>>) -> Self {
        self.place = Some(Place { path: path.to_owned(), start: Some(start), end: end.into() });
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Proposes to replace the bytes from `start` up to `end`, in the file as it was read. All edits of a finding
    /// together resolve it; they must not overlap.
    #[must_use]
    pub fn edit(mut self, path: &str, start: u64, end: u64, replacement: impl Into<Vec<u8>>) -> Self {
        self.edits.push(Edit { path: path.to_owned(), start, end, replacement: replacement.into() });
        self
    }
}

impl Report {
    /// A report that found nothing.
    pub fn new() -> Self {
        Self { findings: Vec::new(), stats: Vec::new() }
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Adds a finding, in passing.
    #[must_use]
    pub fn with(mut self, finding: Finding) -> Self {
        self.push(finding);
        self
    }

    /// Adds to a named count. A name appears once, however often it is counted.
    pub fn count(&mut self, name: &str, more: u64) {
        match self.stats.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count = count.saturating_add(more),
            None => self.stats.push((name.to_owned(), more)),
        }
    }

    /// A named count; 0 if it was never counted.
    pub fn stat(&self, name: &str) -> u64 {
        let found = self.stats.iter().find(|(known, _)| known == name);
        found.map_or(0, |&(_, count)| count)
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl Position {
    /// A line and a column, both from 1.
    pub fn new(line: u32, column: u32) -> Self {
        Self { line, column }
    }
}

impl Entry {
    /// Whether it is a file, executable or not, whose contents can be read.
    pub fn has_contents(&self) -> bool {
        match self.kind {
            Kind::File | Kind::Executable => true,
            Kind::Symlink | Kind::Submodule => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_built_step_by_step() {
        let finding = Finding::warning("odd", "It is odd.")
            .at("a b", Position::new(1, 2), Position::new(1, 4))
            .help("Make it even.")
            .edit("a b", 1, 3, "x");
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.edits[0].replacement, b"x");
        let place = finding.place.unwrap();
        assert_eq!((place.path.as_str(), place.end), ("a b", Some(Position::new(1, 4))));
    }

    #[test]
    fn a_count_appears_once() {
        let mut report = Report::new();
        report.count("files", 1);
        report.count("bytes", 10);
        report.count("files", 2);
        assert_eq!(report.stats, [("files".to_owned(), 3), ("bytes".to_owned(), 10)]);
        assert_eq!(report.stat("lines"), 0);
    }
}
