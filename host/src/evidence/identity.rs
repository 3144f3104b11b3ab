//! The identity of a run: everything that it shares with another one that may answer for it.
//!
//! It is written as canonical JSON (RFC 8785), which is injective and free of order; its digest is over these bytes, and they
//! are kept, so that two identities can be compared input by input. Values of variables are in it only as digests under the
//! user's key.

use crate::model::{
    CanonicalError, Capability, CheckId, Context, Digest, Encoder, EnvironmentMode, Input, PlanRow, ScenarioName,
    Severity, State, to_canonical,
};
use crate::native::{Environment, value_digest};
use crate::plan::{Plan, Unit, Work};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;

/// The form of an identity, as its `schema` says. Another one makes every record of before answer nothing.
pub const IDENTITY_SCHEMA: &str = "probity/identity/1";

/// Variables that differ from one shell to the next and decide nothing: where the environment is inherited without anybody
/// having asked for it, they are passed on and are no part of an identity.
pub const VOLATILE: [&str; 34] = [
    "_",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_PUSH_OPTION_COUNT",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "WAYLAND_DISPLAY",
    "XDG_SESSION_ID",
];

/// Everything that two runs share of which one may answer for the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// [`IDENTITY_SCHEMA`].
    pub schema: String,
    /// What the user raised last to disown all that was recorded before.
    pub epoch: u64,
    /// Which Probity and which engine.
    pub engine: String,
    /// The operating system and the processor.
    pub platform: String,
    /// The scenario.
    pub scenario: ScenarioName,
    /// What of the subject it is about.
    pub mode: Mode,
    /// Whether the first red ends it.
    pub fail_fast: bool,
    /// The least that fails a check.
    pub fail_on: Severity,
    /// How many commands may run side by side.
    pub jobs: u8,
    /// The budget of the whole run: nanoseconds, in decimal digits. Null where there is none.
    pub timeout_ns: Option<String>,
    /// The digest of the tree.
    pub tree: Digest,
    /// The commit it is based on. Null outside version control.
    pub commit: Option<String>,
    /// Whether what is verified differs from that commit: the index counts, and so does what git would make of contents.
    pub dirty: Option<bool>,
    /// The commit that it is compared with. Null where there is none.
    pub base: Option<String>,
    /// The digest of the specification. Null where there is none.
    pub spec: Option<Digest>,
    /// What was found out about this machine, of what the scenario asks for.
    pub capabilities: BTreeMap<String, State>,
    /// The environments of its commands, by their digests: of each variable the name and the digest of its value.
    pub environments: BTreeMap<Digest, BTreeMap<String, Digest>>,
    /// Every check of the scenario, in the order in which they run.
    pub checks: Vec<CheckInputs>,
}

/// What of the subject a run is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The working tree.
    Full,
    /// What changed of it since the base.
    Changed,
    /// A revision or an index, which commands do not see.
    Revision,
}

/// What an identity has of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInputs {
    /// What the verdict says of it before it runs: whether it is selected, its definition, the files in its scope.
    #[serde(flatten)]
    pub row: PlanRow,
    /// Whether it may run beside others.
    pub parallel: bool,
    /// What only commands have. Absent for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandInputs>,
}

/// What an identity has of one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandInputs {
    /// Of the names that it is called with. Null for one that is about the whole tree.
    pub arguments: Option<Digest>,
    /// How much of the environment it sees.
    pub mode: EnvironmentMode,
    /// Which of the environments it sees.
    pub environment: Digest,
    /// Of the program's file. Null where there is none, or where it is part of the subject.
    pub program: Option<Digest>,
    /// Of the output of each command of `fingerprint`.
    pub fingerprints: Vec<Digest>,
    /// Of the ignored files that `ambient` names. Null where it names none.
    pub ambient: Option<Digest>,
}

/// What an identity needs besides the plan.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// What the user raised last.
    pub epoch: u64,
    /// Which Probity and which engine.
    pub engine: &'a str,
    /// The digest of the tree.
    pub tree: Digest,
    /// Whether it is a revision or an index.
    pub revision: bool,
    /// The commit it is based on.
    pub commit: Option<&'a str>,
    /// Whether it differs from that.
    pub dirty: Option<bool>,
    /// The commit that it is compared with.
    pub base: Option<&'a str>,
    /// The digest of the specification.
    pub spec: Option<Digest>,
    /// What was found out about this machine.
    pub capabilities: &'a [Capability],
    /// The user's key, under which values of variables are compared.
    pub key: &'a [u8; 32],
}

/// What was found out of a command's tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandFacts {
    pub(super) program: Option<Digest>,
    pub(super) fingerprints: Vec<Digest>,
    pub(super) ambient: Option<Digest>,
}

impl Identity {
    /// Of a plan, with what was found out of the tools of its commands.
    pub(super) fn new(plan: &Plan, facts: Facts<'_>, tools: &BTreeMap<CheckId, CommandFacts>) -> Self {
        let mut environments = BTreeMap::new();
        let checks = plan.units.iter().map(|unit| {
            let command = command(unit, tools.get(&unit.id), facts.key, &mut environments);
            CheckInputs { row: unit.row.clone(), parallel: unit.parallel, command }
        });
        let checks = checks.collect();
        let mode = match (facts.revision, plan.changed_only) {
            (true, _) => Mode::Revision,
            (false, true) => Mode::Changed,
            (false, false) => Mode::Full,
        };
        Self {
            schema: IDENTITY_SCHEMA.to_owned(),
            epoch: facts.epoch,
            engine: facts.engine.to_owned(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            scenario: plan.scenario.clone(),
            mode,
            fail_fast: plan.fail_fast,
            fail_on: plan.fail_on,
            jobs: plan.jobs,
            timeout_ns: plan.timeout.map(|timeout| timeout.as_nanos().to_string()),
            tree: facts.tree,
            commit: facts.commit.map(str::to_owned),
            dirty: facts.dirty,
            base: facts.base.map(str::to_owned),
            spec: facts.spec,
            capabilities: facts.capabilities.iter().map(|one| (one.name.to_string(), one.state)).collect(),
            environments,
            checks,
        }
    }

    /// Its bytes.
    pub fn preimage(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical(self)
    }

    /// The digest of its bytes.
    pub fn digest(preimage: &[u8]) -> Digest {
        Digest::derived(Context::Identity, preimage)
    }
}

fn command(
    unit: &Unit,
    facts: Option<&CommandFacts>,
    key: &[u8; 32],
    environments: &mut BTreeMap<Digest, BTreeMap<String, Digest>>,
) -> Option<CommandInputs> {
    let Work::Command { environment, files, passed, evidence, .. } = &unit.work else { return None };
    let seen = variables(environment, evidence.short_form, key);
    let mut encoder = Encoder::new();
    for (name, value) in &seen {
        encoder.text(name).digest(value);
    }
    let environment = encoder.finish(Context::Passed);
    environments.insert(environment, seen);
    let arguments = files.as_ref().map(|files| {
        let mut encoder = Encoder::new();
        for file in files {
            encoder.text(file);
        }
        encoder.finish(Context::Files)
    });
    let CommandFacts { program, fingerprints, ambient } = facts.cloned().unwrap_or_default();
    Some(CommandInputs { arguments, mode: passed.mode, environment, program, fingerprints, ambient })
}

/// The variables that count, with the digests of their values.
fn variables(environment: &Environment, short_form: bool, key: &[u8; 32]) -> BTreeMap<String, Digest> {
    let git = environment.get(std::ffi::OsStr::new("GIT_EXEC_PATH"));
    let counts = |name: &[u8]| !(short_form && VOLATILE.iter().any(|volatile| volatile.as_bytes() == name));
    let counting = environment.iter().filter(|(name, _)| counts(name.as_bytes()));
    let one = |(name, value): (&std::ffi::OsString, &std::ffi::OsString)| {
        // A name has no NUL, so what begins with one is no name that somebody could give.
        let name = name.to_str().map_or_else(|| format!("\0{}", crate::model::hex(name.as_bytes())), str::to_owned);
        let value = if name == "PATH" {
            path(value, git.map(std::ffi::OsString::as_os_str))
        } else {
            value.as_bytes().to_vec()
        };
        (name, value_digest(&value, key))
    };
    counting.map(one).collect()
}

/// A search path without what comes twice, and without the folder that git puts there for its hooks.
fn path(value: &std::ffi::OsStr, git: Option<&std::ffi::OsStr>) -> Vec<u8> {
    let mut seen = BTreeSet::new();
    let parts = value.as_bytes().split(|byte| *byte == b':');
    let parts = parts.filter(|part| Some(*part) != git.map(std::ffi::OsStr::as_bytes) && seen.insert(part.to_vec()));
    parts.collect::<Vec<_>>().join(&b':')
}

/// Where two preimages differ, input by input, in the order of their names. None where one of them is no preimage.
pub fn differences(then: &[u8], now: &[u8]) -> Option<Vec<Input>> {
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok().map(legible);
    let mut inputs = Vec::new();
    differ("", Some(&read(then)?), Some(&read(now)?), &mut inputs);
    Some(inputs)
}

/// The same by names: checks by their ids, and with each command its variables.
fn legible(mut value: Value) -> Value {
    let environments = value.get_mut("environments").map(Value::take).unwrap_or_default();
    let checks = value.get_mut("checks").map(Value::take).unwrap_or_default();
    let Value::Array(checks) = checks else { return value };
    let order: Vec<Value> = checks.iter().filter_map(|check| check.get("id").cloned()).collect();
    let named = checks.into_iter().filter_map(|mut check| {
        if let Some(environment) = check.pointer_mut("/command/environment") {
            let found = environment.as_str().and_then(|digest| environments.get(digest)).cloned();
            *environment = found.unwrap_or_default();
        }
        Some((check.get("id")?.as_str()?.to_owned(), check))
    });
    let named: serde_json::Map<String, Value> = named.collect();
    if let Value::Object(fields) = &mut value {
        fields.remove("environments");
        fields.insert("checks".to_owned(), Value::Object(named));
        fields.insert("order of checks".to_owned(), Value::Array(order));
    }
    value
}

fn differ(name: &str, then: Option<&Value>, now: Option<&Value>, inputs: &mut Vec<Input>) {
    if then == now {
        return;
    }
    let fields = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    if let (Some(before), Some(after)) = (fields(then), fields(now)) {
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in keys {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            differ(&name, before.get(key), after.get(key), inputs);
        }
        return;
    }
    let text = |value: Option<&Value>| match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => Some("…".to_owned()),
        other => Some(other.to_string()),
    };
    inputs.push(Input { name: name.to_owned(), then: text(then), now: text(now) });
}
