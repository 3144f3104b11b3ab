//! What holds now, for commands that look at records of earlier runs. Nothing is executed here.

use super::prepare;
use super::printer::Printer;
use crate::config::Spec;
use crate::model::Digest;
use crate::subject::git::GitError;
use crate::subject::{Patience, Workspace, spec_digest};
use std::path::Path;

/// The digest of the specification as it is committed now. None where the configuration names none, and where nobody can
/// say, which is told: records are shown all the same.
pub(super) fn specification(folder: &Path, printer: &Printer) -> Option<Digest> {
    let unknown = |why: &str| printer.note(&format!("whether the specification has changed since is not known: {why}"));
    let project = prepare::user(printer).and_then(|user| prepare::project(folder, &user, printer));
    let Ok(project) = project else {
        unknown("the configuration cannot be read; `probity config` says why");
        return None;
    };
    let spec = project.config.spec?;
    match committed(&project.root, &spec) {
        Ok(digest) => digest,
        Err(error) => {
            unknown(&error.to_string());
            None
        }
    }
}

fn committed(root: &Path, spec: &Spec) -> Result<Option<Digest>, GitError> {
    let workspace = Workspace::of(root, &Patience::default())?;
    let head = workspace.repository.as_ref().and_then(|repository| repository.commit.clone());
    let Some(revision) = head.map(|head| workspace.revision(&head)).transpose()?.flatten() else { return Ok(None) };
    Ok(Some(spec_digest(&revision.named(|path| spec.paths.matches(path)))))
}
