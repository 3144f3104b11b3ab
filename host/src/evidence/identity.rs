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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, User};
    use crate::plan::{About, Request, plan};
    use crate::subject::Snapshot;

    /// An identity in which everything is there that can be.
    fn sample() -> Value {
        let digest = |text: &str| Digest::of(text.as_bytes()).to_string();
        let environment = digest("environment");
        serde_json::json!({
            "schema": IDENTITY_SCHEMA, "epoch": 3, "engine": "e", "platform": "linux x86_64", "scenario": "s", "mode": "full",
            "fail_fast": true, "fail_on": "error", "jobs": 2, "timeout_ns": "9", "tree": digest("tree"), "commit": "sha1:1",
            "dirty": false, "base": "sha1:0", "spec": digest("spec"), "capabilities": {"docker": "present"},
            "environments": {&environment: {"A": digest("a")}},
            "checks": [{
                "id": "c", "deselected": "only", "definition": digest("definition"), "files": digest("files"), "baseline": true,
                "parallel": true,
                "command": {
                    "arguments": digest("arguments"), "mode": "declared", "environment": environment,
                    "program": digest("program"), "fingerprints": [digest("fingerprint")], "ambient": digest("ambient"),
                },
            }],
        })
    }

    fn digest_of(value: Value) -> Digest {
        let identity: Identity = serde_json::from_value(value).unwrap();
        Identity::digest(&identity.preimage().unwrap())
    }

    /// The pointers to all values that hold no others.
    fn leaves(value: &Value, at: &str, into: &mut Vec<String>) {
        let mut below =
            |key: &str, value| leaves(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), into);
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
            Value::Array(items) => items.iter().enumerate().for_each(|(key, value)| below(&key.to_string(), value)),
            _ => into.push(at.to_owned()),
        }
    }

    #[test]
    fn each_value_of_an_identity_makes_another_one() {
        let mut seen = BTreeSet::from([digest_of(sample())]);
        let mut all = Vec::new();
        leaves(&sample(), "", &mut all);
        // Each field of the three structures is among them.
        assert_eq!(all.len(), 29, "{all:?}");
        for at in &all {
            let mut other = sample();
            let value = other.pointer_mut(at).unwrap();
            *value = match (at.as_str(), &*value) {
                ("/mode", _) => "changed".into(),
                ("/fail_on", _) => "note".into(),
                ("/capabilities/docker", _) => "unknown".into(),
                ("/checks/0/deselected", _) => "skip".into(),
                ("/checks/0/command/mode", _) => "inherited".into(),
                (_, Value::Bool(flag)) => (!flag).into(),
                (_, Value::Number(number)) => (number.as_u64().unwrap() + 1).into(),
                (_, Value::String(text)) if text.starts_with("blake3:") => Digest::of(b"other").to_string().into(),
                (_, Value::String(text)) => format!("{text}1").into(),
                other => panic!("{other:?}"),
            };
            assert!(seen.insert(digest_of(other)), "{at}");
        }
        // One that is not there is another one too.
        for at in ["timeout_ns", "commit", "dirty", "base", "spec"] {
            let mut other = sample();
            other[at] = Value::Null;
            assert!(seen.insert(digest_of(other)), "{at}");
        }
    }

    #[test]
    fn the_order_in_which_things_come_changes_nothing() {
        let text = serde_json::to_string(&sample()).unwrap();
        let fields: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        let turned: Vec<String> =
            fields.iter().rev().map(|(key, value)| format!("{}:{value}", serde_json::json!(key))).collect();
        let turned: Value = serde_json::from_str(&format!("{{{}}}", turned.join(","))).unwrap();
        assert_eq!(digest_of(turned), digest_of(sample()));
        // What no checks are in is not one check with nothing in it, and their order counts.
        let mut two = sample();
        let mut second = two["checks"][0].clone();
        second["id"] = "d".into();
        two["checks"].as_array_mut().unwrap().push(second);
        let mut turned = two.clone();
        turned["checks"].as_array_mut().unwrap().reverse();
        assert_ne!(digest_of(turned), digest_of(two));
    }

    #[test]
    fn two_plans_never_share_an_identity() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        for name in ["src/a", "src/b", "tool"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let snapshot = Snapshot::of_folder(folder.path()).unwrap();
        let check =
            |more: &str| format!("[checks.c]\ncommand = [\"true\"]\n{more}\n[checks.d]\ncommand = [\"true\"]\n");
        let with = |scenario: &str| format!("{}[scenarios.default]\nchecks = [\"c\", \"d\"]\n{scenario}\n", check(""));
        let mut texts: Vec<String> = [
            "",
            "timeout = \"1s\"",
            "timeout = \"2s\"",
            "blocking = false",
            "env = [\"A=1\"]",
            "env = [\"A=2\"]",
            "env = [\"B=1\"]",
            "env = [\"A=1\", \"B=1\"]",
            "pass-env = [\"A\"]",
            "secrets = [\"A\"]",
            "inherit-env = true",
            "gap-exit = [75]",
            "gap-exit = [76]",
            "files = [\"src/**\"]",
            "files = [\"src/a\"]",
            "files = [\"src/*\"]",
            "files = [\"src/a\"]\nallow-empty = true",
            "parallel = true",
            "isolate = true",
            "ambient = [\"x\"]",
            "ambient = [\"y\"]",
            "fingerprint = [[\"a\"]]",
            "fingerprint = [[\"a\"], [\"b\"]]",
            "fingerprint = [[\"a\", \"b\"]]",
            "when = { scenarios = [\"other\"] }\n[scenarios.other]\nchecks = [\"c\"]",
            "needs = [\"x\"]\n[capabilities.x]\nprogram = \"sh\"",
            "needs = [\"x\"]\n[capabilities.x]\nprogram = \"cat\"",
        ]
        .map(check)
        .to_vec();
        texts.extend(["fail-fast = false", "fail-on = \"warning\"", "timeout = \"3s\"", "jobs = 2"].map(with));
        texts.push(check("").replace("[\"true\"]", "[\"true\", \"x\"]"));
        texts.push(check("").replace("checks.c", "checks.e"));
        texts.push("[checks.d]\ncommand = [\"true\"]\n[checks.c]\ncommand = [\"true\"]\n".to_owned());
        let requests = [
            Request::default(),
            Request { jobs: Some(3), ..Request::default() },
            Request { skip: BTreeSet::from(["d".parse().unwrap()]), ..Request::default() },
            Request { only: Some(BTreeSet::from(["d".parse().unwrap()])), ..Request::default() },
        ];
        let mut seen: BTreeMap<Digest, String> = BTreeMap::new();
        for text in &texts {
            let config = config::parse("probity.toml", text.as_bytes(), &User::default()).unwrap();
            for request in &requests {
                let key = [7; 32];
                let about = About {
                    snapshot: &snapshot,
                    base: None,
                    branch: None,
                    capabilities: None,
                    ceilings: config::Limits::default(),
                    key: Some(key),
                };
                let environment = |command: &config::Command| {
                    let ours = [("A", "a"), ("TERM", "dumb")].map(|(name, value)| (name.into(), value.into()));
                    if command.inherit_env {
                        crate::native::inherited(ours.into_iter(), &command.env)
                    } else {
                        let passed = [command.pass_env.as_slice(), command.secrets.as_slice()].concat();
                        crate::native::declared(ours.into_iter(), &passed, &command.env)
                    }
                };
                let scenario = config.scenario("default").unwrap();
                let plan = plan(&config, scenario, about, request, &BTreeMap::new(), environment);
                let facts = Facts {
                    epoch: 0,
                    engine: "",
                    tree: snapshot.tree,
                    revision: false,
                    commit: None,
                    dirty: None,
                    base: None,
                    spec: None,
                    capabilities: &[],
                    key: &key,
                };
                let identity = Identity::new(&plan, facts, &BTreeMap::new());
                let digest = Identity::digest(&identity.preimage().unwrap());
                let what = format!("{plan:?}");
                // A check that is not selected is not defined, so what it would be makes no other plan.
                let hidden = plan.units.iter().any(|unit| unit.row.deselected.is_some());
                if let Some(other) = seen.insert(digest, what.clone()) {
                    assert!(hidden || other == what, "{text}{request:?}\n{what}\n{other}");
                }
            }
        }
        assert!(seen.len() > texts.len() * 2, "{}", seen.len());
    }

    #[test]
    fn what_differs_is_named_by_check_and_variable() {
        let mut other = sample();
        let changed = Digest::of(b"changed").to_string();
        let environment = other["checks"][0]["command"]["environment"].as_str().unwrap().to_owned();
        other["environments"][&environment]["A"] = changed.clone().into();
        other["environments"][&environment]["B"] = changed.into();
        other["base"] = Value::Null;
        let bytes = |value: &Value| to_canonical(value).unwrap();
        let names: Vec<String> =
            differences(&bytes(&sample()), &bytes(&other)).unwrap().into_iter().map(|input| input.name).collect();
        assert_eq!(names, ["base", "checks.c.command.environment.A", "checks.c.command.environment.B"]);
        assert_eq!(differences(&bytes(&other), &bytes(&other)), Some(Vec::new()));
        assert_eq!(differences(b"{", &bytes(&other)), None);
    }

    #[test]
    fn a_search_path_is_what_is_looked_through() {
        let of =
            |value: &str, git: Option<&str>| String::from_utf8(path(value.as_ref(), git.map(AsRef::as_ref))).unwrap();
        assert_eq!(of("/git:/a:/b:/a", Some("/git")), "/a:/b");
        assert_eq!(of("/git:/a", None), "/git:/a");
        assert_ne!(of("/a:/b", None), of("/b:/a", None), "the first one counts");
    }

    #[test]
    fn what_does_not_count_is_documented() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/evidence.md")).unwrap();
        let listed =
            page.split("but for what differs from shell to shell:").nth(1).unwrap().split(". `PATH`").next().unwrap();
        let names: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
        assert_eq!(names, VOLATILE);
    }
}
