//! The specification: files as a commit has them, and how often they were changed until then.
//!
//! Its version is the number of commits on the line of first parents that touch one of its files. Everything is read
//! object by object, each hashed and compared with its id. Where the line cannot be followed to its beginning, the
//! version is a lower bound and says so.

use super::collect;
use super::git::{Batch, Committed, GitError};
use super::history;
use super::id::ObjectId;
use super::snapshot::Workspace;
use super::trees::{self, FOLDER, MOST};
use crate::model::{Context, Digest, Encoder, SpecVersion};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The most objects that are read to find a version: some seconds of work. Beyond it the version is a lower bound.
const MOST_OBJECTS: usize = 300_000;

/// The most bytes of trees that are kept for the next comparison, in which most of them are needed again.
const MOST_KEPT: usize = 32 << 20;

/// A specification as it was committed.
#[derive(Debug, Clone)]
pub struct Specification {
    /// Its files, sorted bytewise by path.
    pub files: Vec<Committed>,
    /// Which it is.
    pub digest: Digest,
    /// How often it was changed until then.
    pub version: SpecVersion,
}

impl Specification {
    /// A specification of these files, which are sorted bytewise by path.
    pub fn new(files: Vec<Committed>, version: SpecVersion) -> Self {
        Self { digest: spec_digest(&files), files, version }
    }
}

/// The digest of a specification: of the paths, modes and ids of its files, which are sorted bytewise by path.
pub fn spec_digest(files: &[Committed]) -> Digest {
    let mut encoder = Encoder::new();
    encoder.integer(files.len() as u64);
    for file in files {
        encoder.bytes(&file.path).integer(file.mode.into()).text(&file.id.to_string());
    }
    encoder.finish(Context::Specification)
}

impl Workspace {
    /// The version, at a commit as `sha1:…` or `sha256:…`, of the files whose paths relative to the root `names` says yes
    /// to. Folders to which `may_name_below` says no are not looked into. None outside version control.
    pub fn spec_version(
        &self,
        commit: &str,
        names: impl Fn(&[u8]) -> bool,
        may_name_below: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<SpecVersion>, GitError> {
        let Some(repository) = &self.repository else { return Ok(None) };
        let id = ObjectId::of_commit(commit).ok_or_else(|| GitError::NoObject(commit.to_owned()))?;
        let paths = Paths { below: &self.below, names, may_name_below };
        let walk = Walk { batch: repository.batch()?, read: 0, kept: Trees::default(), used: Trees::default() };
        walk.version(id, &paths).map(Some)
    }
}

/// Which paths of the repository are those of the specification.
struct Paths<'a, N, B> {
    /// Where the root of the workspace is below the top.
    below: &'a [u8],
    names: N,
    may_name_below: B,
}

impl<N: Fn(&[u8]) -> bool, B: Fn(&[u8]) -> bool> Paths<'_, N, B> {
    /// The path relative to the root. None for what is outside of it.
    fn inside<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        collect::inside(self.below, path)
    }

    fn has(&self, path: &[u8]) -> bool {
        self.inside(path).is_some_and(&self.names)
    }

    fn may_have_below(&self, folder: &[u8]) -> bool {
        let leads_to_root = self.below.strip_prefix(folder).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        leads_to_root || self.inside(folder).is_some_and(&self.may_name_below)
    }
}

/// The entries of a tree by name: mode and id.
type Tree = BTreeMap<Vec<u8>, (u32, ObjectId)>;

/// Trees by their ids, as many as there is room for.
#[derive(Default)]
struct Trees {
    trees: HashMap<ObjectId, Rc<Tree>>,
    bytes: usize,
}

struct Walk {
    batch: Batch,
    /// Objects that were read.
    read: usize,
    /// Trees of the comparison before this one: what was the parent's is the child's now.
    kept: Trees,
    used: Trees,
}

/// Why a comparison has no end.
enum Halt {
    /// Something is not in this clone, or too much would have to be read.
    Edge,
    Failed(GitError),
}

impl From<GitError> for Halt {
    fn from(error: GitError) -> Self {
        match error {
            GitError::NoObject(_) => Self::Edge,
            error => Self::Failed(error),
        }
    }
}

impl Walk {
    fn version<N: Fn(&[u8]) -> bool, B: Fn(&[u8]) -> bool>(
        mut self,
        id: ObjectId,
        paths: &Paths<'_, N, B>,
    ) -> Result<SpecVersion, GitError> {
        self.batch.ask(id)?;
        let mut at = history::commit(&mut self.batch, id)?;
        let mut number = 0;
        loop {
            let mut parent = None;
            let mut edge = false;
            if let Some(id) = at.parents.first().copied() {
                self.read += 1;
                self.batch.ask(id)?;
                match history::commit(&mut self.batch, id) {
                    Ok(found) => parent = Some(found),
                    Err(GitError::NoObject(_)) => edge = true,
                    Err(error) => return Err(error),
                }
            }
            match self.touched(at.tree, parent.as_ref().map(|parent| parent.tree), paths) {
                Ok(touched) => number += u64::from(touched),
                // Whoever asks has files of it, so there was a commit that brought them.
                Err(Halt::Edge) => return Ok(SpecVersion { number: number.max(1), at_least: true }),
                Err(Halt::Failed(error)) => return Err(error),
            }
            match parent {
                // Before the edge of a shallow clone something brought what is there.
                None => return Ok(SpecVersion { number, at_least: edge }),
                Some(parent) => at = parent,
            }
        }
    }

    /// Whether files of the specification differ between two trees, of which the second may be none.
    fn touched<N: Fn(&[u8]) -> bool, B: Fn(&[u8]) -> bool>(
        &mut self,
        after: ObjectId,
        before: Option<ObjectId>,
        paths: &Paths<'_, N, B>,
    ) -> Result<bool, Halt> {
        if before == Some(after) {
            return Ok(false);
        }
        let mut waiting = vec![(Vec::new(), Some(after), before)];
        let mut touched = false;
        while let Some((folder, after, before)) = waiting.pop() {
            let (after, before) = (self.tree(after)?, self.tree(before)?);
            let gone = before.keys().filter(|name| !after.contains_key(*name));
            for name in after.keys().chain(gone) {
                let (new, old) = (after.get(name), before.get(name));
                if new == old {
                    continue;
                }
                let path = [&folder[..], name].concat();
                let is_file = |entry: Option<&(u32, ObjectId)>| entry.is_some_and(|(mode, _)| *mode != FOLDER);
                if (is_file(new) || is_file(old)) && paths.has(&path) {
                    touched = true;
                    break;
                }
                let within =
                    |entry: Option<&(u32, ObjectId)>| entry.filter(|(mode, _)| *mode == FOLDER).map(|(_, id)| *id);
                let (new, old) = (within(new), within(old));
                if new != old && paths.may_have_below(&path) {
                    waiting.push(([&path[..], b"/"].concat(), new, old));
                }
            }
            if touched {
                break;
            }
            // A few objects can say that they hold each other many times over.
            if waiting.len() > MOST || self.read > MOST_OBJECTS {
                return Err(Halt::Edge);
            }
        }
        self.kept = std::mem::take(&mut self.used);
        Ok(touched)
    }

    fn tree(&mut self, id: Option<ObjectId>) -> Result<Rc<Tree>, Halt> {
        let Some(id) = id else { return Ok(Rc::default()) };
        let known = self.used.trees.get(&id).or_else(|| self.kept.trees.get(&id)).cloned();
        let tree = if let Some(tree) = known {
            tree
        } else {
            self.read += 1;
            self.batch.ask(id).map_err(Halt::Failed)?;
            let bytes = trees::read(&mut self.batch, id)?;
            let lines = trees::parse(&bytes, id.as_bytes().len());
            let lines = lines.map_err(|why| Halt::Failed(GitError::Tree { id: id.to_string(), why }))?;
            Rc::new(lines.into_iter().map(|(mode, name, id)| (name.to_vec(), (mode, id))).collect())
        };
        let bytes = tree.keys().map(|name| name.len() + size_of::<(Vec<u8>, u32, ObjectId)>()).sum();
        if self.used.bytes.saturating_add(bytes) <= MOST_KEPT && !self.used.trees.contains_key(&id) {
            self.used.bytes += bytes;
            self.used.trees.insert(id, Rc::clone(&tree));
        }
        Ok(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, mode: u32, id: &str) -> Committed {
        Committed { path: path.into(), mode, id: ObjectId::parse(id.repeat(20).as_bytes()).unwrap(), size: None }
    }

    #[test]
    fn the_digest_of_a_specification_is_of_paths_modes_and_ids() {
        let one = [file("SPEC.md", 0o100_644, "ab"), file("spec/a", 0o120_000, "cd")];
        assert_eq!(
            spec_digest(&one).to_string(),
            "blake3:2879527b98c47619fd8829e02649622c9b1d5ef39091c723aac308298fd05f3f"
        );
        let mut others = vec![one.to_vec(), one.to_vec(), one.to_vec(), one[..1].to_vec()];
        others[0][0].path = b"SPEC".to_vec();
        others[1][0].mode = 0o100_755;
        others[2][0].id = ObjectId::example(0xac);
        for other in others {
            assert_ne!(spec_digest(&other), spec_digest(&one));
        }
        let mut sized = one.to_vec();
        sized[0].size = Some(7);
        assert_eq!(spec_digest(&sized), spec_digest(&one), "a size follows from the id");
    }

    #[test]
    fn paths_are_relative_to_the_root_and_folders_on_the_way_to_it_are_looked_into() {
        let paths = Paths {
            below: b"a/b",
            names: |path: &[u8]| path == b"SPEC",
            may_name_below: |folder: &[u8]| folder == b"s",
        };
        assert!(paths.has(b"a/b/SPEC") && !paths.has(b"SPEC") && !paths.has(b"a/bSPEC"));
        for folder in ["a", "a/b", "a/b/s"] {
            assert!(paths.may_have_below(folder.as_bytes()), "{folder}");
        }
        for folder in ["b", "a/bb", "a/b/t", "s"] {
            assert!(!paths.may_have_below(folder.as_bytes()), "{folder}");
        }
    }
}
