//! The only door to git.
//!
//! A repository's own configuration can name programs for git to run (fsmonitor, hooks, filters, ssh
//! commands), and an ordinary folder of a clone can pose as a repository. So there is one wrapper with a
//! closed list of subcommands that were shown to run nothing, called with a scrubbed environment at the
//! resolved top of the working tree, with a time limit.

mod batch;

pub(super) use batch::Batch;

use super::conversion::ATTRIBUTES;
use super::history;
use super::id::ObjectId;
use super::patience::Patience;
use crate::system::clock;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// No call takes longer on a healthy repository; a hung file system must not hang the run.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// What lists names.
const LIST: &str = "ls-files";

/// How often it is asked whether anybody still waits.
const SLICE: Duration = Duration::from_millis(100);

/// Settings that win over whatever the repository says.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "core.quotePath=false",
    // Said to us, not to a person: a name of two things is told from the rest by it.
    "core.warnAmbiguousRefs=true",
    // What it says of commits and their parents is checked by nobody.
    "core.commitGraph=false",
    "core.untrackedCache=false",
    // A repository that says otherwise hides `readme` behind a tracked `README`. Where the file system itself takes both
    // for one, git has to know.
    #[cfg(not(target_os = "macos"))]
    "core.ignoreCase=false",
];

/// What can go wrong between us and git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is a repository, and no program to read it.
    #[error(
        "cannot start `git`, which is needed to read this repository: {0}\nhelp: install git, or verify a copy of the folder without its `.git`"
    )]
    Missing(#[source] io::Error),
    /// What is called `.git` is no repository, or is one of another folder: git would tell about the wrong files.
    #[error(
        "git does not take {folder} for the top of a working tree, though there is a `.git` in it: {why}\nhelp: repair it, or remove it if it is not meant to be there"
    )]
    NotTop {
        /// The folder with the `.git`.
        folder: String,
        /// What git says instead.
        why: String,
    },
    /// Git refuses since somebody else owns the folder.
    #[error(
        "git does not trust the repository at {0}, since another user owns it\nhelp: run `git config --global --add safe.directory {0}` if you do"
    )]
    NotTrusted(String),
    /// There is a repository without a working tree.
    #[error("{0} is a repository without a working tree\nhelp: run probity in a checkout of it")]
    Bare(String),
    /// Git said no.
    #[error("git {command} failed: {message}")]
    Failed {
        /// The subcommand.
        command: &'static str,
        /// Its last words.
        message: String,
    },
    /// An object is not there: a shallow or partial clone has not all of them.
    #[error("git has no object {0}\nhelp: fetch what is missing: this clone has not all objects")]
    NoObject(String),
    /// More than one thing has this name.
    #[error(
        "`{0}` names more than one thing in this repository\nhelp: write it in full, as `refs/heads/…`, `refs/remotes/…` or `refs/tags/…`"
    )]
    Ambiguous(String),
    /// Whoever started us names an index that is none of this repository.
    #[error(
        "`GIT_INDEX_FILE` names `{named}`, and the index of {folder} cannot be that: {why}\nhelp: unset `GIT_INDEX_FILE`, or have it name a file of {own}, as git does for hooks of this repository"
    )]
    ForeignIndex {
        /// What the variable says.
        named: String,
        /// The top of the working tree.
        folder: String,
        /// Where its indexes are.
        own: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The index has no contents for a path: a merge is not settled.
    #[error("{0} is not merged, so the index holds nothing to verify\nhelp: settle the merge and `git add` the result")]
    Unmerged(String),
    /// An object is one that no folder could hold.
    #[error(
        "the object {id} of the repository {why}\nhelp: it was made by hand or is damaged; git itself would not check it out"
    )]
    Tree {
        /// The object.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// What git gave for an object is not that object.
    #[error("what git gives for the object {0} is not that object: the repository is damaged, or was forged")]
    NotTheObject(String),
    /// Git did not come back.
    #[error("git {command} did not end within {} seconds", TIME_LIMIT.as_secs())]
    TimedOut {
        /// The subcommand.
        command: &'static str,
    },
    /// Git answered in a way that is not documented.
    #[error("git {command} answered with something unexpected: {message}")]
    Answer {
        /// The subcommand.
        command: &'static str,
        /// What was unexpected.
        message: String,
    },
    /// Git could not be read from.
    #[error("cannot read from git: {0}")]
    Io(#[from] io::Error),
}

/// A repository with a working tree.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The top of the working tree, absolute and without links.
    pub top: PathBuf,
    /// The folder that all worktrees of the repository share, absolute.
    pub common: PathBuf,
    /// The commit that is checked out, as `sha1:…` or `sha256:…`. None before the first commit.
    pub commit: Option<String>,
    /// The top of the repository around all others that it was reached through.
    tree: PathBuf,
    pub(super) patience: Patience,
}

/// An entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// Relative to the top.
    pub path: Vec<u8>,
    /// The mode as git writes it: `100644`, `100755`, `120000`, `160000`.
    pub mode: u32,
    /// The object id. None while a merge has not settled on one.
    pub id: Option<ObjectId>,
    /// Whether a sparse checkout left it out.
    pub skipped: bool,
}

/// What the working tree holds by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// What git tracks, each path once.
    pub tracked: Vec<Indexed>,
    /// What it neither tracks nor ignores; a repository inside ends with `/`.
    pub untracked: Vec<Vec<u8>>,
    /// Folders that it could not list, so that nobody knows what is in them.
    pub unlisted: Vec<Vec<u8>>,
}

/// What git says of the names in a working tree, not read yet.
#[derive(Debug)]
pub(super) struct Names {
    /// Everything that it listed.
    pub(super) output: Vec<u8>,
    /// As in [`Listing`].
    pub(super) unlisted: Vec<Vec<u8>>,
}

impl Names {
    /// Reads it.
    pub(super) fn listing(self) -> Result<Listing, GitError> {
        let listing = parse_listing(&self.output).map_err(|message| GitError::Answer { command: LIST, message })?;
        Ok(Listing { unlisted: self.unlisted, ..listing })
    }
}

/// What the configuration says of how files of the working tree are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether `core.autocrlf` is `true` or `input`.
    pub autocrlf: bool,
    /// Whether the executable bit of the file system means anything.
    pub file_mode: bool,
    /// Whether anything is said to run for Git LFS; where nothing is, git keeps its files as they are.
    pub lfs: bool,
}

/// An entry of a commit's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Relative to the top.
    pub path: Vec<u8>,
    /// The mode as git writes it.
    pub mode: u32,
    /// The object id.
    pub id: ObjectId,
    /// Bytes of its contents, as git says. None for a submodule, and where that was not asked for.
    pub size: Option<u64>,
}

impl Repository {
    /// The repository that `folder` belongs to. None where neither it nor a folder above it has a `.git`.
    pub fn discover(folder: &Path, patience: &Patience) -> Result<Option<Self>, GitError> {
        let folder = folder.canonicalize()?;
        // Without this look, "not a repository" and "not trusted" would be one answer of git.
        let marked = folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok());
        marked.map(|top| Self::at(top, top, patience)).transpose()
    }

    /// The repository whose top is `folder`, which is absolute, without links, and has a `.git`; found in `tree`.
    fn at(folder: &Path, tree: &Path, patience: &Patience) -> Result<Self, GitError> {
        let command = "rev-parse";
        let arguments =
            ["--path-format=absolute", "--show-toplevel", "--git-common-dir", "--show-object-format", "HEAD"];
        let place = Place { folder, tree, patience, index: None };
        let answer = call(place, command, &arguments)?;
        let not_top = |why: String| GitError::NotTop { folder: folder.display().to_string(), why };
        // Where the `.git` here is none, git goes on above; and `core.worktree` can name any folder. Either way it would
        // tell about other files than those that lie here. (The names may hold line ends, so they are not split at.)
        let Some(rest) = answer.stdout.strip_prefix(folder.as_os_str().as_bytes()).and_then(|r| r.strip_prefix(b"\n"))
        else {
            let first = answer.stdout.split(|byte| *byte == b'\n').next().filter(|line| line.starts_with(b"/"));
            return Err(match first {
                Some(top) => not_top(format!("it names {}", String::from_utf8_lossy(top))),
                None => refusal(folder, command, &answer),
            });
        };
        // From the end: before the first commit git prints the last word back and fails.
        let mut lines = rest.strip_suffix(b"\n").unwrap_or(rest).rsplitn(3, |byte| *byte == b'\n');
        let (Some(head), Some(format), Some(common)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(refusal(folder, command, &answer));
        };
        let commit = match (answer.success, head) {
            (true, id) => Some(format!("{}:{}", String::from_utf8_lossy(format), String::from_utf8_lossy(id))),
            (false, b"HEAD") => None,
            (false, _) => return Err(refusal(folder, command, &answer)),
        };
        Ok(Self {
            top: folder.to_owned(),
            common: path(common),
            commit,
            tree: tree.to_owned(),
            patience: patience.clone(),
        })
    }

    /// The repository in `folder` of this one's working tree. None where none lies there, or where a link stands in the
    /// way: what is behind a link is not part of the tree.
    pub fn inner(&self, folder: &[u8]) -> Result<Option<Self>, GitError> {
        let folder = self.top.join(OsStr::from_bytes(folder));
        let here = folder.canonicalize().is_ok_and(|real| real == folder);
        let marked = here && folder.join(".git").symlink_metadata().is_ok();
        marked.then(|| Self::at(&folder, &self.tree, &self.patience)).transpose()
    }

    fn place(&self) -> Place<'_> {
        Place { folder: &self.top, tree: &self.tree, patience: &self.patience, index: None }
    }

    /// The index that `named`, the value of `GIT_INDEX_FILE`, stands for: `git commit -a` and `git commit PATH` make one
    /// of their own and commit that, and it is what a hook is asked about.
    ///
    /// It has to lie right in the folder that git keeps for this working tree. Anything else would be the index of
    /// another repository, or a file that somebody else made up.
    pub fn named_index(&self, named: &OsStr) -> Result<PathBuf, GitError> {
        let command = "rev-parse";
        let answer = call(self.place(), command, &["--absolute-git-dir"])?;
        let own = answer.stdout.strip_suffix(b"\n").filter(|_| answer.success);
        let own = path(own.ok_or_else(|| refusal(&self.top, command, &answer))?).canonicalize()?;
        // Git is at the top when it reads a relative name.
        let index = self.top.join(named);
        let parent = index.parent().and_then(|parent| parent.canonicalize().ok());
        let (Some(parent), Some(name)) = (parent, index.file_name()) else {
            return Err(self.foreign_index(named, &own, "there is no such folder"));
        };
        if parent != own {
            return Err(self.foreign_index(
                named,
                &own,
                "it is not in the folder that git keeps for this working tree",
            ));
        }
        let index = own.join(name);
        match index.symlink_metadata() {
            Ok(found) if found.is_file() => Ok(index),
            Ok(_) => Err(self.foreign_index(named, &own, "it is no regular file")),
            Err(_) => Err(self.foreign_index(named, &own, "there is no such file")),
        }
    }

    fn foreign_index(&self, named: &OsStr, own: &Path, why: &'static str) -> GitError {
        let shown = |path: &Path| path.to_string_lossy().escape_debug().to_string();
        GitError::ForeignIndex { named: shown(Path::new(named)), folder: shown(&self.top), own: shown(own), why }
    }

    /// What an index holds: the one of the working tree, or the one of this name.
    pub(super) fn indexed(&self, index: Option<&Path>) -> Result<Vec<Indexed>, GitError> {
        let answer = self.ls_files(index, &["-z", "-s", "-v", "-c"])?;
        Ok(Names { output: answer.stdout, unlisted: Vec::new() }.listing()?.tracked)
    }

    /// The paths of an index that are only meant to be added (`git add -N`): it has an entry for each, and a commit of it
    /// has none. No other way to tell them from empty files looks at nothing but the index.
    pub(super) fn intended(&self, index: Option<&Path>) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let answer = self.ls_files(index, &["-z", "-c", "--debug"])?;
        parse_intended(&answer.stdout).map_err(|message| GitError::Answer { command: LIST, message })
    }

    /// What git tracks in the working tree, and what it neither tracks nor ignores.
    pub fn list(&self) -> Result<Listing, GitError> {
        self.names()?.listing()
    }

    /// The same, as git says it.
    pub(super) fn names(&self) -> Result<Names, GitError> {
        let answer = self.ls_files(None, &["-z", "-s", "-v", "-c", "-o", "--exclude-standard"])?;
        Ok(Names { unlisted: unlisted(&answer.stderr), output: answer.stdout })
    }

    fn ls_files(&self, index: Option<&Path>, arguments: &[&str]) -> Result<Answer, GitError> {
        let answer = call(Place { index, ..self.place() }, LIST, arguments)?;
        if answer.success { Ok(answer) } else { Err(refusal(&self.top, LIST, &answer)) }
    }

    /// The sizes of objects, by their ids; git does not check them against the objects. None for what this clone has not.
    pub(super) fn sizes(&self, ids: &[ObjectId]) -> Result<Vec<Option<u64>>, GitError> {
        let command = "cat-file";
        let input: Vec<String> = ids.iter().map(|id| format!("{id}\n")).collect();
        let arguments = ["--batch-check=%(objectname) %(objectsize)"];
        let answer = call_with(self.place(), command, &arguments, input.concat().as_bytes())?;
        if !answer.success {
            return Err(refusal(&self.top, command, &answer));
        }
        let text = String::from_utf8_lossy(&answer.stdout);
        let mut lines = text.lines();
        let size = |id: &ObjectId| match lines
            .next()
            .and_then(|line| line.strip_prefix(&id.to_string())?.strip_prefix(' '))
        {
            Some("missing") => Ok(None),
            Some(size) => size.parse().map(Some).map_err(|_| GitError::Answer { command, message: size.to_owned() }),
            None => Err(GitError::Answer { command, message: id.to_string() }),
        };
        ids.iter().map(size).collect()
    }

    /// The commit that a revision names, as `sha1:…` or `sha256:…`. None where it names none. A name that is one of two
    /// things is refused: git would take the tag, and whoever can push a tag would say what a branch is.
    pub fn resolve(&self, revision: &str) -> Result<Option<String>, GitError> {
        let (command, named) = ("rev-parse", format!("{revision}^{{commit}}"));
        let answer = call(self.place(), command, &["--verify", "--end-of-options", &named])?;
        if answer.stderr.contains("' is ambiguous") {
            return Err(GitError::Ambiguous(revision.to_owned()));
        }
        let id = answer.stdout.strip_suffix(b"\n").and_then(ObjectId::parse);
        match id.filter(|_| answer.success) {
            Some(id) => Ok(Some(id.named())),
            // It fails where there is none, in words of many kinds.
            None => match refusal(&self.top, command, &answer) {
                GitError::Failed { .. } => Ok(None),
                other => Err(other),
            },
        }
    }

    /// The branch that is checked out, by its short name. None where none is, and before the first commit.
    pub fn branch(&self) -> Result<Option<String>, GitError> {
        let command = "rev-parse";
        let answer = call(self.place(), command, &["--symbolic-full-name", "HEAD"])?;
        let name = answer.stdout.strip_suffix(b"\n").filter(|_| answer.success);
        let name = name.and_then(|name| std::str::from_utf8(name).ok()?.strip_prefix("refs/heads/"));
        Ok(name.map(str::to_owned))
    }

    /// The best common ancestor of two commits. None where there is none.
    pub fn merge_base(&self, one: ObjectId, other: ObjectId) -> Result<Option<ObjectId>, GitError> {
        history::meeting(self, one, other)
    }

    /// A reader of objects.
    pub(super) fn batch(&self) -> Result<Batch, GitError> {
        Batch::start(prepared(self.place(), "cat-file", &["--batch"])?, &self.patience)
    }

    /// What the configuration says of how files are kept. It is read like any other, and nothing that it names is run:
    /// `config` has no use for hooks, and starts a pager for a terminal only.
    pub fn settings(&self) -> Result<Settings, GitError> {
        let command = "config";
        let keys = r"^(core\.(autocrlf|filemode)|filter\.lfs\.(clean|process))$";
        let answer = call(self.place(), command, &["-z", "--get-regexp", keys])?;
        // It fails without a word where nothing is set.
        if !answer.success && !answer.stderr.is_empty() {
            return Err(refusal(&self.top, command, &answer));
        }
        Ok(parse_settings(&answer.stdout))
    }

    /// The values of the attributes that say how contents are converted, for each of these paths, in the order of
    /// [`ATTRIBUTES`]. Files with attributes are read, and nothing that an attribute names is run.
    pub(super) fn attributes(&self, paths: &[&[u8]]) -> Result<Vec<[Vec<u8>; ATTRIBUTES.len()]>, GitError> {
        let command = "check-attr";
        let arguments: Vec<&str> = ["-z", "--stdin"].into_iter().chain(ATTRIBUTES).collect();
        let input = paths.iter().flat_map(|path| [path, &b"\0"[..]]).collect::<Vec<_>>().concat();
        let answer = call_with(self.place(), command, &arguments, &input)?;
        if !answer.success {
            return Err(refusal(&self.top, command, &answer));
        }
        parse_attributes(&answer.stdout, paths).map_err(|message| GitError::Answer { command, message })
    }

    /// Which of these paths, relative to the top, would be ignored; those of folders end with a slash. They need not be
    /// there. Files with patterns are read, and nothing is run.
    pub(super) fn ignored(&self, paths: &[Vec<u8>]) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let command = "check-ignore";
        let input = paths.iter().flat_map(|path| [path.as_slice(), b"\0"]).collect::<Vec<_>>().concat();
        let answer = call_with(self.place(), command, &["-z", "--stdin"], &input)?;
        // It says so in this way too where none is.
        if !answer.success && !answer.stderr.is_empty() {
            return Err(refusal(&self.top, command, &answer));
        }
        Ok(answer.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }
}

/// The program that is used for repositories around `folder`, and what it says is its version.
pub fn version(folder: &Path) -> Result<(PathBuf, String), GitError> {
    let command = "version";
    let found = program(&search_path(folder))?;
    let place = Place { folder, tree: folder, patience: &Patience::default(), index: None };
    let answer = call(place, command, &[])?;
    if !answer.success {
        return Err(refusal(folder, command, &answer));
    }
    let text = String::from_utf8_lossy(&answer.stdout);
    Ok((found, text.trim().trim_start_matches("git version ").to_owned()))
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Where git is called.
#[derive(Clone, Copy)]
struct Place<'a> {
    folder: &'a Path,
    /// The outermost tree that holds the folder: no program is taken from it.
    tree: &'a Path,
    patience: &'a Patience,
    /// The index, where it is not the one of the working tree.
    index: Option<&'a Path>,
}

struct Answer {
    success: bool,
    stdout: Vec<u8>,
    stderr: String,
}

fn refusal(folder: &Path, command: &'static str, answer: &Answer) -> GitError {
    if answer.stderr.contains("dubious ownership") {
        GitError::NotTrusted(folder.display().to_string())
    } else if answer.stderr.contains("not a git repository") || answer.stderr.contains("invalid gitfile format") {
        GitError::NotTop { folder: folder.display().to_string(), why: "it is not a repository".to_owned() }
    } else if answer.stderr.contains("must be run in a work tree") || answer.stderr.contains("safe.bareRepository") {
        GitError::Bare(folder.display().to_string())
    } else {
        let message = answer.stderr.trim().trim_start_matches("fatal: ").to_owned();
        GitError::Failed { command, message }
    }
}

/// The folders of `PATH`, less those that depend on where a program is called and those in the tree: `git` is called in
/// the tree, and an empty or relative entry would find a file of that name there.
fn search_path(tree: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A repository inside is part of a larger tree, and a link may lead into it.
    let tree = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
    let outermost = tree.ancestors().filter(|above| above.join(".git").symlink_metadata().is_ok()).last();
    let outermost = outermost.unwrap_or(&tree);
    let outside = |entry: PathBuf| {
        let place = entry.canonicalize().ok()?;
        (entry.is_absolute() && !place.starts_with(outermost)).then_some(place)
    };
    std::env::split_paths(&path).filter_map(outside).collect()
}

fn program(path: &[PathBuf]) -> Result<PathBuf, GitError> {
    let executable = |file: &PathBuf| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file();
    let found = path.iter().map(|folder| folder.join("git")).find(executable);
    found.ok_or_else(|| GitError::Missing(io::Error::new(io::ErrorKind::NotFound, "it is not in PATH")))
}

/// Git, with everything that keeps it from running anything, about to be started in `folder`.
fn prepared(place: Place<'_>, command: &'static str, arguments: &[&str]) -> Result<Command, GitError> {
    let search = search_path(place.tree);
    let mut git = Command::new(program(&search)?);
    // Only what git needs to find its own programs and the user's trust settings: whoever started us may be a
    // hook of another repository, and its GIT_DIR would point there.
    git.env_clear();
    // Who used sudo is trusted with what is theirs, as git has it.
    for name in ["HOME", "XDG_CONFIG_HOME", "SUDO_UID"] {
        if let Some(value) = std::env::var_os(name) {
            git.env(name, value);
        }
    }
    // Every entry was split off a PATH, so none can hold what parts them.
    git.env("PATH", std::env::join_paths(search).unwrap_or_default());
    git.env("LC_ALL", "C")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        // An older git does not know that and fetches all the same, and the repository's `protocol.ssh.allow` would win
        // over our `protocol.allow`; nothing wins over this, which allows a protocol that does not exist.
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        // No such file: parents are those that commits name.
        .env("GIT_GRAFT_FILE", "/dev/null/grafts")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_PAGER", "cat");
    if let Some(index) = place.index {
        git.env("GIT_INDEX_FILE", index);
    }
    for setting in SETTINGS {
        git.arg("-c").arg(setting);
    }
    git.arg(command).args(arguments).current_dir(place.folder);
    Ok(git)
}

fn call(place: Place<'_>, command: &'static str, arguments: &[&str]) -> Result<Answer, GitError> {
    call_with(place, command, arguments, b"")
}

fn call_with(place: Place<'_>, command: &'static str, arguments: &[&str], input: &[u8]) -> Result<Answer, GitError> {
    let mut git = prepared(place, command, arguments)?;
    git.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = git.spawn().map_err(GitError::Missing)?;
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(GitError::Io(io::Error::other("git has no output")));
    };
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        // Git answers while it reads, so whoever wrote all of it first could wait for ever. One that ends early tells why
        // by its status.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        let (sender, done) = std::sync::mpsc::channel();
        let errors = scope.spawn(move || {
            let mut text = Vec::new();
            // What git says beyond this is not shown to anyone.
            let _ = stderr.by_ref().take(64 << 10).read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let output = scope.spawn(move || {
            let mut bytes = Vec::new();
            let result = stdout.read_to_end(&mut bytes);
            let _ = sender.send(());
            result.map(|_| bytes)
        });
        let (started, began) = (Instant::now(), clock::now());
        let (mut late, mut over) = (false, Ok(()));
        // A reader that went is one that has ended.
        while !late && over.is_ok() && done.recv_timeout(SLICE) == Err(RecvTimeoutError::Timeout) {
            (late, over) = (clock::now() - began >= TIME_LIMIT, place.patience.check());
        }
        if late || over.is_err() {
            let _ = child.kill();
        }
        let status = child.wait()?;
        tracing::debug!(command, ?arguments, elapsed = ?started.elapsed(), %status, "git");
        over?;
        if late {
            return Err(GitError::TimedOut { command });
        }
        let died = |_| GitError::Io(io::Error::other("a reader thread died"));
        let stdout = output.join().map_err(died)??;
        let stderr = errors.join().map_err(died)?;
        Ok(Answer { success: status.success(), stdout, stderr })
    })
}

fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

fn shown(record: &[u8]) -> String {
    String::from_utf8_lossy(&record[..record.len().min(80)]).into_owned()
}

/// `ls-files -z -s -v -c -o`: `TAG SP MODE SP ID SP STAGE TAB PATH` for what is tracked, `? PATH` for what is not.
pub(super) fn parse_listing(output: &[u8]) -> Result<Listing, String> {
    let mut listing = Listing::default();
    for record in records(output) {
        let bad = || shown(record);
        let (tag, rest) = record.split_at_checked(2).ok_or_else(bad)?;
        if tag == b"? " {
            listing.untracked.push(rest.to_vec());
            continue;
        }
        let (head, path) = split_tab(rest).ok_or_else(bad)?;
        let mut head = head.split(|byte| *byte == b' ');
        let (mode, id, stage) = (head.next().and_then(octal).ok_or_else(bad)?, head.next(), head.next());
        let id = id.and_then(ObjectId::parse).ok_or_else(bad)?;
        let id = (stage == Some(b"0")).then_some(id);
        // An unmerged path is there once for each side; the working tree has one file.
        if listing.tracked.last().is_some_and(|last: &Indexed| last.path == path) {
            continue;
        }
        let skipped = tag[0].eq_ignore_ascii_case(&b'S');
        listing.tracked.push(Indexed { path: path.to_vec(), mode, id, skipped });
    }
    Ok(listing)
}

/// What `ls-files --debug` shows of an entry, behind its path: so many lines.
const DEBUG_LINES: usize = 5;

/// The flag of an entry that is only meant to be added.
const INTENT_TO_ADD: u32 = 1 << 29;

/// `ls-files -z -c --debug`: `PATH NUL`, then lines about it, of which the last ends with `flags: HEX`.
fn parse_intended(output: &[u8]) -> Result<BTreeSet<Vec<u8>>, String> {
    let (mut rest, mut intended) = (output, BTreeSet::new());
    while !rest.is_empty() {
        let bad = || shown(rest);
        let (path, about) = rest.split_at(rest.iter().position(|byte| *byte == 0).ok_or_else(bad)?);
        let mut lines = about[1..].splitn(DEBUG_LINES + 1, |byte| *byte == b'\n');
        let last = lines.by_ref().take(DEBUG_LINES).last().ok_or_else(bad)?;
        let flags = std::str::from_utf8(last).ok().and_then(|last| last.split_once("flags: "));
        let flags = flags.and_then(|(_, flags)| u32::from_str_radix(flags, 16).ok()).ok_or_else(bad)?;
        if flags & INTENT_TO_ADD != 0 {
            intended.insert(path.to_vec());
        }
        rest = lines.next().ok_or_else(bad)?;
    }
    Ok(intended)
}

/// The folders of git's warnings. It says it in no other way; a name with a line end in it is lost, and a name that poses
/// as a warning is looked at and found to be nothing of the kind.
fn unlisted(warnings: &str) -> Vec<Vec<u8>> {
    let name = |line: &str| {
        let rest = line.strip_prefix("warning: could not open directory '")?;
        Some(rest.get(..rest.rfind("/': ")?)?.as_bytes().to_vec())
    };
    warnings.lines().filter_map(name).collect::<BTreeSet<_>>().into_iter().collect()
}

/// `config -z --get-regexp`: `KEY LF VALUE`, in order of growing precedence; a key alone is `true`.
fn parse_settings(output: &[u8]) -> Settings {
    let mut settings = Settings { autocrlf: false, file_mode: true, lfs: false };
    for record in records(output) {
        let mut parts = record.splitn(2, |byte| *byte == b'\n');
        let (key, value) = (parts.next().unwrap_or_default(), parts.next());
        // As git reads a boolean; what is none stops git itself, so it matters little here.
        let on = match value.map(|value| String::from_utf8_lossy(value).to_ascii_lowercase()).as_deref() {
            None => true,
            Some("" | "false" | "no" | "off") => false,
            Some(number) => number.parse::<i64>() != Ok(0),
        };
        match key {
            b"core.autocrlf" => settings.autocrlf = on,
            b"core.filemode" => settings.file_mode = on,
            b"filter.lfs.clean" | b"filter.lfs.process" => settings.lfs |= value.is_some_and(|value| !value.is_empty()),
            _ => {}
        }
    }
    settings
}

/// `check-attr -z`: for each path, in order, and each attribute, in order, `PATH NUL ATTRIBUTE NUL VALUE NUL`.
fn parse_attributes(output: &[u8], paths: &[&[u8]]) -> Result<Vec<[Vec<u8>; ATTRIBUTES.len()]>, String> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut parsed = Vec::with_capacity(paths.len());
    for path in paths {
        let mut values: [Vec<u8>; ATTRIBUTES.len()] = Default::default();
        for (attribute, value) in ATTRIBUTES.iter().zip(&mut values) {
            match (fields.next(), fields.next(), fields.next()) {
                (Some(of), Some(name), Some(found)) if of == *path && name == attribute.as_bytes() => {
                    *value = found.to_vec();
                }
                (of, ..) => return Err(shown(of.unwrap_or_default())),
            }
        }
        parsed.push(values);
    }
    Ok(parsed)
}

fn split_tab(record: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    Some((&record[..tab], &record[tab + 1..]))
}

fn octal(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_counts() {
        let of = |text: &[u8]| {
            let Settings { autocrlf, file_mode, lfs: _ } = parse_settings(text);
            (autocrlf, file_mode)
        };
        assert_eq!(of(b""), (false, true));
        assert_eq!(of(b"core.autocrlf\ninput\0core.filemode\nfalse\0"), (true, false));
        assert_eq!(of(b"core.autocrlf\ntrue\0core.autocrlf\nfalse\0core.filemode\0"), (false, true));
        assert_eq!(of(b"core.filemode\n0\0core.autocrlf\n1\0"), (true, false));
        let lfs = |text: &[u8]| parse_settings(text).lfs;
        assert!(lfs(b"filter.lfs.process\ngit-lfs filter-process\0") && lfs(b"filter.lfs.clean\nx\0"));
        assert!(!lfs(b"filter.lfs.clean\n\0filter.lfs.process\0"));
    }

    #[test]
    fn names_may_hold_anything_but_nul() {
        let id = "ab".repeat(20);
        let line = |head: &str, path: &[u8]| [head.replace("ID", &id).as_bytes(), b"\t", path, b"\0"].concat();
        let output = [
            line("H 100644 ID 0", b"a\nb \xff"),
            line("S 100755 ID 0", b"c\td"),
            line("h 120000 ID 0", b"link"),
            b"? new\n\0? nested/\0".to_vec(),
        ];
        let listing = parse_listing(&output.concat()).unwrap();
        assert_eq!(listing.tracked[0].id, Some(ObjectId::example(0xab)));
        let tracked: Vec<_> = listing.tracked.iter().map(|e| (e.path.as_slice(), e.mode, e.skipped)).collect();
        assert_eq!(
            tracked,
            [(&b"a\nb \xff"[..], 0o100_644, false), (b"c\td", 0o100_755, true), (b"link", 0o120_000, false),]
        );
        assert_eq!(listing.untracked, [b"new\n".to_vec(), b"nested/".to_vec()]);
    }

    #[test]
    fn what_is_meant_to_be_added_shows_by_a_flag_and_nothing_else_does() {
        let entry = |path: &str, flags: &str| {
            let times = "  ctime: 0:0\n  mtime: 0:0\n  dev: 0\tino: 0\n  uid: 0\tgid: 0\n";
            format!("{path}\0{times}  size: 0\tflags: {flags}\n")
        };
        let output = [entry("a\n  flags: 20004000", "0"), entry("b", "20004000"), entry("c", "40004000")].concat();
        assert_eq!(parse_intended(output.as_bytes()), Ok([b"b".to_vec()].into()));
        assert_eq!(parse_intended(b""), Ok(BTreeSet::new()));
        for bad in ["a", "a\0", "a\0  ctime: 0:0\n", &entry("a", "x"), &entry("a", "0").replace("  uid", "\n")] {
            assert!(parse_intended(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_unmerged_path_is_one_path() {
        let of = |stage: u8| format!("M 100644 {} {stage}\tx\0", "ab".repeat(20));
        let listing = parse_listing([of(1), of(2), of(3)].concat().as_bytes()).unwrap();
        assert_eq!(
            (listing.tracked.len(), &listing.tracked[0].id),
            (1, &None),
            "and nobody says which of its contents"
        );
    }

    #[test]
    fn an_unexpected_answer_is_an_error() {
        for bad in [&b"H"[..], b"H 100644 aa 0 no tab", b"H what aa 0\tx", b"H 100644 aa 0\tx"] {
            assert!(parse_listing(bad).is_err(), "{}", shown(bad));
        }
    }
}
