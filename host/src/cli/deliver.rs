//! `probity verify --deliver-cached`: the record of this commit, tree and scenario as it is. Nothing is executed for it.

use super::args::{Format, Verify};
use super::asked::at_rest;
use super::error::CliError;
use super::printer::Printer;
use super::shown::{Shown, document};
use super::{prepare, question, turn};
use crate::config::User;
use crate::evidence::{Delivery, Wanted, delivery};
use crate::model::Input;
use crate::report::{escape, produced};
use crate::store::{State, Store};
use crate::system;
use serde_json::json;
use std::path::Path;

/// What is said on stderr, before the word.
const STATE: &str = "PROBITY_CACHE_STATE=";

/// The exit code of a record that is for another identity.
const STALE: u8 = 5;

pub(super) fn deliver(folder: &Path, options: &Verify, user: &User, printer: &Printer) -> Result<u8, CliError> {
    let waiting = turn::waiting(printer);
    let look =
        Verify { scenario: options.scenario.clone(), base: options.base.clone(), plan: true, ..Verify::default() };
    let asked = at_rest(folder, &look, user, printer, &waiting)?;
    let scenario = asked.scenario(&look)?.name.to_string();
    let snapshot = &asked.taken.snapshot;
    let state = State::look(&prepare::state_folder(&asked.taken.workspace))?;
    let (root, host) = (asked.taken.workspace.root.to_string_lossy(), system::host_name());
    let trust = question::trust()?;
    // What is stale is taken back, so it is opened to be written to; where nothing is, nothing is made.
    let recorded = state.as_ref().filter(|state| state.path().join("state.db").is_file());
    let found = match (recorded, system::key()) {
        (Some(state), Some(key)) => {
            let wanted = Wanted {
                scenario: &scenario,
                tree: snapshot.tree,
                commit: snapshot.commit.as_deref(),
                base: asked.base.as_ref().and_then(|base| base.revision.commit.as_deref()),
                spec: asked.spec.as_ref().map(|spec| spec.digest),
                place: (&root, &host),
                key: &key,
                trust: &trust,
            };
            delivery(&Store::open(state, &waiting)?, state, &wanted)?
        }
        _ => Delivery::Missing,
    };
    let (word, code) = match &found {
        Delivery::Current(record) => ("current", u8::from(!record.verdict.outcome.is_green())),
        Delivery::Stale(..) => ("stale-identity", STALE),
        Delivery::Missing => ("missing", 1),
    };
    printer.note(&format!("{STATE}{word}"));
    if options.format() != Format::Human {
        let mut text = match &found {
            Delivery::Current(record) | Delivery::Stale(record, _) => document(record, true, None)?,
            Delivery::Missing => json!({ "schema": "probity/record/1", "recorded": false, "record": null }),
        };
        text["cache_state"] = json!(word);
        text["exit_code"] = json!(code);
        if let Delivery::Stale(_, moved) = &found {
            text["moved"] = json!(moved);
        }
        if options.format() == Format::Jsonl {
            printer.json_line(&text);
        } else {
            printer.json(&text);
        }
        return Ok(code);
    }
    match &found {
        Delivery::Current(record) => {
            if let Some(state) = &state {
                let mut shown = Shown::new(Format::Human, &record.run, state, None, printer);
                record.events().try_for_each(|event| shown.hear(&event))?;
            }
            printer.out(&produced(&record.tree, &record.host, &record.started, false));
        }
        Delivery::Stale(record, moved) => {
            printer.note(&format!(
                "run {} of this tree is about something else by now, and answers for nothing any more:",
                record.run
            ));
            for Input { name, then, now } in moved {
                let side = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), escape);
                printer.note(&format!("  {}: {}, was {}", escape(name), side(now), side(then)));
            }
            printer.note("help: run `probity verify` again");
        }
        Delivery::Missing => {
            printer.note(&format!("no run of this commit and tree is recorded for the scenario {}", escape(&scenario)));
            printer.note("help: run `probity verify`, or name the scenario that was run");
        }
    }
    Ok(code)
}
