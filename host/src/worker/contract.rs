//! The contract with packs, from the engine's types to the model's.
//!
//! Everything that comes from a guest passes [`caps`] here: what leaves this module is small enough to keep. Whether
//! it makes sense is judged on the other side, where the request is known.

use crate::model;
use crate::model::{Bytes, ErrorKind};

/// What the bindings are made of: generated from the contract's own text.
pub(super) mod bindings {
    wasmtime::component::bindgen!({
        path: "../guest-sdk/wit",
        world: "probity:check/check-pack",
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

use bindings::probity::check::types as wire;
pub(super) use bindings::{CheckPack, CheckPackPre};

/// The most that a pack may hand over. Each bound is far above what a real pack needs and low enough that a thousand
/// of them are no trouble.
pub mod caps {
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
}

/// What is too large: the kind of error and what to say.
pub(super) type Excess = (ErrorKind, String);

fn text(value: String, max: usize, what: &str) -> Result<String, Excess> {
    if value.len() <= max {
        return Ok(value);
    }
    Err((ErrorKind::BadResult, format!("{what} has {} bytes, and may have {max}", value.len())))
}

fn list<T, U>(
    values: Vec<T>,
    max: usize,
    what: &str,
    each: impl FnMut(T) -> Result<U, Excess>,
) -> Result<Vec<U>, Excess> {
    if values.len() > max {
        return Err((ErrorKind::BadResult, format!("there are {} {what}, and there may be {max}", values.len())));
    }
    values.into_iter().map(each).collect()
}

fn option<T, U>(value: Option<T>, each: impl FnOnce(T) -> Result<U, Excess>) -> Result<Option<U>, Excess> {
    value.map(each).transpose()
}

pub(super) fn pack(pack: wire::Pack) -> Result<model::PackInfo, Excess> {
    Ok(model::PackInfo {
        name: text(pack.name, caps::ID_BYTES, "the pack's name")?,
        version: text(pack.version, caps::LINE_BYTES, "the pack's version")?,
        summary: text(pack.summary, caps::LINE_BYTES, "the pack's summary")?,
        license: option(pack.license, |license| text(license, caps::LINE_BYTES, "the pack's license"))?,
        checks: list(pack.checks, caps::CHECKS, "checks", check)?,
    })
}

fn check(check: wire::Check) -> Result<model::CheckInfo, Excess> {
    Ok(model::CheckInfo {
        id: text(check.id, caps::ID_BYTES, "a check's id")?,
        title: text(check.title, caps::LINE_BYTES, "a check's title")?,
        explain: text(check.explain, caps::PAGE_BYTES, "a check's explanation")?,
        scope: match check.scope {
            wire::Scope::File => model::Scope::File,
            wire::Scope::Tree => model::Scope::Tree,
        },
        files: globs(check.files)?,
        needs: list(check.needs, caps::NEEDS, "needs of a check", need)?,
        wants_changes: check.wants_changes,
        rules: list(check.rules, caps::RULES, "rules of a check", rule)?,
        config_schema: option(check.config_schema, |schema| text(schema, caps::SCHEMA_BYTES, "a check's schema"))?,
    })
}

fn globs(globs: Vec<String>) -> Result<Vec<String>, Excess> {
    list(globs, caps::GLOBS, "globs in a list", |glob| text(glob, caps::GLOB_BYTES, "a glob"))
}

fn need(need: wire::Need) -> Result<model::Need, Excess> {
    Ok(model::Need {
        mount: match need.mount {
            wire::Mount::Tree => model::Mount::Tree,
            wire::Mount::Base => model::Mount::Base,
            wire::Mount::Evidence => model::Mount::Evidence,
            wire::Mount::Claim => model::Mount::Claim,
            wire::Mount::Spec => model::Mount::Spec,
        },
        globs: globs(need.globs)?,
        why: text(need.why, caps::LINE_BYTES, "a reason for a need")?,
    })
}

fn rule(rule: wire::Rule) -> Result<model::Rule, Excess> {
    Ok(model::Rule {
        id: text(rule.id, caps::ID_BYTES, "a rule's id")?,
        summary: text(rule.summary, caps::LINE_BYTES, "a rule's summary")?,
        severity: severity(rule.severity),
        explain: text(rule.explain, caps::PAGE_BYTES, "a rule's explanation")?,
    })
}

fn severity(severity: wire::Severity) -> model::Severity {
    match severity {
        wire::Severity::Note => model::Severity::Note,
        wire::Severity::Warning => model::Severity::Warning,
        wire::Severity::Error => model::Severity::Error,
    }
}

pub(super) fn report(report: wire::Report, max_findings: u64) -> Result<model::Report, Excess> {
    let count = report.findings.len();
    if count as u64 > max_findings {
        return Err((ErrorKind::OutputLimit, format!("it reports {count} findings, and may report {max_findings}")));
    }
    Ok(model::Report {
        findings: report.findings.into_iter().map(finding).collect::<Result<_, _>>()?,
        stats: list(report.stats, caps::STATS, "named counts", |(name, value)| {
            Ok((text(name, caps::ID_BYTES, "a count's name")?, value))
        })?,
    })
}

fn finding(finding: wire::Finding) -> Result<model::Finding, Excess> {
    Ok(model::Finding {
        place: option(finding.place, place)?,
        rule: text(finding.rule, caps::ID_BYTES, "a finding's rule")?,
        severity: severity(finding.severity),
        message: text(finding.message, caps::MESSAGE_BYTES, "a finding's message")?,
        help: option(finding.help, |help| text(help, caps::PAGE_BYTES, "a finding's help"))?,
        edits: list(finding.edits, caps::EDITS, "edits of a finding", edit)?,
    })
}

fn place(place: wire::Place) -> Result<model::Place, Excess> {
    let position = |at: wire::Position| model::Position { line: at.line, column: at.column };
    Ok(model::Place {
        path: text(place.path, caps::PATH_BYTES, "a path")?,
        start: place.start.map(position),
        end: place.end.map(position),
    })
}

fn edit(edit: wire::Edit) -> Result<model::Edit, Excess> {
    Ok(model::Edit {
        path: text(edit.path, caps::PATH_BYTES, "a path")?,
        start: edit.start,
        end: edit.end,
        replacement: Bytes(edit.replacement),
    })
}

pub(super) fn refusal(refusal: wire::Refusal) -> Result<model::Refusal, Excess> {
    let message = |value| text(value, caps::MESSAGE_BYTES, "a refusal's message");
    Ok(match refusal {
        wire::Refusal::NotApplicable(value) => model::Refusal::NotApplicable(message(value)?),
        wire::Refusal::NeedsContext(value) => model::Refusal::NeedsContext(message(value)?),
        wire::Refusal::EnvironmentGap(value) => model::Refusal::EnvironmentGap(message(value)?),
        wire::Refusal::InvalidConfig(value) => model::Refusal::InvalidConfig(message(value)?),
        wire::Refusal::Internal(value) => model::Refusal::Internal(message(value)?),
    })
}

/// Gives `use_it` the request in the engine's types, which borrow from it.
pub(super) fn with_request<R>(request: &model::Request, use_it: impl FnOnce(wire::Request<'_>) -> R) -> R {
    let files: Vec<_> = request.files.iter().map(entry).collect();
    let changes: Option<Vec<_>> = request.changes.as_ref().map(|changes| changes.iter().map(change).collect());
    use_it(wire::Request { check: &request.check, config: &request.config, files: &files, changes: changes.as_deref() })
}

fn entry(entry: &model::Entry) -> wire::Entry<'_> {
    wire::Entry {
        path: &entry.path,
        kind: match entry.kind {
            model::EntryKind::File => wire::Kind::File,
            model::EntryKind::Executable => wire::Kind::Executable,
            model::EntryKind::Symlink => wire::Kind::Symlink,
            model::EntryKind::Submodule => wire::Kind::Submodule,
        },
        size: entry.size,
        tracked: entry.tracked,
        base_path: entry.base_path.as_deref(),
    }
}

fn change(change: &model::Change) -> wire::Change<'_> {
    wire::Change {
        path: &change.path,
        kind: match change.kind {
            model::ChangeKind::Added => wire::ChangeKind::Added,
            model::ChangeKind::Modified => wire::ChangeKind::Modified,
            model::ChangeKind::Deleted => wire::ChangeKind::Deleted,
            model::ChangeKind::Renamed => wire::ChangeKind::Renamed,
        },
        previous_path: change.previous_path.as_deref(),
    }
}
