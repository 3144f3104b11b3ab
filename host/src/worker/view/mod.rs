//! What a guest sees of the world: mounts with files, immutable, the same in every place.
//!
//! A [`Tree`] is the index of everything that was granted: names, kinds and sizes. A [`View`] is a tree, where its
//! contents come from, and perhaps the one path it is narrowed to. Nothing here knows the engine.
//!
//! Invariants: a listing is in bytewise order; there are no times, owners or inode numbers; a link is followed inside
//! its mount only; what is not in the tree does not exist.

mod contents;
mod observed;
#[cfg(test)]
mod recording;
mod resolve;
#[cfg(test)]
mod tests;
mod tree;

pub(in crate::worker) use contents::Chunks;
pub use contents::{Contents, ContentsError};
pub use observed::{Noted, Untrue, observations};
pub(in crate::worker) use observed::{Observed, Sight};
pub(in crate::worker) use resolve::Trouble;
pub(in crate::worker) use tree::{Kind, NodeId};
pub use tree::{Tree, TreeBuilder, TreeError};

use super::serve::{Node, What};
use crate::model::{Bytes, Mount};
use std::fmt;
use std::sync::Arc;

/// What the rules of this view are called in keys of stored results. A change of any answer a guest can get needs
/// another number, or stored results would outlive the answers they rest on.
pub(in crate::worker) const VIEW_VERSION: u32 = 1;

/// What a guest may see.
#[derive(Clone)]
pub struct View {
    tree: Arc<Tree>,
    contents: Arc<dyn Contents>,
    /// The nodes that a narrowed view shows: the chosen entries and the folders above them. Few, so a scan is fastest.
    only: Option<Arc<[NodeId]>>,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its kind.
    pub kind: FoundKind,
    /// Bytes of a file or of a link's text; 0 for a folder.
    pub size: u64,
}

/// The kind of what is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundKind {
    /// A folder, or a submodule, which looks like an empty one.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, itself.
    Symlink,
}

impl View {
    /// Everything in `tree`, with its contents.
    pub fn new(tree: Arc<Tree>, contents: Arc<dyn Contents>) -> Self {
        Self { tree, contents, only: None }
    }

    /// No mount at all.
    pub fn empty() -> Self {
        Self::new(Arc::new(Tree::default()), Arc::new(contents::Nothing))
    }

    /// The same mounts with one path each: `path`, and in `/base` the path the file has there. Other paths do not
    /// exist for whoever looks through the narrowed view, in listings or by name. Costs no copy of the tree.
    #[must_use]
    pub fn narrowed(&self, path: &str, base_path: Option<&str>) -> Self {
        let mut only = Vec::with_capacity(16);
        for (mount, root) in self.mounts() {
            only.push(root);
            let path = if mount == Mount::Base { base_path } else { Some(path) };
            let Some(mut node) = path.and_then(|path| self.exact(root, path)) else { continue };
            while node != root {
                only.push(node);
                node = self.tree.parent(node);
            }
        }
        Self { tree: Arc::clone(&self.tree), contents: Arc::clone(&self.contents), only: Some(only.into()) }
    }

    /// What is at exactly this path of a mount: no links are followed.
    pub fn find(&self, mount: Mount, path: &str) -> Option<Found> {
        let root = self.tree.root(mount)?;
        Some(self.tree.facts(self.exact(root, path)?))
    }

    /// Everything that is to be seen, less the folders above it: what another process needs to make the same view.
    pub fn nodes(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        for (mount, root) in self.mounts() {
            let mut path = String::new();
            self.collect(mount, root, &mut path, &mut nodes);
        }
        nodes
    }

    fn collect(&self, mount: Mount, folder: NodeId, path: &mut String, into: &mut Vec<Node>) {
        let (mut position, length) = (0, path.len());
        while let Some((child, next)) = self.next_child(folder, position) {
            position = next;
            if length > 0 {
                path.push('/');
            }
            path.push_str(self.tree.name(child));
            let what = match self.tree.kind(child) {
                // A folder is there by what is in it; one with nothing in it is there by itself.
                Kind::Directory { .. } if self.next_child(child, 0).is_some() => None,
                Kind::Directory { .. } => Some(What::Directory),
                Kind::File { size, executable, key } => Some(What::File { size, executable, key }),
                Kind::Symlink { start, len } => {
                    Some(What::Symlink { text: Bytes(self.tree.link_text(start, len).to_vec()) })
                }
            };
            match what {
                Some(what) => into.push(Node { mount, path: path.clone(), what }),
                // No deeper than the tree's own bound on folders.
                None => self.collect(mount, child, path, into),
            }
            path.truncate(length);
        }
    }

    /// The mounts that are there.
    pub fn mount_list(&self) -> Vec<Mount> {
        self.mounts().map(|(mount, _)| mount).collect()
    }

    /// What is at exactly this path of a mount, as [`Self::nodes`] has it.
    pub fn node(&self, mount: Mount, path: &str) -> Option<Node> {
        let node = self.exact(self.tree.root(mount)?, path)?;
        let what = match self.tree.kind(node) {
            Kind::Directory { .. } => What::Directory,
            Kind::File { size, executable, key } => What::File { size, executable, key },
            Kind::Symlink { start, len } => What::Symlink { text: Bytes(self.tree.link_text(start, len).to_vec()) },
        };
        Some(Node { mount, path: path.to_owned(), what })
    }

    fn exact(&self, root: NodeId, path: &str) -> Option<NodeId> {
        path.split('/').try_fold(root, |node, name| self.tree.child(node, name).filter(|child| self.shows(*child)))
    }

    pub(in crate::worker) fn mounts(&self) -> impl Iterator<Item = (Mount, NodeId)> + '_ {
        Mount::ALL.into_iter().filter_map(|mount| Some((mount, self.tree.root(mount)?)))
    }

    pub(in crate::worker) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Where its contents come from.
    pub fn contents(&self) -> &dyn Contents {
        &*self.contents
    }

    pub(in crate::worker) fn shows(&self, node: NodeId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&node))
    }

    /// The next child of a folder to list, from this position on, and the position after it.
    pub(in crate::worker) fn next_child(&self, directory: NodeId, mut position: u32) -> Option<(NodeId, u32)> {
        loop {
            let child = self.tree.nth_child(directory, position)?;
            position += 1;
            if self.shows(child) {
                return Some((child, position));
            }
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("nodes", &self.tree.len())
            .field("narrowed", &self.only.is_some())
            .finish_non_exhaustive()
    }
}
