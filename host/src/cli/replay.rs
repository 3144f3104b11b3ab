//! `probity replay`.

use super::args::Replay;
use super::error::CliError;
use super::printer::Printer;
use super::show::stored;
use super::shown::Shown;
use super::turn;
use std::path::Path;

/// Shows what a stored run said by what shows one that goes on. What only whoever looked on saw is not kept.
pub(super) fn replay(folder: &Path, options: &Replay, printer: &Printer) -> Result<u8, CliError> {
    let waiting = turn::waiting(printer);
    let (state, _store, record) = stored(folder, &options.run, &waiting, printer)?;
    let mut shown = Shown::new(options.format, &record.run, &state, None, printer);
    for event in record.events() {
        shown.hear(&event)?;
    }
    Ok(0)
}
