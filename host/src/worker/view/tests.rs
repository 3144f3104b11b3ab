//! The resolver and the tree, without an engine.

use super::contents::READ_MAX;
use super::*;
use std::sync::Mutex;

/// Contents whose every byte is known, and what was asked of them.
#[derive(Default)]
struct Counting(Mutex<Vec<(u64, usize)>>);

fn byte(at: u64) -> u8 {
    u8::try_from(at % 251).unwrap()
}

impl Contents for Counting {
    fn read(&self, _key: u32, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        self.0.lock().unwrap().push((offset, len));
        Ok((offset..).take(len).map(byte).collect())
    }

    fn identity(&self, key: u32) -> String {
        format!("test:{key}")
    }
}

fn view() -> View {
    let mut builder = TreeBuilder::new();
    for (key, path) in (0..).zip(["b/c", "a-b", "a/z", "a/b/d", "b.x", "a/.hidden"]) {
        builder.file(Mount::Tree, path, 10, false, key);
    }
    for (path, text) in [
        ("l/file", "../a/z"),
        ("l/dir", "../a"),
        ("l/self", "self"),
        ("l/one", "two"),
        ("l/two", "one"),
        ("l/out", "../../etc/passwd"),
        ("l/abs", "/tree/a/z"),
        ("l/up", ".."),
        ("l/empty", ""),
        ("l/slash", "../a/"),
        ("l/file-slash", "../a/z/"),
        ("l/dangling", "nowhere"),
        ("l/back", "../../tree/a/z"),
        ("top", "a/z"),
    ] {
        builder.symlink(Mount::Tree, path, text);
    }
    builder.symlink(Mount::Tree, "l/bytes", vec![0xff]);
    builder.directory(Mount::Tree, "sub");
    builder.mount(Mount::Spec);
    builder.file(Mount::Base, "old", 3, true, 9);
    View::new(Arc::new(builder.build().unwrap()), Arc::new(Counting::default()))
}

fn root(view: &View) -> NodeId {
    view.tree().root(Mount::Tree).unwrap()
}

/// The path of what `path` leads to from the root.
fn go(view: &View, path: &str) -> Result<String, Trouble> {
    from(view, root(view), path, true)
}

fn from(view: &View, base: NodeId, path: &str, follow: bool) -> Result<String, Trouble> {
    let mut node = view.resolve(base, path, follow, &mut Observed::new(view))?.node;
    let mut names = Vec::new();
    while view.tree().parent(node) != node {
        names.push(view.tree().name(node));
        node = view.tree().parent(node);
    }
    names.reverse();
    Ok(names.join("/"))
}

fn at(view: &View, path: &str, follow: bool) -> NodeId {
    view.resolve(root(view), path, follow, &mut Observed::new(view)).unwrap().node
}

fn listed(view: &View, path: &str) -> Vec<String> {
    let directory = at(view, path, true);
    let mut names = Vec::new();
    let mut position = 0;
    while let Some((child, next)) = view.next_child(directory, position) {
        names.push(view.tree().name(child).to_owned());
        position = next;
    }
    names
}

#[test]
fn listings_are_in_bytewise_order() {
    let view = view();
    assert_eq!(listed(&view, "."), ["a", "a-b", "b", "b.x", "l", "sub", "top"]);
    assert_eq!(listed(&view, "a"), [".hidden", "b", "z"]);
    assert!(listed(&view, "sub").is_empty());
}

#[test]
fn paths_lead_to_what_they_name() {
    let view = view();
    for (path, found) in [
        ("a/z", "a/z"),
        ("a//z", "a/z"),
        ("./a/./z", "a/z"),
        ("a/b/../z", "a/z"),
        ("a/", "a"),
        (".", ""),
        ("a/..", ""),
        ("l/file", "a/z"),
        ("l/dir/z", "a/z"),
        ("l/dir/../b/c", "b/c"),
        ("l/up/a/z", "a/z"),
        ("l/slash/z", "a/z"),
        ("top", "a/z"),
    ] {
        assert_eq!(go(&view, path), Ok(found.to_owned()), "{path}");
    }
    assert_eq!(from(&view, root(&view), "top", false), Ok("top".to_owned()));
    assert_eq!(from(&view, root(&view), "l/dir/", false), Ok("a".to_owned()), "a slash follows");
}

#[test]
fn paths_that_lead_nowhere_say_why() {
    let view = view();
    for (path, trouble) in [
        ("", Trouble::NoEntry),
        ("x", Trouble::NoEntry),
        ("a\0z", Trouble::NoEntry),
        ("A/z", Trouble::NoEntry),
        ("a/z/", Trouble::NotDirectory),
        ("a/z/.", Trouble::NotDirectory),
        ("a/z/..", Trouble::NotDirectory),
        ("l/file/x", Trouble::NotDirectory),
        ("l/file-slash", Trouble::NotDirectory),
        ("..", Trouble::NotPermitted),
        ("a/../..", Trouble::NotPermitted),
        ("a/../../tree/a/z", Trouble::NotPermitted),
        ("/a/z", Trouble::NotPermitted),
        ("/", Trouble::NotPermitted),
        ("l/out", Trouble::NotPermitted),
        ("l/abs", Trouble::NotPermitted),
        ("l/back", Trouble::NotPermitted),
        ("l/self", Trouble::Loop),
        ("l/one", Trouble::Loop),
        ("l/empty", Trouble::NoEntry),
        ("l/dangling", Trouble::NoEntry),
        ("l/bytes", Trouble::NotText),
        (&"a/".repeat(2049), Trouble::NameTooLong),
    ] {
        assert_eq!(go(&view, path), Err(trouble), "{path}");
    }
}

#[test]
fn a_folder_is_a_wall_for_paths_relative_to_it() {
    let view = view();
    let a = at(&view, "a", true);
    assert_eq!(from(&view, a, "b/../z", true), Ok("a/z".to_owned()));
    assert_eq!(from(&view, a, "../b/c", true), Err(Trouble::NotPermitted));
    let l = at(&view, "l", true);
    assert_eq!(from(&view, l, "file", true), Err(Trouble::NotPermitted), "as with openat2's RESOLVE_BENEATH");
}

#[test]
fn links_that_multiply_end() {
    let mut builder = TreeBuilder::new();
    for n in 0..50 {
        let next = format!("{}/", n + 1).repeat(40);
        builder.symlink(Mount::Tree, n.to_string(), next.trim_end_matches('/'));
    }
    builder.symlink(Mount::Tree, "50", ".");
    let view = View::new(Arc::new(builder.build().unwrap()), Arc::new(Counting::default()));
    assert_eq!(go(&view, "0"), Err(Trouble::Loop));
    let mut builder = TreeBuilder::new();
    builder.symlink(Mount::Tree, "l", "./".repeat(2000));
    let view = View::new(Arc::new(builder.build().unwrap()), Arc::new(Counting::default()));
    assert_eq!(go(&view, &"l/".repeat(39)), Err(Trouble::NameTooLong));
}

#[test]
fn a_narrowed_view_shows_one_path() {
    let all = view();
    let view = all.narrowed("a/b/d", Some("old"));
    assert_eq!(listed(&view, "."), ["a"]);
    assert_eq!(listed(&view, "a"), ["b"]);
    assert_eq!(go(&view, "a/b/d"), Ok("a/b/d".to_owned()));
    for hidden in ["a/z", "b", "l/file", "top", "a/.hidden"] {
        assert_eq!(go(&view, hidden), Err(Trouble::NoEntry), "{hidden}");
    }
    assert!(view.find(Mount::Base, "old").is_some());
    assert!(view.find(Mount::Tree, "a/z").is_none());
    assert_eq!(view.mounts().count(), 3, "which mounts there are does not change");
    assert!(all.narrowed("a/b/d", None).find(Mount::Base, "old").is_none());
    let nothing = all.narrowed("no/such", None);
    assert!(listed(&nothing, ".").is_empty());
}

#[test]
fn mounts_come_in_their_order() {
    let view = view();
    let names: Vec<_> = view.mounts().map(|(mount, _)| mount.name()).collect();
    assert_eq!(names, ["tree", "base", "spec"]);
    assert_eq!(View::empty().mounts().count(), 0);
}

#[test]
fn facts_are_those_of_the_entries() {
    let view = view();
    let find = |path| view.find(Mount::Tree, path);
    assert_eq!(find("a/z"), Some(Found { kind: FoundKind::File, size: 10 }));
    assert_eq!(find("l/file"), Some(Found { kind: FoundKind::Symlink, size: 6 }));
    assert_eq!(find("sub"), Some(Found { kind: FoundKind::Directory, size: 0 }));
    assert_eq!(find("l/dir/z"), None, "no link is followed");
}

#[test]
fn trees_refuse_what_is_no_path() {
    let build = |paths: &[&str]| {
        let mut builder = TreeBuilder::new();
        for path in paths {
            builder.file(Mount::Tree, *path, 0, false, 0);
        }
        builder.build().err()
    };
    for bad in ["", "/a", "a/", "a//b", ".", "a/../b", "a\0"] {
        assert!(matches!(build(&[bad]), Some(TreeError::Path(_))), "{bad}");
    }
    assert!(matches!(build(&["a", "a"]), Some(TreeError::Twice(_))));
    assert!(matches!(build(&["a", "a/b"]), Some(TreeError::Twice(_))));
    assert!(matches!(build(&["a/b", "a.b", "a"]), Some(TreeError::Twice(_))));
    assert!(matches!(build(&["a/".repeat(300).trim_end_matches('/')]), Some(TreeError::Long(_))));
    assert!(build(&["a/b", "a.b", "a-b", "ab"]).is_none());
}

#[test]
fn the_metadata_hash_is_of_the_entry_alone() {
    let hash = |view: &View, path| view.tree().metadata_hash(at(view, path, false));
    let all = view();
    assert_ne!(hash(&all, "a/z"), hash(&all, "b/c"));
    let mut builder = TreeBuilder::new();
    builder.file(Mount::Tree, "a/z", 10, false, 77);
    let other = View::new(Arc::new(builder.build().unwrap()), Arc::new(Counting::default()));
    assert_eq!(hash(&all, "a/z"), hash(&other, "a/z"), "other entries do not show in it");
}

/// Reads with these offsets and lengths; what was got is checked byte by byte.
fn read_all(size: u64, reads: &[(u64, u64)]) -> (Vec<usize>, Vec<(u64, usize)>) {
    let contents = Arc::new(Counting::default());
    let mut builder = TreeBuilder::new();
    builder.file(Mount::Tree, "f", size, false, 0);
    let view = View::new(Arc::new(builder.build().unwrap()), Arc::clone(&contents) as Arc<dyn Contents>);
    let file = at(&view, "f", false);
    let mut chunks = Chunks::default();
    let lengths = reads
        .iter()
        .map(|(offset, len)| {
            let piece = chunks.read(&view, &mut Observed::new(&view), file, *offset, *len).unwrap();
            let expected: Vec<u8> = (*offset..).take(piece.bytes.len()).map(byte).collect();
            assert_eq!(piece.bytes, expected);
            assert_eq!(piece.end, offset.saturating_add(piece.bytes.len() as u64) >= size, "{offset} {len}");
            piece.bytes.len()
        })
        .collect();
    let asked = contents.0.lock().unwrap().clone();
    (lengths, asked)
}

#[test]
fn reads_give_exactly_what_they_can() {
    let (lengths, asked) = read_all(100, &[(0, 10), (10, 1000), (99, 5), (100, 5), (u64::MAX, u64::MAX), (0, 0)]);
    assert_eq!(lengths, [10, 90, 1, 0, 0, 0]);
    assert_eq!(asked, [(0, 100)], "a usual file is fetched once");
}

#[test]
fn large_files_come_in_chunks() {
    let mega = 1 << 20;
    let reads = [(0, u64::MAX), (mega - 10, 100), (5 * mega / 2, 9), (0, 9), (3 * mega - 1, 9)];
    let (lengths, asked) = read_all(3 * mega, &reads);
    assert_eq!(lengths, [usize::try_from(READ_MAX).unwrap(), 100, 9, 9, 1]);
    let one = 1 << 20;
    assert_eq!(asked, [(0, one), (0, one + 90), (2 * mega, one)]);
}

#[test]
fn contents_that_are_short_have_changed() {
    struct Short;
    impl Contents for Short {
        fn read(&self, _: u32, _: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
            Ok(vec![0; len - 1])
        }

        fn identity(&self, _: u32) -> String {
            String::new()
        }
    }
    let mut builder = TreeBuilder::new();
    builder.file(Mount::Tree, "f", 10, false, 0);
    let view = View::new(Arc::new(builder.build().unwrap()), Arc::new(Short));
    let file = at(&view, "f", false);
    assert!(matches!(
        Chunks::default().read(&view, &mut Observed::new(&view), file, 0, 5),
        Err(ContentsError::Changed(_))
    ));
}

#[test]
fn names_of_any_script_make_a_tree() {
    let names = ["ab", "aé", "é", "ééé", "漢字1.md", "漢字2.md", "漢字3.md", "漢/a", "漢/é", "😀", "a", "\u{301}"];
    for skip in 0..names.len() {
        let mut builder = TreeBuilder::new();
        for (key, name) in names.iter().enumerate().filter(|(at, _)| *at != skip) {
            builder.file(Mount::Tree, *name, 1, false, u32::try_from(key).unwrap());
        }
        let view = View::new(Arc::new(builder.build().unwrap()), Arc::new(contents::Nothing));
        for (at, name) in names.iter().enumerate() {
            assert_eq!(view.find(Mount::Tree, name).is_some(), at != skip, "{name}");
        }
    }
}
