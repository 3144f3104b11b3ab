//! Whether what a guest returned makes sense. It is within the caps already; here it is held against the contract,
//! the request and the files, and put into its one form.

use crate::model::{
    CheckInfo, Edit, Finding, MAX_INTEGER, Mount, PackInfo, Place, Report, Request, id_form as id, line_form as line,
    unique_ids as unique,
};
use crate::worker::{FoundKind, View};
use std::collections::HashSet;

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

    /// Holds a report against the check and the files, and puts it into its one form. `view` is what the guest saw.
    pub(super) fn report(&self, report: Report, request: &Request, view: &View) -> Result<Report, String> {
        for finding in &report.findings {
            self.finding(finding, request, view)
                .map_err(|error| format!("a finding of rule `{}`: {error}", finding.rule.escape_debug()))?;
        }
        report.into_form()
    }

    fn finding(&self, finding: &Finding, request: &Request, view: &View) -> Result<(), String> {
        if !self.rules.contains(finding.rule.as_str()) {
            return Err("the check has no such rule".to_owned());
        }
        finding.place.iter().try_for_each(|place| self::place(place, request, view))?;
        finding.edits.iter().try_for_each(|edit| self::edit(edit, view))
    }
}

fn place(place: &Place, request: &Request, view: &View) -> Result<(), String> {
    let path = &place.path;
    // What was deleted is in no tree any more and may still be what a finding is about.
    let deleted = || request.changes.iter().flatten().any(|change| change.path == *path);
    if view.find(Mount::Tree, path).is_none() && !deleted() {
        return Err(format!("its path `{}` is none that the check was given", path.escape_debug()));
    }
    Ok(())
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
}
