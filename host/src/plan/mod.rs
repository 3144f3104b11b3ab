//! The plan: a scenario resolved against a subject, as ordered units that say all that is decided before a run.
//!
//! Pure: nothing is read, started or asked for here, so the same inputs always make the same plan.

use crate::config::{Body, Check, Command, Config, Globs, Logic, Scenario};
use crate::guest::Limits;
use crate::model::{
    CheckId, CheckInfo, CheckKind, Context, Digest, Encoder, Entry, EntryKind, Mount, PackName, PlanRow, ScenarioName,
};
use crate::native::Environment;
use crate::subject::{Kind, Snapshot};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a run will do.
#[derive(Debug)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: ScenarioName,
    /// Whether the first red ends it.
    pub fail_fast: bool,
    /// The budget of the whole run.
    pub timeout: Option<Duration>,
    /// In declared order.
    pub units: Vec<Unit>,
}

/// One check, ready to be carried out.
#[derive(Debug)]
pub struct Unit {
    /// The check.
    pub id: CheckId,
    /// Whether its red decides the run.
    pub blocking: bool,
    /// The longest it may take.
    pub timeout: Option<Duration>,
    /// What to do.
    pub work: Work,
    /// What the verdict says of it.
    pub row: PlanRow,
}

/// What a check does.
#[derive(Debug)]
pub enum Work {
    /// Runs a program.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// All that it sees of the environment.
        environment: Environment,
    },
    /// Calls a pack.
    Logic {
        /// The pack's name in the configuration.
        pack: PackName,
        /// The check within it.
        check: Box<CheckInfo>,
        /// Its configuration, in canonical form.
        config: String,
        /// The files in scope.
        files: Vec<Entry>,
        /// Paths in scope that this user cannot read: nothing can be said of them.
        unreadable: Vec<String>,
        /// What it may read: for each mount, what it asks for and what the project allows.
        grant: Grant,
        /// What it may use.
        limits: Limits,
    },
}

impl Work {
    /// How it is carried out.
    pub fn kind(&self) -> CheckKind {
        match self {
            Self::Command { .. } => CheckKind::Command,
            Self::Logic { .. } => CheckKind::Logic,
        }
    }
}

/// What a logic check may read: need ∩ allow, mount by mount. What is in neither does not exist for it.
#[derive(Debug, Clone, Default)]
pub struct Grant(BTreeMap<Mount, (Globs, Globs)>);

impl Grant {
    /// What is asked for and allowed on each mount that has both.
    pub fn new(needs: &BTreeMap<Mount, Globs>, allow: &BTreeMap<Mount, Globs>) -> Self {
        let both = |(mount, need): (&Mount, &Globs)| Some((*mount, (need.clone(), allow.get(mount)?.clone())));
        Self(needs.iter().filter_map(both).collect())
    }

    /// Whether the path on the mount is granted.
    pub fn covers(&self, mount: Mount, path: &str) -> bool {
        self.0.get(&mount).is_some_and(|(need, allow)| need.matches(path) && allow.matches(path))
    }

    /// Which grant it is.
    pub fn digest(&self) -> Digest {
        let mut encoder = Encoder::new();
        self.encode(&mut encoder);
        encoder.finish(Context::Grant)
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.integer(self.0.len() as u64);
        for (mount, (need, allow)) in &self.0 {
            encoder.text(mount.name());
            encode_globs(encoder, need);
            encode_globs(encoder, allow);
        }
    }
}

fn encode_globs(encoder: &mut Encoder, globs: &Globs) {
    let patterns = globs.patterns();
    encoder.integer(patterns.len() as u64);
    for pattern in patterns {
        encoder.text(pattern);
    }
}

/// A logic check of the configuration, together with what its pack says of it.
#[derive(Debug)]
pub struct Resolved<'a> {
    /// What the pack says.
    pub info: &'a CheckInfo,
    /// The globs of its `files`.
    pub files: Globs,
    /// The globs of its needs, by mount.
    pub needs: BTreeMap<Mount, Globs>,
    /// The digest of the pack's component.
    pub component: Digest,
}

/// Resolves a scenario. `resolved` has an entry for each of its logic checks, and `environment` answers what a
/// command will see.
pub fn plan(
    config: &Config,
    scenario: &Scenario,
    snapshot: &Snapshot,
    resolved: &BTreeMap<CheckId, Resolved<'_>>,
    environment: impl Fn(&Command) -> Environment,
) -> Plan {
    let units = scenario.checks.iter().filter_map(|id| config.check(id)).filter_map(|check| match &check.body {
        Body::Command(command) => Some(command_unit(check, command, environment(command))),
        Body::Logic(logic) => {
            let allow = &config.packs.get(&logic.pack)?.allow;
            Some(logic_unit(check, logic, resolved.get(&check.id)?, allow, snapshot))
        }
    });
    let units = units.collect();
    Plan { scenario: scenario.name.clone(), fail_fast: scenario.fail_fast, timeout: scenario.timeout, units }
}

/// The parts of a definition that both kinds have.
fn common(kind: CheckKind, check: &Check) -> Encoder {
    let mut encoder = Encoder::new();
    let timeout = check.timeout.map_or(0, nanoseconds);
    encoder.text(kind.name()).text(check.id.as_str()).integer(timeout).integer(check.blocking.into());
    encoder
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn command_unit(check: &Check, command: &Command, environment: Environment) -> Unit {
    let mut encoder = common(CheckKind::Command, check);
    encoder.integer(command.argv.len() as u64);
    for argument in &command.argv {
        encoder.text(argument);
    }
    encoder.integer(command.inherit_env.into());
    // What is passed on differs from place to place, and the verdict is to be the same in all of them: the definition
    // says which variables are passed and which values the configuration sets.
    encoder.integer(command.pass_env.len() as u64);
    for name in &command.pass_env {
        encoder.text(name);
    }
    encoder.integer(command.env.len() as u64);
    for (name, value) in &command.env {
        encoder.text(name).digest(&Digest::of(value.as_bytes()));
    }
    let definition = encoder.finish(Context::Definition);
    Unit {
        id: check.id.clone(),
        blocking: check.blocking,
        timeout: check.timeout,
        work: Work::Command { argv: command.argv.clone(), environment },
        row: PlanRow { id: check.id.clone(), definition, files: None },
    }
}

fn logic_unit(
    check: &Check,
    logic: &Logic,
    resolved: &Resolved<'_>,
    allow: &BTreeMap<Mount, Globs>,
    snapshot: &Snapshot,
) -> Unit {
    let grant = Grant::new(&resolved.needs, allow);
    let default = Limits::default();
    let limits = Limits {
        fuel: logic.limits.fuel.unwrap_or(default.fuel),
        memory: logic.limits.memory.unwrap_or(default.memory),
        ..default
    };
    // The configuration was checked to have no floats that JSON cannot write, so its text is the same every time:
    // serde_json keeps objects sorted.
    let config = serde_json::Value::Object(logic.config.clone()).to_string();
    let in_scope = |path: &str| {
        grant.covers(Mount::Tree, path)
            && resolved.files.matches(path)
            && logic.files.as_ref().is_none_or(|globs| globs.matches(path))
    };
    let unreadable = snapshot.entries.iter().filter(|entry| entry.kind == Kind::Unreadable);
    let unreadable = unreadable.map(|entry| String::from_utf8_lossy(&entry.path).into_owned());
    let unreadable: Vec<String> = unreadable.filter(|path| in_scope(path)).collect();
    let files: Vec<Entry> = snapshot.entries.iter().filter_map(seen).filter(|entry| in_scope(&entry.path)).collect();

    let mut encoder = common(CheckKind::Logic, check);
    encoder.digest(&resolved.component).text(&resolved.info.id).text(&config);
    grant.encode(&mut encoder);
    encode_globs(&mut encoder, &resolved.files);
    match &logic.files {
        Some(globs) => encode_globs(encoder.integer(1), globs),
        None => {
            encoder.integer(0);
        }
    }
    let Limits { fuel, init_fuel, memory, output, findings, handles, wall } = &limits;
    for limit in [fuel, init_fuel, memory, output, findings, handles] {
        encoder.integer(*limit);
    }
    encoder.integer(nanoseconds(*wall));
    let definition = encoder.finish(Context::Definition);
    let digest = files_digest(&files);
    Unit {
        id: check.id.clone(),
        blocking: check.blocking,
        timeout: check.timeout,
        work: Work::Logic {
            pack: logic.pack.clone(),
            check: Box::new(resolved.info.clone()),
            config,
            files,
            unreadable,
            grant,
            limits,
        },
        row: PlanRow { id: check.id.clone(), definition, files: Some(digest) },
    }
}

/// The entry as a pack sees it. What has no name in UTF-8 or no contents to read is hidden from packs.
pub fn seen(entry: &crate::subject::Entry) -> Option<Entry> {
    let kind = match entry.kind {
        Kind::File => EntryKind::File,
        Kind::Executable => EntryKind::Executable,
        Kind::Symlink => EntryKind::Symlink,
        Kind::Submodule => EntryKind::Submodule,
        Kind::LeftOut | Kind::Unreadable | Kind::Special => return None,
    };
    let path = String::from_utf8(entry.path.clone()).ok()?;
    let size = if kind == EntryKind::Submodule { 0 } else { entry.size };
    Some(Entry { path, kind, size, tracked: entry.tracked, base_path: None })
}

fn files_digest(files: &[Entry]) -> Digest {
    let mut encoder = Encoder::new();
    encoder.integer(files.len() as u64);
    for file in files {
        encoder.text(&file.path).integer(file.kind as u64).integer(file.size).integer(file.tracked.into());
    }
    encoder.finish(Context::Files)
}
