//! What a run would be asked now, as far as that is known at rest: no command, probe or fingerprint is run and no pack is built.
//! What was found out about this machine last is believed, and of how long ago that is, is told.

use super::args::Verify;
use super::asked::Asked;
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use super::question::{self, facts};
use crate::config::User;
use crate::evidence::{self, Answer, Asking, Identity, Tools};
use crate::model::{Because, Capability, CapabilityName, Digest, Input, RunId, Withheld, spoken};
use crate::plan::{self, About, Plan, Request};
use crate::store::{Deposit, State, Store, Trust};
use crate::system;
use std::collections::BTreeSet;

/// What is known at rest.
pub(super) struct AtRest {
    pub(super) plan: Plan,
    /// What would answer a run.
    pub(super) answer: Answer,
    /// The identity of a run. None where there is no key, or nothing to compare with.
    pub(super) identity: Option<Digest>,
    /// Where it differs from the run that was compared with.
    pub(super) differences: Vec<Input>,
    /// What was found out about this machine last that the plan rests on, and when.
    pub(super) believed: Vec<(Capability, String)>,
}

/// Looks, beside a run, or the newest one of the scenario. None where a pack is not there as it is needed: why, is told in full
/// by `verify`, which may mend it.
pub(super) fn look(
    asked: &Asked,
    options: &Verify,
    user: &User,
    request: &Request,
    records: (&Store<'_>, &State),
    beside: Option<&RunId>,
    printer: &Printer,
) -> Result<Option<AtRest>, CliError> {
    let (store, state) = records;
    let project = &asked.taken.project;
    let scenario = asked.scenario(options)?;
    // A run would ask for these before it knew what is selected.
    let about = asked.about(user);
    let chosen = prepare::chosen(&project.config, scenario, about, request);
    let conditions = prepare::conditions(&project.config, &chosen, about);
    let needs = chosen.iter().flat_map(|check| &check.needs);
    let mut believed = believed(store, conditions.keys().copied().chain(needs).collect())?;
    let known: Vec<Capability> = believed.iter().map(|(capability, _)| capability.clone()).collect();
    let about = About { capabilities: Some(&known), ..about };
    let chosen = prepare::chosen(&project.config, scenario, about, request);
    let host = prepare::host()?;
    let Ok(packs) = prepare::packs(&asked.taken, &chosen, &host, false, printer) else { return Ok(None) };
    let resolved = prepare::resolve(project, &chosen, &packs, printer)?;
    let plan = plan::plan(&project.config, scenario, about, request, &resolved, prepare::environment);
    // And for these of what is.
    let asks = |name: &CapabilityName| {
        conditions.keys().any(|asked| *asked == name) || plan.units.iter().any(|unit| unit.needs.contains_key(name))
    };
    believed.retain(|(capability, _)| asks(&capability.name));
    let trust = question::trust()?;
    let deposits = store.deposits(plan.scenario.as_str())?;
    let fits = |deposit: &&Deposit| beside.is_none_or(|run| deposit.run == *run);
    let before = deposits.iter().find(fits);
    let read = before.and_then(|before| serde_json::from_slice::<Identity>(&before.preimage).ok());
    let (Some(key), Some(before), Some(then)) = (system::key(), before, read) else {
        let because =
            if system::key().is_none() { Because::Alone { withheld: Withheld::NoKey } } else { Because::First };
        let answer = Answer::Run(vec![because]);
        return Ok(Some(AtRest { plan, answer, identity: None, differences: Vec::new(), believed }));
    };
    let (answer, preimage) = answer(asked, &plan, &then, &believed, (store, state), (&trust, &key))?;
    let identity = Some(Identity::digest(&preimage));
    let differences = evidence::differences(&before.preimage, &preimage).unwrap_or_default();
    Ok(Some(AtRest { plan, answer, identity, differences, believed }))
}

/// What would answer, and the bytes of the identity.
fn answer(
    asked: &Asked,
    plan: &Plan,
    before: &Identity,
    believed: &[(Capability, String)],
    (store, state): (&Store<'_>, &State),
    (trust, key): (&Trust, &[u8; 32]),
) -> Result<(Answer, Vec<u8>), CliError> {
    let workspace = &asked.taken.workspace;
    let known: Vec<Capability> = believed.iter().map(|(capability, _)| capability.clone()).collect();
    let memory = question::files(asked);
    let tools = Tools { snapshot: &asked.taken.snapshot, root: &workspace.root, memory: memory.as_ref() };
    let engine = question::engine();
    let identity = tools.identity_at_rest(plan, facts(asked, trust, &engine, &known, key), before);
    let preimage = identity.preimage().map_err(|error| CliError::trouble(error.to_string()))?;
    let (root, host, now) = (workspace.root.to_string_lossy(), system::host_name(), system::now());
    let asking = Asking {
        identity: Identity::digest(&preimage),
        preimage: &preimage,
        scenario: plan.scenario.as_str(),
        place: (&root, &host),
        key,
        trust,
        max_age: plan.max_age,
        now: &now,
        retry_failed: false,
        walls: None,
    };
    let answer = evidence::answer(store, state, &asking)?;
    Ok((answer, preimage))
}

impl AtRest {
    /// What is believed, for people: one line each.
    pub(super) fn beliefs(&self) -> Vec<String> {
        beliefs(&self.believed)
    }
}

/// What was found out about this machine last, and when: for people, one line each.
pub(super) fn beliefs(believed: &[(Capability, String)]) -> Vec<String> {
    let now = system::now();
    let one = |(capability, when): &(Capability, String)| {
        let age = evidence::age(when, &now)
            .map_or_else(|| "at an unknown time".to_owned(), |age| format!("{} ago", spoken(age)));
        format!("capability {}: {}, as probed {age}", capability.name, capability.state)
    };
    believed.iter().map(one).collect()
}

/// What was found out last of these capabilities on this host, and when.
pub(super) fn believed(
    store: &Store<'_>,
    wanted: BTreeSet<&CapabilityName>,
) -> Result<Vec<(Capability, String)>, CliError> {
    Ok(evidence::last_probed(store, &system::host_name(), wanted)?.into_values().collect())
}
