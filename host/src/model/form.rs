//! The one form of a report, whoever wrote it: what is held against nothing but itself.

use super::{Edit, IdError, PackName, Place, Report};
use std::collections::HashSet;

/// The largest integer that survives in JSON read by anything that computes with doubles.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Holds a text against the alphabet of ids. `what` begins the sentence that says what is wrong.
pub fn id_form(what: &str, text: &str) -> Result<(), String> {
    let parsed: Result<PackName, IdError> = text.parse();
    parsed.map(|_| ()).map_err(|error| format!("{what} `{}` {error}", text.escape_debug()))
}

/// Refuses a text that says nothing.
pub fn line_form(what: &str, text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err(format!("{what} is empty")) } else { Ok(()) }
}

/// Refuses ids that are there twice.
pub fn unique_ids<'a>(what: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(format!("{what} `{}` is there twice", id.escape_debug()));
        }
    }
    Ok(())
}

impl Place {
    /// Holds its positions against each other; whether there is such a path is for others to say.
    pub fn well_formed(&self) -> Result<(), String> {
        let positions = self.start.iter().chain(&self.end);
        if positions.clone().any(|position| position.line == 0 || position.column == 0) {
            return Err("its lines and columns must count from 1".to_owned());
        }
        match (self.start, self.end) {
            (None, Some(_)) => Err("it has an end and no start".to_owned()),
            (Some(start), Some(end)) if end < start => Err("it ends before it starts".to_owned()),
            _ => Ok(()),
        }
    }
}

impl Report {
    /// Puts it into its one form: edits, findings and counts sorted, texts that say something, nothing twice. That
    /// a finding is known is not for a report to say.
    pub fn into_form(mut self) -> Result<Self, String> {
        for finding in &mut self.findings {
            let checked = (|| {
                line_form("its message", &finding.message)?;
                finding.help.iter().try_for_each(|help| line_form("its help", help))?;
                finding.place.iter().try_for_each(Place::well_formed)?;
                finding.edits.sort_unstable();
                if finding.known {
                    return Err("it says of itself that it is known".to_owned());
                }
                let overlaps = |pair: &&[Edit]| pair[0].path == pair[1].path && overlap(&pair[0], &pair[1]);
                let clash = finding.edits.windows(2).find(overlaps);
                clash.map_or(Ok(()), |pair| {
                    Err(format!("two of its edits of `{}` overlap", pair[0].path.escape_debug()))
                })
            })();
            checked.map_err(|error: String| format!("a finding of rule `{}`: {error}", finding.rule.escape_debug()))?;
        }
        self.findings.sort_unstable();
        if let Some(pair) = self.findings.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two findings of rule `{}` are equal", pair[0].rule.escape_debug()));
        }
        self.stats.sort_unstable();
        for (name, value) in &self.stats {
            id_form("a count's name", name)?;
            if *value > MAX_INTEGER {
                return Err(format!("the count `{name}` is {value}, and may be {MAX_INTEGER}"));
            }
        }
        unique_ids("the count", self.stats.iter().map(|(name, _)| name.as_str()))?;
        Ok(self)
    }
}

/// Whether two edits of one file, the first of which starts no later, touch the same bytes, or insert at one place.
fn overlap(first: &Edit, second: &Edit) -> bool {
    second.start < first.end || (first.start == second.start && first.end == second.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;

    #[test]
    fn insertions_at_one_place_have_no_order() {
        let edit = |start, end| Edit { path: "a".to_owned(), start, end, replacement: Bytes::default() };
        assert!(overlap(&edit(3, 3), &edit(3, 3)));
        assert!(overlap(&edit(3, 5), &edit(4, 6)));
        assert!(!overlap(&edit(3, 5), &edit(5, 6)));
        assert!(!overlap(&edit(3, 3), &edit(3, 4)), "an insertion before a replacement has an order");
    }
}
