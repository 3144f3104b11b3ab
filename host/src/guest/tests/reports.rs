//! Reports and descriptions that break the contract.

use super::*;

fn at(path: &str, start: Option<(u32, u32)>, end: Option<(u32, u32)>) -> Guest {
    finding(Finding { path: Some(path.into()), start, end, ..Finding::default() })
}

fn edits(edits: &[(&str, u64, u64)]) -> Guest {
    let edit = |(path, start, end): &(&str, u64, u64)| Edit {
        path: (*path).into(),
        start: *start,
        end: *end,
        replacement: b"x".to_vec(),
    };
    finding(Finding { edits: edits.iter().map(edit).collect(), ..Finding::default() })
}

#[test]
fn places_must_be_in_what_was_given() {
    for path in ["nope", "", "/a.txt", "../a.txt", "b/../a.txt", "./a.txt", "a.txt/", "/tree/a.txt"] {
        refused(&at(path, None, None), "none that the check was given");
    }
    for path in ["a.txt", "b/c.txt", "b", "zz-link"] {
        report(&at(path, None, None));
    }
}

#[test]
fn positions_count_from_one_and_forward() {
    refused(&at("a.txt", Some((0, 1)), None), "count from 1");
    refused(&at("a.txt", Some((1, 0)), None), "count from 1");
    refused(&at("a.txt", None, Some((1, 1))), "no start");
    refused(&at("a.txt", Some((2, 1)), Some((1, 9))), "ends before");
    report(&at("a.txt", Some((1, 1)), Some((1, 1))));
}

#[test]
fn edits_stay_in_their_files() {
    report(&edits(&[("a.txt", 0, 6), ("b/c.txt", 1, 1)]));
    refused(&edits(&[("a.txt", 0, 7)]), "6 bytes");
    refused(&edits(&[("a.txt", 3, 2)]), "6 bytes");
    refused(&edits(&[("a.txt", u64::MAX, u64::MAX)]), "6 bytes");
    refused(&edits(&[("zz-link", 0, 0)]), "no regular file");
    refused(&edits(&[("b", 0, 0)]), "no regular file");
    refused(&edits(&[("nope", 0, 0)]), "no file");
    refused(&edits(&[("a.txt", 2, 4), ("a.txt", 0, 3)]), "overlap");
    refused(&edits(&[("a.txt", 2, 2), ("a.txt", 2, 2)]), "overlap");
}

#[test]
fn rules_messages_and_counts_are_held_to_the_contract() {
    refused(&finding(Finding { rule: b"other".to_vec(), ..Finding::default() }), "no such rule");
    refused(&finding(Finding { message: b" \n".to_vec(), ..Finding::default() }), "message is empty");
    refused(&finding(Finding { message: vec![b'x'; 9000], ..Finding::default() }), "9000 bytes");
    let twice = Outcome::Report(vec![Finding::default(), Finding::default()], Vec::new());
    refused(&Guest { outcome: twice, ..Guest::default() }, "are equal");
    let stats = |stats: &[(&str, u64)]| Guest {
        outcome: Outcome::Report(Vec::new(), stats.iter().map(|(name, n)| ((*name).into(), *n)).collect()),
        ..Guest::default()
    };
    report(&stats(&[("a", (1 << 53) - 1)]));
    refused(&stats(&[("a", 1 << 53)]), "may be");
    refused(&stats(&[("a", 1), ("a", 2)]), "twice");
    refused(&stats(&[("A b", 1)]), "lower-case");
}

#[test]
fn descriptions_are_held_to_the_contract() {
    let with =
        |check: Check| Guest { pack: guests::Pack { checks: vec![check], ..Default::default() }, ..Guest::default() };
    for (guest, part) in [
        (with(Check { id: "../x".into(), ..Check::default() }), "lower-case"),
        (with(Check { rules: vec![], ..Check::default() }), "no rules"),
        (with(Check { rules: vec!["a".into(), "a".into()], ..Check::default() }), "twice"),
        (with(Check { files: vec![], ..Check::default() }), "globs"),
        (with(Check { files: vec!["/etc/*".into()], ..Check::default() }), "relative"),
        (with(Check { schema: Some("{".into()), ..Check::default() }), "not JSON"),
        (with(Check { schema: Some("{\"$ref\": \"file:///etc/passwd\"}".into()), ..Check::default() }), "refers to"),
        (with(Check { title: " ".into(), ..Check::default() }), "empty"),
        (Guest { pack: guests::Pack { checks: vec![], ..Default::default() }, ..Guest::default() }, "no checks"),
        (Guest { pack: guests::Pack { version: "one".into(), ..Default::default() }, ..Guest::default() }, "version"),
        (Guest { pack: guests::Pack { name: "A".into(), ..Default::default() }, ..Guest::default() }, "lower-case"),
    ] {
        let error = load(&guest).unwrap_err();
        assert!(matches!(error, LoadError::Info(_)) && error.to_string().contains(part), "{error}");
    }
}
