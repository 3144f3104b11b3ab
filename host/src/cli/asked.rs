//! What is asked: a subject, a scenario, and what both are held against. Here everything is looked at and nothing is run.

use super::args::Verify;
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use super::take::{Budget, Taken, take};
use super::turn::Turn;
use crate::config::{Scenario, User};
use crate::model::Secrets;
use crate::plan::{About, Base, Request};
use crate::subject::Specification;
use crate::system;
use std::path::Path;

/// A question that can be planned.
pub(super) struct Asked {
    pub(super) taken: Taken,
    pub(super) request: Request,
    pub(super) base: Option<Base>,
    pub(super) spec: Option<Specification>,
    /// The values that nobody is to see.
    pub(super) secrets: Secrets,
    branch: Option<String>,
}

/// Looks at what would be asked. Nobody is waited for, and nothing is run.
pub(super) fn at_rest(
    folder: &Path,
    look: &Verify,
    user: &User,
    printer: &Printer,
    waiting: &dyn Fn(),
) -> Result<Asked, CliError> {
    ask(folder, user, &mut Turn::new(Budget::default(), look, None, printer, waiting)?)
}

/// Looks at what was asked for.
pub(super) fn ask(folder: &Path, user: &User, turn: &mut Turn<'_>) -> Result<Asked, CliError> {
    let (options, printer) = (turn.options, turn.printer);
    let taken = take(folder, user, turn).map_err(|error| turn.judge(error))?;
    let project = &taken.project;
    let secrets = prepare::secrets(&project.config);
    printer.keep(secrets.clone());
    if taken.snapshot.entries.is_empty() {
        printer.note("note: the subject is empty: nothing here is tracked, and everything is ignored");
    }
    let scenario = prepare::scenario(&project.config, &options.scenario)?;
    let mut request = prepare::request(scenario, options)?;
    // A reason is kept and shown as it is given.
    request.not_applicable = request.not_applicable.map(|reason| printer.concealed(&reason));
    prepare::within_ceilings(project, scenario, user, printer)?;
    let spec = taken.spec().map_err(|error| turn.judge(error))?;
    let base = taken.base(scenario, options, printer).map_err(|error| turn.judge(error))?;
    if request.changed && base.is_none() {
        let hint = if taken.workspace.repository.is_some() {
            "name one with `--base origin/main`, or as `base` of the scenario"
        } else {
            "there is no repository here: run it in one, or leave `--changed` out"
        };
        return Err(CliError::usage("`--changed` compares with a base, and there is none").hint(hint));
    }
    let branch = taken.branch()?;
    Ok(Asked { taken, request, base, spec, secrets, branch })
}

impl Asked {
    /// What a plan depends on, before anything was found out about this machine.
    pub(super) fn about(&self, user: &User) -> About<'_> {
        About {
            snapshot: &self.taken.snapshot,
            base: self.base.as_ref(),
            branch: self.branch.as_deref(),
            capabilities: None,
            ceilings: user.limits,
            key: system::key(),
        }
    }

    /// The scenario that was asked for.
    pub(super) fn scenario(&self, options: &Verify) -> Result<&Scenario, CliError> {
        prepare::scenario(&self.taken.project.config, &options.scenario)
    }
}
