//! Fuzz targets of this module: git's answers. What is there is understood, and what is understood is there.

use super::git::{Committed, Indexed, Listing, parse_listing, parse_tree};
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

/// `git ls-files`.
pub(crate) fn listing(input: &[u8]) {
    let print = |Listing { tracked, untracked, .. }: &Listing| {
        let mut output = Vec::new();
        for Indexed { path, mode, skipped } in tracked {
            let tag = if *skipped { 'S' } else { 'H' };
            output.extend_from_slice(format!("{tag} {mode:06o} {:040} 0\t", 0).as_bytes());
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
                made.tracked.push(Indexed { path, mode: MODES[number % 4], skipped: number % 3 == 1 });
            }
        }
        made
    });
}

/// `git ls-tree`.
pub(crate) fn tree(input: &[u8]) {
    let print = |entries: &Vec<Committed>| {
        let line = |Committed { path, mode, id, size }: &Committed| {
            let size = size.map_or_else(String::new, |size| format!(" {size:>7}"));
            [format!("{mode:06o} blob {id}{size}\t").as_bytes(), path.as_slice(), b"\0"].concat()
        };
        entries.iter().flat_map(line).collect()
    };
    both_ways(input, parse_tree, print, |records| {
        let make = |(number, path): (usize, _)| {
            let size = u64::try_from(number).ok().filter(|number| number % 2 == 0);
            Committed { path, mode: MODES[number % 4], id: format!("{number:040x}"), size }
        };
        records.into_iter().map(make).collect()
    });
}
