//! What a run would be the answer to, and whether a stored record answers it already.

use super::asked::Asked;
use super::error::CliError;
use super::prepare;
use super::turn::Turn;
use crate::evidence::{self, Answer, Asking, Facts, Fingerprints, Found, Identity, Tools};
use crate::model::{Because, Capability, Digest, Withheld};
use crate::plan::Plan;
use crate::store::{FileMemory, Sealing, Store, Trust};
use crate::system;
use crate::worker;

/// A question with everything that its answer depends on.
pub(super) struct Question {
    /// None where there is no key, and so nothing that could answer.
    pub(super) sealed: Option<Sealed>,
    /// What is not known of what its answer depends on, or what keeps it from answering another one.
    pub(super) unknown: Vec<Withheld>,
    pub(super) trust: Trust,
}

pub(super) struct Sealed {
    pub(super) identity: Digest,
    pub(super) preimage: Vec<u8>,
    pub(super) key: [u8; 32],
}

impl Sealed {
    pub(super) fn sealing(&self) -> Sealing<'_> {
        Sealing { preimage: &self.preimage, key: &self.key }
    }
}

/// Which Probity and which engine, as records say it.
pub(super) fn engine() -> String {
    format!("probity {}, {}", env!("CARGO_PKG_VERSION"), worker::engine_id())
}

/// What the user disowned. Where that cannot be read, nothing may be served.
pub(super) fn trust() -> Result<Trust, CliError> {
    let Some(folder) = system::user_state() else { return Ok(Trust::default()) };
    Trust::read(&folder).map_err(|error| {
        CliError::usage(format!("what was disowned cannot be read from {}: {error}", folder.display()))
            .hint("mend or remove `disowned.json` there; without it, what was disowned may be served again")
    })
}

/// What an identity has beside the plan and its tools.
pub(super) fn facts<'a>(
    asked: &'a Asked,
    trust: &Trust,
    engine: &'a str,
    capabilities: &'a [Capability],
    key: &'a [u8; 32],
) -> Facts<'a> {
    let snapshot = &asked.taken.snapshot;
    Facts {
        epoch: trust.epoch,
        engine,
        tree: snapshot.tree,
        revision: snapshot.revision,
        commit: snapshot.commit.as_deref(),
        dirty: snapshot.dirty,
        base: asked.base.as_ref().and_then(|base| base.revision.commit.as_deref()),
        spec: asked.spec.as_ref().map(|spec| spec.digest),
        capabilities,
        key,
    }
}

/// What is known of files outside of the tree, where something is kept of it.
pub(super) fn files(asked: &Asked) -> Option<FileMemory> {
    let (workspace, key) = (&asked.taken.workspace, system::key()?);
    Some(FileMemory::new(prepare::state_folder(workspace), &key))
}

impl Question {
    /// Of a plan. The commands of `fingerprint` are run for it.
    pub(super) fn new(
        asked: &Asked,
        plan: &Plan,
        tools: (&Tools<'_>, Fingerprints<'_>),
        capabilities: &[Capability],
    ) -> Result<Self, CliError> {
        let trust = trust()?;
        let Some(key) = system::key() else { return Ok(Self { sealed: None, unknown: Vec::new(), trust }) };
        // Each is found out where it is first asked for, so what was cut short is not there.
        let lacking = plan.units.iter().find_map(|unit| {
            let known =
                |name: &crate::model::CapabilityName| capabilities.iter().any(|known: &Capability| known.name == *name);
            unit.needs.keys().find(|name| !known(name)).map(|_| &unit.id)
        });
        let engine = engine();
        let facts = facts(asked, &trust, &engine, capabilities, &key);
        let Found { identity, mut missing } = tools.0.identity(plan, facts, tools.1);
        if let Some(check) = lacking {
            let message = "what it needs of this machine was not found out".to_owned();
            missing.push(Withheld::Unidentified { check: check.clone(), message });
        }
        let preimage = identity.preimage().map_err(|error| CliError::trouble(error.to_string()))?;
        let identity = Identity::digest(&preimage);
        Ok(Self { sealed: Some(Sealed { identity, preimage, key }), unknown: missing, trust })
    }

    /// What of it changed since, beside the subject: names, at most ten. The commands of `fingerprint` are run again.
    pub(super) fn moved(
        &self,
        asked: &Asked,
        plan: &Plan,
        tools: (&Tools<'_>, Fingerprints<'_>),
        capabilities: &[Capability],
    ) -> Result<Option<Withheld>, CliError> {
        let Some(sealed) = &self.sealed else { return Ok(None) };
        let engine = engine();
        let facts = facts(asked, &self.trust, &engine, capabilities, &sealed.key);
        let found = tools.0.identity(plan, facts, tools.1);
        if let Some(missing) = found.missing.into_iter().next() {
            return Ok(Some(missing));
        }
        let now = found.identity.preimage().map_err(|error| CliError::trouble(error.to_string()))?;
        if now == sealed.preimage {
            return Ok(None);
        }
        let differences = evidence::differences(&sealed.preimage, &now).unwrap_or_default();
        Ok(Some(Withheld::Inputs { inputs: differences.into_iter().map(|input| input.name).take(10).collect() }))
    }

    /// Whether nobody else could be asked the same, so that nobody is waited for.
    pub(super) fn is_alone(because: &[Because]) -> bool {
        matches!(because, [Because::Alone { .. }, ..])
    }

    /// Whether a record answers it; why none does where that is so.
    pub(super) fn answer(
        &self,
        asked: &Asked,
        plan: &Plan,
        store: Option<&Store<'_>>,
        turn: &Turn<'_>,
        walls: Option<&str>,
    ) -> Result<Answer, CliError> {
        let alone = |withheld| Ok(Answer::Run(vec![Because::Alone { withheld }]));
        if plan.not_applicable.is_some() {
            return alone(Withheld::NotApplicable);
        }
        let scoped = |why: crate::model::Deselected| why.is_scoped();
        if plan.units.iter().any(|unit| unit.row.deselected.is_some_and(scoped)) {
            return alone(Withheld::Scoped);
        }
        // Two trees of one digest may differ in this, since the index and what git makes of contents count too.
        match asked.taken.snapshot.dirty {
            Some(false) => {}
            Some(true) => return alone(Withheld::Dirty),
            None => return alone(Withheld::NoCommit),
        }
        if let Some(withheld) = self.unknown.first() {
            return alone(withheld.clone());
        }
        let Some(sealed) = &self.sealed else { return alone(Withheld::NoKey) };
        let (Some(store), Some(state)) = (store, turn.place.state.as_ref()) else {
            return Ok(Answer::Run(vec![Because::First]));
        };
        let (root, host, now) = (asked.taken.workspace.root.to_string_lossy(), system::host_name(), system::now());
        let asking = Asking {
            identity: sealed.identity,
            preimage: &sealed.preimage,
            scenario: plan.scenario.as_str(),
            place: (&root, &host),
            key: &sealed.key,
            trust: &self.trust,
            max_age: plan.max_age,
            now: &now,
            retry_failed: turn.options.retry_failed,
            walls,
        };
        if turn.options.fresh {
            return Ok(Answer::Run(vec![Because::Fresh]));
        }
        Ok(evidence::answer(store, state, &asking)?)
    }
}
