//! The most that a pack may hand over. Each bound is far above what a real pack needs and low enough that a thousand of
//! them are no trouble.
//!
//! Held where a guest's values leave the engine, and again by the parent: a worker that an attacker runs says what it
//! likes.

use crate::model::{CheckInfo, ErrorKind, Finding, PackInfo, Refusal, Report};

/// Bytes that the engine copies out of a guest in one call, everything it returns included: ten thousand findings
/// of a kilobyte fit.
pub const HOST_CALL_BYTES: usize = 16 << 20;
/// An id of a check or a rule, a name of a count or of a pack: they become names of files and columns.
pub const ID_BYTES: usize = 64;
/// A line for people: titles, summaries, versions, licences, reasons.
pub const LINE_BYTES: usize = 1024;
/// A finding's or refusal's message.
pub const MESSAGE_BYTES: usize = 8 << 10;
/// A page for people: explanations, and what to do about a finding.
pub const PAGE_BYTES: usize = 64 << 10;
/// A path, as Linux has it.
pub const PATH_BYTES: usize = 4096;
/// One glob. Longer ones are lists in disguise and blow up when compiled.
pub const GLOB_BYTES: usize = 1024;
/// Globs in one list.
pub const GLOBS: usize = 256;
/// Mounts a check asks for: there are five, and a mount may be named twice with two reasons.
pub const NEEDS: usize = 16;
/// Rules of one check.
pub const RULES: usize = 1024;
/// Checks of one pack.
pub const CHECKS: usize = 256;
/// A JSON Schema.
pub const SCHEMA_BYTES: usize = crate::worker::MAX_SCHEMA_BYTES;
/// Edits of one finding.
pub const EDITS: usize = 1000;
/// Named counts of one report.
pub const STATS: usize = 256;

/// What is too large: the kind of error and what to say.
pub(crate) type Excess = (ErrorKind, String);

fn text(value: &str, max: usize, what: &str) -> Result<(), Excess> {
    if value.len() <= max {
        return Ok(());
    }
    Err((ErrorKind::BadResult, format!("{what} has {} bytes, and may have {max}", value.len())))
}

fn list<T>(values: &[T], max: usize, what: &str, each: impl FnMut(&T) -> Result<(), Excess>) -> Result<(), Excess> {
    if values.len() > max {
        return Err((ErrorKind::BadResult, format!("there are {} {what}, and there may be {max}", values.len())));
    }
    values.iter().try_for_each(each)
}

/// Holds what a pack says of itself against the bounds.
pub(crate) fn pack(pack: &PackInfo) -> Result<(), Excess> {
    text(&pack.name, ID_BYTES, "the pack's name")?;
    text(&pack.version, LINE_BYTES, "the pack's version")?;
    text(&pack.summary, LINE_BYTES, "the pack's summary")?;
    pack.license.iter().try_for_each(|license| text(license, LINE_BYTES, "the pack's license"))?;
    list(&pack.checks, CHECKS, "checks", check)
}

fn check(check: &CheckInfo) -> Result<(), Excess> {
    text(&check.id, ID_BYTES, "a check's id")?;
    text(&check.title, LINE_BYTES, "a check's title")?;
    text(&check.explain, PAGE_BYTES, "a check's explanation")?;
    globs(&check.files)?;
    list(&check.needs, NEEDS, "needs of a check", |need| {
        globs(&need.globs)?;
        text(&need.why, LINE_BYTES, "a reason for a need")
    })?;
    list(&check.rules, RULES, "rules of a check", |rule| {
        text(&rule.id, ID_BYTES, "a rule's id")?;
        text(&rule.summary, LINE_BYTES, "a rule's summary")?;
        text(&rule.explain, PAGE_BYTES, "a rule's explanation")
    })?;
    check.config_schema.iter().try_for_each(|schema| text(schema, SCHEMA_BYTES, "a check's schema"))
}

fn globs(globs: &[String]) -> Result<(), Excess> {
    list(globs, GLOBS, "globs in a list", |glob| text(glob, GLOB_BYTES, "a glob"))
}

/// Holds a report against the bounds, and against the limit for its findings.
pub(crate) fn report(report: &Report, max_findings: u64) -> Result<(), Excess> {
    let count = report.findings.len();
    if count as u64 > max_findings {
        return Err((ErrorKind::OutputLimit, format!("it reports {count} findings, and may report {max_findings}")));
    }
    report.findings.iter().try_for_each(finding)?;
    list(&report.stats, STATS, "named counts", |(name, _)| text(name, ID_BYTES, "a count's name"))
}

fn finding(finding: &Finding) -> Result<(), Excess> {
    finding.place.iter().try_for_each(|place| text(&place.path, PATH_BYTES, "a path"))?;
    text(&finding.rule, ID_BYTES, "a finding's rule")?;
    text(&finding.message, MESSAGE_BYTES, "a finding's message")?;
    finding.help.iter().try_for_each(|help| text(help, PAGE_BYTES, "a finding's help"))?;
    list(&finding.edits, EDITS, "edits of a finding", |edit| text(&edit.path, PATH_BYTES, "a path"))
}

/// Holds a refusal against the bounds.
pub(crate) fn refusal(refusal: &Refusal) -> Result<(), Excess> {
    match refusal {
        Refusal::NotApplicable(message)
        | Refusal::NeedsContext(message)
        | Refusal::EnvironmentGap(message)
        | Refusal::InvalidConfig(message)
        | Refusal::Internal(message) => text(message, MESSAGE_BYTES, "a refusal's message"),
    }
}
