//! Whether what is noted is all that was learned: as long as everything noted holds in another tree, the same questions
//! must get the same answers there.

use super::*;
use crate::model::{Bytes, Observation, Step};

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % count as u64).unwrap()
    }
}

/// What a file holds is its key, which is its size as well.
struct Keyed;

impl Contents for Keyed {
    fn read(&self, key: u32, _offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        Ok(vec![u8::try_from(key).unwrap(); len])
    }

    fn identity(&self, key: u32) -> String {
        format!("key:{key}")
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const TEXTS: [&str; 6] = ["a", "b/c", "..", "../a", ".", "c/"];

/// A tree whose entries are drawn from few names, so that edits meet what was asked.
type Entries = std::collections::BTreeMap<String, Entry>;

#[derive(Clone, Copy, PartialEq)]
enum Entry {
    File(u32),
    Link(&'static str),
    Folder,
}

fn draw(numbers: &mut Numbers) -> (String, Entry) {
    let depth = 1 + numbers.below(3);
    let path: Vec<_> = (0..depth).map(|_| NAMES[numbers.below(4)]).collect();
    let entry = match numbers.below(5) {
        0 => Entry::Link(TEXTS[numbers.below(6)]),
        1 => Entry::Folder,
        _ => Entry::File(u32::try_from(numbers.below(3)).unwrap()),
    };
    (path.join("/"), entry)
}

fn view(entries: &Entries) -> Option<View> {
    let mut builder = TreeBuilder::new();
    builder.mount(Mount::Tree);
    for (path, entry) in entries {
        match entry {
            Entry::File(key) => builder.file(Mount::Tree, path.as_str(), u64::from(*key), false, *key),
            Entry::Link(text) => builder.symlink(Mount::Tree, path.as_str(), *text),
            Entry::Folder => builder.directory(Mount::Tree, path.as_str()),
        };
    }
    Some(View::new(Arc::new(builder.build().ok()?), Arc::new(Keyed)))
}

/// Asks a fixed sequence of questions, and gives every answer as text.
fn ask(view: &View, mut numbers: Numbers, observed: &mut Observed) -> Vec<String> {
    let root = view.tree().root(Mount::Tree).unwrap();
    let mut chunks = Chunks::default();
    let mut held = vec![root];
    let mut answers = Vec::new();
    for _ in 0..4 {
        let path: Vec<_> = (0..=numbers.below(3)).map(|_| ["a", "b", "c", "d", "..", "."][numbers.below(6)]).collect();
        let (base, follow, what) = (numbers.below(8), numbers.below(2) == 0, numbers.below(4));
        let base = held[base % held.len()];
        let found = view.resolve(base, &path.join("/"), follow, observed);
        answers.push(format!("{:?}", found.map(|found| view.tree().facts(found.node).kind)));
        let Ok(found) = found else { continue };
        match (what, view.tree().kind(found.node)) {
            (0, Kind::Directory { .. }) => {
                observed.see(found.node, Sight::LISTING);
                let mut position = 0;
                while let Some((child, next)) = view.next_child(found.node, position) {
                    position = next;
                    answers.push(format!("{} {:?}", view.tree().name(child), view.tree().facts(child).kind));
                }
            }
            (0 | 1, Kind::File { .. }) => {
                let piece = chunks.read(view, observed, found.node, 0, 9).unwrap();
                answers.push(format!("{:?}", piece.bytes));
            }
            (2, _) => {
                observed.see(found.node, Sight::SIZE);
                answers.push(format!("{:?}", view.tree().facts(found.node)));
            }
            (3, Kind::Directory { .. }) => held.push(found.node),
            (_, Kind::Symlink { start, len }) => answers.push(format!("{:?}", view.tree().link_text(start, len))),
            _ => {}
        }
    }
    answers
}

/// Whether what was observed is so in this view.
fn holds(view: &View, one: &Observation) -> bool {
    let Some(root) = view.tree().root(one.mount) else { return false };
    let found = if one.path.is_empty() { Some(root) } else { view.exact(root, &one.path) };
    let kind = found.map(|node| view.tree().kind(node));
    match (&one.step, kind) {
        (Step::Absent, None)
        | (Step::Directory, Some(Kind::Directory { .. }))
        | (Step::File, Some(Kind::File { .. })) => true,
        (Step::Size(size), Some(Kind::File { size: is, .. })) => *size == is,
        (Step::Contents(identity), Some(Kind::File { key, .. })) => *identity == view.contents().identity(key),
        (Step::Link(Bytes(text)), Some(Kind::Symlink { start, len })) => text == view.tree().link_text(start, len),
        (Step::Listing(_), Some(Kind::Directory { .. })) => {
            observations(view, &[Noted(one.mount, one.path.clone(), 8)], |_| true).unwrap() == [one.clone()]
        }
        _ => false,
    }
}

fn record(view: &View, seed: u64) -> (Vec<String>, Vec<Observation>) {
    let mut observed = Observed::new(view);
    let answers = ask(view, Numbers(seed), &mut observed);
    (answers, observations(view, &observed.notes(view), |_| true).unwrap())
}

#[test]
fn as_long_as_all_that_was_noted_holds_the_answers_are_the_same() {
    let (mut held, mut broken) = (0, 0);
    for seed in 0..20_000 {
        let mut numbers = Numbers(seed * 7 + 1);
        let mut entries: Entries = (0..numbers.below(8)).map(|_| draw(&mut numbers)).collect();
        let Some(before) = view(&entries) else { continue };
        for _ in 0..=numbers.below(2) {
            let (path, entry) = draw(&mut numbers);
            if numbers.below(3) == 0 {
                entries.remove(&path)
            } else {
                entries.insert(path, entry)
            };
        }
        let Some(after) = view(&entries) else { continue };
        let (answers, noted) = record(&before, seed);
        if noted.iter().all(|one| holds(&after, one)) {
            held += 1;
            assert_eq!(record(&after, seed), (answers, noted), "seed {seed}");
        } else {
            broken += 1;
        }
    }
    // Both must have been tried, or nothing was shown.
    assert!(held > 3_000 && broken > 3_000, "{held} held, {broken} did not");
}

fn small() -> View {
    let entries = [("a/b", Entry::File(1)), ("a/c", Entry::File(2)), ("l", Entry::Link("a/b")), ("s", Entry::Folder)];
    view(&entries.into_iter().map(|(path, entry)| (path.to_owned(), entry)).collect()).unwrap()
}

#[test]
fn each_place_is_noted_once_and_what_follows_from_another_is_not() {
    let view = small();
    let root = view.tree().root(Mount::Tree).unwrap();
    let mut observed = Observed::new(&view);
    for path in ["a/b", "l", "a/b", "a/x", "a/x"] {
        let _ = view.resolve(root, path, true, &mut observed);
    }
    let noted = observations(&view, &observed.notes(&view), |_| true).unwrap();
    let step = |path: &str, step| Observation { mount: Mount::Tree, path: path.to_owned(), step };
    let link = Step::Link(Bytes(b"a/b".to_vec()));
    assert_eq!(noted, [step("a/b", Step::File), step("a/x", Step::Absent), step("l", link)]);
}

#[test]
fn names_in_vain_without_end_are_noted_as_the_names_that_are_there() {
    let view = small();
    let root = view.tree().root(Mount::Tree).unwrap();
    let mut observed = Observed::new(&view);
    for count in 0..2_000 {
        let _ = view.resolve(root, &format!("{count:01000}"), true, &mut observed);
    }
    let noted = observations(&view, &observed.notes(&view), |_| true).unwrap();
    assert!(matches!(noted[..], [Observation { step: Step::Listing(_), .. }]), "{noted:?}");
}

#[test]
fn a_worker_that_says_what_cannot_be_is_not_believed() {
    let view = small();
    let given = |key| key == 1;
    let note = |path: &str, seen| observations(&view, &[Noted(Mount::Tree, path.to_owned(), seen)], given);
    for (path, seen) in [("a/b", 0), ("nothing", 1), ("a/c", 4), ("a/b", 8), ("a", 4), ("l", 4), ("l", 8), ("a/b", 16)]
    {
        assert_eq!(note(path, seen), Err(Untrue), "{path} {seen}");
    }
    assert!(observations(&view, &[Noted(Mount::Base, String::new(), 1)], given).is_err());
    for (path, seen) in [("a/b", 7), ("nothing", 0), ("a", 9), ("s", 8), ("l", 1), ("", 8)] {
        assert!(note(path, seen).is_ok(), "{path} {seen}");
    }
}
