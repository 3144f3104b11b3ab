//! Baselines that cannot be, told with their place before anything runs.

use super::error::CliError;
use super::prepare::{self, Project};
use super::printer::Printer;
use crate::config::{Body, Check, Diagnostic, Logic, Scenario};
use crate::model::{CheckInfo, Mount};
use crate::plan::Base;
use std::ops::Range;

/// Refuses baselines where there is nothing that findings could be new against.
pub(super) fn with_base(
    project: &Project,
    scenario: &Scenario,
    chosen: &[&Check],
    base: Option<&Base>,
    printer: &Printer,
) -> Result<(), CliError> {
    if base.is_some() {
        return Ok(());
    }
    let without = chosen.iter().filter_map(|check| match &check.body {
        Body::Logic(logic) => Some((&check.id, logic.baseline.clone()?)),
        Body::Command(_) => None,
    });
    let mistakes: Vec<Diagnostic> = without
        .map(|(id, span)| {
            let name = &scenario.name;
            let title = format!("check `{id}` has a baseline, and the scenario `{name}` has no base");
            let help = format!("add `base = \"origin/main\"` to `[scenarios.{name}]`, or name one with `--base`");
            Diagnostic::new(span, title).label("new against what?").help(help)
        })
        .collect();
    if mistakes.is_empty() { Ok(()) } else { Err(prepare::invalid(project, mistakes, printer)) }
}

/// Why a check can have no baseline: it has to be one of the tree, of which the base is another, and of nothing that is there
/// for this run alone.
pub(super) fn impossible(logic: &Logic, info: &CheckInfo, span: Range<usize>) -> Option<Diagnostic> {
    let needs = |mount| info.needs.iter().any(|need| need.mount == mount);
    let why = match [Mount::Evidence, Mount::Claim].into_iter().find(|mount| needs(*mount)) {
        Some(mount) => format!("reads `/{}`, which the base has none of", mount.name()),
        None if !needs(Mount::Tree) => "reads no `/tree`, so there is nothing new to find".to_owned(),
        None => return None,
    };
    let title = format!("check `{}/{}` can have no baseline: it {why}", logic.pack, logic.check);
    Some(Diagnostic::new(span, title).help("remove `baseline`; all that it finds counts"))
}
