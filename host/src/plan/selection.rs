//! Which checks of a scenario are among those to run, and why the others are not.

use super::touched::Touched;
use super::{About, ordered};
use crate::config::{Body, Check, Config, Globs, Scenario};
use crate::model::{Capability, CapabilityName, CheckId, Deselected, State};
use crate::subject::{Entry, Kind};
use std::cell::LazyCell;
use std::collections::BTreeSet;

/// What is asked for of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Nothing but these checks of it.
    pub only: Option<BTreeSet<CheckId>>,
    /// None of these.
    pub skip: BTreeSet<CheckId>,
    /// Only what something changed for since the base.
    pub changed: bool,
    /// So many commands side by side, whatever the scenario says.
    pub jobs: Option<u8>,
    /// Nothing at all, for this reason.
    pub not_applicable: Option<String>,
}

/// The checks of a scenario in the order in which they run, each with the reason if it does not. Whether something
/// changed for a check shows later, when it is known which files that is about.
pub fn selected<'a>(
    config: &'a Config,
    scenario: &Scenario,
    about: &About<'_>,
    request: &Request,
) -> Vec<(&'a Check, Option<Deselected>)> {
    // Worked out for a check that asks for it, and once.
    let changed = LazyCell::new(|| about.base.map(|base| Touched::of(base, about.snapshot)));
    let touched = |globs: &Globs| about.touched((*changed).as_ref(), globs);
    let checks = ordered(config, scenario).into_iter();
    checks.map(|check| (check, deselected(check, scenario, about, &touched, request))).collect()
}

fn deselected(
    check: &Check,
    scenario: &Scenario,
    about: &About<'_>,
    touched: &dyn Fn(&Globs) -> bool,
    request: &Request,
) -> Option<Deselected> {
    if request.not_applicable.is_some() {
        return Some(Deselected::NotApplicable);
    }
    if request.only.as_ref().is_some_and(|only| !only.contains(&check.id)) {
        return Some(Deselected::Only);
    }
    if request.skip.contains(&check.id) {
        return Some(Deselected::Skip);
    }
    if check.when.scenarios.as_ref().is_some_and(|names| !names.contains(&scenario.name)) {
        return Some(Deselected::OtherScenario);
    }
    if check.when.branches.as_ref().is_some_and(|globs| !about.branch.is_some_and(|branch| globs.matches(branch))) {
        return Some(Deselected::OtherBranch);
    }
    if check.when.paths.as_ref().is_some_and(|globs| !touched(globs)) {
        return Some(Deselected::NoSuchPath);
    }
    if !check.when.capabilities.iter().all(|name| about.has(name)) {
        return Some(Deselected::NoCapability);
    }
    // A revision lies in no folder that a command could run in.
    let command = matches!(check.body, Body::Command(_));
    (command && about.snapshot.revision).then_some(Deselected::Revision)
}

impl About<'_> {
    /// Whether this machine has a capability. What nobody can say is no yes.
    fn has(&self, name: &CapabilityName) -> bool {
        let there = |known: &Capability| known.name == *name && known.state == State::Present;
        self.capabilities.is_none_or(|capabilities| capabilities.iter().any(there))
    }

    /// What there is to say of why a check is left out, beyond the kind of reason.
    pub(super) fn note(&self, check: &Check, why: Deselected) -> Option<String> {
        match why {
            Deselected::NoCapability => {
                let known = self.capabilities.unwrap_or_default();
                let of = |name: &CapabilityName| known.iter().find(|known| known.name == *name);
                let lacking =
                    check.when.capabilities.iter().filter(|name| !self.has(name)).map(|name| match of(name) {
                        Some(Capability { state, why: Some(why), .. }) => format!("`{name}` is {state} here: {why}"),
                        Some(Capability { state, why: None, .. }) => format!("`{name}` is {state} here"),
                        None => format!("nobody asked for `{name}`"),
                    });
                Some(lacking.collect::<Vec<_>>().join("; "))
            }
            Deselected::NoSuchPath if self.base.is_none() => {
                Some("there is no base, and nothing is at a path of its `when`".to_owned())
            }
            _ => None,
        }
    }

    /// Whether a path that fits changed since the base, or is there where there is no base.
    fn touched(&self, touched: Option<&Touched<'_>>, globs: &Globs) -> bool {
        if let Some(touched) = touched {
            return touched.any(|path| globs.matches(path), |path| globs.may_match_below(path));
        }
        // Nobody can say what is in a folder that cannot be listed or was left out.
        let below = |entry: &Entry| entry.is_folder() || entry.kind == Kind::LeftOut;
        let there = |entry: &Entry| globs.matches(&entry.path) || (below(entry) && globs.may_match_below(&entry.path));
        self.snapshot.iter().any(there)
    }
}
