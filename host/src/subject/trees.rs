//! The trees of a commit, read object by object, each hashed and compared with its id: what is said of a commit is what
//! its id stands for, whatever the repository holds.

use super::git::{Batch, Committed, GitError, Repository};
use super::history;
use super::id::ObjectId;
use std::collections::{HashSet, VecDeque};
use std::io::Read as _;

/// How many objects are asked for before the first answer is taken: their lines fit in the pipe to git many times over.
pub(super) const AHEAD: usize = 64;

/// The most entries of a commit. A few objects can say that they hold each other many times over; the largest
/// repositories that are known have half a million files.
pub(super) const MOST: usize = 2_000_000;

/// The longest path, in bytes: what Linux takes.
pub(super) const LONGEST: usize = 4096;

/// The largest tree object that is read: a folder with more than a million names.
const LARGEST: u64 = 64 << 20;

/// The mode of a folder.
pub(super) const FOLDER: u32 = 0o40_000;

/// Everything in the tree of a commit: sorted bytewise by path, without sizes.
pub(super) fn committed(repository: &Repository, commit: ObjectId) -> Result<Vec<Committed>, GitError> {
    let refuse = |id: ObjectId, why: &str| GitError::Tree { id: id.to_string(), why: why.to_owned() };
    let mut batch = repository.batch()?;
    batch.ask(commit)?;
    let root = history::commit(&mut batch, commit)?.tree;
    let (mut waiting, mut asked) = (VecDeque::from([(Vec::new(), root)]), 0);
    let mut entries = Vec::new();
    while let Some((folder, id)) = waiting.pop_front() {
        if asked == 0 {
            for id in std::iter::once(id).chain(waiting.iter().map(|(_, id)| *id)).take(AHEAD) {
                batch.ask(id)?;
                asked += 1;
            }
        }
        asked -= 1;
        let tree = read(&mut batch, id)?;
        for (mode, name, id) in parse(&tree, commit.as_bytes().len()).map_err(|why| refuse(id, &why))? {
            let path = [&folder[..], name].concat();
            if path.len() > LONGEST {
                return Err(refuse(id, "holds a path longer than 4096 bytes"));
            }
            if mode == FOLDER {
                waiting.push_back(([&path[..], b"/"].concat(), id));
            } else {
                entries.push(Committed { path, mode, id, size: None });
            }
        }
        if entries.len() + waiting.len() > MOST {
            return Err(refuse(id, "has more entries than any file system"));
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// Takes the answer to a question for a tree.
pub(super) fn read(batch: &mut Batch, id: ObjectId) -> Result<Vec<u8>, GitError> {
    let tree = batch.answer("tree", id, |_, contents| {
        let mut tree = Vec::new();
        contents.take(LARGEST + 1).read_to_end(&mut tree)?;
        Ok(tree)
    })?;
    if tree.len() as u64 > LARGEST {
        return Err(GitError::Tree { id: id.to_string(), why: "is too large".to_owned() });
    }
    Ok(tree)
}

/// One line of a tree: mode, name, id.
pub(super) type Line<'a> = (u32, &'a [u8], ObjectId);

/// `MODE SP NAME NUL ID`, one behind the other: the mode octal, the id as bytes, `length` of them.
pub(super) fn parse(mut tree: &[u8], length: usize) -> Result<Vec<Line<'_>>, String> {
    let mut lines = Vec::new();
    let mut names = HashSet::new();
    while !tree.is_empty() {
        let cut = || "cannot be read".to_owned();
        let space = tree.iter().position(|byte| *byte == b' ').ok_or_else(cut)?;
        let (mode, rest) = (&tree[..space], &tree[space + 1..]);
        let mode = std::str::from_utf8(mode).ok().and_then(|mode| u32::from_str_radix(mode, 8).ok()).ok_or_else(cut)?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        let (name, rest) = (&rest[..end], &rest[end + 1..]);
        let (id, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        let id = ObjectId::new(id).ok_or_else(cut)?;
        if name.is_empty()
            || name == b"."
            || name == b".."
            || name.eq_ignore_ascii_case(b".git")
            || name.contains(&b'/')
        {
            return Err(format!("has `{}` for a name", String::from_utf8_lossy(name).escape_debug()));
        }
        if !names.insert(name) {
            return Err(format!("has the name `{}` twice", String::from_utf8_lossy(name).escape_debug()));
        }
        lines.push((canonical(mode), name, id));
        tree = rest;
    }
    Ok(lines)
}

/// The mode as git understands it: some are written in other ways than it writes them itself.
fn canonical(mode: u32) -> u32 {
    match mode & 0o170_000 {
        0o100_000 if mode & 0o100 != 0 => 0o100_755,
        0o100_000 => 0o100_644,
        0o120_000 => 0o120_000,
        FOLDER => FOLDER,
        _ => 0o160_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mode: &str, name: &str) -> Vec<u8> {
        [format!("{mode} {name}\0").as_bytes(), &[0xab; 20]].concat()
    }

    #[test]
    fn modes_are_what_git_takes_them_for() {
        let of = |mode: &str| parse(&line(mode, "a"), 20).unwrap()[0].0;
        for (written, meant) in [
            ("100644", 0o100_644),
            ("100664", 0o100_644),
            ("100755", 0o100_755),
            ("120000", 0o120_000),
            ("40000", FOLDER),
            ("040000", FOLDER),
            ("160000", 0o160_000),
        ] {
            assert_eq!(of(written), meant, "{written}");
        }
        assert_eq!(parse(&line("100644", "a"), 20).unwrap()[0].2, ObjectId::example(0xab));
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        for bad in ["", ".", "..", ".git", ".GIT", "a/b", "/"] {
            assert!(parse(&line("100644", bad), 20).is_err(), "{bad}");
        }
        let twice = [line("100644", "a"), line("40000", "a")].concat();
        assert!(parse(&twice, 20).unwrap_err().contains("twice"));
        for bad in [&b"100644"[..], b"100644 a", b"100644 a\0short", b"x a\0", b" a\0"] {
            assert!(parse(bad, 20).is_err());
        }
    }
}
