//! Where a subject is open: links that lead out of the tree, what this user cannot look into, and what is tracked and left
//! out here (a sparse checkout, a submodule that is not checked out). Whoever follows such a link, reads it as another
//! user or has it checked out sees what the digest of the tree says nothing about.
//!
//! By names alone: nothing is followed here.

use super::entry::{Entry, Kind};
use super::snapshot::Snapshot;
use crate::model::Remark;

/// Links within links that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Steps that all links of a subject may take together. They are short on every honest tree, and a hostile one must not
/// keep us busy.
const MAX_STEPS: usize = 1 << 20;

/// Characters of a link's text that are shown.
const SHOWN: usize = 200;

impl Snapshot {
    /// Where this subject is open, sorted by path, each with the reason.
    pub fn open(&self) -> Vec<Remark> {
        let mut steps = MAX_STEPS;
        let why = |entry: &Entry| match entry.kind {
            Kind::Unreadable if entry.is_folder() => Some("a folder that this user cannot list".to_owned()),
            Kind::Unreadable => Some("not readable for this user".to_owned()),
            Kind::Symlink => {
                let leads = match leads_out(self, entry, &mut steps) {
                    Some(false) => return None,
                    Some(true) => "leads out of the tree",
                    None => "may lead out of the tree, and is too long to be followed",
                };
                let text: String = String::from_utf8_lossy(&entry.text).chars().take(SHOWN).collect();
                Some(format!("{leads}: {text}"))
            }
            Kind::LeftOut => Some("tracked, and left out here".to_owned()),
            Kind::File | Kind::Executable | Kind::Submodule | Kind::Special => None,
        };
        let remark = |entry: &Entry, why| Remark { path: String::from_utf8_lossy(&entry.path).into_owned(), why };
        let mut why = why;
        self.entries.iter().filter_map(|entry| Some(remark(entry, why(entry)?))).collect()
    }
}

/// Whether following the link leads out of the tree at any step, by the texts of the links of the subject. None where
/// that takes too long to say. Links in a circle lead nowhere.
fn leads_out(snapshot: &Snapshot, link: &Entry, steps: &mut usize) -> Option<bool> {
    let mut at: Vec<&[u8]> = parts(&link.path).collect();
    // What is still to be walked, the next step last.
    let mut ahead: Vec<&[u8]> = Vec::new();
    let mut links = 0;
    let mut next = Some(link);
    loop {
        if let Some(link) = next {
            if link.text.first() == Some(&b'/') {
                return Some(true);
            }
            links += 1;
            if links > MAX_LINKS {
                return Some(false);
            }
            at.pop();
            let before = ahead.len();
            ahead.extend(parts(&link.text));
            ahead[before..].reverse();
        }
        let Some(step) = ahead.pop() else { return Some(false) };
        *steps = steps.checked_sub(1)?;
        next = None;
        if step == b".." {
            if at.pop().is_none() {
                return Some(true);
            }
        } else {
            at.push(step);
            next = snapshot.entry(&at.join(&b'/')).filter(|entry| entry.kind == Kind::Symlink);
        }
    }
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

#[cfg(test)]
mod tests {
    use super::super::entry::StatKey;
    use super::*;
    use crate::model::Digest;
    use std::time::UNIX_EPOCH;

    fn links(links: &[(&str, &str)]) -> Vec<String> {
        let mut entries: Vec<Entry> = links
            .iter()
            .map(|(path, text)| Entry {
                path: path.as_bytes().to_vec(),
                kind: Kind::Symlink,
                size: text.len() as u64,
                digest: Digest::of(text.as_bytes()),
                tracked: false,
                text: text.as_bytes().to_vec(),
                pieces: None,
                blob: None,
                id: None,
                converted: None,
                stat: StatKey::default(),
            })
            .collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let open = Snapshot::new(entries.into_iter().map(Into::into).collect(), None, None, UNIX_EPOCH).open();
        open.into_iter().map(|remark| remark.path).collect()
    }

    #[test]
    fn a_link_is_open_when_following_it_leaves_the_tree_at_any_step() {
        let nothing: [&str; 0] = [];
        assert_eq!(links(&[("a", "b"), ("d/a", "../b"), ("d/e/f", "../../x/./y//z"), ("c", ".")]), nothing);
        assert_eq!(links(&[("a", "/etc"), ("b", ".."), ("d/c", "../../x"), ("d/d", "../d/../../project/x")]).len(), 4);
        // By another link: in the way, at the end, and where `..` goes up from where the link leads.
        assert_eq!(links(&[("out", "/etc"), ("a", "out/passwd"), ("b", "out")]), ["a", "b", "out"]);
        assert_eq!(links(&[("in", "d/e"), ("a", "in/../../x"), ("b", "in/../../../x")]), ["b"]);
        assert_eq!(links(&[("d/in", ".."), ("a", "d/in/../x")]), ["a"]);
    }

    #[test]
    fn circles_end_and_so_does_patience() {
        assert!(links(&[("a", "b"), ("b", "a"), ("c", "c/c"), ("d", "d/..")]).is_empty());
        let long = "x/".repeat(2000);
        let many: Vec<(String, &str)> = (0..600).map(|at| (format!("{at:04}"), long.as_str())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let open = links(&many);
        assert_eq!(open.len(), 600 - MAX_STEPS / 2000, "what was not followed to its end is not called closed");
    }
}
