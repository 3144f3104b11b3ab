//! `probity store disown`: what nobody is served any more. It is kept beside the user's key, outside of every repository, so
//! no store that is brought back brings it back.

use super::args::Disown;
use super::error::CliError;
use super::printer::Printer;
use super::{prepare, question, turn};
use crate::model::{Digest, Record};
use crate::store::Store;
use crate::system;
use std::path::Path;

pub(super) fn disown(folder: &Path, options: &Disown, printer: &Printer) -> Result<u8, CliError> {
    let place = system::user_state().ok_or_else(|| {
        CliError::usage("there is no place of this user to keep it in")
            .hint("set HOME or XDG_STATE_HOME to an absolute path")
    })?;
    let mut trust = question::trust()?;
    let waiting = turn::waiting(printer);
    let state = prepare::state_to_read(folder)?;
    let store = prepare::records(state.as_ref(), &waiting)?;
    let mut told = Vec::new();
    for name in &options.run {
        let store = store
            .as_ref()
            .ok_or_else(|| CliError::usage("no runs are recorded here").hint("go to the repository of the run"))?;
        let run = store.get(name)?.run;
        told.push(format!("run {run}"));
        trust.runs.insert(run);
    }
    for name in &options.pack {
        let digest = match name.parse::<Digest>() {
            Ok(digest) => digest,
            Err(_) => last_pack(store.as_ref(), name)?,
        };
        told.push(format!("pack {digest}"));
        trust.packs.insert(digest);
    }
    for name in &options.engine {
        let engine = if name == "this" { question::engine() } else { name.clone() };
        told.push(format!("engine {engine}"));
        trust.engines.insert(engine);
    }
    if options.all {
        trust.epoch += 1;
        told.push(format!("all of before epoch {}", trust.epoch));
    }
    std::fs::create_dir_all(&place).and_then(|()| trust.write(&place)).map_err(|error| {
        CliError::trouble(format!("it cannot be kept in {}: {error}", place.display()))
            .hint("nothing was disowned; make that folder writable")
    })?;
    for one in told {
        printer.out(&format!("disowned: {}\n", crate::report::escape(&one)));
    }
    Ok(0)
}

/// The component that a pack of this name was in the newest run with it.
fn last_pack(store: Option<&Store<'_>>, name: &str) -> Result<Digest, CliError> {
    let unknown = || {
        CliError::usage(format!("no pack {} was used by a run here, and it is no digest", crate::config::quote(name)))
            .hint("`probity show --json` has the packs of a run, with their digests")
    };
    let store = store.ok_or_else(unknown)?;
    let of = |record: Record| record.packs.iter().find(|pack| pack.name.as_str() == name).map(|pack| pack.digest);
    store.names()?.iter().rev().find_map(|run| store.get(run).ok().and_then(of)).ok_or_else(unknown)
}
