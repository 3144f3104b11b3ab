//! The index of what was granted: folders, files and links in one flat array.
//!
//! The children of a folder lie side by side in bytewise order, so a name is found by bisection, a listing is a range,
//! and a node is a number that a handle can carry. Names lie in one text.

use super::{Found, FoundKind};
use crate::model::Mount;
use std::cmp::Ordering;
use std::ops::Range;

/// The longest path, in bytes: what Linux takes. A longer one could not have been opened either.
const MAX_PATH: usize = 4096;

/// The most folders above an entry. Real trees stay below thirty; the bound keeps walks towards the root short.
const MAX_DEPTH: usize = 256;

/// A node of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::worker) struct NodeId(pub(in crate::worker) u32);

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Kind {
    /// A folder, with its children.
    Directory { first: u32, count: u32 },
    /// A file; `key` is the number under which its contents are asked for.
    File { size: u64, executable: bool, key: u32 },
    /// A link; its text as a range of the tree's bytes.
    Symlink { start: u32, len: u32 },
}

#[derive(Debug)]
struct Node {
    parent: NodeId,
    name: Range<u32>,
    kind: Kind,
}

/// All mounts and everything in them.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    bytes: Vec<u8>,
    roots: [Option<NodeId>; Mount::ALL.len()],
}

/// Why entries make no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// A path has an empty part, `.`, `..`, a NUL byte, or is absolute.
    #[error("`{0}` is not a relative path of plain names")]
    Path(String),
    /// A path is too long or too deep.
    #[error("a path is longer than {MAX_PATH} bytes or deeper than {MAX_DEPTH} folders: `{0}`")]
    Long(String),
    /// Two entries have the same path, or one lies below another that is no folder.
    #[error("`{0}` is there twice, or is a folder and something else")]
    Twice(String),
    /// More entries or text than the index can number.
    #[error("more entries than a tree can hold")]
    Size,
}

/// Collects entries for a [`Tree`]. Their order does not matter; folders come from the paths.
#[derive(Debug, Default)]
pub struct TreeBuilder {
    mounts: [bool; Mount::ALL.len()],
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    mount: Mount,
    path: String,
    leaf: Leaf,
}

#[derive(Debug)]
enum Leaf {
    Directory,
    File { size: u64, executable: bool, key: u32 },
    Symlink { text: Vec<u8> },
}

impl TreeBuilder {
    /// No mounts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a mount, which exists even if nothing is in it.
    pub fn mount(&mut self, mount: Mount) -> &mut Self {
        self.mounts[mount as usize] = true;
        self
    }

    /// Adds a file. `key` is what [`super::Contents::read`] gets for it; the caller is free in what it means.
    pub fn file(&mut self, mount: Mount, path: impl Into<String>, size: u64, executable: bool, key: u32) -> &mut Self {
        self.add(mount, path.into(), Leaf::File { size, executable, key })
    }

    /// Adds a link with its text.
    pub fn symlink(&mut self, mount: Mount, path: impl Into<String>, text: impl Into<Vec<u8>>) -> &mut Self {
        self.add(mount, path.into(), Leaf::Symlink { text: text.into() })
    }

    /// Adds a folder with nothing in it: what a submodule looks like.
    pub fn directory(&mut self, mount: Mount, path: impl Into<String>) -> &mut Self {
        self.add(mount, path.into(), Leaf::Directory)
    }

    fn add(&mut self, mount: Mount, path: String, leaf: Leaf) -> &mut Self {
        self.mount(mount);
        self.entries.push(Entry { mount, path, leaf });
        self
    }

    /// Makes the tree.
    pub fn build(mut self) -> Result<Tree, TreeError> {
        for entry in &self.entries {
            check_path(&entry.path)?;
        }
        self.entries.sort_by(|a, b| (a.mount as u8).cmp(&(b.mount as u8)).then_with(|| by_parts(&a.path, &b.path)));
        let mut tree = Tree::default();
        for mount in Mount::ALL {
            if self.mounts[mount as usize] {
                let start = self.entries.partition_point(|entry| (entry.mount as u8) < mount as u8);
                let end = self.entries.partition_point(|entry| entry.mount as u8 <= mount as u8);
                tree.add_mount(mount, &self.entries[start..end])?;
            }
        }
        tree.nodes.shrink_to_fit();
        tree.bytes.shrink_to_fit();
        Ok(tree)
    }
}

fn check_path(path: &str) -> Result<(), TreeError> {
    let bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\0');
    if path.split('/').any(bad) {
        return Err(TreeError::Path(path.to_owned()));
    }
    if path.len() > MAX_PATH || path.bytes().filter(|byte| *byte == b'/').count() >= MAX_DEPTH {
        return Err(TreeError::Long(path.chars().take(200).collect()));
    }
    Ok(())
}

/// Bytewise order name by name: as if `/` were smaller than every other byte, so that what is in a folder follows it.
fn by_parts(a: &str, b: &str) -> Ordering {
    let key = |byte: u8| if byte == b'/' { 0 } else { byte };
    a.bytes().map(key).cmp(b.bytes().map(key))
}

impl Tree {
    /// Adds the entries of one mount, breadth first, so that the children of each folder lie side by side.
    fn add_mount(&mut self, mount: Mount, entries: &[Entry]) -> Result<(), TreeError> {
        let root = self.push(NodeId(u32::MAX), mount.name(), Kind::Directory { first: 0, count: 0 })?;
        self.nodes[root.0 as usize].parent = root;
        self.roots[mount as usize] = Some(root);
        // A folder to fill, the entries in it, and where its children's names begin in their paths.
        let mut folders = std::collections::VecDeque::from([(root, entries, 0)]);
        while let Some((folder, entries, at)) = folders.pop_front() {
            let first = u32::try_from(self.nodes.len()).map_err(|_| TreeError::Size)?;
            let mut rest = entries;
            while let Some(entry) = rest.first() {
                let name = entry.path[at..].split('/').next().unwrap_or_default();
                let end = at + name.len();
                let len = rest.partition_point(|other| {
                    // In bytes: in another name, `end` may lie within a character.
                    other.path.as_bytes().get(at..end) == Some(name.as_bytes())
                        && matches!(other.path.as_bytes().get(end), None | Some(b'/'))
                });
                let (group, others) = rest.split_at(len);
                rest = others;
                if entry.path.len() == end {
                    if group.len() > 1 {
                        return Err(TreeError::Twice(entry.path.clone()));
                    }
                    self.push_leaf(folder, name, &entry.leaf)?;
                } else {
                    let child = self.push(folder, name, Kind::Directory { first: 0, count: 0 })?;
                    folders.push_back((child, group, end + 1));
                }
            }
            let count = u32::try_from(self.nodes.len()).map_err(|_| TreeError::Size)? - first;
            self.nodes[folder.0 as usize].kind = Kind::Directory { first, count };
        }
        Ok(())
    }

    fn push_leaf(&mut self, parent: NodeId, name: &str, leaf: &Leaf) -> Result<NodeId, TreeError> {
        let kind = match leaf {
            Leaf::Directory => Kind::Directory { first: 0, count: 0 },
            Leaf::File { size, executable, key } => Kind::File { size: *size, executable: *executable, key: *key },
            Leaf::Symlink { text } => {
                let range = self.keep(text)?;
                Kind::Symlink { start: range.start, len: range.end - range.start }
            }
        };
        self.push(parent, name, kind)
    }

    fn push(&mut self, parent: NodeId, name: &str, kind: Kind) -> Result<NodeId, TreeError> {
        let id = u32::try_from(self.nodes.len()).ok().filter(|id| *id < u32::MAX).ok_or(TreeError::Size)?;
        let name = self.keep(name.as_bytes())?;
        self.nodes.push(Node { parent, name, kind });
        Ok(NodeId(id))
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<Range<u32>, TreeError> {
        let start = u32::try_from(self.bytes.len()).map_err(|_| TreeError::Size)?;
        self.bytes.extend_from_slice(bytes);
        let end = u32::try_from(self.bytes.len()).map_err(|_| TreeError::Size)?;
        Ok(start..end)
    }

    /// How many nodes there are, mounts and folders included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no mount.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&self, id: NodeId) -> &Node {
        // Ids are made here only, and a tree never shrinks.
        &self.nodes[id.0 as usize]
    }

    pub(in crate::worker) fn root(&self, mount: Mount) -> Option<NodeId> {
        self.roots[mount as usize]
    }

    /// The folder a node is in; a mount's root is in itself.
    pub(in crate::worker) fn parent(&self, id: NodeId) -> NodeId {
        self.node(id).parent
    }

    pub(in crate::worker) fn kind(&self, id: NodeId) -> Kind {
        self.node(id).kind
    }

    fn name_bytes(&self, id: NodeId) -> &[u8] {
        let name = &self.node(id).name;
        &self.bytes[name.start as usize..name.end as usize]
    }

    /// The name of a node in its folder; of a root, the mount's name.
    pub(in crate::worker) fn name(&self, id: NodeId) -> &str {
        // Names are kept from `&str` only.
        std::str::from_utf8(self.name_bytes(id)).unwrap_or_default()
    }

    pub(in crate::worker) fn link_text(&self, start: u32, len: u32) -> &[u8] {
        &self.bytes[start as usize..][..len as usize]
    }

    pub(in crate::worker) fn nth_child(&self, directory: NodeId, n: u32) -> Option<NodeId> {
        match self.kind(directory) {
            Kind::Directory { first, count } if n < count => Some(NodeId(first + n)),
            Kind::Directory { .. } | Kind::File { .. } | Kind::Symlink { .. } => None,
        }
    }

    /// The child with this name.
    pub(in crate::worker) fn child(&self, directory: NodeId, name: &str) -> Option<NodeId> {
        let Kind::Directory { first, count } = self.kind(directory) else { return None };
        let (mut low, mut high) = (first, first + count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name_bytes(NodeId(middle)).cmp(name.as_bytes()) {
                Ordering::Equal => return Some(NodeId(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    pub(in crate::worker) fn facts(&self, id: NodeId) -> Found {
        match self.kind(id) {
            Kind::Directory { .. } => Found { kind: FoundKind::Directory, size: 0 },
            Kind::File { size, .. } => Found { kind: FoundKind::File, size },
            Kind::Symlink { len, .. } => Found { kind: FoundKind::Symlink, size: u64::from(len) },
        }
    }

    /// 128 bits that say which entry this is: its path, its kind and its size, and nothing of its place in the array,
    /// which would change with other entries.
    pub(in crate::worker) fn metadata_hash(&self, id: NodeId) -> (u64, u64) {
        let mut hasher = blake3::Hasher::new();
        let mut node = id;
        loop {
            hasher.update(self.name_bytes(node)).update(b"/");
            let parent = self.parent(node);
            if parent == node {
                break;
            }
            node = parent;
        }
        let found = self.facts(id);
        hasher.update(&[found.kind as u8]).update(&found.size.to_le_bytes());
        let mut halves = [[0; 8]; 2];
        hasher.finalize_xof().fill(halves.as_flattened_mut());
        (u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1]))
    }
}
