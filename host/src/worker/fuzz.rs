//! Fuzz target of the view: random trees and paths, held against a model that is as plain as can be; and what other
//! targets need of this module.
//!
//! A line of the view's inputs is one of
//!
//! ```text
//! f PATH|SIZE     a file on /tree        F …   the same on /base
//! l PATH|TEXT     a link                 L …   the same, its text 300 times over
//! d PATH          a folder               D …   the same on /base
//! n PATH          narrow the view        N PATH|BASE
//! b PATH          go on from this folder of /tree; B PATH: of /base
//! q PATH          where does it lead?    Q …   and a link at its end is not followed
//! r PATH          the path 300 times over
//! ```

use super::frame::{Kind as FrameKind, read};
use super::view::{
    Contents, ContentsError, FoundKind, Kind, NodeId, Observed, TreeBuilder, TreeError, Trouble, View, observations,
};
use super::{Node, What};
use crate::fuzz_kit::lines;
use crate::model::Mount;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What the limits are meant to be, said again.
const LONGEST_PATH: usize = 4096;
const MOST_LINKS: usize = 40;
const MOST_STEPS: u32 = 8192;
const DEEPEST: usize = 256;

/// More entries, or more questions, find nothing else and take long.
const MOST_ENTRIES: usize = 64;
const MOST_QUESTIONS: usize = 24;

const REPEATED: usize = 300;

#[derive(Clone, PartialEq)]
enum Leaf {
    Directory,
    File(u64),
    Link(Vec<u8>),
}

/// Every path of one mount, folders included, and what is there. The root is not in it.
type Plain = BTreeMap<Vec<String>, Leaf>;

struct NoContents;

impl Contents for NoContents {
    fn read(&self, _key: u32, _offset: u64, _len: usize) -> Result<Vec<u8>, ContentsError> {
        Err(ContentsError::Failed("there are none".to_owned()))
    }

    fn identity(&self, _key: u32) -> String {
        String::new()
    }
}

fn parts(path: &str) -> Vec<String> {
    path.split('/').map(str::to_owned).collect()
}

/// The model of these entries; none where they make no tree.
fn plain(entries: &[(Mount, String, Leaf)], mount: Mount) -> Option<Plain> {
    let mut plain = Plain::new();
    let mut folders = BTreeSet::new();
    for (_, path, leaf) in entries.iter().filter(|(on, _, _)| *on == mount) {
        let names = parts(path);
        folders.extend((1..names.len()).map(|end| names[..end].to_vec()));
        if plain.insert(names, leaf.clone()).is_some() {
            return None;
        }
    }
    for folder in folders {
        if plain.insert(folder, Leaf::Directory).is_some() {
            return None;
        }
    }
    Some(plain)
}

/// What is left of a model when it is narrowed to one path.
fn narrowed(plain: &Plain, path: Option<&str>) -> Plain {
    let chosen = path.map(parts).filter(|path| plain.contains_key(path)).unwrap_or_default();
    let kept = |at: &Vec<String>| chosen.starts_with(at);
    plain.iter().filter(|(at, _)| kept(at)).map(|(at, leaf)| (at.clone(), leaf.clone())).collect()
}

fn put_ahead<'a>(ahead: &mut VecDeque<(&'a str, bool)>, path: &'a str, follow: bool) -> Result<(), Trouble> {
    if path.is_empty() || path.contains('\0') {
        return Err(Trouble::NoEntry);
    }
    if path.starts_with('/') {
        return Err(Trouble::NotPermitted);
    }
    for (index, name) in path.rsplit('/').enumerate() {
        ahead.push_front((name, index > 0 || follow));
    }
    Ok(())
}

/// Where a path leads from a folder, and after how many steps.
fn lead(plain: &Plain, base: &[String], path: &str, follow: bool) -> Result<(Vec<String>, u32), Trouble> {
    if path.len() > LONGEST_PATH {
        return Err(Trouble::NameTooLong);
    }
    let (mut at, mut steps, mut links) = (base.to_vec(), 0, 0);
    // The names ahead, each with whether a link of that name is followed.
    let mut ahead = VecDeque::new();
    put_ahead(&mut ahead, path, follow)?;
    while let Some((name, follow)) = ahead.pop_front() {
        steps += 1;
        if steps > MOST_STEPS {
            return Err(Trouble::NameTooLong);
        }
        if !at.is_empty() && plain.get(&at) != Some(&Leaf::Directory) {
            return Err(Trouble::NotDirectory);
        }
        match name {
            "" | "." => {}
            ".." if at == base => return Err(Trouble::NotPermitted),
            ".." => drop(at.pop()),
            _ => {
                let folder = at.clone();
                at.push(name.to_owned());
                if let Leaf::Link(text) = plain.get(&at).ok_or(Trouble::NoEntry)?
                    && follow
                {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Trouble::Loop);
                    }
                    let text = std::str::from_utf8(text).map_err(|_| Trouble::NotText)?;
                    put_ahead(&mut ahead, text, true)?;
                    at = folder;
                }
            }
        }
    }
    Ok((at, steps))
}

/// The path of a node from its mount's root.
fn path_of(view: &View, mut node: NodeId) -> Vec<String> {
    let mut names = VecDeque::new();
    while view.tree().parent(node) != node {
        names.push_front(view.tree().name(node).to_owned());
        node = view.tree().parent(node);
    }
    names.into()
}

fn node_at(view: &View, mount: Mount, path: &[String]) -> Option<NodeId> {
    let root = view.tree().root(mount)?;
    let child = |node, name: &String| view.tree().child(node, name).filter(|child| view.shows(*child));
    path.iter().try_fold(root, child)
}

/// The same view as another process makes it: of what is to be seen, in another order.
fn rebuilt(view: &View) -> View {
    let mut tree = TreeBuilder::new();
    for mount in view.mount_list() {
        tree.mount(mount);
    }
    for Node { mount, path, what } in view.nodes().into_iter().rev() {
        match what {
            What::File { size, executable, key } => tree.file(mount, path, size, executable, key),
            What::Symlink { text } => tree.symlink(mount, path, text.0),
            What::Directory => tree.directory(mount, path),
        };
    }
    let tree = tree.build().expect("what a view shows makes a view");
    View::new(Arc::new(tree), Arc::new(NoContents))
}

/// Whether a view shows exactly what a model has, by name and in listings.
fn same(view: &View, mount: Mount, plain: &Plain) {
    let root = view.tree().root(mount).expect("the mount was declared");
    let mut folders = vec![(root, Vec::new())];
    let mut seen = 0;
    while let Some((folder, path)) = folders.pop() {
        let (mut names, mut position) = (Vec::new(), 0);
        while let Some((child, next)) = view.next_child(folder, position) {
            position = next;
            let at = [path.as_slice(), &[view.tree().name(child).to_owned()]].concat();
            let kind = match plain.get(&at) {
                Some(Leaf::Directory) => (FoundKind::Directory, 0),
                Some(Leaf::File(size)) => (FoundKind::File, *size),
                Some(Leaf::Link(text)) => (FoundKind::Symlink, text.len() as u64),
                None => panic!("{at:?} is shown and is not there"),
            };
            let found = view.find(mount, &at.join("/")).expect("what is listed is found");
            assert_eq!((found.kind, found.size), kind, "{at:?}");
            names.push(at.last().cloned());
            seen += 1;
            if matches!(view.tree().kind(child), Kind::Directory { .. }) {
                folders.push((child, at));
            }
        }
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }
    assert_eq!(seen, plain.len(), "something is there and is not shown");
}

/// Trees and paths.
pub(crate) fn paths(input: &[u8]) {
    let mut entries: Vec<(Mount, String, Leaf)> = Vec::new();
    let mut rest = Vec::new();
    for (letter, mut fields) in lines(input).take(MOST_ENTRIES + MOST_QUESTIONS) {
        let mount = if letter.is_ascii_uppercase() && letter != b'L' { Mount::Base } else { Mount::Tree };
        let leaf = match letter {
            b'f' | b'F' | b'l' | b'L' | b'd' | b'D' if entries.len() == MOST_ENTRIES => continue,
            b'f' | b'F' => (fields.text(), Leaf::File(fields.number())),
            b'l' => (fields.text(), Leaf::Link(fields.bytes().to_vec())),
            b'L' => (fields.text(), Leaf::Link(fields.bytes().repeat(REPEATED))),
            b'd' | b'D' => (fields.text(), Leaf::Directory),
            _ => {
                rest.push((letter, fields));
                continue;
            }
        };
        entries.push((mount, leaf.0, leaf.1));
    }
    let mut tree = TreeBuilder::new();
    tree.mount(Mount::Tree).mount(Mount::Base);
    for (key, (mount, path, leaf)) in (0..).zip(&entries) {
        match leaf {
            Leaf::Directory => tree.directory(*mount, path.as_str()),
            Leaf::File(size) => tree.file(*mount, path.as_str(), *size, false, key),
            Leaf::Link(text) => tree.symlink(*mount, path.as_str(), text.as_slice()),
        };
    }
    let odd = |name: &String| matches!(name.as_str(), "" | "." | "..") || name.contains('\0');
    let bad = |path: &str| path.len() > LONGEST_PATH || parts(path).len() > DEEPEST || parts(path).iter().any(odd);
    let bad = entries.iter().any(|(_, path, _)| bad(path));
    let models = plain(&entries, Mount::Tree).zip(plain(&entries, Mount::Base));
    let (tree, (mut on_tree, mut on_base)) = match (tree.build(), models) {
        (Ok(tree), Some(models)) if !bad => (tree, models),
        (Err(TreeError::Path(_) | TreeError::Long(_)), _) if bad => return,
        (Err(TreeError::Twice(_)), None) if !bad => return,
        (built, models) => panic!("{built:?}, and the paths are bad: {bad}, at odds: {}", models.is_none()),
    };
    let mut view = View::new(Arc::new(tree), Arc::new(NoContents));
    same(&view, Mount::Tree, &on_tree);
    same(&view, Mount::Base, &on_base);
    let mut other = rebuilt(&view);
    let mut base = (Mount::Tree, Vec::new());
    for (letter, mut fields) in rest.into_iter().take(MOST_QUESTIONS) {
        let path = fields.text();
        match letter {
            b'n' | b'N' => {
                let base_path = (letter == b'N').then(|| fields.text());
                view = view.narrowed(&path, base_path.as_deref());
                (on_tree, on_base) = (narrowed(&on_tree, Some(&path)), narrowed(&on_base, base_path.as_deref()));
                same(&view, Mount::Tree, &on_tree);
                same(&view, Mount::Base, &on_base);
                other = rebuilt(&view);
                same(&other, Mount::Tree, &on_tree);
                same(&other, Mount::Base, &on_base);
                base = (Mount::Tree, Vec::new());
            }
            b'b' | b'B' => {
                let (mount, plain) = if letter == b'b' { (Mount::Tree, &on_tree) } else { (Mount::Base, &on_base) };
                let folder = plain.get(&parts(&path)) == Some(&Leaf::Directory);
                base = (mount, if folder { parts(&path) } else { Vec::new() });
            }
            b'q' | b'Q' | b'r' => {
                let path = if letter == b'r' { path.repeat(REPEATED) } else { path };
                let plain = if base.0 == Mount::Tree { &on_tree } else { &on_base };
                for view in [&view, &other] {
                    ask(view, &base, plain, &path, letter != b'Q');
                }
                let hash = |view: &View| {
                    let from = node_at(view, base.0, &base.1)?;
                    Some(
                        view.tree().metadata_hash(view.resolve(from, &path, true, &mut Observed::new(view)).ok()?.node),
                    )
                };
                assert_eq!(hash(&view), hash(&other), "an entry's identity depends on others");
            }
            _ => {}
        }
    }
}

fn ask(view: &View, base: &(Mount, Vec<String>), plain: &Plain, path: &str, follow: bool) {
    let from = node_at(view, base.0, &base.1).expect("the folder is there");
    let mut observed = Observed::new(view);
    let found = view.resolve(from, path, follow, &mut observed);
    // Whatever was learned on the way can be said of this view.
    assert!(observations(view, &observed.notes(view), |_| false).is_ok(), "{path:?} from {base:?}");
    let led = found.map(|found| (path_of(view, found.node), found.steps));
    assert_eq!(led, lead(plain, &base.1, path, follow), "{path:?} from {base:?}");
    if let Ok(found) = found {
        assert!(view.shows(found.node) && found.steps <= MOST_STEPS);
        assert!(path_of(view, found.node).starts_with(&base.1), "{path:?} leads out of {base:?}");
    }
}

/// The frames of a stream as a worker reads them, and whether the stream ended between two.
pub(crate) fn frames(mut stream: &[u8]) -> (Vec<(FrameKind, Vec<u8>)>, bool) {
    let mut frames = Vec::new();
    while !stream.is_empty() {
        match read(&mut stream) {
            Ok(frame) => frames.push(frame),
            Err(_) => return (frames, false),
        }
    }
    (frames, true)
}

/// A view of files of these sizes on `/tree`. None where the paths make no tree.
pub(crate) fn view_of<'a>(files: impl Iterator<Item = (&'a str, u64)>) -> Option<View> {
    let mut tree = TreeBuilder::new();
    tree.mount(Mount::Tree);
    for (path, size) in files {
        tree.file(Mount::Tree, path, size, false, 0);
    }
    Some(View::new(Arc::new(tree.build().ok()?), Arc::new(NoContents)))
}
