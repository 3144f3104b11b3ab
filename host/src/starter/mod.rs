//! A first `probity.toml` for a folder: what its files say about how it is verified elsewhere.
//!
//! Must not run anything, write anything, or copy a word of what it reads into the configuration: commands are made of
//! words of this program only. The folder may be anybody's.

mod ecosystems;
mod look;
mod text;

use crate::subject::beneath::Root;
use std::io;
use std::path::Path;

/// What a first configuration of a folder would have.
#[derive(Debug, Default)]
pub struct Starter {
    checks: Vec<Check>,
    /// Globs of what tools leave behind.
    leftovers: Vec<&'static str>,
    /// What was found, a line for each file, and what came of it.
    pub found: Vec<String>,
    /// What somebody has to know or to do before it works.
    pub notes: Vec<String>,
}

/// A command that the folder seems to be verified by.
#[derive(Debug)]
struct Check {
    id: String,
    command: Vec<&'static str>,
    timeout: &'static str,
    env: &'static [&'static str],
    pass_env: &'static [&'static str],
    /// The file that it was found in.
    file: &'static str,
    /// Why it is only proposed. None where it is meant to run.
    proposed: Option<&'static str>,
}

impl Starter {
    /// Looks at a folder. Only what the folder itself has is looked at, and no link is followed.
    /// `ignored` says whether version control ignores a file of it; only of files that would matter is it asked.
    pub fn of(folder: &Path, ignored: impl Fn(&str) -> bool) -> io::Result<Self> {
        let root = Root::open(folder)?;
        let mut starter = Self::default();
        ecosystems::cargo(&root, ignored, &mut starter);
        ecosystems::node(&root, &mut starter);
        ecosystems::python(&root, &mut starter);
        ecosystems::go(&root, &mut starter);
        // These run what others are for as a rule, so they stand aside where something was found.
        ecosystems::make(&root, &mut starter);
        ecosystems::pre_commit(&root, &mut starter);
        Ok(starter)
    }

    /// How many checks run.
    pub fn active(&self) -> usize {
        self.checks.iter().filter(|check| check.proposed.is_none()).count()
    }

    /// The configuration, with comments.
    pub fn text(&self) -> String {
        text::text(self)
    }
}
