//! Packs that do what they should.

use super::*;

#[test]
fn a_pack_says_what_it_holds() {
    let pack = load(&Guest::default()).unwrap();
    assert_eq!((pack.info.name.as_str(), pack.info.checks[0].id.as_str()), ("demo", "look"));
    assert_eq!(pack.info.checks[0].rules[0].id, "found");
    assert_eq!(pack.inspection.imports[0].name, "probity:check/types@0.1.0");
    assert!(pack.compiled && pack.warnings.is_empty());
}

#[test]
fn findings_come_in_their_order() {
    let at = |path: &str, line| Finding { path: Some(path.into()), start: Some((line, 1)), ..Finding::default() };
    let stats = vec![("lines".to_owned(), 3), ("files".to_owned(), 2)];
    let guest = Guest {
        outcome: Outcome::Report(vec![at("b/c.txt", 1), at("a.txt", 9), at("a.txt", 2)], stats),
        ..Guest::default()
    };
    let report = report(&guest);
    let places: Vec<_> = report.findings.iter().map(|f| f.place.clone().unwrap()).collect();
    let places: Vec<_> = places.iter().map(|place| (place.path.as_str(), place.start.unwrap().line)).collect();
    assert_eq!(places, [("a.txt", 2), ("a.txt", 9), ("b/c.txt", 1)]);
    assert_eq!(report.stats, [("files".to_owned(), 2), ("lines".to_owned(), 3)]);
}

#[test]
fn every_refusal_comes_through() {
    for (case, refusal) in (0..).zip([
        Refusal::NotApplicable("why".into()),
        Refusal::NeedsContext("why".into()),
        Refusal::EnvironmentGap("why".into()),
        Refusal::InvalidConfig("why".into()),
        Refusal::Internal("why".into()),
    ]) {
        let guest = Guest { outcome: Outcome::Refusal(case, "why".into()), ..Guest::default() };
        assert_eq!(run(&guest).result, CheckResult::Refused(refusal));
    }
}

#[test]
fn the_same_run_uses_the_same_fuel() {
    let guest = doing(
        "(loop $l (local.set $a (i32.add (local.get $a) (i32.const 1))) (br_if $l (i32.lt_u (local.get $a) (i32.const 1000))))",
    );
    let fuel = run(&guest).fuel;
    assert!(fuel.is_some_and(|fuel| fuel > 1000));
    assert_eq!(fuel, run(&guest).fuel);
}

#[test]
fn a_result_of_400_kilobytes_works() {
    let text = "x".repeat(4000);
    let many = |n: u32| Finding { message: format!("{n} {text}").into(), ..Finding::default() };
    let guest = Guest { outcome: Outcome::Report((0..100).map(many).collect(), Vec::new()), ..Guest::default() };
    assert_eq!(report(&guest).findings.len(), 100);
}

#[test]
fn text_is_kept_as_the_guest_wrote_it() {
    let message = "\x1b[31mred\u{202e}\r\n\0";
    let report = report(&finding(Finding { message: message.into(), ..Finding::default() }));
    assert_eq!(report.findings[0].message, message);
}

#[test]
fn a_compiled_pack_is_not_compiled_again() {
    let temp = tempfile::tempdir().unwrap();
    let host = Host::open(Some(temp.path().join("code")));
    let bytes = bytes(&Guest::default());
    assert!(host.load(&bytes).unwrap().compiled);
    let again = Host::open(Some(temp.path().join("code"))).load(&bytes).unwrap();
    assert!(!again.compiled && again.warnings.is_empty());
    let file = std::fs::read_dir(temp.path().join("code")).unwrap().next().unwrap().unwrap().path();
    let mut code = std::fs::read(&file).unwrap();
    code[60] ^= 0x10;
    std::fs::write(&file, code).unwrap();
    let repaired = host.load(&bytes).unwrap();
    assert!(repaired.compiled && repaired.warnings.len() == 1, "{:?}", repaired.warnings);
    assert!(!host.load(&bytes).unwrap().compiled);
}
