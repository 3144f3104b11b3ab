//! The plan: a scenario resolved against a subject, as ordered units that say all that is decided before a run.
//!
//! Pure: nothing is read, started or asked for here, so the same inputs always make the same plan.

mod base;
mod dark;
mod limits;
mod selection;
mod touched;

pub use base::{Base, Baseline, Before};
pub use dark::{Dark, Why};
pub use limits::SaidBy;
pub use selection::{Request, selected};

use crate::config::{self, Body, Check, Command, Config, Evident, Globs, Logic, Scenario, TestsOf};
use crate::guest::Limits;
use crate::model::{
    Capability, CapabilityName, Change, ChangeKind, CheckId, CheckInfo, CheckKind, Context, Deselected, Digest,
    Encoder, Entry, EntryKind, EnvironmentMode, Mount, PackName, Passed, PlanRow, Probe, ScenarioName, Scope, Severity,
};
use crate::native::{Environment, with_passed};
use crate::subject::{Kind, Snapshot};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::time::Duration;
use touched::{Reach, Touched};

/// What a run will do.
#[derive(Debug)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: ScenarioName,
    /// Whether the first red ends it.
    pub fail_fast: bool,
    /// How many commands may run side by side.
    pub jobs: u8,
    /// The least that fails a check.
    pub fail_on: Severity,
    /// The budget of the whole run.
    pub timeout: Option<Duration>,
    /// How old a record that commands are part of may be to answer for another run.
    pub max_age: Duration,
    /// Whether only what something changed for since the base is to run.
    pub changed_only: bool,
    /// Why nothing runs, where a person declared so.
    pub not_applicable: Option<String>,
    /// In declared order.
    pub units: Vec<Unit>,
}

/// One check, ready to be carried out.
#[derive(Debug)]
pub struct Unit {
    /// The check.
    pub id: CheckId,
    /// The checks that end before it starts, and whose results it may read, of those that are in the plan.
    pub after: Vec<CheckId>,
    /// Whether it may run beside others that may. How it is run is no part of what it is: the definition is silent of it.
    pub parallel: bool,
    /// The capabilities that it needs, and how each is found out.
    pub needs: BTreeMap<CapabilityName, Probe>,
    /// Whether its red decides the run.
    pub blocking: bool,
    /// The longest it may take.
    pub timeout: Option<Duration>,
    /// Whether it runs where no file is in its scope.
    pub allow_empty: bool,
    /// What to do.
    pub work: Work,
    /// For people: more of why it is not among those to run, where there is more to say.
    pub note: Option<String>,
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
        /// All that it sees of the environment, but for what the runner adds.
        environment: Environment,
        /// The files that it is called with, sorted: those it is about, or their tests. None for one that is about the
        /// whole tree.
        files: Option<Vec<String>>,
        /// What is in scope, or is a test of something in scope, and cannot be judged.
        dark: Vec<Dark>,
        /// What was passed, as the record says it.
        passed: Passed,
        /// Exit codes that mean that something is missing here.
        gap_exit: Vec<u8>,
        /// Whether it runs in a copy of the subject.
        isolate: bool,
        /// What its evidence rests on beside the subject.
        evidence: Evident,
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
        /// What changed since the base, as far as the check may know it; for a check that wants to know, where there is a
        /// base.
        changes: Option<Vec<Change>>,
        /// What is in scope and cannot be judged.
        dark: Vec<Dark>,
        /// What it may read: for each mount, what it asks for and what the project allows.
        grant: Grant,
        /// What it may use.
        limits: Limits,
        /// Who says each of them.
        said_by: BTreeMap<&'static str, SaidBy>,
        /// What its rules weigh, in place of what the pack says; nothing for those that are switched off.
        severities: BTreeMap<String, Option<Severity>>,
        /// What it is asked about the base, where only findings that are new against that fail it.
        baseline: Option<Baseline>,
    },
    /// Nothing: it is not among those to run.
    Nothing(CheckKind),
}

impl Work {
    /// How it is carried out.
    pub fn kind(&self) -> CheckKind {
        match self {
            Self::Command { .. } => CheckKind::Command,
            Self::Logic { .. } => CheckKind::Logic,
            Self::Nothing(kind) => *kind,
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

    /// Whether anything on the mount may be granted.
    pub fn has(&self, mount: Mount) -> bool {
        self.0.contains_key(&mount)
    }

    /// Whether the path on the mount is granted.
    pub fn covers(&self, mount: Mount, path: impl AsRef<[u8]>) -> bool {
        let path = path.as_ref();
        self.0.get(&mount).is_some_and(|(need, allow)| need.matches(path) && allow.matches(path))
    }

    /// Whether something below a folder of the mount could be granted.
    fn may_cover_below(&self, mount: Mount, folder: &[u8]) -> bool {
        let both = |(need, allow): &(Globs, Globs)| need.may_match_below(folder) && allow.may_match_below(folder);
        self.0.get(&mount).is_some_and(both)
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

/// What a plan is about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The subject.
    pub snapshot: &'a Snapshot,
    /// What it is compared with, where there is such a thing.
    pub base: Option<&'a Base>,
    /// The branch that is checked out, where one is.
    pub branch: Option<&'a str>,
    /// What this machine has, as far as it was found out. None as long as nothing was: then it has everything.
    pub capabilities: Option<&'a [Capability]>,
    /// The most that a check may use of each.
    pub ceilings: config::Limits,
    /// The user's key, where there is one: what was passed to commands is compared under it.
    pub key: Option<[u8; 32]>,
}

/// Resolves a scenario. `resolved` has an entry for each of its logic checks that are among those to run, and
/// `environment` answers what a command will see.
pub fn plan(
    config: &Config,
    scenario: &Scenario,
    about: About<'_>,
    request: &Request,
    resolved: &BTreeMap<CheckId, Resolved<'_>>,
    environment: impl Fn(&Command) -> Environment,
) -> Plan {
    let touched = about.base.filter(|_| request.changed).map(|base| Touched::of(base, about.snapshot));
    let checks = selected(config, scenario, &about, request).into_iter();
    let units = checks.filter_map(|(check, why)| match (&check.body, why) {
        (body, Some(why)) => {
            let kind = match body {
                Body::Command(_) => CheckKind::Command,
                Body::Logic(_) => CheckKind::Logic,
            };
            Some(Unit { note: about.note(check, why), ..no_unit(check, kind, why) })
        }
        (Body::Command(command), None) => {
            let (snapshot, key) = (about.snapshot, about.key.as_ref());
            let needs = needs(config, check);
            Some(command_unit(check, command, needs, environment(command), snapshot, touched.as_ref(), key))
        }
        (Body::Logic(logic), None) => {
            let allow = &config.packs.get(&logic.pack)?.allow;
            Some(logic_unit(check, logic, resolved.get(&check.id)?, allow, about, touched.as_ref()))
        }
    });
    Plan {
        scenario: scenario.name.clone(),
        fail_fast: scenario.fail_fast,
        jobs: request.jobs.unwrap_or(scenario.jobs),
        fail_on: scenario.fail_on,
        timeout: scenario.timeout,
        max_age: scenario.max_age,
        changed_only: request.changed,
        not_applicable: request.not_applicable.clone(),
        units: units.collect(),
    }
}

fn no_unit(check: &Check, kind: CheckKind, why: Deselected) -> Unit {
    Unit {
        id: check.id.clone(),
        after: check.after.clone(),
        parallel: check.parallel,
        blocking: check.blocking,
        timeout: check.timeout,
        allow_empty: check.allow_empty,
        needs: BTreeMap::new(),
        work: Work::Nothing(kind),
        note: None,
        row: PlanRow { id: check.id.clone(), deselected: Some(why), definition: None, files: None, baseline: false },
    }
}

/// The checks of a scenario as they stand in it, each only after those that it waits for.
fn ordered<'a>(config: &'a Config, scenario: &Scenario) -> Vec<&'a Check> {
    let by_id: HashMap<&CheckId, &Check> = config.checks.iter().map(|check| (&check.id, check)).collect();
    let checks: Vec<&Check> = scenario.checks.iter().filter_map(|id| by_id.get(id).copied()).collect();
    let places: HashMap<&CheckId, usize> = checks.iter().enumerate().map(|(at, check)| (&check.id, at)).collect();
    // For each how many it waits for, and who waits for it.
    let (mut waits, mut behind) = (vec![0_usize; checks.len()], vec![Vec::new(); checks.len()]);
    for (at, check) in checks.iter().enumerate() {
        for before in check.after.iter().filter_map(|id| places.get(id)) {
            waits[at] += 1;
            behind[*before].push(at);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..checks.len()).filter(|at| waits[*at] == 0).map(Reverse).collect();
    let mut ordered = Vec::with_capacity(checks.len());
    // No checks wait in a circle, so all of them are ready in the end.
    while let Some(Reverse(next)) = ready.pop() {
        ordered.push(checks[next]);
        for at in &behind[next] {
            waits[*at] -= 1;
            if waits[*at] == 0 {
                ready.push(Reverse(*at));
            }
        }
    }
    ordered
}

/// What a check needs of this machine.
fn needs(config: &Config, check: &Check) -> BTreeMap<CapabilityName, Probe> {
    let capabilities = check.needs.iter().filter_map(|name| config.capabilities.get(name));
    capabilities.map(|capability| (capability.name.clone(), capability.probe.clone())).collect()
}

/// The parts of a definition that both kinds have.
fn common(kind: CheckKind, check: &Check) -> Encoder {
    let mut encoder = Encoder::new();
    let timeout = check.timeout.map_or(0, nanoseconds);
    encoder.text(kind.name()).text(check.id.as_str()).integer(timeout).integer(check.blocking.into());
    encoder.integer(check.after.len() as u64);
    for id in &check.after {
        encoder.text(id.as_str());
    }
    encoder.integer(check.allow_empty.into());
    match &check.files {
        Some(globs) => encode_globs(encoder.integer(1), globs),
        None => {
            encoder.integer(0);
        }
    }
    encoder
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn command_unit(
    check: &Check,
    command: &Command,
    needs: BTreeMap<CapabilityName, Probe>,
    environment: Environment,
    snapshot: &Snapshot,
    touched: Option<&Touched<'_>>,
    key: Option<&[u8; 32]>,
) -> Unit {
    // What follows a link is another entry, and what lies in a submodule is listed by itself.
    let is_file = |entry: &Entry| matches!(entry.kind, EntryKind::File | EntryKind::Executable);
    let in_scope = |path: &[u8]| check.files.as_ref().is_some_and(|globs| globs.matches(path));
    let may_be_below = |folder: &[u8]| check.files.as_ref().is_some_and(|globs| globs.may_match_below(folder));
    let all = || snapshot.iter().filter_map(seen).filter(|entry| is_file(entry) && in_scope(entry.path.as_bytes()));
    let files = check.files.as_ref().map(|_| all().collect::<Vec<Entry>>());
    let tests = |path: &str| command.tests.iter().filter_map(|pair| pair.test(path)).collect::<Vec<_>>();
    let reach = Reach { matches: &in_scope, may_match_below: &may_be_below, tests: &tests };
    // What is about the whole tree names nothing of it, and needs no look at each entry.
    let dark: Vec<Dark> = if files.is_none() {
        Vec::new()
    } else {
        let tests: BTreeSet<String> = files.iter().flatten().flat_map(|entry| tests(&entry.path)).collect();
        let in_scope = |path: &[u8]| in_scope(path) || std::str::from_utf8(path).is_ok_and(|path| tests.contains(path));
        snapshot.iter().filter_map(|entry| Dark::of(entry, in_scope, may_be_below)).collect()
    };
    let files = match (files, touched) {
        (Some(files), Some(touched)) => {
            // What is left may rest on a test that is gone, as on a file that is.
            let gone = |entry: &Entry| tests(&entry.path).iter().any(|test| touched.took_away(test, snapshot));
            let all = files.iter().any(gone);
            match if all { Some(files) } else { touched.narrow(files, |entry| &entry.path, &reach) } {
                Some(files) => Some(files),
                None => return no_unit(check, CheckKind::Command, Deselected::Unchanged),
            }
        }
        // It is about everything.
        (None, Some(touched)) if touched.is_nothing() => {
            return no_unit(check, CheckKind::Command, Deselected::Unchanged);
        }
        (files, _) => files,
    };
    let mut encoder = common(CheckKind::Command, check);
    encoder.integer(command.argv.len() as u64);
    for argument in &command.argv {
        encoder.text(argument);
    }
    encoder.integer(command.inherit_env.into());
    // What is passed on differs from place to place, and the verdict is to be the same in all of them: the definition
    // says which variables are passed and which values the configuration sets. The record has the rest.
    for names in [&command.pass_env, &command.secrets] {
        encoder.integer(names.len() as u64);
        for name in names {
            encoder.text(name);
        }
    }
    encoder.bytes(&command.gap_exit);
    encoder.integer(command.env.len() as u64);
    for (name, value) in &command.env {
        encoder.text(name).digest(&Digest::of(value.as_bytes()));
    }
    encoder.integer(command.tests.len() as u64);
    for name in command.tests.iter().flat_map(TestsOf::names) {
        encoder.text(&name);
    }
    encoder.integer(command.isolate.into()).integer(command.evidence.fingerprint.len() as u64);
    for argv in &command.evidence.fingerprint {
        encoder.integer(argv.len() as u64);
        for argument in argv {
            encoder.text(argument);
        }
    }
    match &command.evidence.ambient {
        Some(globs) => encode_globs(encoder.integer(1), globs),
        None => {
            encoder.integer(0);
        }
    }
    encoder.integer(needs.len() as u64);
    for (name, probe) in &needs {
        probe.encode(encoder.text(name.as_str()));
    }
    let definition = encoder.finish(Context::Definition);
    Unit {
        id: check.id.clone(),
        after: check.after.clone(),
        parallel: check.parallel,
        needs,
        blocking: check.blocking,
        timeout: check.timeout,
        allow_empty: check.allow_empty,
        note: None,
        row: PlanRow {
            id: check.id.clone(),
            deselected: None,
            definition: Some(definition),
            files: files.as_ref().map(|files| files_digest(files, None)),
            baseline: false,
        },
        work: Work::Command {
            argv: command.argv.clone(),
            passed: Passed {
                mode: if command.inherit_env { EnvironmentMode::Inherited } else { EnvironmentMode::Declared },
                definition: key.map(|key| with_passed(&definition, &environment, key)),
            },
            environment,
            files: files.map(|files| names(files, &command.tests, snapshot)),
            dark,
            gap_exit: command.gap_exit.clone(),
            isolate: command.isolate,
            evidence: command.evidence.clone(),
        },
    }
}

/// The names that a command is called with: of these files, or of their tests that exist.
fn names(files: Vec<Entry>, tests: &[TestsOf], snapshot: &Snapshot) -> Vec<String> {
    let paths = files.into_iter().map(|entry| entry.path);
    if tests.is_empty() {
        return paths.collect();
    }
    let exists = |path: &String| {
        let entry = snapshot.entry(path.as_bytes());
        entry.is_some_and(|entry| matches!(entry.kind, Kind::File | Kind::Executable))
    };
    let of = |path: String| tests.iter().filter_map(move |pair| pair.test(&path)).collect::<Vec<_>>();
    let found: BTreeSet<String> = paths.flat_map(of).filter(exists).collect();
    found.into_iter().collect()
}

fn logic_unit(
    check: &Check,
    logic: &Logic,
    resolved: &Resolved<'_>,
    allow: &BTreeMap<Mount, Globs>,
    about: About<'_>,
    touched: Option<&Touched<'_>>,
) -> Unit {
    let grant = Grant::new(&resolved.needs, allow);
    let (limits, said_by) = limits::limits(&logic.limits, &about.ceilings);
    // The configuration was checked to have no floats that JSON cannot write, so its text is the same every time:
    // serde_json keeps objects sorted.
    let config = serde_json::Value::Object(logic.config.clone()).to_string();
    let in_scope = |path: &[u8]| {
        grant.covers(Mount::Tree, path)
            && resolved.files.matches(path)
            && check.files.as_ref().is_none_or(|globs| globs.matches(path))
    };
    // What is in a folder that cannot be listed, nobody knows: it may be in scope.
    let may_be_below = |folder: &[u8]| {
        grant.may_cover_below(Mount::Tree, folder)
            && resolved.files.may_match_below(folder)
            && check.files.as_ref().is_none_or(|globs| globs.may_match_below(folder))
    };
    let dark = about.snapshot.iter().filter_map(|entry| Dark::of(entry, in_scope, may_be_below)).collect();
    let files = about.snapshot.iter().filter_map(seen).filter(|entry| in_scope(entry.path.as_bytes()));
    let files = files.map(|entry| match about.base {
        Some(base) => base.beside(entry, &grant),
        None => entry,
    });
    let files: Vec<Entry> = files.collect();
    let reach = Reach { matches: &in_scope, may_match_below: &may_be_below, tests: &|_| Vec::new() };
    let files = match (touched, resolved.info.scope) {
        (None, _) => Some(files),
        (Some(touched), _) if touched.is_nothing() => None,
        // Each file is judged by itself.
        (Some(touched), Scope::File) => touched.narrow(files, |entry| &entry.path, &reach),
        // All of them are judged together, whichever changed; what is about no file of the tree is about something else.
        (Some(_), Scope::Tree) if files.is_empty() && !grant.has(Mount::Tree) => Some(files),
        (Some(touched), Scope::Tree) => {
            let names: Vec<&str> = files.iter().map(|entry| entry.path.as_str()).collect();
            let any = touched.narrow(names, |name| name, &reach).is_some();
            any.then_some(files)
        }
    };
    let Some(files) = files else { return no_unit(check, CheckKind::Logic, Deselected::Unchanged) };
    let changes = about.base.filter(|_| resolved.info.wants_changes).map(|base| cut(&base.changes.list, &grant));
    let baseline = about.base.filter(|_| logic.baseline.is_some()).map(|base| {
        let about_files = (resolved.info.scope, files.as_slice());
        let in_scope = |path: &str| in_scope(path.as_bytes());
        base.baseline(about.snapshot, about_files, &grant, resolved.info.wants_changes, in_scope)
    });

    let mut encoder = common(CheckKind::Logic, check);
    encoder.digest(&resolved.component).text(&resolved.info.id).text(&config);
    grant.encode(&mut encoder);
    encode_globs(&mut encoder, &resolved.files);
    let Limits { fuel, init_fuel, memory, output, findings, handles, wall } = &limits;
    for limit in [fuel, init_fuel, memory, output, findings, handles] {
        encoder.integer(*limit);
    }
    encoder.integer(nanoseconds(*wall)).integer(logic.severities.len() as u64);
    for (rule, severity) in &logic.severities {
        encoder.text(rule).text(severity.map_or("off", Severity::name));
    }
    encoder.integer(logic.baseline.is_some().into());
    let definition = encoder.finish(Context::Definition);
    let digest = files_digest(&files, changes.as_deref());
    Unit {
        id: check.id.clone(),
        after: check.after.clone(),
        parallel: check.parallel,
        needs: BTreeMap::new(),
        blocking: check.blocking,
        timeout: check.timeout,
        allow_empty: check.allow_empty,
        note: None,
        work: Work::Logic {
            pack: logic.pack.clone(),
            check: Box::new(resolved.info.clone()),
            config,
            files,
            changes,
            dark,
            grant,
            limits,
            said_by,
            severities: logic.severities.clone(),
            baseline,
        },
        row: PlanRow {
            id: check.id.clone(),
            deselected: None,
            definition: Some(definition),
            files: Some(digest),
            baseline: logic.baseline.is_some(),
        },
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

/// The changes that a check may know of. A file that was moved across the edge of what it sees appears or disappears.
fn cut(changes: &[Change], grant: &Grant) -> Vec<Change> {
    let seen = |path: &str| grant.covers(Mount::Tree, path) || grant.covers(Mount::Base, path);
    let alone = |path: &str, kind| Change { path: path.to_owned(), kind, previous_path: None };
    let mut seen_changes: Vec<Change> = changes
        .iter()
        .filter_map(|change| match &change.previous_path {
            None => seen(&change.path).then(|| change.clone()),
            Some(before) => match (seen(&change.path), seen(before)) {
                (true, true) => Some(change.clone()),
                (true, false) => Some(alone(&change.path, ChangeKind::Added)),
                (false, true) => Some(alone(before, ChangeKind::Deleted)),
                (false, false) => None,
            },
        })
        .collect();
    seen_changes.sort_by(|a, b| a.path.cmp(&b.path));
    seen_changes
}

/// The digest of the files in scope and of the changes that go with them.
fn files_digest(files: &[Entry], changes: Option<&[Change]>) -> Digest {
    let mut encoder = Encoder::new();
    encoder.integer(files.len() as u64);
    for file in files {
        file.encode(&mut encoder);
    }
    Change::encode_all(changes, &mut encoder);
    encoder.finish(Context::Files)
}
