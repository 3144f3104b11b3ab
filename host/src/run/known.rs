//! Which findings a base has too: a pure function of the findings of both sides and of the contents they are in.
//!
//! Two findings are alike if rule, severity, message and place are, where paths are those of the base. In contents that
//! both sides share a place is its lines and columns; in others it is the text of its lines, so that what merely moved is
//! alike and what somebody touched is not. Each finding of the base makes one of those that are like it known, in their
//! order, so one more of the same is new.

use crate::model::{Context, Digest, Encoder, Finding, Place, Position, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// The lines of a place whose text is compared, with how many there are. A check may report a place of a million lines
/// ten thousand times, and all of that would be to hash; where so many are the same, one further down tells little.
const COMPARED_LINES: u32 = 64;

/// One side of a comparison.
pub(super) struct Side<'a> {
    /// The path in the base of something in the subject, or of the base itself, and whether it is the same in both. None
    /// where the other side has nothing of the kind.
    pub(super) path: &'a dyn Fn(&str) -> Option<(String, bool)>,
    /// The contents of its files.
    pub(super) contents: &'a Contents<'a>,
}

/// Gives the contents of a file. None for what is no file, or has more than is looked at.
pub(super) type Contents<'a> = dyn Fn(&str) -> Result<Option<Vec<u8>>, String> + 'a;

/// What makes findings alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness<'a> {
    path: Option<String>,
    rule: &'a str,
    severity: Severity,
    message: &'a str,
    spot: Spot,
}

/// Where in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Spot {
    /// At no line in particular.
    Whole,
    /// In contents that both sides share.
    At(Position, Option<Position>),
    /// At lines with this text.
    Text(Digest),
}

/// Marks those findings of the subject that the base has too. Both are in their order, and an error is contents that
/// could not be read: then nothing can be said of any.
pub(super) fn mark(
    findings: &mut [Finding],
    subject: &Side<'_>,
    of_base: &[Finding],
    base: &Side<'_>,
) -> Result<(), String> {
    if of_base.is_empty() {
        return Ok(());
    }
    let mut there: BTreeMap<Likeness<'_>, usize> = BTreeMap::new();
    for likeness in likenesses(of_base, base)?.into_iter().flatten() {
        *there.entry(likeness).or_default() += 1;
    }
    let known: Vec<bool> = likenesses(findings, subject)?
        .into_iter()
        .map(|likeness| match likeness.and_then(|likeness| there.get_mut(&likeness)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        })
        .collect();
    for (finding, known) in findings.iter_mut().zip(known) {
        finding.known |= known;
    }
    Ok(())
}

/// The likeness of each finding. None for what cannot be like any other: what is in a file that is new or that has more
/// than is looked at.
fn likenesses<'a>(findings: &'a [Finding], side: &Side<'_>) -> Result<Vec<Option<Likeness<'a>>>, String> {
    let mut all = Vec::with_capacity(findings.len());
    // Findings of a file follow each other, so each is read once.
    for of_file in findings.chunk_by(|a, b| path(a) == path(b)) {
        let spots = match path(&of_file[0]) {
            None => Some((None, vec![Some(Spot::Whole); of_file.len()])),
            Some(path) => match (side.path)(path) {
                None => None,
                Some((before, same)) => Some((Some(before), spots(of_file, path, same, side)?)),
            },
        };
        let Some((path, spots)) = spots else {
            all.extend(of_file.iter().map(|_| None));
            continue;
        };
        all.extend(of_file.iter().zip(spots).map(|(finding, spot)| {
            let Finding { rule, severity, message, .. } = finding;
            Some(Likeness { path: path.clone(), rule, severity: *severity, message, spot: spot? })
        }));
    }
    Ok(all)
}

fn path(finding: &Finding) -> Option<&str> {
    finding.place.as_ref().map(|place| place.path.as_str())
}

fn spots(findings: &[Finding], path: &str, same: bool, side: &Side<'_>) -> Result<Vec<Option<Spot>>, String> {
    let places = || findings.iter().filter_map(|finding| finding.place.as_ref());
    let by_text = !same && places().any(|place| place.start.is_some());
    let contents = if by_text { (side.contents)(path)? } else { None };
    let wanted: BTreeSet<u32> = places().filter(|_| contents.is_some()).filter_map(lines_of).flatten().collect();
    let lines = contents.as_deref().map(|contents| lines(contents, &wanted));
    let spot = |place: &Place| match (place.start, &lines) {
        (None, _) => Some(Spot::Whole),
        (Some(start), _) if same => Some(Spot::At(start, place.end)),
        (Some(_), Some(lines)) => text(place, lines).map(Spot::Text),
        (Some(_), None) => None,
    };
    Ok(places().map(spot).collect())
}

/// The last line of a place that has one. What ends before the first character of a line has nothing of it.
fn last_line(place: &Place) -> Option<u32> {
    let start = place.start?;
    Some(match place.end {
        Some(end) if end.column == 1 && end.line > start.line => end.line - 1,
        Some(end) => end.line,
        None => start.line,
    })
}

/// The lines whose text is compared.
fn lines_of(place: &Place) -> Option<std::ops::RangeInclusive<u32>> {
    let (start, last) = (place.start?.line, last_line(place)?);
    Some(start..=last.min(start.saturating_add(COMPARED_LINES - 1)))
}

/// What stands there: how many lines, and the first of them. What is beyond the end of the file is no line.
fn text(place: &Place, lines: &BTreeMap<u32, Digest>) -> Option<Digest> {
    let mut encoder = Encoder::new();
    encoder.integer(u64::from(last_line(place)? - place.start?.line));
    for line in lines_of(place)? {
        match lines.get(&line) {
            Some(digest) => encoder.integer(1).digest(digest),
            None => encoder.integer(0),
        };
    }
    Some(encoder.finish(Context::Lines))
}

/// The digests of some lines, which end with LF; without the CR that git or an editor may put there or take away.
fn lines(contents: &[u8], wanted: &BTreeSet<u32>) -> BTreeMap<u32, Digest> {
    let mut lines = BTreeMap::new();
    let mut wanted = wanted.iter().copied().peekable();
    for (line, text) in (1..).zip(contents.split(|byte| *byte == b'\n')) {
        match wanted.peek() {
            None => break,
            Some(next) if *next == line => {
                wanted.next();
                lines.insert(line, Digest::of(text.strip_suffix(b"\r").unwrap_or(text)));
            }
            Some(_) => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tree<'a> = BTreeMap<&'a str, String>;

    fn tree<'a>(files: &[(&'a str, &str)]) -> Tree<'a> {
        files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect()
    }

    /// What a check finds that does not like lines with `bad` in them; a line that begins with `!` weighs less.
    fn check(tree: &Tree<'_>) -> Vec<Finding> {
        let of_line = |path: &str, line: usize, text: &str| Finding {
            place: Some(Place {
                path: path.to_owned(),
                start: Some(Position { line: u32::try_from(line).unwrap(), column: 1 }),
                end: None,
            }),
            rule: "bad".to_owned(),
            severity: if text.starts_with('!') { Severity::Warning } else { Severity::Error },
            message: format!("this is bad{}", if text.contains("worse") { " and worse" } else { "" }),
            help: None,
            edits: Vec::new(),
            known: false,
        };
        let of_file = |(path, text): (&&str, &String)| {
            let lines = (1..).zip(text.lines()).filter(|(_, text)| text.contains("bad"));
            lines.map(|(line, text)| of_line(path, line, text)).collect::<Vec<_>>()
        };
        let mut findings: Vec<Finding> = tree.iter().flat_map(of_file).collect();
        findings.sort();
        findings
    }

    /// Marks findings of the one tree by those of the other.
    fn marked(mut findings: Vec<Finding>, of_base: &[Finding], base: &Tree<'_>, here: &Tree<'_>) -> Vec<Finding> {
        // As git tells them: the very contents under one new name.
        let gone = base.iter().filter(|(path, _)| !here.contains_key(*path));
        let renamed = |path: &str| {
            let text = here.get(path).filter(|_| !base.contains_key(path))?;
            gone.clone().find(|(_, before)| *before == text).map(|(before, _)| (*before).to_owned())
        };
        let path = |path: &str| match (base.get(path), here.get(path)) {
            (Some(before), Some(now)) => Some((path.to_owned(), before == now)),
            (None, _) => renamed(path).map(|before| (before, true)),
            (Some(_), None) => None,
        };
        let was = |path: &str| {
            let renamed = here.keys().any(|now| renamed(now).as_deref() == Some(path));
            Some((path.to_owned(), renamed || base.get(path) == here.get(path)))
        };
        let contents = |of: &Tree<'_>, path: &str| Ok(of.get(path).map(|text| text.clone().into_bytes()));
        let subject = Side { path: &path, contents: &|path| contents(here, path) };
        mark(&mut findings, &subject, of_base, &Side { path: &was, contents: &|path| contents(base, path) }).unwrap();
        findings
    }

    /// The lines that have something new.
    fn new(base: &[(&str, &str)], here: &[(&str, &str)]) -> Vec<String> {
        let (base, here) = (tree(base), tree(here));
        let findings = marked(check(&here), &check(&base), &base, &here);
        let places = findings.into_iter().filter(|finding| !finding.known).filter_map(|finding| finding.place);
        places.map(|place| format!("{}:{}", place.path, place.start.unwrap().line)).collect()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn what_the_base_has_is_known_wherever_it_moved_to_in_its_file() {
        let base = [("a", "bad 1\nok\nbad 2\n"), ("b", "bad 1\nbad 1\n")];
        assert_eq!(new(&base, &base), NOTHING, "the same tree");
        let shifted = [("a", "new\nnew\nbad 1\nnew\nok\nbad 2\n"), ("b", "bad 1\nok\nbad 1\n")];
        assert_eq!(new(&base, &shifted), NOTHING, "lines above and between");
        assert_eq!(new(&base, &[("a", "bad 2\nbad 1\n"), ("b", "bad 1\n")]), NOTHING, "another order, and less");
        assert_eq!(new(&base, &[("c", "bad 1\nok\nbad 2\n"), ("b", "bad 1\nbad 1\n")]), NOTHING, "another name");
        assert_eq!(new(&base, &[("a", "bad 1\r\nok\r\nbad 2\r\n"), ("b", "bad 1\r\n")]), NOTHING, "other line ends");
        assert_eq!(new(&base, &[]), NOTHING);
    }

    #[test]
    fn what_the_base_has_not_is_new() {
        let base = [("a", "bad 1\nok\n"), ("b", "ok\n")];
        assert_eq!(new(&base, &[("a", "bad 1\nok\nbad 1\n")]), ["a:3"], "once more is one new");
        assert_eq!(new(&base, &[("a", "bad 1\nbad 1\nbad 1\n")]), ["a:2", "a:3"]);
        assert_eq!(new(&base, &[("a", "bad 2\nok\n")]), ["a:1"], "another text");
        assert_eq!(new(&base, &[("a", "bad 1 and worse\n")]), ["a:1"], "another message");
        assert_eq!(new(&[("a", "! bad\n")], &[("a", "ok\n!  bad\n")]), ["a:2"], "a line that was touched");
        assert_eq!(new(&base, &[("a", "ok\n"), ("b", "bad 1\n")]), ["b:1"], "another file");
        assert_eq!(new(&[], &base), ["a:1"], "nothing in the base");
        assert_eq!(new(&base, &[("a", "bad 1\nok\n"), ("c", "bad 1\nok\n")]), ["c:1"], "a copy of a file");
    }

    #[test]
    fn rule_severity_and_message_have_to_be_the_same_too() {
        let (base, here) = (tree(&[("a", "bad\n")]), tree(&[("a", "ok\nbad\n")]));
        let others: [fn(&mut Finding); 3] = [
            |finding| finding.rule = "other".to_owned(),
            |finding| finding.severity = Severity::Warning,
            |finding| finding.message = "other".to_owned(),
        ];
        for other in others {
            let mut of_base = check(&base);
            of_base.iter_mut().for_each(other);
            assert!(!marked(check(&here), &of_base, &base, &here)[0].known);
        }
        // What helps against it, and what would mend it, is no part of what it is.
        let mut of_base = check(&base);
        of_base[0].help = Some("other".to_owned());
        assert!(marked(check(&here), &of_base, &base, &here)[0].known);
    }

    #[test]
    fn each_finding_of_the_base_excuses_one_whatever_the_trees() {
        let mut state = 7_u64;
        let mut number = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let words = ["bad 1", "bad 2", "! bad", "ok", ""];
        for _ in 0..500 {
            let mut text = || (0..number(9)).flat_map(|_| [words[number(5)], "\n"]).collect::<String>();
            let (before, now) = (text(), text());
            let count = |text: &str, word: &str| text.lines().filter(|line| *line == word).count();
            let bad = ["bad 1", "bad 2", "! bad"].iter();
            let expected: usize = bad.map(|word| count(&now, word).saturating_sub(count(&before, word))).sum();
            let found = new(&[("a", &before)], &[("a", &now)]);
            assert_eq!(found.len(), expected, "{before:?} {now:?}: {found:?}");
        }
    }

    #[test]
    fn places_of_several_lines_are_alike_by_all_of_them_up_to_a_bound() {
        let at = |line, end| Finding {
            place: Some(Place {
                path: "a".to_owned(),
                start: Some(Position { line, column: 1 }),
                end: Some(Position { line: end, column: 2 }),
            }),
            ..check(&tree(&[("a", "bad")])).remove(0)
        };
        let known = |before: &str, of_base: Finding, now: &str, finding: Finding| {
            let (base, here) = (tree(&[("a", before)]), tree(&[("a", now)]));
            marked(vec![finding], &[of_base], &base, &here)[0].known
        };
        assert!(known("1\n2\n3\n", at(1, 3), "0\n1\n2\n3\n", at(2, 4)));
        assert!(!known("1\n2\n3\n", at(1, 3), "0\n1\nx\n3\n", at(2, 4)), "one in between");
        assert!(!known("1\n2\n3\n", at(1, 2), "0\n1\n2\n3\n", at(2, 4)), "one more");
        // A place may be anywhere, also where no line is.
        assert!(known("", at(u32::MAX, u32::MAX), "0", at(u32::MAX, u32::MAX)));
        let many = "1\n".repeat(100);
        assert!(known(&many, at(1, 100), &format!("0\n{many}"), at(2, 101)));
        // Without a start it is the file as a whole.
        let whole = || Finding {
            place: Some(Place { path: "a".to_owned(), start: None, end: None }),
            ..check(&tree(&[("a", "bad")])).remove(0)
        };
        assert!(known("1\n", whole(), "2\n", whole()));
        assert!(!known("1\n", whole(), "2\n", at(1, 1)));
        let nowhere = || Finding { place: None, ..whole() };
        assert!(known("1\n", nowhere(), "2\n", nowhere()));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_what_is_not_looked_at_is_new() {
        let findings = check(&tree(&[("a", "bad\n")]));
        let changed = |path: &str| Some((path.to_owned(), false));
        let compare = |contents: &Contents<'_>| {
            let mut marked = findings.clone();
            let side = || Side { path: &changed, contents };
            mark(&mut marked, &side(), &findings, &side()).map(|()| marked[0].known)
        };
        assert_eq!(compare(&|_| Ok(Some(b"\xff bad\n".to_vec()))), Ok(true), "bytes of any kind");
        assert_eq!(compare(&|_| Ok(None)), Ok(false));
        assert_eq!(compare(&|_| Err("gone".to_owned())), Err("gone".to_owned()));
    }
}
