//! What one call of a guest learned of its files: noted here at every answer, said to the parent when the call ends.
//!
//! The worker says only which places and which kind of knowledge; the parent holds that against the view it granted and
//! the contents it handed over, and takes every value from there. So a worker that an attacker runs can be silent about
//! what it knows (as its pack could lie about anything it finds), and cannot make up what was not there.

use super::tree::Kind;
use super::{NodeId, View};
use crate::model::{Bytes, Context, Encoder, Mount, Observation, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What is known of a node: some of the constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Sight(u8);

impl Sight {
    /// That it is there and of which kind; of a link also its text.
    pub(in crate::worker) const NAME: Self = Self(1);
    /// Of a file, how long it is.
    pub(in crate::worker) const SIZE: Self = Self(2);
    /// Of a file, what is in it.
    pub(in crate::worker) const CONTENTS: Self = Self(4);
    /// Of a folder, all names in it and their kinds.
    pub(in crate::worker) const LISTING: Self = Self(8);
}

/// How many bytes of names that are not there are kept. Beyond it, knowing all names of the folder stands for knowing
/// that one is not among them: that says more than was learned, which is safe, and there are only so many folders.
const ABSENT_BYTES: usize = 1 << 20;

/// What a guest has learned so far.
#[derive(Debug)]
pub(in crate::worker) struct Observed {
    /// For each node.
    seen: Vec<u8>,
    absent: BTreeSet<(NodeId, Box<str>)>,
    bytes: usize,
}

/// One place of which a worker says that its guest learned something: which mount, which path, and of a place that is
/// there the sum of what was learned (1 name, 2 size, 4 contents, 8 listing); 0 says that nothing is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted(pub Mount, pub String, pub u8);

impl Observed {
    pub(in crate::worker) fn new(view: &View) -> Self {
        Self { seen: vec![0; view.tree().len()], absent: BTreeSet::new(), bytes: 0 }
    }

    /// Notes what was learned of a node that is there.
    #[inline]
    pub(in crate::worker) fn see(&mut self, node: NodeId, sight: Sight) {
        self.seen[node.0 as usize] |= sight.0;
    }

    /// Notes that a folder has nothing of this name.
    pub(in crate::worker) fn absent(&mut self, folder: NodeId, name: &str) {
        if self.bytes + name.len() > ABSENT_BYTES {
            return self.see(folder, Sight::LISTING);
        }
        if self.absent.insert((folder, name.into())) {
            self.bytes += name.len();
        }
    }

    /// All of it, each place once.
    pub(in crate::worker) fn notes(&self, view: &View) -> Vec<Noted> {
        let tree = view.tree();
        // That a folder is there follows from anything that is seen in it.
        let mut implied = vec![false; self.seen.len()];
        let known = |at: usize| self.seen[at] != 0;
        // The folder of each node comes before it, so from the end each one is done before its folder is looked at.
        for at in (0..self.seen.len()).rev().filter(|at| known(*at)) {
            let mut above = tree.parent(node(at));
            while !implied[above.0 as usize] && above != tree.parent(above) {
                implied[above.0 as usize] = true;
                above = tree.parent(above);
            }
        }
        let listed = |folder: NodeId| self.seen[folder.0 as usize] & Sight::LISTING.0 != 0;
        let there = (0..self.seen.len()).filter(|at| known(*at)).filter(|at| {
            let name_only = self.seen[*at] == Sight::NAME.0;
            // So does the kind of everything in a folder whose names are all known; a link's text does not.
            let of_listing = listed(tree.parent(node(*at))) && !matches!(tree.kind(node(*at)), Kind::Symlink { .. });
            !(name_only && (implied[*at] || of_listing))
        });
        let there = there.map(|at| {
            let (mount, path) = place(view, node(at));
            Noted(mount, path, self.seen[at])
        });
        let missing = self.absent.iter().filter(|(folder, _)| !listed(*folder)).map(|(folder, name)| {
            let (mount, mut path) = place(view, *folder);
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
            Noted(mount, path, 0)
        });
        there.chain(missing).collect()
    }
}

fn node(at: usize) -> NodeId {
    // A tree has fewer nodes than 32 bits number.
    NodeId(u32::try_from(at).unwrap_or(u32::MAX))
}

fn place(view: &View, node: NodeId) -> (Mount, String) {
    let tree = view.tree();
    let mut names = Vec::new();
    let mut at = node;
    while tree.parent(at) != at {
        names.push(tree.name(at));
        at = tree.parent(at);
    }
    names.reverse();
    // Every root is a mount's.
    let mount = view.mounts().find(|(_, root)| *root == at).map_or(Mount::Tree, |(mount, _)| mount);
    (mount, names.join("/"))
}

/// A worker says that its guest learned what it cannot have learned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it says that its guest learned what it cannot have learned")]
pub struct Untrue;

/// What a guest that was shown `view` learned, by the notes of its worker: sorted, each once. `given` says whether
/// contents of a file were handed over.
pub fn observations(view: &View, notes: &[Noted], given: impl Fn(u32) -> bool) -> Result<Vec<Observation>, Untrue> {
    let mut all = Vec::with_capacity(notes.len());
    for Noted(mount, path, seen) in notes {
        let root = view.tree().root(*mount).ok_or(Untrue)?;
        let found = if path.is_empty() { Some(root) } else { view.exact(root, path) };
        let mut learned = |step| all.push(Observation { mount: *mount, path: path.clone(), step });
        let has = |sight: Sight| seen & sight.0 != 0;
        let node = match (found, *seen) {
            (None, 0) => {
                learned(Step::Absent);
                continue;
            }
            (Some(node), 1..16) => node,
            _ => return Err(Untrue),
        };
        match view.tree().kind(node) {
            Kind::Directory { .. } if has(Sight::CONTENTS) => return Err(Untrue),
            Kind::Directory { .. } if has(Sight::LISTING) => learned(Step::Listing(listing(view, node))),
            Kind::Directory { .. } => learned(Step::Directory),
            Kind::File { .. } if has(Sight::LISTING) => return Err(Untrue),
            Kind::File { size, key, .. } if has(Sight::CONTENTS) => {
                if size > 0 && !given(key) {
                    return Err(Untrue);
                }
                learned(Step::Contents(view.contents().identity(key)));
            }
            Kind::File { size, .. } if has(Sight::SIZE) => learned(Step::Size(size)),
            Kind::File { .. } => learned(Step::File),
            Kind::Symlink { .. } if has(Sight::CONTENTS) || has(Sight::LISTING) => return Err(Untrue),
            Kind::Symlink { start, len } => {
                learned(Step::Link(Bytes(view.tree().link_text(start, len).to_vec())));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn listing(view: &View, folder: NodeId) -> crate::model::Digest {
    let mut encoder = Encoder::new();
    let mut position = 0;
    while let Some((child, next)) = view.next_child(folder, position) {
        position = next;
        let kind = match view.tree().kind(child) {
            Kind::Directory { .. } => 1,
            Kind::File { .. } => 2,
            Kind::Symlink { .. } => 3,
        };
        encoder.text(view.tree().name(child)).integer(kind);
    }
    encoder.finish(Context::Listing)
}
