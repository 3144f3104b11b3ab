//! From a path to a node: name by name, link by link, never out of where it began.

use super::{Kind, NodeId, Observed, Sight, View};

/// The longest path a guest may use, in bytes.
const MAX_PATH: usize = 4096;

/// The most links followed for one path: what Linux takes.
const MAX_LINKS: u32 = 40;

/// The most names walked for one path, the texts of links included: forty links of 4096 bytes each would otherwise be
/// 80,000 steps for one call.
const MAX_STEPS: u32 = 8192;

/// Why a path leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Trouble {
    /// Nothing has this name.
    NoEntry,
    /// A name before the last one, or one with a slash behind it, is no folder.
    NotDirectory,
    /// It is absolute, or leaves the folder that it is relative to.
    NotPermitted,
    /// Too many links.
    Loop,
    /// Longer than a path may be.
    NameTooLong,
    /// A link's text that is needed is not UTF-8.
    NotText,
}

/// What a path led to, and how far the way was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Resolved {
    pub(in crate::worker) node: NodeId,
    pub(in crate::worker) steps: u32,
}

impl View {
    /// Resolves `path` from the folder `base`, below which it must stay: as with Linux's `RESOLVE_BENEATH`, a `..` or a
    /// link that leads out is refused even where it would come back. A link at the end is followed if `follow` or if a
    /// slash comes after it.
    /// What is learned on the way goes into `observed`, also where the way ends early.
    pub(in crate::worker) fn resolve(
        &self,
        base: NodeId,
        path: &str,
        follow: bool,
        observed: &mut Observed,
    ) -> Result<Resolved, Trouble> {
        if path.len() > MAX_PATH {
            return Err(Trouble::NameTooLong);
        }
        if path.is_empty() || path.contains('\0') {
            return Err(Trouble::NoEntry);
        }
        let mut walk = Walk { view: self, observed, base, node: base, steps: 0, links: 0 };
        walk.take(path, follow)?;
        Ok(Resolved { node: walk.node, steps: walk.steps })
    }
}

struct Walk<'a> {
    view: &'a View,
    observed: &'a mut Observed,
    base: NodeId,
    node: NodeId,
    steps: u32,
    links: u32,
}

impl Walk<'_> {
    /// Walks along `path`; `follow` says whether a link at its very end is followed. Nested no deeper than
    /// [`MAX_LINKS`], since each level is a link.
    fn take(&mut self, path: &str, follow: bool) -> Result<(), Trouble> {
        if path.starts_with('/') {
            return Err(Trouble::NotPermitted);
        }
        let mut rest = Some(path);
        while let Some(current) = rest {
            let (name, after) = match current.split_once('/') {
                Some((name, after)) => (name, Some(after)),
                None => (current, None),
            };
            rest = after;
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Trouble::NameTooLong);
            }
            if !matches!(self.view.tree.kind(self.node), Kind::Directory { .. }) {
                return Err(Trouble::NotDirectory);
            }
            match name {
                // What comes after a slash at the end, too.
                "" | "." => {}
                ".." => {
                    if self.node == self.base {
                        return Err(Trouble::NotPermitted);
                    }
                    self.node = self.view.tree.parent(self.node);
                }
                name => self.enter(name, follow || after.is_some())?,
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: &str, follow: bool) -> Result<(), Trouble> {
        let directory = self.node;
        let found = self.view.tree.child(directory, name).filter(|child| self.view.shows(*child));
        let Some(child) = found else {
            self.observed.absent(directory, name);
            return Err(Trouble::NoEntry);
        };
        self.observed.see(child, Sight::NAME);
        let Kind::Symlink { start, len } = self.view.tree.kind(child) else {
            self.node = child;
            return Ok(());
        };
        if !follow {
            self.node = child;
            return Ok(());
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Trouble::Loop);
        }
        let text = std::str::from_utf8(self.view.tree.link_text(start, len)).map_err(|_| Trouble::NotText)?;
        if text.is_empty() || text.contains('\0') {
            return Err(Trouble::NoEntry);
        }
        self.take(text, true)
    }
}
