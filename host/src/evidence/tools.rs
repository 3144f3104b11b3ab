//! What the answer of a command rests on beside the subject and its environment: its program, what its fingerprints say,
//! and the ignored files that it says it needs.
//!
//! Must not: follow a link of the tree, or take what could not be found out for something that is the same everywhere.

use super::identity::{CommandFacts, Facts, Identity};
use crate::config::{Evident, Globs};
use crate::model::{CheckId, Context, Digest, Encoder, Withheld};
use crate::native::{Cut, Environment, MAX_SAID, Place, Supervisor, find_program, said};
use crate::plan::{Plan, Work};
use crate::store::FileMemory;
use crate::subject::{Kind, Snapshot};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a command of `fingerprint` may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long ago a file must have been changed last for its digest to be remembered: what is written again within one tick
/// of the file system's clock leaves no trace.
const SETTLED: Duration = Duration::from_secs(3);

/// What finds out about tools.
pub struct Tools<'a> {
    /// The subject, which is part of the identity by itself.
    pub snapshot: &'a Snapshot,
    /// The folder that it lies in, where commands run.
    pub root: &'a Path,
    /// The digests of files that were not touched since. None where they are read anew.
    pub memory: Option<&'a FileMemory>,
}

/// What runs the commands of `fingerprint`.
#[derive(Clone, Copy)]
pub struct Fingerprints<'a> {
    /// What watches over them.
    pub supervisor: &'a Arc<Supervisor>,
    /// What ends them before their time.
    pub cut: Cut<'a>,
}

/// What was found out.
pub struct Found {
    /// The identity.
    pub identity: Identity,
    /// Of which checks it is not known what they rest on: then the identity is no reason to serve anything.
    pub missing: Vec<Withheld>,
}

impl Tools<'_> {
    /// The identity of a plan. Fingerprints are run for it, and nothing else is.
    pub fn identity(&self, plan: &Plan, facts: Facts<'_>, fingerprints: Fingerprints<'_>) -> Found {
        let mut hashes = Hashes::new(self.memory);
        let mut heard: Vec<(&[String], &Environment, Result<Digest, String>)> = Vec::new();
        let found = self.found(plan, facts, &mut hashes, |_, environment, evident| {
            for argv in &evident.fingerprint {
                if !heard.iter().any(|(other, around, _)| *other == argv && *around == environment) {
                    heard.push((argv, environment, self.fingerprint(argv, environment, fingerprints)));
                }
            }
            let of = |argv: &Vec<String>| {
                let one = heard.iter().find(|(other, around, _)| *other == argv && *around == environment);
                one.map(|(_, _, said)| said.clone())
            };
            evident.fingerprint.iter().filter_map(of).collect()
        });
        hashes.keep();
        found
    }

    /// The identity as far as it is known without running anything: what fingerprints said is taken from another one.
    pub fn identity_at_rest(&self, plan: &Plan, facts: Facts<'_>, before: &Identity) -> Identity {
        let then: BTreeMap<&CheckId, _> =
            before.checks.iter().filter_map(|check| Some((&check.row.id, check.command.as_ref()?))).collect();
        let said = |id: &CheckId| then.get(id).map(|then| then.fingerprints.clone()).unwrap_or_default();
        let mut hashes = Hashes::new(self.memory);
        self.found(plan, facts, &mut hashes, |id, _, _| said(id).into_iter().map(Ok).collect()).identity
    }

    /// The identity with what fingerprints `said` of each command.
    fn found<'p>(
        &self,
        plan: &'p Plan,
        facts: Facts<'_>,
        hashes: &mut Hashes<'_>,
        mut said: impl FnMut(&'p CheckId, &'p Environment, &'p Evident) -> Vec<Result<Digest, String>>,
    ) -> Found {
        let (mut tools, mut missing) = (BTreeMap::new(), Vec::new());
        for unit in &plan.units {
            let Work::Command { argv, environment, evidence, .. } = &unit.work else { continue };
            let mut known = CommandFacts::default();
            let mut miss = |message: String| {
                missing.push(Withheld::Unidentified { check: unit.id.clone(), message });
            };
            match self.program(&argv[0], environment, hashes) {
                Ok(program) => known.program = program,
                Err(message) => miss(message),
            }
            for one in said(&unit.id, environment, evidence) {
                match one {
                    Ok(digest) => known.fingerprints.push(digest),
                    Err(message) => miss(message),
                }
            }
            match evidence.ambient.as_ref().map(|globs| self.ambient(globs, hashes)).transpose() {
                Ok(ambient) => known.ambient = ambient,
                Err(message) => miss(message),
            }
            tools.insert(unit.id.clone(), known);
        }
        Found { identity: Identity::new(plan, facts, &tools), missing }
    }

    /// The digest of the program's file. None where there is none, and where it is part of the subject.
    fn program(
        &self,
        name: &str,
        environment: &Environment,
        hashes: &mut Hashes<'_>,
    ) -> Result<Option<Digest>, String> {
        let Some(path) = find_program(name, self.root, environment) else { return Ok(None) };
        let inside =
            path.strip_prefix(self.root).ok().and_then(|path| self.snapshot.entry(path.as_os_str().as_bytes()));
        if inside.is_some_and(|entry| matches!(entry.kind, Kind::File | Kind::Executable)) {
            return Ok(None);
        }
        let unreadable = |error: io::Error| format!("the program {} cannot be read: {error}", path.display());
        let file = File::open(&path).map_err(unreadable)?;
        hashes.of(&path, &file).map(Some).map_err(unreadable)
    }

    fn fingerprint(&self, argv: &[String], environment: &Environment, by: Fingerprints<'_>) -> Result<Digest, String> {
        let supervisor = Arc::clone(by.supervisor);
        let place = Place { folder: self.root.to_owned(), environment: environment.clone(), supervisor };
        let said = said(argv, &place, PATIENCE, by.cut)?;
        if said.len() < MAX_SAID {
            Ok(Digest::of(&said))
        } else {
            Err(format!("`{}` says more than {MAX_SAID} bytes", argv.join(" ")))
        }
    }

    /// The digest of what the globs match and the subject has not.
    fn ambient(&self, globs: &Globs, hashes: &mut Hashes<'_>) -> Result<Digest, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![Vec::new()];
        while let Some(folder) = folders.pop() {
            let path = self.root.join(OsStr::from_bytes(&folder));
            let failed = |error: io::Error| format!("{} cannot be listed: {error}", path.display());
            for entry in std::fs::read_dir(&path).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name().into_vec();
                if matches!(name.as_slice(), b".git" | b".probity") {
                    continue;
                }
                let inside = if folder.is_empty() { name } else { [&folder[..], b"/", &name].concat() };
                let path = self.root.join(OsStr::from_bytes(&inside));
                let failed = |error: io::Error| format!("{} cannot be read: {error}", path.display());
                let metadata = path.symlink_metadata().map_err(failed)?;
                if metadata.is_dir() {
                    if globs.may_match_below(&inside) {
                        folders.push(inside);
                    }
                } else if globs.matches(&inside) && self.snapshot.entry(&inside).is_none() {
                    let one = Self::one(&path, &metadata, hashes).map_err(failed)?;
                    found.insert(inside, one);
                }
            }
        }
        let mut encoder = Encoder::new();
        for (path, (kind, digest)) in found {
            encoder.bytes(&path).integer(kind).digest(&digest);
        }
        Ok(encoder.finish(Context::Ambient))
    }

    fn one(path: &Path, metadata: &Metadata, hashes: &mut Hashes<'_>) -> io::Result<(u64, Digest)> {
        if metadata.is_symlink() {
            return Ok((3, Digest::of(std::fs::read_link(path)?.as_os_str().as_bytes())));
        }
        if !metadata.is_file() {
            return Ok((4, Digest::of(b"")));
        }
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        let executable = u64::from(file.metadata()?.mode() & 0o100 != 0);
        Ok((1 + executable, hashes.of(path, &file)?))
    }
}

/// Digests of files that are no part of the subject, and what tells whether one was touched since.
struct Hashes<'a> {
    memory: Option<&'a FileMemory>,
    known: BTreeMap<PathBuf, (Vec<i64>, Digest)>,
    /// What was asked for this time.
    used: BTreeMap<PathBuf, (Vec<i64>, Digest)>,
    learnt: bool,
}

impl<'a> Hashes<'a> {
    fn new(memory: Option<&'a FileMemory>) -> Self {
        let kept = memory.and_then(FileMemory::recall);
        let known = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { memory, known, used: BTreeMap::new(), learnt: false }
    }

    fn of(&mut self, path: &Path, file: &File) -> io::Result<Digest> {
        let stat = file.metadata()?;
        if !stat.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let key = key(&stat);
        if let Some((_, digest)) = self.known.get(path).filter(|(before, _)| *before == key) {
            self.used.insert(path.to_owned(), (key, *digest));
            return Ok(*digest);
        }
        let digest = Digest::of_reader(file)?;
        let changed = UNIX_EPOCH + Duration::new(u64::try_from(stat.ctime()).unwrap_or(0), 0);
        // One that changes while it is read is not remembered, and neither is one that may change without a trace.
        let settled = SystemTime::now().duration_since(changed).is_ok_and(|age| age > SETTLED);
        if settled && self::key(&file.metadata()?) == key {
            self.used.insert(path.to_owned(), (key, digest));
            self.learnt = true;
        }
        Ok(digest)
    }

    fn keep(&self) {
        let Some(memory) = self.memory.filter(|_| self.learnt) else { return };
        // What another scenario asks about stays, as long as that is not much.
        let mut all = self.used.clone();
        if self.known.len() < 10_000 {
            all.extend(
                self.known
                    .iter()
                    .filter(|(path, _)| !self.used.contains_key(*path))
                    .map(|(path, one)| (path.clone(), one.clone())),
            );
        }
        // A path that is no text has no form; then nothing is kept.
        if let Ok(bytes) = serde_json::to_vec(&all) {
            memory.keep(&bytes);
        }
    }
}

#[expect(clippy::cast_possible_wrap, reason = "they are only compared")]
fn key(stat: &Metadata) -> Vec<i64> {
    let times = [stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec()];
    let numbers = [stat.dev() as i64, stat.ino() as i64, stat.size() as i64, i64::from(stat.mode())];
    [numbers, times].concat()
}
