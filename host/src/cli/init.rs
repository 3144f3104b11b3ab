//! `probity init`: a first `probity.toml`. Nothing is run, and nothing that exists is written over.

use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use crate::config::{self, CONFIG_NAME, ConfigError};
use crate::report::escape;
use crate::starter::Starter;
use crate::subject::{Patience, Workspace};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub(super) fn init(folder: &Path, printer: &Printer) -> Result<u8, CliError> {
    let path = folder.join(CONFIG_NAME);
    // Whatever has the name is somebody's, a link that leads nowhere too.
    if let Ok(found) = path.symlink_metadata() {
        let dangling = found.is_symlink() && !path.exists();
        let error = ConfigError::Dangling { name: CONFIG_NAME.to_owned() };
        return Err(if dangling { CliError::config(&error, printer.colour_errors()) } else { exists() });
    }
    if prepare::is_bare(folder) {
        let title = format!("this is a repository without a working tree, which no {CONFIG_NAME} can be about");
        return Err(CliError::usage(title).hint("go to a clone or a worktree of it"));
    }
    let starter = Starter::of(folder, |name| is_ignored(folder, name))
        .map_err(|error| CliError::trouble(format!("cannot look into {}: {error}", folder.display())))?;
    write(folder, &path, &starter.text()).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(),
        // Its own words would name the temporary file.
        kind => CliError::trouble(format!("cannot write {CONFIG_NAME} in {}: {kind}", folder.display()))
            .hint("check the permissions of the folder, and that there is space"),
    })?;
    for line in &starter.found {
        printer.note(&format!("found {}", escape(line)));
    }
    for line in &starter.notes {
        printer.note(&format!("note: {}", escape(line)));
    }
    if let Ok(Some(above)) = folder.parent().map_or(Ok(None), config::discover) {
        let above = above.display().to_string();
        printer.note(&format!("note: {} is about the folders above; in this one the new file decides", escape(&above)));
    }
    match starter.active() {
        0 => {
            printer.note(&format!("wrote {CONFIG_NAME} without an active check: nothing would be verified yet"));
            printer.note("next: write in it what you run by hand, then `probity verify`");
        }
        count => {
            let checks = if count == 1 { "check" } else { "checks" };
            printer.note(&format!("wrote {CONFIG_NAME} with {count} {checks}"));
            printer.note("next: read it, then `probity verify`");
        }
    }
    Ok(0)
}

/// Whether git ignores a file of the folder. What it cannot say is a no.
fn is_ignored(folder: &Path, name: &str) -> bool {
    let patience = Patience::default();
    let ignored = || {
        let workspace = Workspace::of(folder, &patience).ok()?;
        let below = workspace.path_in_repository(name.as_bytes())?;
        let listing = workspace.repository?.list().ok()?;
        let tracked = listing.tracked.iter().any(|entry| entry.path == below);
        Some(!tracked && !listing.untracked.contains(&below))
    };
    ignored().unwrap_or(false)
}

fn exists() -> CliError {
    CliError::usage(format!("there is a {CONFIG_NAME} here, and it is not written over"))
        .hint("`probity config` shows what it says; to begin anew, move it away first")
}

/// Writes a file whole or not at all, and never over another one.
fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    // As any new file: the mode is less what the umask takes.
    let readable = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(".probity-").permissions(readable).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}
