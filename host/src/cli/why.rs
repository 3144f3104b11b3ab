//! `probity why` and what `verify --explain` says: why a check ran, or why a record answered in its place.

use super::args::{Verify, Why};
use super::asked::at_rest;
use super::error::CliError;
use super::printer::Printer;
use super::{prepare, rest, turn};
use crate::evidence::Answer;
use crate::model::{Because, CheckId, Input};
use crate::report::escape;
use crate::store::{self, State};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// How much of a digest is shown beside another one.
const SHORT: usize = 19;

pub(super) fn why(folder: &Path, options: &Why, printer: &Printer) -> Result<u8, CliError> {
    let waiting = turn::waiting(printer);
    let look = Verify { scenario: options.scenario.clone(), plan: true, ..Verify::default() };
    let user = prepare::user(printer)?;
    let asked = at_rest(folder, &look, &user, printer, &waiting)?;
    let scenario = asked.scenario(&look)?;
    let check = scenario.checks.iter().find(|id| id.as_str() == options.check).cloned().ok_or_else(|| {
        let ids: Vec<&str> = scenario.checks.iter().map(CheckId::as_str).collect();
        CliError::usage(format!(
            "there is no check {} in the scenario `{}`",
            crate::config::quote(&options.check),
            scenario.name
        ))
        .hint(&format!("it has {}", ids.join(", ")))
    })?;
    let state = State::look(&prepare::state_folder(&asked.taken.workspace))?;
    if let Some(state) = &state {
        store::settle(state);
    }
    let store = prepare::records(state.as_ref(), &waiting)?;
    turn::newer(store.as_ref(), printer);
    let known = match (&store, &state) {
        (Some(store), Some(state)) => rest::look(&asked, &look, &user, &asked.request, (store, state), None, printer)?,
        _ => None,
    };
    let (served, because, beliefs) = match &known {
        None => (None, vec![Because::First], Vec::new()),
        Some(known) => match &known.answer {
            Answer::Serve(record, reuse) => (Some((record, reuse)), Vec::new(), known.beliefs()),
            Answer::Run(because) => (None, because.clone(), known.beliefs()),
        },
    };
    let deselected =
        known.as_ref().and_then(|known| known.plan.units.iter().find(|unit| unit.id == check)?.row.deselected);
    if options.json {
        printer.json(&json!({
            "schema": "probity/why/1",
            "check": check,
            "scenario": scenario.name,
            "deselected": deselected,
            "served": served.map(|(record, reuse)| json!({ "run": record.run, "reuse": reuse })),
            "because": because,
            "capabilities": known.as_ref().map(|known| &known.believed),
        }));
        return Ok(0);
    }
    let mut text = String::new();
    // Writing into a string does not fail, here and below.
    if let Some(deselected) = deselected {
        let _ = writeln!(text, "{check} would not run: {}", crate::report::deselected(deselected));
    }
    if let Some((record, reuse)) = served {
        let _ = writeln!(text, "{check} would not run: run {} has the same identity and answers", record.run);
        let _ = writeln!(text, "    {}", reuse.identity);
    } else if deselected.is_none() {
        let _ = writeln!(text, "{check} would run:");
        for line in explained(&because, &check) {
            let _ = writeln!(text, "    {line}");
        }
    }
    for line in beliefs {
        let _ = writeln!(text, "{}", escape(&line));
    }
    printer.out(&text);
    Ok(0)
}

/// Why a check ran, one line each: first what decided about the run, then what of it is the check's own.
pub(super) fn explained(because: &[Because], check: &CheckId) -> Vec<String> {
    let mut lines = Vec::new();
    for one in because {
        let Because::Changed { run, inputs, more } = one else {
            lines.push(escape(&one.to_string()));
            continue;
        };
        let own = format!("checks.{check}");
        let (own, others): (Vec<&Input>, Vec<&Input>) =
            inputs.iter().partition(|input| input.name == own || input.name.starts_with(&format!("{own}.")));
        let others: Vec<&Input> = others.into_iter().filter(|input| !input.name.starts_with("checks.")).collect();
        let elsewhere = inputs.len() - own.len() - others.len();
        let shown = |input: &Input| {
            let name = input.name.strip_prefix(&format!("checks.{check}.")).unwrap_or(&input.name);
            let side = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), short);
            format!("{}: {}, was {}", escape(name), side(&input.now), side(&input.then))
        };
        if own.is_empty() && others.is_empty() {
            lines.push(format!("nothing of its own is other than in run {run}, which is about all checks together"));
        } else if own.is_empty() {
            lines.push(format!("nothing of its own is other than in run {run}; what all checks share is:"));
        } else {
            lines.push(format!("other than in run {run}:"));
        }
        lines.extend(own.iter().map(|input| format!("  {}", shown(input))));
        lines.extend(others.iter().map(|input| format!("  {}", shown(input))));
        if elsewhere > 0 || *more > 0 {
            let count = elsewhere as u64 + more;
            lines.push(format!("  {count} more of other checks{}", if *more > 0 { " or of this one" } else { "" }));
        }
    }
    lines
}

/// Enough of a value to tell it from another one.
fn short(value: &str) -> String {
    let digest = value.starts_with("blake3:") || value.starts_with("sha1:") || value.starts_with("sha256:");
    match value.char_indices().nth(SHORT) {
        Some((at, _)) if digest => format!("{}…", &value[..at]),
        _ => escape(value),
    }
}
