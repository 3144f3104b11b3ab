//! From a folder to a plan: what every command that needs the configuration does first.

use super::args::Verify;
use super::baseline;
use super::error::CliError;
use super::printer::Printer;
use super::take::Taken;
use crate::config::{
    self, Body, Check, Command, Config, ConfigError, Diagnostic, Globs, Logic, PackSource, Scenario, User, did_you_mean,
};
use crate::evidence::QUARANTINE;
use crate::guest::{Host, Pack, SchemaError, Walls, missing_walls};
use crate::model::{CapabilityName, CheckId, Mount, PackName, Probe, Secrets};
use crate::native::{self, Environment, Place, Probes, Supervisor};
use crate::pack::{self, SourceError};
use crate::plan::{self, About, Request, Resolved};
use crate::store::{self, State, Store, TreeMemory};
use crate::subject::git::Repository;
use crate::subject::{Patience, Workspace};
use crate::system;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configuration, and the folder that it is about.
pub(super) struct Project {
    pub(super) root: PathBuf,
    pub(super) config: Config,
}

/// Finds and reads the configuration for `folder`, above what the user's file says.
pub(super) fn project(folder: &Path, user: &User, printer: &Printer) -> Result<Project, CliError> {
    let failed = |error: &ConfigError| CliError::config(error, printer.colour_errors());
    let none = || ConfigError::NotFound { name: config::CONFIG_NAME.to_owned() };
    let found = config::discover(folder).map_err(|error| failed(&error))?;
    if found.is_none() && is_bare(folder) {
        return Err(CliError::usage("there is no `probity.toml`, and this is a repository without a working tree")
            .hint(A_CLONE));
    }
    let found = found.ok_or_else(none);
    let loaded = found.and_then(|file| Ok((config::load_as(&file, &shown(&file, folder), user)?, file)));
    let (config, file) = loaded.map_err(|error| failed(&error))?;
    let root = file.parent().unwrap_or(folder).to_owned();
    Ok(Project { root, config })
}

/// What to do in a repository without a working tree.
pub(super) const A_CLONE: &str = "go to a clone or a worktree of it, where `probity.toml` lies";

/// Whether we stand in the middle of a repository without a working tree. One that is found by its `.git` has one.
pub(super) fn is_bare(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|part| folder.join(part).exists())
}

/// The path as somebody in `folder` would write it.
fn shown(file: &Path, folder: &Path) -> String {
    if let Ok(below) = file.strip_prefix(folder) {
        return below.display().to_string();
    }
    let up =
        folder.ancestors().position(|above| file.strip_prefix(above).is_ok_and(|rest| rest.components().count() == 1));
    up.map_or_else(
        || file.display().to_string(),
        |up| format!("{}{}", "../".repeat(up), file.file_name().unwrap_or_default().display()),
    )
}

/// Refuses what the operator's variables say where it says nothing that holds: whoever set them meant something.
pub(super) fn operator() -> Result<(), CliError> {
    let said = std::env::var_os(system::KEY_VARIABLE);
    if said.is_some_and(|said| said.to_str().and_then(system::parse_key).is_none()) {
        return Err(CliError::usage(format!("{} is no key", system::KEY_VARIABLE))
            .hint("a key has 64 hexadecimal digits: `openssl rand -hex 32` makes one"));
    }
    let named = |class: &str| class.strip_prefix("ci:").is_some_and(|name| name.parse::<PackName>().is_ok());
    match system::trust_class() {
        Some(class) if class != QUARANTINE && !named(&class) => {
            Err(CliError::usage(format!("{} is no class of trust: {}", system::TRUST_VARIABLE, config::quote(&class)))
                .hint("write `local`, `ci:NAME` or `quarantine`"))
        }
        _ => Ok(()),
    }
}

/// What the user's file says.
pub(super) fn user(printer: &Printer) -> Result<User, CliError> {
    let Some(file) = system::user_file() else { return Ok(User::default()) };
    let loaded = config::load_user(&file, &file.display().to_string());
    loaded.map_err(|error| CliError::config(&error, printer.colour_errors()))
}

/// Refuses checks that ask for more than the user's file lets them have.
pub(super) fn within_ceilings(
    project: &Project,
    scenario: &Scenario,
    user: &User,
    printer: &Printer,
) -> Result<(), CliError> {
    let ceilings = &user.limits;
    let file = user.source.as_ref().map_or("the user's file", |source| source.name.as_str());
    let mut mistakes = Vec::new();
    for (id, logic) in logic(scenario.checks.iter().filter_map(|id| project.config.check(id))) {
        let mut refuse = |name: &str, most: String| {
            let title = format!("check `{id}` asks for more {name} than the user's file allows");
            let span = logic.limits_span.clone().unwrap_or_else(|| logic.use_span.clone());
            let help = format!("ask for {most} at most, or raise it in `[limits]` of {}", config::quote(file));
            mistakes.push(Diagnostic::new(span, title).help(help));
        };
        let asked = &logic.limits;
        for (name, asked, most) in [
            ("fuel", asked.fuel, ceilings.fuel),
            ("memory", asked.memory, ceilings.memory),
            ("output", asked.output, ceilings.output),
            ("findings", asked.findings, ceilings.findings),
            ("handles", asked.handles, ceilings.handles),
        ] {
            if let Some(most) = most.filter(|most| asked.is_some_and(|asked| asked > *most)) {
                refuse(name, most.to_string());
            }
        }
        if let Some(most) = ceilings.wall.filter(|most| asked.wall.is_some_and(|asked| asked > *most)) {
            refuse("wall time", format!("{most:?}"));
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(invalid(project, mistakes, printer)) }
}

/// The scenario that was asked for.
pub(super) fn scenario<'a>(config: &'a Config, name: &str) -> Result<&'a Scenario, CliError> {
    config.scenario(name).ok_or_else(|| {
        let known: Vec<&str> = config.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        let error = CliError::usage(format!("there is no scenario {}", config::quote(name)));
        let Some(check) = config.checks.iter().find(|check| check.id.as_str() == name) else {
            let meant = did_you_mean(name, known.iter().copied());
            let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            return error.hint(&format!("{meant}the configuration has {}", known.join(", ")));
        };
        // `default` comes first where it is not written, and is the one that needs no name.
        let has = |scenario: &&Scenario| scenario.checks.contains(&check.id);
        let default = config.scenario("default").filter(has);
        error.hint(&match default.or_else(|| config.scenarios.iter().find(has)) {
            Some(scenario) if scenario.name.as_str() == "default" => {
                format!("`{name}` is a check: `probity verify --only {name}` runs it alone")
            }
            Some(scenario) => {
                format!("`{name}` is a check: `probity verify {} --only {name}` runs it alone", scenario.name)
            }
            None => format!("`{name}` is a check that no scenario has: name it in `checks` of one"),
        })
    })
}

/// Whether a character says something: signs do not, and neither does what is not to be seen, of which these are letters.
fn says(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

/// The most characters of a reason.
const LONGEST_REASON: usize = 500;

/// What is asked for of the scenario. A check that it does not have is a mistake, since a word that was mistyped would
/// otherwise leave it out.
pub(super) fn request(scenario: &Scenario, options: &Verify) -> Result<Request, CliError> {
    let known = |names: &[String]| -> Result<BTreeSet<CheckId>, CliError> {
        let one = |name: &String| {
            let name = name.trim();
            scenario.checks.iter().find(|id| id.as_str() == name).cloned().ok_or_else(|| {
                let ids: Vec<&str> = scenario.checks.iter().map(CheckId::as_str).collect();
                let meant = did_you_mean(name, ids.iter().copied());
                let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
                let title = format!("there is no check {} in the scenario `{}`", config::quote(name), scenario.name);
                CliError::usage(title).hint(&format!("{meant}it has {}", ids.join(", ")))
            })
        };
        names.iter().map(one).collect()
    };
    let not_applicable = options.na.as_ref().map(|reason| reason.trim().to_owned());
    if let Some(reason) = &not_applicable {
        if !reason.chars().any(says) {
            return Err(CliError::usage("`--na` needs a reason").hint("say why: `--na \"only documentation changed\"`"));
        }
        if reason.chars().count() > LONGEST_REASON || reason.contains(char::is_control) {
            let title = format!("the reason of `--na` is one line of at most {LONGEST_REASON} characters");
            return Err(CliError::usage(title).hint("say it in fewer words"));
        }
    }
    let only = if options.only.is_empty() { None } else { Some(known(&options.only)?) };
    Ok(Request { only, skip: known(&options.skip)?, changed: options.changed, jobs: options.jobs, not_applicable })
}

/// The checks that are among those to run, as far as that shows before packs are known.
pub(super) fn chosen<'a>(
    config: &'a Config,
    scenario: &Scenario,
    about: About<'_>,
    request: &Request,
) -> Vec<&'a Check> {
    let selected = plan::selected(config, scenario, &about, request).into_iter();
    selected.filter(|(_, why)| why.is_none()).map(|(check, _)| check).collect()
}

/// What the conditions of these checks ask of this machine. Nothing for what is no working tree: nothing runs for it.
pub(super) fn conditions<'a>(
    config: &'a Config,
    chosen: &[&'a Check],
    about: About<'_>,
) -> BTreeMap<&'a CapabilityName, &'a Probe> {
    let names = chosen.iter().filter(|_| !about.snapshot.revision).flat_map(|check| &check.when.capabilities);
    names.filter_map(|name| Some((name, &config.capabilities.get(name)?.probe))).collect()
}

/// What loads packs: its guests run in processes of this very program.
pub(super) fn host() -> Result<Host, CliError> {
    Ok(Host::new(program()?, system::compiled_folder().zip(system::key())))
}

/// What watches over commands: a process of this very program, once there is a command.
pub(super) fn supervisor() -> Result<Arc<Supervisor>, CliError> {
    Ok(Arc::new(Supervisor::new(program()?)))
}

fn program() -> Result<PathBuf, CliError> {
    std::env::current_exe()
        .map_err(|error| CliError::trouble(format!("the program's own file cannot be found: {error}")))
}

/// Refuses to go on where a wall is missing that the scenario's logic checks would run behind. It comes before packs are
/// loaded, since what a pack says of itself is said by its code.
pub(super) fn all_walls(chosen: &[&Check], host: &Host) -> Result<(), CliError> {
    if logic(chosen.iter().copied()).next().is_none() {
        return Ok(());
    }
    let walls = host.walls().map_err(|error| CliError::trouble(error.to_string()))?;
    if walls == Walls::ALL {
        return Ok(());
    }
    let missing: Vec<String> = missing_walls(walls).into_iter().map(|(wall, why)| format!("{wall}: {why}")).collect();
    let title =
        format!("walls around packs are missing, and `--walls strict` asks for all\n  {}", missing.join("\n  "));
    Err(CliError::usage(title).hint("`probity doctor` says what stands; without `--walls strict` the record says it"))
}

/// The packs that the logic checks of a scenario are in, each built first if it has to be and may. A revision is judged by
/// the components that it holds.
pub(super) fn packs(
    taken: &Taken,
    chosen: &[&Check],
    host: &Host,
    build: bool,
    printer: &Printer,
) -> Result<BTreeMap<PackName, Pack>, CliError> {
    let project = &taken.project;
    let needed: BTreeSet<&PackName> = logic(chosen.iter().copied()).map(|(_, logic)| &logic.pack).collect();
    let cache = system::cache_folder();
    let mut packs = BTreeMap::new();
    let mut mistakes = Vec::new();
    for pack in needed.into_iter().filter_map(|name| project.config.packs.get(name)) {
        printer.status(Some(&format!("loading pack {}", pack.name)));
        let mut told = |text: &str| printer.note(text);
        let notice = if build { Some(&mut told as &mut dyn FnMut(&str)) } else { None };
        let at_source = |title: String| {
            let (title, help) = without_help(&title);
            let diagnostic =
                Diagnostic::new(pack.source_span.clone(), format!("pack `{}` cannot be used: {title}", pack.name));
            help.into_iter().fold(diagnostic, Diagnostic::help)
        };
        let obtained = match &pack.source {
            PackSource::File(path) if taken.snapshot.revision => {
                let Some(bytes) = taken.held(path)? else {
                    mistakes.push(at_source(format!(
                        "the revision has no file at `{path}`\nhelp: a revision is judged by the components that it holds"
                    )));
                    continue;
                };
                Ok(bytes)
            }
            PackSource::Path(path) if taken.snapshot.revision => {
                printer.note(&format!("pack {} is built from {path} as it lies in the working tree", pack.name));
                pack::obtain(&pack.source, &project.root, cache.as_deref(), notice)
            }
            PackSource::File(_) | PackSource::Path(_) => {
                pack::obtain(&pack.source, &project.root, cache.as_deref(), notice)
            }
        };
        match obtained {
            Ok(bytes) => match host.load(&bytes) {
                Ok(loaded) => {
                    for warning in &loaded.warnings {
                        printer.note(&format!("warning: {warning}"));
                    }
                    packs.insert(pack.name.clone(), loaded);
                }
                Err(error) => mistakes.push(at_source(error.to_string())),
            },
            Err(error @ SourceError::Missing { .. }) => {
                let help = "correct `source`, which is relative to the folder of `probity.toml`, or put it there";
                mistakes.push(at_source(error.to_string()).help(help));
            }
            Err(error) => mistakes.push(at_source(error.to_string())),
        }
    }
    printer.status(None);
    if mistakes.is_empty() { Ok(packs) } else { Err(invalid(project, mistakes, printer)) }
}

pub(super) fn invalid(project: &Project, mistakes: Vec<Diagnostic>, printer: &Printer) -> CliError {
    CliError::config(&project.config.invalid(mistakes), printer.colour_errors())
}

fn logic<'a>(checks: impl Iterator<Item = &'a Check>) -> impl Iterator<Item = (&'a CheckId, &'a Logic)> {
    checks.filter_map(|check| match &check.body {
        Body::Logic(logic) => Some((&check.id, &**logic)),
        Body::Command(_) => None,
    })
}

/// What the packs say of the scenario's logic checks; every mistake in how they are used is reported at once.
pub(super) fn resolve<'a>(
    project: &Project,
    chosen: &[&Check],
    packs: &'a BTreeMap<PackName, Pack>,
    printer: &Printer,
) -> Result<BTreeMap<CheckId, Resolved<'a>>, CliError> {
    let mut resolved = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (id, logic) in logic(chosen.iter().copied()) {
        let Some(pack) = packs.get(&logic.pack) else { continue };
        match resolve_one(project, logic, pack) {
            Ok(one) => {
                resolved.insert(id.clone(), one);
            }
            Err(more) => mistakes.extend(more),
        }
    }
    if mistakes.is_empty() { Ok(resolved) } else { Err(invalid(project, mistakes, printer)) }
}

fn resolve_one<'a>(project: &Project, logic: &Logic, pack: &'a Pack) -> Result<Resolved<'a>, Vec<Diagnostic>> {
    let Some(info) = pack.info.check(&logic.check) else {
        let known: Vec<&str> = pack.info.checks.iter().map(|check| check.id.as_str()).collect();
        let title = format!("pack `{}` has no check `{}`", logic.pack, logic.check);
        let help = did_you_mean(&logic.check, known.iter().copied()).map_or_else(
            || format!("it has {}", known.join(", ")),
            |like| format!("did you mean `{}/{like}`?", logic.pack),
        );
        return Err(vec![Diagnostic::new(logic.use_span.clone(), title).help(help)]);
    };
    let mut mistakes = config_mistakes(logic, pack, info.config_schema.as_deref());
    for (rule, span) in &logic.severity_spans {
        if !info.rules.iter().any(|known| known.id == *rule) {
            let known: Vec<&str> = info.rules.iter().map(|rule| rule.id.as_str()).collect();
            let title = format!("check `{}/{}` has no rule {}", logic.pack, logic.check, config::quote(rule));
            let help = did_you_mean(rule, known.iter().copied())
                .map_or_else(|| format!("it has {}", known.join(", ")), |like| format!("did you mean `{like}`?"));
            mistakes.push(Diagnostic::new(span.clone(), title).help(help));
        }
    }
    mistakes.extend(logic.baseline.clone().and_then(|span| baseline::impossible(logic, info, span)));
    let mut globs = |patterns: &[String]| {
        Globs::new(patterns).map_err(|error| {
            let title = format!(
                "check `{}` of pack `{}` is about files in a way that cannot be read: {error}",
                info.id, logic.pack
            );
            mistakes.push(
                Diagnostic::new(logic.use_span.clone(), title).help("this is for the author of the pack to mend"),
            );
        })
    };
    let files = globs(&info.files);
    let mut patterns: BTreeMap<Mount, Vec<String>> = BTreeMap::new();
    for need in &info.needs {
        patterns.entry(need.mount).or_default().extend(need.globs.iter().cloned());
    }
    let needs: BTreeMap<Mount, Globs> =
        patterns.iter().filter_map(|(mount, patterns)| Some((*mount, globs(patterns).ok()?))).collect();
    let allow = project.config.packs.get(&logic.pack).map(|pack| &pack.allow);
    for need in &info.needs {
        if allow.is_some_and(|allow| !allow.contains_key(&need.mount)) {
            let mount = need.mount.name();
            let title =
                format!("check `{}` needs to read `/{mount}`, and pack `{}` is not allowed to", info.id, logic.pack);
            let line = need.globs.iter().map(|glob| format!("\"{mount}:{glob}\"")).collect::<Vec<_>>().join(", ");
            let help = format!("it says: {}\nadd {line} to `allow` of `[packs.{}]` if it may", need.why, logic.pack);
            mistakes.push(Diagnostic::new(logic.use_span.clone(), title).help(help));
        }
    }
    match files {
        Ok(files) if mistakes.is_empty() => Ok(Resolved { info, files, needs, component: pack.digest }),
        _ => Err(mistakes),
    }
}

/// What is wrong with a check's configuration, by the check's own schema.
fn config_mistakes(logic: &Logic, pack: &Pack, schema: Option<&str>) -> Vec<Diagnostic> {
    let span = logic.config_span.clone().unwrap_or_else(|| logic.use_span.clone());
    let Some(schema) = schema else {
        if logic.config.is_empty() {
            return Vec::new();
        }
        let title = format!("check `{}/{}` takes no configuration", logic.pack, logic.check);
        return vec![Diagnostic::new(span, title).help("remove `config`")];
    };
    let config = serde_json::Value::Object(logic.config.clone());
    let errors = match pack.validate(schema, &config) {
        Ok(errors) => errors,
        Err(error) => {
            return vec![Diagnostic::new(
                span,
                format!("the configuration of `{}/{}` cannot be checked: {error}", logic.pack, logic.check),
            )];
        }
    };
    let one = |error: SchemaError| {
        let span = logic.config_spans.get(&error.pointer).cloned().unwrap_or_else(|| span.clone());
        let title = format!("check `{}/{}` refuses its configuration: {}", logic.pack, logic.check, error.message);
        let help = match &error.unknown_key {
            Some(key) => did_you_mean(key, error.known_keys.iter().map(String::as_str)).map_or_else(
                || format!("it knows {}", error.known_keys.join(", ")),
                |like| format!("did you mean `{like}`?"),
            ),
            None => "`probity pack inspect --json` shows what the check takes, as a JSON Schema".to_owned(),
        };
        Diagnostic::new(span, title).help(help)
    };
    errors.into_iter().map(one).collect()
}

/// What a command will see of the environment.
pub(super) fn environment(command: &Command) -> Environment {
    if command.inherit_env {
        native::inherited(std::env::vars_os(), &command.env)
    } else {
        let passed = [command.pass_env.as_slice(), command.secrets.as_slice()].concat();
        native::declared(std::env::vars_os(), &passed, &command.env)
    }
}

/// What finds out about this machine: at the root, and with the environment of a check that declares none.
pub(super) fn probes(workspace: &Workspace, supervisor: &Arc<Supervisor>) -> Probes {
    let environment = native::declared(std::env::vars_os(), &[], &[]);
    Probes::new(Place { folder: workspace.root.clone(), environment, supervisor: Arc::clone(supervisor) })
}

/// The records, for commands that only look. None where there are none yet.
pub(super) fn state_to_read(folder: &Path) -> Result<Option<State>, CliError> {
    Ok(State::look(&state_place(folder)?)?)
}

/// The records below a state folder, to look at. None where there are none yet.
pub(super) fn records<'n>(state: Option<&State>, waiting: &'n dyn Fn()) -> Result<Option<Store<'n>>, CliError> {
    Ok(state.map(|state| Store::read(state, waiting)).transpose()?.flatten())
}

/// Where records are or would be. The configuration is not needed, only its place.
pub(super) fn state_place(folder: &Path) -> Result<PathBuf, CliError> {
    // From where `verify` starts: a submodule's own repository keeps no records of the project around it.
    let project = project_folder(folder);
    if let Some(repository) = Repository::discover(project, &Patience::default())? {
        return Ok(repository.common.join("probity"));
    }
    let kept = |above: &&Path| above.join(".probity").is_dir() || above.join("probity.toml").is_file();
    let root = folder.ancestors().find(kept).unwrap_or(folder);
    Ok(root.join(".probity"))
}

/// The nearest folder with a configuration; this one where there is none.
fn project_folder(folder: &Path) -> &Path {
    folder.ancestors().find(|above| above.join("probity.toml").is_file()).unwrap_or(folder)
}

/// Where the state folder of a workspace is or would be.
pub(super) fn state_folder(workspace: &Workspace) -> PathBuf {
    store::state_path(&workspace.root, workspace.repository.as_ref().map(|repository| repository.common.as_path()))
}

/// The path of the tree that a run here would be about, as records have it.
pub(super) fn tree_place(folder: &Path) -> Result<String, CliError> {
    let root = project_folder(folder)
        .canonicalize()
        .map_err(|error| CliError::trouble(format!("the folder of the tree cannot be looked at: {error}")))?;
    Ok(root.to_string_lossy().into_owned())
}

/// What is kept of a workspace's tree between runs. None where nothing can be.
pub(super) fn memory(workspace: &Workspace) -> Option<TreeMemory> {
    TreeMemory::new(state_folder(workspace), &workspace.root, &system::key()?).ok()
}

/// A message of two parts: what is wrong, and what to do where it says so.
pub(super) fn without_help(message: &str) -> (&str, Option<&str>) {
    message.split_once("\nhelp: ").map_or((message, None), |(title, help)| (title, Some(help)))
}

/// The workspace of a project.
pub(super) fn workspace(project: &Project, patience: &Patience) -> Result<Workspace, CliError> {
    let workspace = Workspace::of(&project.root, patience)?;
    let Some(globs) = project.config.exclude.clone() else { return Ok(workspace) };
    // Who judges is part of what is verified: left out, it would pass for what the commit has.
    let components = project.config.packs.values().filter_map(|pack| match &pack.source {
        PackSource::File(path) => Some(path.clone()),
        PackSource::Path(_) => None,
    });
    let kept: BTreeSet<String> = components.chain([config::CONFIG_NAME.to_owned()]).collect();
    Ok(workspace.excluding(move |path| !kept.contains(path) && globs.matches(path)))
}

/// The values that nobody is to see: of each variable that is marked anywhere, whether or not what marks it runs.
pub(super) fn secrets(config: &Config) -> Secrets {
    let values: Vec<(&str, OsString)> =
        config.marked.iter().filter_map(|name| Some((name.as_str(), std::env::var_os(name)?))).collect();
    Secrets::new(values.iter().map(|(name, value)| (*name, value.as_bytes())))
}
