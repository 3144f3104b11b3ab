//! What became of a command that ended by itself: its exit code, and what it wrote about itself.
//!
//! What it wrote may explain a result or make it worse, and never makes it better than the exit code.

use super::Done;
use crate::guest::Limits;
use crate::model::{CheckOutcome, Edit, ErrorKind, Exit, Place, Report, Secrets, Severity, SkipReason, line_form};
use crate::native::{ResultClass, Written};
use crate::subject::{Kind, Snapshot};
use crate::worker::caps;
use std::collections::BTreeMap;

/// The most that a message may have, as that of a pack.
const MESSAGE_BYTES: usize = caps::MESSAGE_BYTES;

/// Takes the end of a command and what it wrote, and says what that is. `done` gets findings, counts and a message.
pub(super) fn judge(
    exit: Exit,
    gap_exit: &[u8],
    written: Result<Option<Written>, String>,
    snapshot: &Snapshot,
    fail_on: Severity,
    done: &mut Done,
) -> CheckOutcome {
    let written = written.and_then(|written| written.map(|written| checked(written, snapshot)).transpose());
    let written = match written {
        Ok(written) => written.unwrap_or(Written { class: None, message: None, report: Report::default() }),
        Err(why) => {
            let why = format!("what it wrote to the file that $PROBITY_RESULT names is no result: {why}");
            done.message = Some(format!("{why}\nhelp: mend the command, or have it write nothing there"));
            return CheckOutcome::Error(ErrorKind::BadResult);
        }
    };
    let errors = written.report.findings.iter().any(|finding| finding.severity >= fail_on);
    let outcome = outcome(exit, gap_exit, written.class, errors);
    done.message = written.message.or_else(|| match (&outcome, written.class, exit) {
        (CheckOutcome::Error(ErrorKind::Gap), None, Exit::Code(code)) => {
            Some(format!("by `gap-exit`, exit code {code} says that something is missing here"))
        }
        _ => None,
    });
    done.report = written.report;
    outcome
}

/// What several calls of one command come to: the first one that is red decides, else one that passed; what all of them
/// found counts.
pub(super) fn together(calls: Vec<(CheckOutcome, Done)>, done: &mut Done) -> CheckOutcome {
    let decides = calls.iter().position(|(outcome, _)| outcome.is_red());
    let decides =
        decides.or_else(|| calls.iter().position(|(outcome, _)| *outcome == CheckOutcome::Passed)).unwrap_or(0);
    let mut outcome = CheckOutcome::Passed;
    let mut stats: BTreeMap<String, u64> = BTreeMap::new();
    for (at, (one, found)) in calls.into_iter().enumerate() {
        if at == decides {
            (outcome, done.exit, done.message) = (one, found.exit, found.message);
        }
        done.report.findings.extend(found.report.findings);
        for (name, count) in found.report.stats {
            let sum = stats.entry(name).or_default();
            // More than that has no canonical form.
            *sum = sum.saturating_add(count).min((1 << 53) - 1);
        }
    }
    done.report.findings.sort_unstable();
    done.report.findings.dedup();
    done.report.stats = stats.into_iter().collect();
    outcome
}

/// The table in `docs/configuration.md`, line by line.
fn outcome(exit: Exit, gap_exit: &[u8], class: Option<ResultClass>, errors: bool) -> CheckOutcome {
    let green = exit == Exit::Code(0);
    let gap = matches!(exit, Exit::Code(code) if gap_exit.iter().any(|listed| i32::from(*listed) == code));
    match class {
        Some(ResultClass::EnvGap) => CheckOutcome::Error(ErrorKind::Gap),
        Some(ResultClass::NeedsContext) => CheckOutcome::Error(ErrorKind::NeedsContext),
        Some(ResultClass::NotApplicable) if green && !errors => CheckOutcome::Skipped(SkipReason::NotApplicable),
        Some(ResultClass::NotApplicable) | None => {
            if gap {
                CheckOutcome::Error(ErrorKind::Gap)
            } else if green && !errors {
                CheckOutcome::Passed
            } else {
                CheckOutcome::Failed
            }
        }
    }
}

/// Holds what was written against the bounds that packs have too, and against the tree, and puts it into its one form.
fn checked(mut written: Written, snapshot: &Snapshot) -> Result<Written, String> {
    if let Some(message) = &written.message {
        line_form("its message", message)?;
        if message.len() > MESSAGE_BYTES {
            return Err(format!("its message has {} bytes, and may have {MESSAGE_BYTES}", message.len()));
        }
    }
    // Tools write `./src/a` as often as `src/a`.
    for finding in &mut written.report.findings {
        finding.place.iter_mut().for_each(|place| plain(&mut place.path));
        finding.edits.iter_mut().for_each(|edit| plain(&mut edit.path));
    }
    caps::report(&written.report, Limits::default().findings).map_err(|(_, excess)| excess)?;
    for finding in &written.report.findings {
        let of_rule = |error| format!("a finding of rule `{}`: {error}", finding.rule.escape_debug());
        line_form("a finding's rule", &finding.rule)?;
        finding.place.iter().try_for_each(|place: &Place| within(&place.path)).map_err(of_rule)?;
        finding.edits.iter().try_for_each(|edit| fits(edit, snapshot)).map_err(of_rule)?;
    }
    Ok(Written { report: written.report.into_form()?, ..written })
}

/// A path without what stands for nothing.
fn plain(path: &mut String) {
    let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    *path = parts.join("/");
}

/// Whether a path stays in the tree. A command may speak of files that are no part of the subject, such as what it makes.
fn within(path: &str) -> Result<(), String> {
    let good = !path.contains('\0') && path.split('/').all(|name| !matches!(name, "" | "." | ".."));
    let shown = path.escape_debug();
    if good { Ok(()) } else { Err(format!("its path `{shown}` is not relative to the root, without `.` and `..`")) }
}

fn fits(edit: &Edit, snapshot: &Snapshot) -> Result<(), String> {
    let path = edit.path.escape_debug();
    let entry = snapshot.entry(edit.path.as_bytes());
    match entry.filter(|entry| matches!(entry.kind, Kind::File | Kind::Executable)) {
        Some(entry) if edit.start <= edit.end && edit.end <= entry.size => Ok(()),
        Some(entry) => {
            let (start, end, size) = (edit.start, edit.end, entry.size);
            Err(format!("its edit of `{path}` from {start} to {end} is not in a file of {size} bytes"))
        }
        None => Err(format!("its edit is of `{path}`, which is no file of the subject")),
    }
}

/// Takes the values of secrets out of everything that a command said, before anybody sees it.
pub(super) fn conceal(secrets: &Secrets, done: &mut Done) {
    if secrets.is_empty() {
        return;
    }
    let conceal = |text: &mut String| *text = secrets.conceal(text);
    done.message.iter_mut().for_each(conceal);
    done.reaped = std::mem::take(&mut done.reaped).renamed(|name| secrets.conceal(name));
    for finding in &mut done.report.findings {
        conceal(&mut finding.rule);
        conceal(&mut finding.message);
        finding.help.iter_mut().for_each(conceal);
        finding.place.iter_mut().for_each(|place| conceal(&mut place.path));
        // What would be put into a file must be what was proposed, or nothing.
        let holds = |edit: &Edit| secrets.are_in(edit.path.as_bytes()) || secrets.are_in(&edit.replacement.0);
        if finding.edits.iter().any(holds) {
            finding.edits.clear();
        }
    }
    for (name, _) in &mut done.report.stats {
        conceal(name);
    }
    // What differed by a secret only is the same now.
    done.report.findings.sort_unstable();
    done.report.findings.dedup();
    done.report.stats.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_explains_or_worsens_and_never_betters() {
        let classes =
            [None, Some(ResultClass::EnvGap), Some(ResultClass::NeedsContext), Some(ResultClass::NotApplicable)];
        let exits = [Exit::Code(0), Exit::Code(75), Exit::Code(1), Exit::Signal(11)];
        let mut table = String::new();
        for exit in exits {
            for class in classes {
                let of = |errors| outcome(exit, &[75], class, errors);
                let kind = |outcome| match outcome {
                    CheckOutcome::Error(kind) => format!("error({kind:?})"),
                    other => other.word().to_owned(),
                };
                assert!(exit == Exit::Code(0) || of(false).is_red() && of(true).is_red());
                assert!(of(true).is_red());
                table.push_str(&format!("{exit:?} {class:?}: {}, with errors {}\n", kind(of(false)), kind(of(true))));
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn what_stands_for_nothing_in_a_path_is_left_out() {
        for (given, plain_one) in
            [("./a", "a"), ("a/./b", "a/b"), ("./.", ""), ("./../a", "../a"), ("/./a", "/a"), (".a", ".a")]
        {
            let mut path = given.to_owned();
            plain(&mut path);
            assert_eq!(path, plain_one);
        }
    }

    #[test]
    fn paths_stay_in_the_tree() {
        for good in ["a", "a/b c", "..a", "a..", ".git"] {
            assert_eq!(within(good), Ok(()), "{good}");
        }
        for bad in ["", "/", "/etc/passwd", "..", "a/../b", "./a", "a/", "a//b", "a\0b"] {
            assert!(within(bad).is_err(), "{bad:?}");
        }
    }
}
