//! `probity status`: whether the tree is verified as it is now, and what would have to run. No command of the configuration
//! is run and no pack is built for it.

use super::args::{Status, Verify};
use super::asked::{Asked, at_rest};
use super::error::CliError;
use super::printer::Printer;
use super::{prepare, rest, turn};
use crate::config::User;
use crate::model::Record;
use crate::plan::Request;
use crate::report::escape;
use crate::store::{self, State, Store, Summary};
use serde_json::json;
use std::path::Path;

/// What is known of the tree.
enum Known {
    /// This run verified it.
    /// With what is believed of this machine.
    Verified(Box<Record>, Vec<String>),
    /// It is not verified, and why.
    Not(String),
}

pub(super) fn status(folder: &Path, options: &Status, printer: &Printer) -> Result<u8, CliError> {
    let waiting = turn::waiting(printer);
    // It waits for nobody, as a plan does.
    let look = Verify { scenario: options.scenario.clone(), plan: true, ..Verify::default() };
    let user = prepare::user(printer)?;
    let asked = at_rest(folder, &look, &user, printer, &waiting)?;
    let scenario = asked.scenario(&look)?.name.to_string();
    let tree = asked.taken.snapshot.tree;
    let state = State::look(&prepare::state_folder(&asked.taken.workspace))?;
    let alive = state.as_ref().map(store::settle).unwrap_or_default();
    let store = prepare::records(state.as_ref(), &waiting)?;
    turn::newer(store.as_ref(), printer);
    let known = match &store {
        Some(store) => match store.last_full(&scenario, Some(tree))? {
            Some(run) => judge((&asked, &look, &user), store.get(&run.run)?, (store, state.as_ref()), printer)?,
            None => Known::Not(none(store.last_full(&scenario, None)?, &scenario)),
        },
        None => Known::Not(none(None, &scenario)),
    };
    let needed = if matches!(known, Known::Verified(..)) { Vec::new() } else { needed(&asked, &look, &user)? };
    for label in &alive {
        printer.note(&format!("going on: {}", turn::named(label)));
    }
    let verified = matches!(known, Known::Verified(..));
    if options.json {
        let (run, why) = match &known {
            Known::Verified(record, _) => (Some(record), None),
            Known::Not(why) => (None, Some(why)),
        };
        printer.json(&json!({
            "schema": "probity/status/1",
            "verified": verified,
            "why": why,
            "scenario": scenario,
            "tree": tree,
            "run": run.map(|record| &record.run),
            "outcome": run.map(|record| record.verdict.outcome),
            "started": run.map(|record| &record.started),
            "verdict_digest": run.and_then(|record| record.verdict_digest),
            "would_run": needed,
        }));
    } else {
        printer.out(&text(&known, &scenario, &needed));
    }
    Ok(u8::from(!verified))
}

fn text(known: &Known, scenario: &str, needed: &[String]) -> String {
    match known {
        Known::Verified(record, beliefs) => {
            let digest = record.verdict_digest.map(|digest| format!(", {digest}")).unwrap_or_default();
            let word = match &record.verdict.not_applicable {
                Some(reason) => format!("declared not applicable ({})", escape(reason)),
                None => record.verdict.outcome.word().to_owned(),
            };
            let mut text = format!(
                "verified: {word}, scenario {scenario}, run {}, {}{digest}\n",
                record.run,
                escape(&record.started)
            );
            for line in beliefs {
                text += &format!("{}\n", escape(line));
            }
            text
        }
        Known::Not(why) => {
            let list = if needed.is_empty() { "nothing".to_owned() } else { needed.join(", ") };
            format!("verified: no, {}\nwould run: {list}\n", escape(why))
        }
    }
}

/// Why there is no run of this tree.
fn none(last: Option<Summary>, scenario: &str) -> String {
    match last {
        Some(Summary { run, outcome, started, .. }) => format!(
            "the last full run of the scenario {scenario} was of another tree (run {run}, {outcome}, {started})"
        ),
        None => format!("no full run of the scenario {scenario} is recorded"),
    }
}

/// Whether the newest run of this very tree still says what a run now would be asked.
fn judge(
    (asked, look, user): (&Asked, &Verify, &User),
    record: Record,
    (store, state): (&Store<'_>, Option<&State>),
    printer: &Printer,
) -> Result<Known, CliError> {
    let verdict = &record.verdict;
    let no = |why: String| Ok(Known::Not(why));
    let run = format!("run {} of this tree", record.run);
    if !verdict.outcome.is_green() || record.verdict_digest.is_none() {
        return no(format!("{run} came to: {}", verdict.outcome.word()));
    }
    if verdict.subject.spec.map(|spec| spec.digest) != asked.spec.as_ref().map(|spec| spec.digest) {
        return no(format!("{run} is about another specification"));
    }
    if verdict.subject.base != asked.base.as_ref().and_then(|base| base.revision.commit.clone()) {
        return no(format!("{run} was compared with another base"));
    }
    let request = Request { not_applicable: verdict.not_applicable.clone(), ..asked.request.clone() };
    let Some(state) = state else { return no(format!("{run} is gone")) };
    let Some(now) = rest::look(asked, look, user, &request, (store, state), Some(&record.run), printer)? else {
        // Why it is not is told in full by `verify`, which may mend it.
        return no(format!("a pack that {run} used is not there as it was then"));
    };
    if let Some((unit, _)) = now.plan.units.iter().zip(&verdict.plan).find(|(unit, then)| unit.row != **then) {
        return no(format!("check {} is another one than in {run}", unit.id));
    }
    if now.plan.units.len() != verdict.plan.len() {
        return no(format!("{run} was asked for something else"));
    }
    if let Some(identity) = record.identity
        && now.identity.is_some_and(|now| now != identity)
    {
        let first = now.differences.first().map(|input| input.name.clone()).unwrap_or_default();
        return no(format!("what {run} rested on is other by now: {first}"));
    }
    Ok(Known::Verified(Box::new(record), now.beliefs()))
}

/// The checks that a run now would carry out, as far as that is known before anything was found out about this machine.
fn needed(asked: &Asked, look: &Verify, user: &User) -> Result<Vec<String>, CliError> {
    let config = &asked.taken.project.config;
    let chosen = prepare::chosen(config, asked.scenario(look)?, asked.about(user), &asked.request);
    Ok(chosen.into_iter().map(|check| check.id.to_string()).collect())
}
