//! Running checks natively, over an ordinary folder: for a pack's own tests.
//!
//! It does what the host does around a check, as far as a test needs it: it lists the entries, calls a check with file
//! scope once for each of them, and puts the reports together. It does not narrow by globs, validate against the schema
//! or check what comes back.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! use probity_sdk::testing::Subject;
//! use probity_sdk::{Check, Pack, Report};
//!
//! let pack = Pack::new("sample", "0.1.0", "A sample.")
//!     .check(Check::without_config("nothing", "Nothing", |_| Ok(Report::new())));
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let subject = Subject::scan(folder)?;
//! assert_eq!(subject.run(&pack, "nothing", "{}"), Ok(Report::new()));
//! # Ok(())
//! # }
//! ```

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use crate::mount::not_utf8;
use crate::{Change, Entry, Kind, Mounts, Pack, Refusal, Report, Request, Scope};

/// A folder as a subject: its entries, and where to read them.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The entries, sorted bytewise by path. A test may narrow or change them.
    pub entries: Vec<Entry>,
    /// What is said to differ from a base.
    pub changes: Option<Vec<Change>>,
    /// What can be read: the folder as `tree`, and whatever a test adds.
    pub mounts: Mounts,
}

impl Subject {
    /// Lists a folder. The repository's own `.git` is left out, and a folder with a `.git` in it is a submodule.
    pub fn scan(root: &Path) -> io::Result<Self> {
        let mut entries = Vec::new();
        let mut folders = vec![(root.to_path_buf(), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            for child in fs::read_dir(&folder)? {
                let child = child?;
                let name = child.file_name().into_string().map_err(|name| not_utf8(&name))?;
                if prefix.is_empty() && name == ".git" {
                    continue;
                }
                let metadata = child.metadata()?;
                let mut path = format!("{prefix}{name}");
                if metadata.is_dir() && !child.path().join(".git").exists() {
                    path.push('/');
                    folders.push((child.path(), path));
                    continue;
                }
                let kind = kind(&metadata);
                entries.push(Entry {
                    path,
                    kind,
                    size: if kind == Kind::Submodule { 0 } else { metadata.len() },
                    tracked: true,
                    base_path: None,
                });
            }
        }
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { entries, changes: None, mounts: Mounts::with_tree(root) })
    }

    /// Runs one check of a pack with a configuration as JSON text. The findings of all calls are together in the report,
    /// in the order of the entries, and its counts are added up.
    pub fn run(&self, pack: &Pack, check: &str, config: &str) -> Result<Report, Refusal> {
        let mut request = request(check, config);
        request.changes.clone_from(&self.changes);
        match pack.find(check)?.call_scope() {
            Scope::Tree => {
                request.files.clone_from(&self.entries);
                pack.run(&request, &self.mounts)
            }
            Scope::File => {
                let mut all = Report::new();
                for entry in &self.entries {
                    request.files.clear();
                    request.files.push(entry.clone());
                    let report = pack.run(&request, &self.mounts)?;
                    all.findings.extend(report.findings);
                    for (name, count) in report.stats {
                        all.count(&name, count);
                    }
                }
                Ok(all)
            }
        }
    }
}

/// A request for a check, about no files.
pub fn request(check: &str, config: &str) -> Request {
    Request { check: check.to_owned(), config: config.to_owned(), files: Vec::new(), changes: None }
}

fn kind(metadata: &Metadata) -> Kind {
    if metadata.is_symlink() {
        Kind::Symlink
    } else if metadata.is_dir() {
        Kind::Submodule
    } else if is_executable(metadata) {
        Kind::Executable
    } else {
        Kind::File
    }
}

#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Check, Finding};

    fn pack() -> Pack {
        let each = |ctx: &crate::Context<'_>| {
            let mut report = Report::new();
            report.count("calls", 1);
            for file in ctx.files() {
                report.push(Finding::note("seen", "It is here.").in_file(&file.path));
            }
            Ok(report)
        };
        Pack::new("sample", "0.1.0", "A sample.")
            .check(Check::without_config("by-file", "By file", each).scope(Scope::File))
            .check(Check::without_config("by-tree", "By tree", each))
    }

    #[test]
    fn a_check_is_called_as_often_as_its_scope_says() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "1").unwrap();
        fs::write(folder.path().join("a c"), "22").unwrap();
        let subject = Subject::scan(folder.path()).unwrap();
        for (check, calls) in [("by-file", 2), ("by-tree", 1)] {
            let report = subject.run(&pack(), check, "{}").unwrap();
            assert_eq!(report.stat("calls"), calls);
            let paths: Vec<_> =
                report.findings.iter().filter_map(|finding| Some(finding.place.as_ref()?.path.as_str())).collect();
            assert_eq!(paths, ["a c", "b"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn entries_have_their_kinds_and_sizes() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join(".git/HEAD"), "").unwrap();
        fs::create_dir_all(root.join("sub/.git")).unwrap();
        fs::write(root.join("sub/inner"), "").unwrap();
        fs::create_dir_all(root.join("d")).unwrap();
        fs::write(root.join("d/run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(root.join("d/run"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(root.join("d-e"), "abc").unwrap();
        symlink("d/run", root.join("link")).unwrap();
        symlink("d", root.join("link-to-folder")).unwrap();

        let entries = Subject::scan(root).unwrap().entries;
        let seen: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), entry.kind, entry.size)).collect();
        assert_eq!(
            seen,
            [
                ("d-e", Kind::File, 3),
                ("d/run", Kind::Executable, 10),
                ("link", Kind::Symlink, 5),
                ("link-to-folder", Kind::Symlink, 1),
                ("sub", Kind::Submodule, 0),
            ]
        );
    }
}
