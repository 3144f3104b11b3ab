//! Commits and where their histories meet, read object by object, each hashed and compared with its id. Git itself would
//! believe what a file beside the objects says of parents, and objects that are not what their ids stand for.

use super::git::{Batch, GitError, Repository};
use super::id::ObjectId;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::io::Read as _;

/// The longest header of a commit: thousands of parents.
const HEADER: u64 = 1 << 20;

/// What a commit says of itself, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    /// The id of its tree.
    pub(super) tree: ObjectId,
    /// The ids of its parents, in their order.
    pub(super) parents: Vec<ObjectId>,
    /// When it was made, by whoever made it: seconds since 1970. Good for an order to walk in and nothing else.
    date: i64,
}

/// Takes the answer to a question for a commit.
pub(super) fn commit(batch: &mut Batch, id: ObjectId) -> Result<Commit, GitError> {
    let header = batch.answer("commit", id, |_, contents| {
        let mut header = Vec::new();
        contents.take(HEADER).read_to_end(&mut header)?;
        Ok(header)
    })?;
    parse(&header, id.is_sha256()).ok_or_else(|| GitError::Tree { id: id.to_string(), why: "is not named".to_owned() })
}

fn parse(commit: &[u8], sha256: bool) -> Option<Commit> {
    let id = |line: &[u8]| ObjectId::parse(line).filter(|id| id.is_sha256() == sha256);
    let mut lines = commit.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let tree = id(lines.next()?.strip_prefix(b"tree ")?)?;
    let (mut parents, mut date) = (Vec::new(), 0);
    for line in lines {
        if let Some(parent) = line.strip_prefix(b"parent ") {
            parents.push(id(parent)?);
        } else if let Some(who) = line.strip_prefix(b"committer ") {
            let seconds = who.rsplit(|byte| *byte == b' ').nth(1).and_then(|text| std::str::from_utf8(text).ok());
            date = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        }
    }
    Some(Commit { tree, parents, date })
}

/// Reachable from the one, from the other, and below something that is known to be reachable from both.
const ONE: u8 = 1;
const OTHER: u8 = 2;
const STALE: u8 = 4;

/// Commits that were seen, by id.
#[derive(Default)]
struct Walk {
    seen: HashMap<ObjectId, (Commit, u8)>,
    /// By date, the latest first.
    queue: BinaryHeap<(i64, ObjectId)>,
}

impl Walk {
    fn is_open(&self) -> bool {
        self.queue.iter().any(|(_, id)| self.seen.get(id).is_some_and(|(_, flags)| flags & STALE == 0))
    }

    /// Adds flags to a commit, and queues it if it had not all of them. Nothing for one that this clone has not: a
    /// shallow one ends there.
    fn mark(&mut self, batch: &mut Batch, id: ObjectId, flags: u8) -> Result<(), GitError> {
        let (commit, has) = match self.seen.entry(id) {
            Entry::Occupied(seen) => seen.into_mut(),
            Entry::Vacant(new) => {
                batch.ask(id)?;
                match commit(batch, id) {
                    Err(GitError::NoObject(_)) => return Ok(()),
                    found => new.insert((found?, 0)),
                }
            }
        };
        if *has & flags != flags {
            *has |= flags;
            self.queue.push((commit.date, id));
        }
        Ok(())
    }
}

/// The best common ancestor of two commits: one that no other common ancestor comes after, as
/// far as dates are honest, and one that both have in any case. Of several the latest. None where there is none.
pub(super) fn meeting(repository: &Repository, one: ObjectId, other: ObjectId) -> Result<Option<ObjectId>, GitError> {
    let mut batch = repository.batch()?;
    let mut walk = Walk::default();
    for (id, flag) in [(one, ONE), (other, OTHER)] {
        walk.mark(&mut batch, id, flag)?;
        if !walk.seen.contains_key(&id) {
            return Err(GitError::NoObject(id.to_string()));
        }
    }
    let mut met = Vec::new();
    while walk.is_open() {
        let Some((_, id)) = walk.queue.pop() else { break };
        let Some((commit, flags)) = walk.seen.get(&id) else { continue };
        let (parents, mut flags) = (commit.parents.clone(), *flags);
        if flags & (ONE | OTHER | STALE) == ONE | OTHER {
            met.push(id);
            flags |= STALE;
        }
        for parent in parents {
            walk.mark(&mut batch, parent, flags)?;
        }
    }
    let best = met.into_iter().filter_map(|id| {
        let (commit, flags) = walk.seen.get(&id)?;
        (flags & STALE == 0).then_some((commit.date, id))
    });
    Ok(best.max().map(|(_, id)| id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_header_of_a_commit_counts() {
        let id = "ab".repeat(20);
        let text = format!(
            "tree {id}\nparent {id}\nparent {id}\nauthor a <b> 1 +0000\ncommitter a 7 <b> -12 +0100\ngpgsig x\n y\n\nparent {id}\n"
        );
        let Commit { tree, parents, date } = parse(text.as_bytes(), false).unwrap();
        assert_eq!((tree, parents.len(), date), (ObjectId::example(0xab), 2, -12));
        for bad in ["", "parent x\n", &format!("tree {id}0\n"), &format!("tree {id}\nparent x\n")] {
            assert_eq!(parse(bad.as_bytes(), false), None, "{bad}");
        }
    }
}
