//! What a check's function gets to see: the request, and the mounts it may read.

use std::path::{Path, PathBuf};

use crate::{Change, Entry, Mount, Request};

/// Where the mounts are: the folders `/tree`, `/base` and so on in the component, any folders natively.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    tree: Option<PathBuf>,
    base: Option<PathBuf>,
    evidence: Option<PathBuf>,
    claim: Option<PathBuf>,
    spec: Option<PathBuf>,
}

impl Mounts {
    /// The mounts as the host lays them for a component.
    pub fn guest() -> Self {
        Self {
            tree: Some("/tree".into()),
            base: Some("/base".into()),
            evidence: Some("/evidence".into()),
            claim: Some("/claim".into()),
            spec: Some("/spec".into()),
        }
    }

    /// No mount at all: nothing can be read.
    pub fn nowhere() -> Self {
        Self::default()
    }

    /// A tree in a folder, and nothing else.
    pub fn with_tree(tree: impl Into<PathBuf>) -> Self {
        Self { tree: Some(tree.into()), ..Self::default() }
    }

    /// Adds a folder with the tree that the subject is compared with.
    #[must_use]
    pub fn and_base(mut self, folder: impl Into<PathBuf>) -> Self {
        self.base = Some(folder.into());
        self
    }

    /// Adds a folder with results and output of earlier checks.
    #[must_use]
    pub fn and_evidence(mut self, folder: impl Into<PathBuf>) -> Self {
        self.evidence = Some(folder.into());
        self
    }

    /// Adds a folder with what an author claims.
    #[must_use]
    pub fn and_claim(mut self, folder: impl Into<PathBuf>) -> Self {
        self.claim = Some(folder.into());
        self
    }

    /// Adds a folder with the committed specification.
    #[must_use]
    pub fn and_spec(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spec = Some(folder.into());
        self
    }
}

/// What a check works on.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    request: &'a Request,
    mounts: &'a Mounts,
}

impl<'a> Context<'a> {
    /// Puts a request and its mounts together.
    pub fn new(request: &'a Request, mounts: &'a Mounts) -> Self {
        Self { request, mounts }
    }

    /// The entries in scope, sorted bytewise by path. With file scope it is one.
    pub fn files(&self) -> &'a [Entry] {
        &self.request.files
    }

    /// What differs between base and subject; none unless the check wants changes and there is a base.
    pub fn changes(&self) -> Option<&'a [Change]> {
        self.request.changes.as_deref()
    }

    /// The subject.
    pub fn tree(&self) -> Mount<'a> {
        mount(self.mounts.tree.as_deref())
    }

    /// The tree that the subject is compared with.
    pub fn base(&self) -> Mount<'a> {
        mount(self.mounts.base.as_deref())
    }

    /// Results and output of earlier checks.
    pub fn evidence(&self) -> Mount<'a> {
        mount(self.mounts.evidence.as_deref())
    }

    /// What an author claims.
    pub fn claim(&self) -> Mount<'a> {
        mount(self.mounts.claim.as_deref())
    }

    /// The committed specification.
    pub fn spec(&self) -> Mount<'a> {
        mount(self.mounts.spec.as_deref())
    }
}

fn mount(root: Option<&Path>) -> Mount<'_> {
    root.map_or_else(Mount::absent, Mount::at)
}
