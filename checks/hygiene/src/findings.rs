//! A list of findings that cannot grow without end.
//!
//! A file with a hundred thousand lines that all end with whitespace says nothing more after the first hundreds, and the
//! host refuses a flood. So there is a limit, and a note that says how many more there are.

use probity_sdk::{Finding, Report};

/// How many findings of one file are listed.
pub(crate) const PER_FILE: usize = 200;

/// Findings up to a limit.
pub(crate) struct Findings {
    listed: Vec<Finding>,
    limit: usize,
    more: u64,
}

impl Findings {
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { listed: Vec::new(), limit, more: 0 }
    }

    /// Adds a finding, which is only made if there is room for it.
    pub(crate) fn push(&mut self, make: impl FnOnce() -> Finding) {
        if self.listed.len() < self.limit {
            self.listed.push(make());
        } else {
            self.more += 1;
        }
    }

    /// Adds them to a report, with a last note if there were more. The note belongs to `rule`, and to the file at `path`
    /// if there is one.
    pub(crate) fn finish(self, report: &mut Report, rule: &str, path: Option<&str>) {
        for finding in self.listed {
            report.push(finding);
        }
        if self.more > 0 {
            let (limit, more) = (self.limit, self.more);
            let note =
                Finding::note(rule, format!("Only the first {limit} findings are listed; there are {more} more."));
            report.push(match path {
                Some(path) => note.in_file(path),
                None => note,
            });
        }
    }
}
