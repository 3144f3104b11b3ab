//! The contract with packs, from the engine's types to the model's. What a guest hands over is bounded by what the engine
//! copies out of it; each part is held against its own bound in `caps`.

use crate::model;
use crate::model::Bytes;

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

pub(super) fn pack(pack: wire::Pack) -> model::PackInfo {
    model::PackInfo {
        name: pack.name,
        version: pack.version,
        summary: pack.summary,
        license: pack.license,
        checks: pack.checks.into_iter().map(check).collect(),
    }
}

fn check(check: wire::Check) -> model::CheckInfo {
    model::CheckInfo {
        id: check.id,
        title: check.title,
        explain: check.explain,
        scope: match check.scope {
            wire::Scope::File => model::Scope::File,
            wire::Scope::Tree => model::Scope::Tree,
        },
        files: check.files,
        needs: check.needs.into_iter().map(need).collect(),
        wants_changes: check.wants_changes,
        rules: check.rules.into_iter().map(rule).collect(),
        config_schema: check.config_schema,
    }
}

fn need(need: wire::Need) -> model::Need {
    model::Need {
        mount: match need.mount {
            wire::Mount::Tree => model::Mount::Tree,
            wire::Mount::Base => model::Mount::Base,
            wire::Mount::Evidence => model::Mount::Evidence,
            wire::Mount::Claim => model::Mount::Claim,
            wire::Mount::Spec => model::Mount::Spec,
        },
        globs: need.globs,
        why: need.why,
    }
}

fn rule(rule: wire::Rule) -> model::Rule {
    model::Rule { id: rule.id, summary: rule.summary, severity: severity(rule.severity), explain: rule.explain }
}

fn severity(severity: wire::Severity) -> model::Severity {
    match severity {
        wire::Severity::Note => model::Severity::Note,
        wire::Severity::Warning => model::Severity::Warning,
        wire::Severity::Error => model::Severity::Error,
    }
}

pub(super) fn report(report: wire::Report) -> model::Report {
    model::Report { findings: report.findings.into_iter().map(finding).collect(), stats: report.stats }
}

fn finding(finding: wire::Finding) -> model::Finding {
    model::Finding {
        place: finding.place.map(place),
        rule: finding.rule,
        severity: severity(finding.severity),
        message: finding.message,
        help: finding.help,
        edits: finding.edits.into_iter().map(edit).collect(),
        known: false,
    }
}

fn place(place: wire::Place) -> model::Place {
    let position = |at: wire::Position| model::Position { line: at.line, column: at.column };
    model::Place { path: place.path, start: place.start.map(position), end: place.end.map(position) }
}

fn edit(edit: wire::Edit) -> model::Edit {
    model::Edit { path: edit.path, start: edit.start, end: edit.end, replacement: Bytes(edit.replacement) }
}

pub(super) fn refusal(refusal: wire::Refusal) -> model::Refusal {
    match refusal {
        wire::Refusal::NotApplicable(message) => model::Refusal::NotApplicable(message),
        wire::Refusal::NeedsContext(message) => model::Refusal::NeedsContext(message),
        wire::Refusal::EnvironmentGap(message) => model::Refusal::EnvironmentGap(message),
        wire::Refusal::InvalidConfig(message) => model::Refusal::InvalidConfig(message),
        wire::Refusal::Internal(message) => model::Refusal::Internal(message),
    }
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
