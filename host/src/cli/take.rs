//! What a run is about: the configuration and the subject that has it, what it is compared with, its specification.

use super::args::Verify;
use super::error::CliError;
use super::prepare::{self, Project};
use super::printer::Printer;
use super::turn::{Entered, Turn};
use crate::config::{self, Body, Config, ConfigError, Diagnostic, Globs, Scenario, User};
use crate::model::{Digest, NamedBase};
use crate::native::Supervisor;
use crate::plan::Base;
use crate::run::Sources;
use crate::subject::git::{GitError, Repository};
use crate::subject::{
    Changes, Committed, Entry, Kind, Memory, ObjectId, Objects, Over, Patience, Snapshot, Specification, Workspace,
    kind_of_mode,
};
use crate::system::{self, clock};
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::time::Instant;

/// How often the tree is taken again when its configuration changed between reading and taking it, or while another run
/// was waited for.
const ATTEMPTS: usize = 4;

/// Files that a message names.
const NAMED: usize = 5;

/// The index that git commits, for its hooks. It is asked for only where the index is what is verified.
const INDEX_VARIABLE: &str = "GIT_INDEX_FILE";

/// A subject and the configuration that is part of it.
pub(super) struct Taken {
    pub(super) project: Project,
    pub(super) workspace: Workspace,
    /// It is needed until the process ends, which frees a large tree faster than entry by entry.
    pub(super) snapshot: ManuallyDrop<Snapshot>,
}

/// The working tree, or the revision that was asked for. It may take as long as the scenario gives the whole run.
pub(super) fn take(folder: &Path, user: &User, turn: &mut Turn<'_>) -> Result<Taken, CliError> {
    let (options, printer) = (turn.options, turn.printer);
    printer.status(Some("looking at the tree"));
    let taken =
        if options.staged || options.rev.is_some() { objects(folder, user, turn) } else { tree(folder, user, turn) };
    printer.status(None);
    taken
}

/// The time of a run: that of looking at the tree and of its checks. Packs that are built or compiled first do not count.
pub(super) struct Budget {
    pub(super) patience: Patience,
    /// When it began: RFC 3339, to measure from, and for limits.
    pub(super) started: String,
    pub(super) began: Instant,
    pub(super) clock: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self { patience: Patience::default(), started: system::now(), began: clock::now(), clock: clock::now() }
    }
}

impl Budget {
    /// It begins now: waiting for others is no part of it.
    pub(super) fn restart(&mut self) {
        self.patience.until(None);
        *self = Self { patience: self.patience.clone(), ..Self::default() };
    }

    /// The scenario that is verified is known, and with it how long that may take.
    fn know(&self, config: &Config, options: &Verify) {
        let timeout = config.scenario(&options.scenario).and_then(|scenario| scenario.timeout);
        self.patience.until(timeout.and_then(|timeout| self.clock.checked_add(timeout)));
    }

    /// What is to be said of an error that may only have come since time was up.
    pub(super) fn judge(&self, error: CliError) -> CliError {
        let over =
            |why| CliError::trouble(format!("{why} while the tree was looked at; nothing ran and nothing is recorded"));
        match self.patience.over() {
            Some(Over::Stopped) => over("interrupted"),
            Some(Over::Late) => over("the time of the whole run was used up"),
            None => error,
        }
    }
}

/// The configuration and the tree that has it: what was parsed must be what the tree holds.
fn tree(folder: &Path, user: &User, turn: &mut Turn<'_>) -> Result<Taken, CliError> {
    let (options, printer) = (turn.options, turn.printer);
    for _ in 0..ATTEMPTS {
        let project = prepare::project(folder, user, printer)?;
        turn.budget.know(&project.config, options);
        // It gets ready while git is asked where the repository is, which leaves processors idle. Where a record may answer,
        // it may not be needed at all.
        let supervisor = turn.supervisor.filter(|_| has_commands(&project.config, options));
        if options.fresh {
            supervisor.into_iter().for_each(Supervisor::start);
        }
        let workspace = prepare::workspace(&project, &turn.budget.patience)?;
        if turn.enter(&workspace)? == Entered::Late {
            // Whatever was read before may be another one by now.
            continue;
        }
        let snapshot = {
            let began = Instant::now();
            let mut remembered = false;
            let snapshot = workspace.snapshot_with(|| {
                let memory = Memory::read(&prepare::memory(&workspace)?.recall()?);
                remembered = memory.is_some();
                memory
            })?;
            tracing::debug!(remembered, elapsed = ?began.elapsed(), "tree taken");
            snapshot
        };
        if snapshot.dirty != Some(false) {
            supervisor.into_iter().for_each(Supervisor::start);
        }
        match snapshot.entry(config::CONFIG_NAME.as_bytes()) {
            Some(entry) if entry.kind == Kind::Symlink => return Err(linked(config::CONFIG_NAME)),
            Some(entry) if entry.digest != Digest::of(project.config.source.text.as_bytes()) => {}
            Some(_) => return Ok(Taken { project, workspace, snapshot: ManuallyDrop::new(snapshot) }),
            // An ignored configuration is no part of the tree, and still the one that was asked for: what it says is not
            // what the commit says.
            None => {
                let snapshot = ManuallyDrop::new(snapshot.judged_by_another(config::CONFIG_NAME));
                return Ok(Taken { project, workspace, snapshot });
            }
        }
    }
    Err(CliError::trouble("probity.toml changes faster than it can be read").hint("run probity when it is at rest"))
}

/// Whether commands are likely to run.
fn has_commands(config: &Config, options: &Verify) -> bool {
    let command = |id| config.check(id).is_some_and(|check| matches!(check.body, Body::Command(_)));
    let scenario = config.scenario(&options.scenario).filter(|_| !options.plan && options.na.is_none());
    scenario.is_some_and(|scenario| scenario.checks.iter().any(command))
}

/// A revision or the index, with the configuration that it has.
fn objects(folder: &Path, user: &User, turn: &mut Turn<'_>) -> Result<Taken, CliError> {
    let (options, printer) = (turn.options, turn.printer);
    let failed = |error: &ConfigError| CliError::config(error, printer.colour_errors());
    let name = options.rev.as_deref();
    let no_repository = || {
        let what = if name.is_some() { "--rev names a revision" } else { "--staged is about an index" };
        if prepare::is_bare(folder) {
            return CliError::usage(format!("{what}, and this is a repository without a working tree"))
                .hint(prepare::A_CLONE);
        }
        CliError::usage(format!("{what}, and there is no repository here"))
            .hint("run it in a repository, or leave it out to verify the files of this folder")
    };
    let found = config::discover(folder).map_err(|error| failed(&error))?;
    let root = match found.as_deref().and_then(Path::parent) {
        Some(root) => root.to_owned(),
        None => Repository::discover(folder, &turn.budget.patience)?.ok_or_else(no_repository)?.top,
    };
    // What a name stands for is looked up when it is this run's turn.
    let mut workspace = Workspace::of(&root, &turn.budget.patience)?;
    if workspace.repository.is_some() && turn.enter(&workspace)? == Entered::Late {
        workspace = Workspace::of(&root, &turn.budget.patience)?;
    }
    let repository = workspace.repository.as_ref().ok_or_else(no_repository)?;
    let revision = match name {
        Some(name) => workspace
            .revision(&commit(repository, name)?.ok_or_else(|| CliError::usage(no_commit(name)).hint(NO_COMMIT))?)?,
        None => workspace.staged(std::env::var_os(INDEX_VARIABLE).filter(|named| !named.is_empty()).as_deref())?,
    };
    let revision = revision.ok_or_else(no_repository)?;
    for path in revision.intended.iter().take(NAMED) {
        let path = String::from_utf8_lossy(path).escape_debug().to_string();
        printer.note(&format!("note: {path} is only meant to be added, so a commit of the index would not have it"));
    }
    if let Some(more) = revision.intended.len().checked_sub(NAMED).filter(|more| *more > 0) {
        printer.note(&format!("note: so are {more} more"));
    }
    let shown = format!("{}:{}", name.unwrap_or_default(), config::CONFIG_NAME);
    let Some(entry) = revision.entry(config::CONFIG_NAME.as_bytes()) else {
        let title = format!("{} has no {} in this folder", name.unwrap_or("the index"), config::CONFIG_NAME);
        return Err(CliError::usage(title).hint("what is verified is verified by the configuration that it has"));
    };
    if kind_of_mode(entry.mode) == Kind::Symlink {
        return Err(linked(&shown));
    }
    let bytes = Objects::new(repository).blob(entry.id)?;
    let config = config::parse(&shown, &bytes, user).map_err(|error| failed(&error))?;
    turn.budget.know(&config, options);
    let snapshot = ManuallyDrop::new(workspace.snapshot_of(&revision)?);
    Ok(Taken { project: Project { root, config }, workspace, snapshot })
}

fn linked(name: &str) -> CliError {
    CliError::usage(format!("{name} is a link, which is no part of the tree that it leads to"))
        .hint("put the file itself there, or go to the folder that it leads to")
}

const NO_COMMIT: &str = "name a branch, a tag or a commit that is there; a shallow clone may have to fetch it";

fn no_commit(name: &str) -> String {
    format!("`{}` names no commit of this repository", name.escape_debug())
}

/// The commit that somebody named. None where it is none.
fn commit(repository: &Repository, name: &str) -> Result<Option<String>, GitError> {
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_control) {
        return Ok(None);
    }
    repository.resolve(name)
}

impl Taken {
    /// The contents of a regular file of a revision, as the revision has it. None where it has none.
    pub(super) fn held(&self, path: &str) -> Result<Option<Vec<u8>>, CliError> {
        let entry = self.snapshot.entry(path.as_bytes());
        let blob = entry.filter(|entry| matches!(entry.kind, Kind::File | Kind::Executable));
        let (Some(blob), Some(repository)) = (blob.and_then(|entry| entry.blob), &self.workspace.repository) else {
            return Ok(None);
        };
        Ok(Some(Objects::new(repository).blob(blob)?))
    }

    /// The branch that is checked out. None of a revision, and where none is.
    pub(super) fn branch(&self) -> Result<Option<String>, CliError> {
        let conditions = self.project.config.checks.iter().any(|check| check.when.branches.is_some());
        match &self.workspace.repository {
            Some(repository) if conditions && !self.snapshot.revision => Ok(repository.branch()?),
            _ => Ok(None),
        }
    }

    /// What the subject is compared with: the best common ancestor of its commit and of what was named.
    pub(super) fn base(
        &self,
        scenario: &Scenario,
        options: &Verify,
        printer: &Printer,
    ) -> Result<Option<Base>, CliError> {
        let Some(name) = options.base.as_ref().or(scenario.base.as_ref()) else { return Ok(None) };
        // Whoever named it has to name another one: the command line, or a line of the configuration.
        let told = |title: &str, help: &str| match (&options.base, &scenario.base_span) {
            (None, Some(span)) => {
                let mistake = Diagnostic::new(span.clone(), title).label("the base of this scenario").help(help);
                CliError::config(&self.project.config.invalid(vec![mistake]), printer.colour_errors())
            }
            _ => CliError::usage(format!("`--base`: {title}")).hint(help),
        };
        let Some(repository) = &self.workspace.repository else {
            return Err(told(
                &format!("there is a base, `{}`, and no repository here", name.escape_debug()),
                "verify a clone, or remove the base",
            ));
        };
        let named = commit(repository, name).map_err(|error| match prepare::without_help(&error.to_string()) {
            (title, Some(help)) => told(title, help),
            (_, None) => error.into(),
        })?;
        let named = named.ok_or_else(|| told(&no_commit(name), NO_COMMIT))?;
        let no_base = || {
            let title = format!("`{}` and what is verified have no commit in common", name.escape_debug());
            told(&title, "name another base; a shallow clone may have to fetch its history")
        };
        let own = self.snapshot.commit.as_deref().and_then(ObjectId::of_commit).ok_or_else(no_base)?;
        let id = ObjectId::of_commit(&named).ok_or_else(no_base)?;
        let base = repository.merge_base(own, id)?.ok_or_else(no_base)?.named();
        let Some(revision) = self.workspace.revision(&base)? else { return Ok(None) };
        let trouble = |error: std::io::Error| CliError::trouble(format!("cannot read the tree: {error}"));
        let sources = Sources::new(&self.snapshot, &self.workspace.root, Some(repository)).map_err(trouble)?;
        let changes = Changes::between(&revision, &self.snapshot, |entry| {
            // Only files of the size of another one are asked for, and what cannot be read is no unchanged file.
            sources.read(entry, 0, usize::try_from(entry.size).ok()?).ok()
        });
        Ok(Some(Base { named: NamedBase { name: name.clone(), commit: named }, revision, changes }))
    }

    /// The specification as it was committed. Refused while it is another one in the tree.
    pub(super) fn spec(&self) -> Result<Option<Specification>, CliError> {
        let Config { spec: Some(spec), .. } = &self.project.config else { return Ok(None) };
        let Some(commit) = self.snapshot.commit.as_deref() else {
            return Err(CliError::usage("there is a specification, and no commit that it could be in")
                .hint("commit it, or remove `[spec]`"));
        };
        let Some(revision) = self.workspace.revision(commit)? else { return Ok(None) };
        let committed = revision.named(|path| spec.paths.matches(path));
        let mut differing: BTreeSet<&[u8]> = BTreeSet::new();
        for entry in &committed {
            let same = |here: &Entry| {
                // A link to the very contents is another thing, and so is a file that became executable.
                let alike = here.kind == kind_of_mode(entry.mode) || here.kind == Kind::LeftOut;
                // Of a submodule nobody has the contents here.
                alike && entry.mode != 0o160_000 && here.git_id(entry.id) == Some(entry.id)
            };
            if !self.snapshot.entry(&entry.path).is_some_and(same) {
                differing.insert(&entry.path);
            }
        }
        for entry in self.snapshot.entries.iter().filter(|entry| spec.paths.matches(&entry.path)) {
            if committed.binary_search_by(|one| one.path.cmp(&entry.path)).is_err() {
                differing.insert(&entry.path);
            }
        }
        if differing.is_empty() {
            // A name that was mistyped would otherwise leave a part of it out.
            for pattern in spec.paths.patterns().iter().filter(|pattern| !pattern.starts_with('!')) {
                let globs = Globs::new(&[pattern]);
                let named = |entry: &Committed| globs.as_ref().is_ok_and(|globs| globs.matches(&entry.path));
                if !committed.iter().any(named) {
                    let pattern = config::quote(pattern);
                    return Err(CliError::usage(format!(
                        "no committed file of the specification is named by {pattern}"
                    ))
                    .hint("correct `paths` of `[spec]`, or commit what it names"));
                }
            }
            let below = |folder: &[u8]| spec.paths.may_match_below(folder);
            let version = self.workspace.spec_version(commit, |path| spec.paths.matches(path), below)?;
            return Ok(version.map(|version| Specification::new(committed, version)));
        }
        let names: Vec<String> =
            differing.iter().take(NAMED).map(|path| String::from_utf8_lossy(path).escape_debug().to_string()).collect();
        let more = differing.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Err(CliError::usage(format!("the specification is not as it was committed: {}{more}", names.join(", ")))
            .hint("commit it first: a verdict is about a specification that others can look up"))
    }
}
