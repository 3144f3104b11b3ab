//! What a run would be asked now, as far as that is known at rest: no command, probe or fingerprint is run and no pack is built.
//! What was found out about this machine last is believed, and of how long ago that is, is told.

use super::args::Verify;
use super::asked::Asked;
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use super::question::{self, facts};
use crate::config::{Check, User};
use crate::evidence::{self, Answer, Asking, Identity, Tools};
use crate::model::{Because, Capability, Digest, Input, RunId, Withheld, spoken};
use crate::native::{Cut, Stop};
use crate::plan::{self, About, Plan, Request};
use crate::store::{Deposit, State, Store, Trust};
use crate::system;
use std::sync::mpsc::channel;

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

/// Looks, beside a run, or the newest one of the scenario. None where a pack is not there as it is needed: why, is told in full by `verify`, which may mend it.
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
    let host_name = system::host_name();
    let believed = evidence::last_probed(store, &host_name)?;
    let known: Vec<Capability> = believed.values().map(|(capability, _)| capability.clone()).collect();
    let about = About { capabilities: Some(&known), ..asked.about(user) };
    let chosen = prepare::chosen(&project.config, scenario, about, request);
    let host = prepare::host()?;
    let Ok(packs) = prepare::packs(&asked.taken, &chosen, &host, false, printer) else { return Ok(None) };
    let resolved = prepare::resolve(project, &chosen, &packs, printer)?;
    let plan = plan::plan(&project.config, scenario, about, request, &resolved, prepare::environment);
    // A run would ask for these, and for nothing else.
    let asks = |name: &str| {
        let when =
            scenario.checks.iter().filter_map(|id| project.config.check(id)).flat_map(|check| &check.when.capabilities);
        let needs = plan.units.iter().flat_map(|unit| unit.needs.keys());
        when.chain(needs).any(|asked| asked.as_str() == name)
    };
    let believed: Vec<(Capability, String)> =
        believed.into_iter().filter(|(name, _)| asks(name)).map(|(_, known)| known).collect();
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
    let (answer, preimage) = answer(asked, &plan, &then, &believed, (store, state), (&trust, &key, &host_name))?;
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
    (trust, key, host): (&Trust, &[u8; 32], &str),
) -> Result<(Answer, Vec<u8>), CliError> {
    let workspace = &asked.taken.workspace;
    let known: Vec<Capability> = believed.iter().map(|(capability, _)| capability.clone()).collect();
    let supervisor = prepare::supervisor()?;
    let stops = channel::<Stop>();
    let memory = question::files(asked);
    let tools = Tools {
        snapshot: &asked.taken.snapshot,
        root: &workspace.root,
        supervisor: &supervisor,
        cut: Cut { deadline: None, stops: (&stops.0, &stops.1) },
        memory: memory.as_ref(),
    };
    let engine = question::engine();
    let identity = tools.identity_at_rest(plan, facts(asked, trust, &engine, &known, key), before);
    let preimage = identity.preimage().map_err(|error| CliError::trouble(error.to_string()))?;
    let (root, now) = (workspace.root.to_string_lossy(), system::now());
    let asking = Asking {
        identity: Identity::digest(&preimage),
        preimage: &preimage,
        scenario: plan.scenario.as_str(),
        place: (&root, host),
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

/// What was found out last of the capabilities that these checks ask for.
pub(super) fn believed(store: &Store<'_>, checks: &[&Check]) -> Result<Vec<(Capability, String)>, CliError> {
    let asks = |name: &str| {
        checks
            .iter()
            .flat_map(|check| check.when.capabilities.iter().chain(&check.needs))
            .any(|asked| asked.as_str() == name)
    };
    let known = evidence::last_probed(store, &system::host_name())?;
    Ok(known.into_iter().filter(|(name, _)| asks(name)).map(|(_, known)| known).collect())
}
