//! `probity verify --plan`: what would run and why. Nothing is executed for it, packs are not even loaded.

use super::printer::Printer;
use super::rest::beliefs;
use super::take::Taken;
use crate::config::{Body, Check, Scenario, quote};
use crate::model::{Capability, CapabilityName, CheckId, CheckKind, Deselected};
use crate::plan::{self, About, Dark, Plan, Request, Unit, Work};
use crate::report::{deselected, escape};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is decided about one check before its pack is known.
struct Row<'a> {
    check: &'a Check,
    why: Option<Deselected>,
    unit: Option<&'a Unit>,
}

pub(super) fn show(
    taken: &Taken,
    scenario: &Scenario,
    about: About<'_>,
    request: &Request,
    json: bool,
    believed: &[(Capability, String)],
    printer: &Printer,
) -> u8 {
    let config = &taken.project.config;
    // What a command sees of the environment changes nothing of what is shown.
    let plan = plan::plan(config, scenario, about, request, &BTreeMap::new(), |_| BTreeMap::new());
    let rows: Vec<Row<'_>> = plan::selected(config, scenario, &about, request)
        .into_iter()
        .map(|(check, why)| {
            let unit = plan.units.iter().find(|unit| unit.id == check.id);
            Row { check, why: why.or_else(|| unit?.row.deselected), unit }
        })
        .collect();
    if json {
        let mut document = document(taken, about, &plan, &rows);
        document["capabilities"] = json!(believed);
        printer.json(&document);
    } else {
        let mut text = text(about, &plan, &rows);
        for line in beliefs(believed) {
            text += &escape(&line);
            text.push('\n');
        }
        printer.out(&text);
    }
    0
}

impl Row<'_> {
    fn kind(&self) -> CheckKind {
        match self.check.body {
            Body::Command(_) => CheckKind::Command,
            Body::Logic(_) => CheckKind::Logic,
        }
    }

    /// The files of a command that is about some.
    fn files(&self) -> Option<&[String]> {
        match &self.unit?.work {
            Work::Command { files, .. } => files.as_deref(),
            Work::Logic { .. } | Work::Nothing(_) => None,
        }
    }

    /// What keeps a command from judging what it is about: then it does not run, and that is red.
    fn dark(&self) -> Option<String> {
        match &self.unit?.work {
            Work::Command { dark, .. } => Dark::message(dark),
            Work::Logic { .. } | Work::Nothing(_) => None,
        }
    }

    /// Whether it would be skipped since there is no file in its scope.
    fn without_files(&self) -> bool {
        self.files().is_some_and(<[String]>::is_empty) && !self.check.allow_empty
    }
}

fn text(about: About<'_>, plan: &Plan, rows: &[Row<'_>]) -> String {
    let run = rows.iter().filter(|row| row.why.is_none() && row.dark().is_none() && !row.without_files()).count();
    let base = about
        .base
        .and_then(|base| base.revision.commit.as_ref())
        .map(|commit| format!(", compared with {commit}"))
        .unwrap_or_default();
    let jobs = if plan.jobs > 1 { format!(", up to {} side by side where they may", plan.jobs) } else { String::new() };
    let mut text = format!("scenario {}: {run} of {} checks would run{jobs}{base}\n", plan.scenario, rows.len());
    for row in rows {
        let (word, note) = match row.why {
            Some(why) => {
                let note = row.unit.and_then(|unit| unit.note.as_deref());
                ("no", note.map_or_else(|| deselected(why).to_owned(), escape))
            }
            None if row.dark().is_some() => {
                ("error", escape(&row.dark().unwrap_or_default().replace("\nhelp: ", "; ")))
            }
            None if row.without_files() => ("skipped", "no matching files".to_owned()),
            None => ("run", what(row) + &conditions(row)),
        };
        let absent: Vec<String> = absent(row, rows).iter().map(|id| quote(id.as_str())).collect();
        let note = if absent.is_empty() {
            note
        } else {
            format!("{note}; its `after` names {}, which this scenario does not have", absent.join(", "))
        };
        let _ = writeln!(text, "  {word:<8} {:<24} {note}", row.check.id.as_str());
    }
    text
}

/// The checks that it comes after and that are not in the scenario: there it waits for nothing of them, and has no evidence
/// of theirs.
fn absent<'a>(row: &Row<'a>, rows: &[Row<'_>]) -> Vec<&'a CheckId> {
    row.check.after.iter().filter(|id| !rows.iter().any(|other| other.check.id == **id)).collect()
}

/// What is found out only when it runs: what it runs for, and what it needs.
fn conditions(row: &Row<'_>) -> String {
    let list = |names: &[CapabilityName]| {
        let names: Vec<String> = names.iter().map(|name| quote(name.as_str())).collect();
        names.join(" and ")
    };
    let is = |names: &[CapabilityName]| if names.len() == 1 { "is" } else { "are" };
    let mut text = String::new();
    let (when, needs) = (&row.check.when.capabilities, &row.check.needs);
    if !when.is_empty() {
        let _ = write!(text, ", if {} {} there", list(when), is(when));
    }
    if !needs.is_empty() {
        let _ = write!(text, ", an error unless {} {} there", list(needs), is(needs));
    }
    text
}

fn what(row: &Row<'_>) -> String {
    match &row.check.body {
        Body::Command(command) => {
            let words: Vec<String> = command.argv.iter().map(|word| escape(&quote(word))).collect();
            let files = match row.files() {
                Some([_]) => " (1 file)".to_owned(),
                Some(files) => format!(" ({} files)", files.len()),
                None => String::new(),
            };
            let parallel = if row.check.parallel { " (parallel)" } else { "" };
            format!("{}{files}{parallel}", words.join(" "))
        }
        Body::Logic(logic) => {
            let baseline = if logic.baseline.is_some() { ", fails on what is new against the base" } else { "" };
            format!("{}/{} (its files are known once the pack is loaded){baseline}", logic.pack, logic.check)
        }
    }
}

fn document(taken: &Taken, about: About<'_>, plan: &Plan, rows: &[Row<'_>]) -> Value {
    let one = |row: &Row<'_>| {
        let mut document = json!({
            "id": row.check.id,
            "kind": row.kind(),
            "deselected": row.why,
            "blocking": row.check.blocking,
            "after": row.check.after,
            "parallel": row.check.parallel,
            "after_absent": absent(row, rows),
            "when_capabilities": row.check.when.capabilities,
            "needs": row.check.needs,
            "definition": row.unit.and_then(|unit| unit.row.definition),
        });
        match &row.check.body {
            Body::Command(command) => {
                document["command"] = json!(command.argv);
                document["files"] = json!(row.files());
                if let Some(dark) = row.dark() {
                    document["error"] = json!(dark);
                }
            }
            Body::Logic(logic) => {
                document["use"] = json!(format!("{}/{}", logic.pack, logic.check));
                document["baseline"] = json!(logic.baseline.is_some());
            }
        }
        document
    };
    json!({
        "schema": "probity/plan/1",
        "scenario": plan.scenario,
        "fail_fast": plan.fail_fast,
        "jobs": plan.jobs,
        "changed_only": plan.changed_only,
        "subject": {
            "tree": taken.snapshot.tree,
            "commit": taken.snapshot.commit,
            "base": about.base.and_then(|base| base.revision.commit.as_ref()),
        },
        "checks": rows.iter().map(one).collect::<Vec<_>>(),
    })
}
