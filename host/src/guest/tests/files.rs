//! What a guest sees of files, and checks that are called for each file.

use super::guests::{IS_DIRECTORY, LOOP, NO_ENTRY, NOT_DIRECTORY, NOT_PERMITTED};
use super::*;

#[test]
fn every_write_is_refused() {
    report(&guests::every_write());
}

#[test]
fn paths_that_lead_out_lead_nowhere() {
    report(&guests::opening(&[
        ("..", true, false, NOT_PERMITTED),
        ("b/../../a.txt", true, false, NOT_PERMITTED),
        ("/tree/a.txt", true, false, NOT_PERMITTED),
        ("", true, false, NO_ENTRY),
        ("nope", true, false, NO_ENTRY),
        ("zz-link", false, false, LOOP),
        ("a.txt/", true, false, NOT_DIRECTORY),
        ("a.txt/x", true, false, NOT_DIRECTORY),
        ("a.txt", true, true, NOT_DIRECTORY),
    ]));
    let read = format!(
        "(local.set $b (i32.const 4)) (call $read (local.get $a) (i64.const 9) (i64.const 0) (i32.const {FREE}))"
    );
    report(&guests::answered(&[], &[(read, IS_DIRECTORY)], ""));
}

/// Opens `a.txt`, reads it and writes what was read to the error output.
fn cat() -> Guest {
    Guest {
        calls: FILE_CALLS.to_vec(),
        on_run: format!(
            "(call $directories (i32.const {FREE})) (local.set $a (i32.load (i32.load (i32.const {FREE}))))
             (call $open (local.get $a) (i32.const 1) (i32.load (local.get 4)) (i32.load (i32.add (local.get 4) (i32.const 4)))
               (i32.const 0) (i32.const 1) (i32.const {FREE}))
             (if (i32.load8_u (i32.const {FREE})) (then unreachable))
             (local.set $b (i32.load (i32.const {four})))
             (call $read (local.get $b) (i64.const 100) (i64.const 0) (i32.const {FREE}))
             (if (i32.load8_u (i32.const {FREE})) (then unreachable))
             (call $write (call $stderr) (i32.load (i32.const {four})) (i32.load (i32.const {eight})) (i32.const {far}))",
            four = FREE + 4,
            eight = FREE + 8,
            far = FREE + 64,
        ),
        ..Guest::default()
    }
}

#[test]
fn the_first_file_is_read() {
    let run = run(&cat());
    assert_eq!(run.stderr, "hello\n");
}

#[test]
fn each_file_has_its_own_call_in_path_order() {
    let mut guest = cat();
    guest.pack.checks[0].per_file = true;
    let names: Vec<_> = (0..50).map(|n| format!("{n:03}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let run = run_on(&guest, &files);
    assert_eq!(run.stderr, names.concat(), "{run:?}");
    assert!(matches!(run.result, CheckResult::Report(_)));
    let one = run_on(&guest, &files[..1]).fuel.unwrap();
    assert_eq!(run.fuel, Some(50 * one), "a fresh instance each time");
}

#[test]
fn the_first_error_in_path_order_decides() {
    let mut guest = cat();
    guest.pack.checks[0].per_file = true;
    // Files that begin with `!` trap, with `?` loop.
    guest.on_run.push_str(&format!(
        "(local.set $c (i32.load8_u (i32.load (i32.const {four}))))
         (if (i32.eq (local.get $c) (i32.const 33)) (then unreachable))
         (if (i32.eq (local.get $c) (i32.const 63)) (then (loop $l (br $l))))",
        four = FREE + 4
    ));
    let names: Vec<_> = (0..40).map(|n| format!("{n:03}")).collect();
    let text = |n: usize| ["x", "?", "!"][usize::from(n == 20) + 2 * usize::from(n > 20)];
    let files: Vec<_> = names.iter().enumerate().map(|(n, name)| (name.as_str(), text(n))).collect();
    for _ in 0..3 {
        let run = run_on(&guest, &files);
        let CheckResult::Error(error) = run.result else { panic!("{run:?}") };
        assert_eq!(error.kind, ErrorKind::OutOfFuel, "the loop comes first, the traps are faster");
        assert!(error.message.starts_with("on `020`: "), "{error}");
        assert_eq!(run.fuel, None);
    }
}

#[test]
fn findings_of_files_are_put_together() {
    let mut guest =
        Guest { outcome: Outcome::Report(vec![Finding::default()], vec![("seen".into(), 2)]), ..Guest::default() };
    guest.pack.checks[0].per_file = true;
    let run = run_on(&guest, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let CheckResult::Report(report) = run.result else { panic!("{run:?}") };
    let paths: Vec<_> = report.findings.iter().map(|f| f.place.as_ref().unwrap().path.as_str()).collect();
    assert_eq!(paths, ["a", "b", "c"], "a finding without a place is about the file");
    assert_eq!(report.stats, [("seen".to_owned(), 6)]);
    guest.outcome = Outcome::Report(vec![Finding { path: Some("a".into()), ..Finding::default() }], Vec::new());
    let run = run_on(&guest, &[("a", "1"), ("b", "2")]);
    let CheckResult::Error(error) = run.result else { panic!("{run:?}") };
    assert!(error.message.starts_with("on `b`: ") && error.message.contains("none that the check was given"));
}

#[test]
fn not_applicable_to_all_is_a_refusal() {
    let mut guest = Guest { outcome: Outcome::Refusal(0, "no".into()), ..Guest::default() };
    guest.pack.checks[0].per_file = true;
    let run = run_on(&guest, &[("a", "1"), ("b", "2")]);
    assert_eq!(run.result, CheckResult::Refused(Refusal::NotApplicable("no".into())));
}

#[test]
fn contents_that_changed_are_the_machines_trouble() {
    struct Moved;
    impl Contents for Moved {
        fn read(&self, _: u32, _: u64, _: usize) -> Result<Vec<u8>, ContentsError> {
            Err(ContentsError::Changed("a.txt".into()))
        }

        fn identity(&self, _: u32) -> String {
            String::new()
        }
    }
    let pack = load(&cat()).unwrap();
    let (_, entries) = tree(&[("a.txt", "hello\n")]);
    let mut builder = TreeBuilder::new();
    builder.file(Mount::Tree, "a.txt", 6, false, 0);
    let view = View::new(Arc::new(builder.build().unwrap()), Arc::new(Moved));
    let run = pack.run_check(&Job {
        check: &pack.info.checks[0],
        config: "{}",
        files: &entries,
        changes: None,
        view: &view,
        limits: &limits(),
        key: &Digest::of(b"key"),
        deadline: None,
        cancelled: None,
    });
    let CheckResult::Error(error) = run.result else { panic!("{run:?}") };
    assert_eq!(error.kind, ErrorKind::Host);
    assert_eq!(error.message, "`a.txt` changed while it was being verified");
}
