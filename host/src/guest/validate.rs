//! Whether what a guest returned makes sense. It is within the caps already; here it is held against the contract,
//! the request and the files, and put into its one form.

use crate::model::{CheckInfo, Edit, Finding, IdError, Mount, PackInfo, PackName, Place, Report, Request};
use crate::worker::{FoundKind, View};
use std::collections::HashSet;

/// The largest integer that survives in JSON read by anything that computes with doubles.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Checks a pack's description of itself. What is wrong names the part that it is wrong with.
pub(super) fn pack(info: &PackInfo) -> Result<(), String> {
    id("the pack's name", &info.name)?;
    if !is_version(&info.version) {
        return Err(format!("`{}` is not a version: it must be as `1.2.3`", info.version.escape_debug()));
    }
    line("the pack's summary", &info.summary)?;
    if info.checks.is_empty() {
        return Err("it has no checks".to_owned());
    }
    unique("check", info.checks.iter().map(|check| check.id.as_str()))?;
    info.checks.iter().try_for_each(|check| {
        self::check(check).map_err(|error| format!("check `{}`: {error}", check.id.escape_debug()))
    })
}

fn check(check: &CheckInfo) -> Result<(), String> {
    id("its id", &check.id)?;
    line("its title", &check.title)?;
    globs(&check.files)?;
    for need in &check.needs {
        globs(&need.globs).map_err(|error| format!("its need of /{}: {error}", need.mount.name()))?;
        line("why it needs something", &need.why)?;
    }
    if check.rules.is_empty() {
        return Err("it has no rules".to_owned());
    }
    unique("rule", check.rules.iter().map(|rule| rule.id.as_str()))?;
    for rule in &check.rules {
        id("a rule's id", &rule.id)?;
        line("a rule's summary", &rule.summary)?;
    }
    Ok(())
}

fn id(what: &str, text: &str) -> Result<(), String> {
    let parsed: Result<PackName, IdError> = text.parse();
    parsed.map(|_| ()).map_err(|error| format!("{what} `{}` {error}", text.escape_debug()))
}

fn line(what: &str, text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err(format!("{what} is empty")) } else { Ok(()) }
}

fn globs(globs: &[String]) -> Result<(), String> {
    if globs.is_empty() {
        return Err("a list of globs is empty: `**` stands for everything".to_owned());
    }
    let bad = globs.iter().find(|glob| {
        let path = glob.strip_prefix('!').unwrap_or(glob);
        path.is_empty() || path.starts_with('/')
    });
    bad.map_or(Ok(()), |glob| Err(format!("`{}` is not a glob on relative paths", glob.escape_debug())))
}

fn unique<'a>(what: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(format!("{what} `{}` is there twice", id.escape_debug()));
        }
    }
    Ok(())
}

/// `1.2.3`, perhaps followed by `-` or `+` and letters, digits, dots and hyphens.
fn is_version(text: &str) -> bool {
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let number = |part: &str| (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(number)
        && rest.len() != 1
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
}

/// Judges the reports of one check.
pub(super) struct Judge<'a> {
    rules: HashSet<&'a str>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(check: &'a CheckInfo) -> Self {
        Self { rules: check.rules.iter().map(|rule| rule.id.as_str()).collect() }
    }

    /// Puts a report into its one form: edits, findings and counts sorted. `view` is what the guest saw.
    pub(super) fn report(&self, mut report: Report, request: &Request, view: &View) -> Result<Report, String> {
        for finding in &mut report.findings {
            self.finding(finding, request, view)
                .map_err(|error| format!("a finding of rule `{}`: {error}", finding.rule.escape_debug()))?;
        }
        report.findings.sort_unstable();
        if let Some(pair) = report.findings.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two findings of rule `{}` are equal", pair[0].rule.escape_debug()));
        }
        report.stats.sort_unstable();
        for (name, value) in &report.stats {
            id("a count's name", name)?;
            if *value > MAX_INTEGER {
                return Err(format!("the count `{name}` is {value}, and may be {MAX_INTEGER}"));
            }
        }
        unique("the count", report.stats.iter().map(|(name, _)| name.as_str()))?;
        Ok(report)
    }

    fn finding(&self, finding: &mut Finding, request: &Request, view: &View) -> Result<(), String> {
        if !self.rules.contains(finding.rule.as_str()) {
            return Err("the check has no such rule".to_owned());
        }
        line("its message", &finding.message)?;
        if let Some(help) = &finding.help {
            line("its help", help)?;
        }
        if let Some(place) = &finding.place {
            self::place(place, request, view)?;
        }
        finding.edits.sort_unstable();
        finding.edits.iter().try_for_each(|edit| self::edit(edit, view))?;
        let clash = finding.edits.windows(2).find(|pair| pair[0].path == pair[1].path && overlap(&pair[0], &pair[1]));
        clash.map_or(Ok(()), |pair| Err(format!("two of its edits of `{}` overlap", pair[0].path.escape_debug())))
    }
}

fn place(place: &Place, request: &Request, view: &View) -> Result<(), String> {
    let path = &place.path;
    // What was deleted is in no tree any more and may still be what a finding is about.
    let deleted = || request.changes.iter().flatten().any(|change| change.path == *path);
    if view.find(Mount::Tree, path).is_none() && !deleted() {
        return Err(format!("its path `{}` is none that the check was given", path.escape_debug()));
    }
    let positions = place.start.iter().chain(&place.end);
    if positions.clone().any(|position| position.line == 0 || position.column == 0) {
        return Err("its lines and columns must count from 1".to_owned());
    }
    match (place.start, place.end) {
        (None, Some(_)) => Err("it has an end and no start".to_owned()),
        (Some(start), Some(end)) if end < start => Err("it ends before it starts".to_owned()),
        _ => Ok(()),
    }
}

fn edit(edit: &Edit, view: &View) -> Result<(), String> {
    let path = edit.path.escape_debug();
    match view.find(Mount::Tree, &edit.path) {
        Some(found) if found.kind == FoundKind::File => {
            if edit.start <= edit.end && edit.end <= found.size && edit.end <= MAX_INTEGER {
                Ok(())
            } else {
                let (start, end, size) = (edit.start, edit.end, found.size);
                Err(format!("its edit of `{path}` from {start} to {end} is not in a file of {size} bytes"))
            }
        }
        Some(_) => Err(format!("its edit is of `{path}`, which is no regular file")),
        None => Err(format!("its edit is of `{path}`, which is no file that the check was given")),
    }
}

/// Whether two edits of one file, the first of which starts no later, touch the same bytes, or insert at one place.
fn overlap(first: &Edit, second: &Edit) -> bool {
    second.start < first.end || (first.start == second.start && first.end == second.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers() {
        for good in ["0.1.0", "1.2.3-rc.1", "1.2.3+build-5", "10.20.30"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "1", "1.2", "1.2.x", "1.2.3.4", "v1.2.3", "1.2.3-", "1.2.3 ", "1..3", "1.2.3-\x1b[31m"] {
            assert!(!is_version(bad), "{bad}");
        }
    }

    #[test]
    fn insertions_at_one_place_have_no_order() {
        let edit = |start, end| Edit { path: "a".to_owned(), start, end, replacement: crate::model::Bytes::default() };
        assert!(overlap(&edit(3, 3), &edit(3, 3)));
        assert!(overlap(&edit(3, 5), &edit(4, 6)));
        assert!(!overlap(&edit(3, 5), &edit(5, 6)));
        assert!(!overlap(&edit(3, 3), &edit(3, 4)), "an insertion before a replacement has an order");
    }
}
