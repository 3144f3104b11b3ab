//! Fuzz targets of this module: git's answers. What is there is understood, and what is understood is there.

use super::git::{Indexed, Listing, parse_listing};
use super::id::ObjectId;
use super::trees;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// The modes that git writes.
const MODES: [u32; 4] = [0o100_644, 0o100_755, 0o120_000, 0o160_000];

/// Takes the input for an answer, and for what an answer is about: `make` makes a value of each record of it, given
/// as a number and a path. Both ways, what is printed as git prints it is understood as what it was.
fn both_ways<T: PartialEq + Debug>(
    input: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, String>,
    print: impl Fn(&T) -> Vec<u8>,
    make: impl FnOnce(Vec<(usize, Vec<u8>)>) -> T,
) {
    match parse(input) {
        Ok(parsed) => assert_eq!(parse(&print(&parsed)).as_ref(), Ok(&parsed)),
        // What is quoted of the answer stays short.
        Err(shown) => assert!(shown.len() <= 240, "{shown}"),
    }
    let records = input.split(|byte| *byte == 0).filter_map(|record| {
        let (number, path) = record.split_first()?;
        (!path.is_empty()).then(|| (usize::from(*number), path.to_vec()))
    });
    let known = make(records.collect());
    assert_eq!(parse(&print(&known)).as_ref(), Ok(&known));
}

/// The id with this number.
fn id(number: usize) -> ObjectId {
    ObjectId::parse(format!("{number:040x}").as_bytes()).expect("forty digits")
}

/// `git ls-files`.
pub(crate) fn listing(input: &[u8]) {
    let print = |Listing { tracked, untracked, .. }: &Listing| {
        let mut output = Vec::new();
        for Indexed { path, mode, id, skipped } in tracked {
            let tag = if *skipped { 'S' } else { 'H' };
            let (id, stage) = id.as_ref().map_or_else(|| ("0".repeat(40), 2), |id| (id.to_string(), 0));
            output.extend_from_slice(format!("{tag} {mode:06o} {id} {stage}\t").as_bytes());
            output.extend_from_slice(path);
            output.push(0);
        }
        for path in untracked {
            output.extend_from_slice(&[b"? ", path.as_slice(), b"\0"].concat());
        }
        output
    };
    both_ways(input, parse_listing, print, |records| {
        let mut made = Listing::default();
        for (number, path) in records {
            if number % 3 == 0 {
                made.untracked.push(path);
            } else if made.tracked.last().is_none_or(|last| last.path != path) {
                let id = (number % 5 > 0).then(|| id(number));
                made.tracked.push(Indexed { path, mode: MODES[number % 4], id, skipped: number % 3 == 1 });
            }
        }
        made
    });
}

/// A tree object.
pub(crate) fn tree(input: &[u8]) {
    let print = |lines: &Vec<(u32, Vec<u8>, ObjectId)>| {
        let line = |(mode, name, id): &(u32, Vec<u8>, ObjectId)| {
            [format!("{mode:o} ").as_bytes(), name.as_slice(), b"\0", id.as_bytes()].concat()
        };
        lines.iter().flat_map(line).collect()
    };
    let parse = |bytes: &[u8]| {
        let lines = trees::parse(bytes, 20)?;
        let names: BTreeSet<&[u8]> = lines.iter().map(|(_, name, _)| *name).collect();
        assert_eq!(names.len(), lines.len());
        assert!(names.iter().all(|name| !matches!(*name, b"" | b"." | b"..") && !name.contains(&b'/')));
        Ok(lines.into_iter().map(|(mode, name, id)| (mode, name.to_vec(), id)).collect())
    };
    both_ways(input, parse, print, |records| {
        let mut names = BTreeSet::new();
        let fits = |(_, name): &(usize, Vec<u8>)| {
            let plain = !matches!(name.as_slice(), b"." | b"..") && !name.eq_ignore_ascii_case(b".git");
            plain && !name.contains(&b'/') && names.insert(name.clone())
        };
        let make = |(number, name): (usize, Vec<u8>)| (MODES[number % 4], name, id(number));
        records.into_iter().filter(fits).map(make).collect()
    });
}
