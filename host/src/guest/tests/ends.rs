//! How calls end that do not return, and results that are none.

use super::*;

#[test]
fn a_trap_says_what_and_where_and_what_was_said() {
    let said = "thread 'main' panicked at src/lib.rs:3:5:\n\x1b[31mboom\n";
    let guest = Guest {
        calls: FILE_CALLS.to_vec(),
        more: "(func $_ZN4demo4deep17h0123456789abcdefE unreachable)".into(),
        on_run: format!(
            "(call $write (call $stderr) (i32.const {SCRATCH}) (i32.const {}) (i32.const {FREE}))
             (call $_ZN4demo4deep17h0123456789abcdefE)",
            said.len()
        ),
        scratch: said.into(),
        ..Guest::default()
    };
    let error = error(&guest);
    assert_eq!(error.kind, ErrorKind::Trap);
    assert_eq!(
        error.message,
        "it trapped while checking: it gave up (`unreachable`), which is how a panic or an abort ends\n\
         it said: thread 'main' panicked at src/lib.rs:3:5:\n\u{fffd}[31mboom\n  in demo::deep\n  in run"
    );
    assert_eq!(error.stderr, said);
}

#[test]
fn other_traps_have_words() {
    for (code, words) in [
        ("(drop (i32.load (i32.const -1)))", "memory that it does not have"),
        ("(drop (i32.div_u (i32.const 1) (local.get $a)))", "divided by zero"),
        ("(call_indirect $table (i32.const 0))", "not there"),
        ("(call_indirect $table (i32.const 9))", "does not exist"),
    ] {
        let error = error(&doing(code));
        assert_eq!(error.kind, ErrorKind::Trap);
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn names_of_functions_are_cleaned() {
    let guest = Guest {
        more: format!("(func $\"\\1b[2J{}\" unreachable)", "x".repeat(5000)),
        on_run: format!("(call $\"\\1b[2J{}\")", "x".repeat(5000)),
        ..Guest::default()
    };
    let error = error(&guest);
    assert!(error.message.len() < 2000 && !error.message.contains('\x1b'), "{error}");
}

#[test]
fn exit_is_no_result() {
    for (status, code) in [(0, 0), (1, 1)] {
        let guest = Guest {
            calls: vec![call("exit", "exit", "exit", "(param i32)")],
            on_run: format!("(call $exit (i32.const {status}))"),
            ..Guest::default()
        };
        let error = error(&guest);
        assert_eq!(error.kind, ErrorKind::Exit);
        assert!(error.message.contains(&format!("`exit` with {code}")), "{error}");
    }
}

#[test]
fn malformed_results_are_refused() {
    refused(&finding(Finding { severity: 9, ..Finding::default() }), "malformed");
    refused(&finding(Finding { message: vec![0xff, 0xfe], ..Finding::default() }), "malformed");
    refused(&Guest { outcome: Outcome::Raw(vec![7; 20]), ..Guest::default() }, "malformed");
    refused(&Guest { outcome: Outcome::Refusal(5, "x".into()), ..Guest::default() }, "malformed");
    let beyond = [0_u32, u32::MAX - 7, 1, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    refused(&Guest { outcome: Outcome::Raw(beyond), ..Guest::default() }, "malformed");
    refused(&doing("(return (i32.const -4))"), "malformed");
    refused(&doing("(return (i32.const 1025))"), "malformed");
}

#[test]
fn malformed_arguments_are_its_own_fault() {
    let mut calls = FILE_CALLS.to_vec();
    calls.push(call("mkdir", "fs", "[method]descriptor.create-directory-at", "(param i32 i32 i32 i32)"));
    for code in [
        format!("(call $mkdir (i32.const 77) (i32.const {SCRATCH}) (i32.const 1) (i32.const {FREE}))"),
        format!("(call $write (call $stderr) (i32.const -1) (i32.const 8) (i32.const {FREE}))"),
    ] {
        let error = error(&Guest { calls: calls.clone(), on_run: code, ..Guest::default() });
        assert_eq!(error.kind, ErrorKind::Trap, "{error}");
    }
}
