//! Packs that take more than they may.

use super::*;

const LOOP: &str = "(loop $l (br $l))";

#[test]
fn a_loop_in_run_ends() {
    let error = error(&doing(LOOP));
    assert_eq!(error.kind, ErrorKind::OutOfFuel);
    assert!(error.message.contains("20000000 units of fuel while checking"), "{error}");
}

#[test]
fn a_loop_in_describe_ends() {
    let failed = load(&Guest { on_describe: LOOP.into(), ..Guest::default() }).unwrap_err();
    let LoadError::Describe(error) = failed else { panic!("{failed}") };
    assert_eq!(error.kind, ErrorKind::OutOfFuel);
}

#[test]
fn a_loop_at_the_start_ends() {
    let failed = load(&Guest { on_start: LOOP.into(), ..Guest::default() }).unwrap_err();
    let LoadError::Describe(error) = failed else { panic!("{failed}") };
    assert_eq!(error.kind, ErrorKind::OutOfFuel);
    assert!(error.message.contains("while starting"), "{error}");
}

#[test]
fn memory_ends_at_its_limit() {
    let error = error(&doing("(loop $l (drop (memory.grow (i32.const 100))) (br $l))"));
    assert_eq!(error.kind, ErrorKind::OutOfMemory);
    assert!(error.message.contains("more than 67108864 bytes"), "{error}");
}

#[test]
fn many_memories_count_together() {
    let one = "(core module $m (memory 400))";
    let all = instances(3);
    let error = error(&Guest { top: format!("{one}{all}"), ..Guest::default() });
    assert_eq!(error.kind, ErrorKind::OutOfMemory);
}

#[test]
fn many_instances_are_too_many() {
    let all = instances(300);
    let guest = Guest { top: format!("(core module $m){all}"), ..Guest::default() };
    let failed = load(&guest).unwrap_err();
    let LoadError::Describe(error) = failed else { panic!("{failed}") };
    assert_eq!(error.kind, ErrorKind::OutOfMemory, "{error}");
}

#[test]
fn a_growing_table_ends() {
    let grow = "(loop $l (drop (table.grow $table (ref.null func) (i32.const 100000))) (br $l))";
    assert_eq!(error(&doing(grow)).kind, ErrorKind::OutOfMemory);
    let huge = "(drop (table.grow $table (ref.null func) (i32.const 0x7fffffff)))";
    assert!(matches!(error(&doing(huge)).kind, ErrorKind::OutOfMemory | ErrorKind::OutOfFuel));
}

#[test]
fn deep_recursion_is_told_apart() {
    let guest = Guest {
        more: "(func $deep (param i32) (result i32) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))".into(),
        on_run: "(drop (call $deep (i32.const 0)))".into(),
        ..Guest::default()
    };
    let error = error(&guest);
    assert_eq!(error.kind, ErrorKind::StackOverflow);
    assert!(!error.kind.deterministic());
    assert!(error.message.contains("in deep"), "{error}");
}

#[test]
fn too_many_findings_are_refused() {
    let many = |n: u32| Finding { message: n.to_string().into(), ..Finding::default() };
    let guest = Guest { outcome: Outcome::Report((0..10_001).map(many).collect(), Vec::new()), ..Guest::default() };
    let error = error(&guest);
    assert_eq!(error.kind, ErrorKind::OutputLimit);
    assert!(error.message.contains("10001 findings"), "{error}");
}

#[test]
fn a_huge_result_is_not_copied() {
    // A list of findings that are all zeros, and one text of twenty megabytes.
    let list = [0_u32, 16 << 20, 300_000, SCRATCH, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let guest = Guest { outcome: Outcome::Raw(list), pages: 1000, ..Guest::default() };
    let error = error(&guest);
    assert_eq!(error.kind, ErrorKind::OutputLimit, "{error}");
    let text = [1_u32, 0, SCRATCH, 20 << 20, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let guest = Guest { outcome: Outcome::Raw(text), pages: 1000, ..Guest::default() };
    assert_eq!(super::error(&guest).kind, ErrorKind::OutputLimit);
}

#[test]
fn a_flood_of_output_ends() {
    for (get, instance) in [("get-stdout", "stdout"), ("get-stderr", "stderr")] {
        let mut calls = FILE_CALLS.to_vec();
        calls[3] = call("stderr", instance, get, "(result i32)");
        let guest = Guest {
            calls,
            on_run: format!(
                "(local.set $a (call $stderr))
                 (loop $l (call $write (local.get $a) (i32.const {SCRATCH}) (i32.const 4) (i32.const {FREE})) (br $l))"
            ),
            scratch: b"yes\n".to_vec(),
            ..Guest::default()
        };
        let error = error(&guest);
        assert_eq!(error.kind, ErrorKind::OutputLimit);
        assert_eq!(error.stderr.len(), 10_000, "what fits is kept");
    }
}

#[test]
fn handles_end_at_their_limit() {
    let guest = Guest {
        calls: vec![call("stderr", "stderr", "get-stderr", "(result i32)")],
        on_run: "(loop $l (drop (call $stderr)) (br_if $l (i32.lt_u (local.tee $a (i32.add (local.get $a) (i32.const 1))) (i32.const 100000))))".into(),
        ..Guest::default()
    };
    let error = error(&guest);
    assert_eq!(error.kind, ErrorKind::HandleLimit);
    assert!(error.message.contains("1024"), "{error}");
}

#[test]
fn a_guests_own_handles_end_at_their_limit() {
    let guest = Guest {
        top: "(type $r (resource (rep i32))) (core func $new (canon resource.new $r))
              (core module $bomb (import \"\" \"new\" (func $new (param i32) (result i32)))
                (func (export \"go\") (param $n i32)
                  (loop $l (drop (call $new (i32.const 1)))
                    (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))) )
              (core instance $bomb (instantiate $bomb (with \"\" (instance (export \"new\" (func $new))))))
              (core module $go (import \"\" \"go\" (func $go (param i32))) (func $start (call $go (i32.const 100000))) (start $start))
              (core instance (instantiate $go (with \"\" (instance $bomb))))"
            .into(),
        ..Guest::default()
    };
    let failed = load(&guest).unwrap_err();
    let LoadError::Describe(error) = failed else { panic!("{failed}") };
    assert_eq!(error.kind, ErrorKind::HandleLimit, "{error}");
}

#[test]
fn sleeping_for_a_year_takes_no_time() {
    let guest = Guest {
        calls: vec![
            call("now", "monotonic", "now", "(result i64)"),
            call("after", "monotonic", "subscribe-duration", "(param i64) (result i32)"),
            call("block", "poll", "[method]pollable.block", "(param i32)"),
        ],
        on_run: "(local.set $d (call $now))
                 (call $block (call $after (i64.const 31536000000000000)))
                 (if (i64.lt_u (i64.sub (call $now) (local.get $d)) (i64.const 31536000000000000)) (then unreachable))"
            .into(),
        ..Guest::default()
    };
    let start = std::time::Instant::now();
    report(&guest);
    assert!(start.elapsed().as_secs() < 20, "mostly compiling");
}

#[test]
fn host_calls_cost_fuel() {
    let guest = Guest {
        calls: vec![call("random", "random", "get-random-u64", "(result i64)")],
        on_run: "(loop $l (drop (call $random)) (br $l))".into(),
        ..Guest::default()
    };
    assert_eq!(error(&guest).kind, ErrorKind::OutOfFuel);
    let once = Guest { on_run: "(drop (call $random))".into(), ..guest };
    assert!(run(&once).fuel.unwrap() > 100);
}

#[test]
fn a_huge_table_is_not_made() {
    let more = "(table 2000000 funcref)";
    let error = load(&Guest { more: more.into(), ..Guest::default() }).unwrap_err();
    assert!(error.to_string().contains("table"), "{error}");
}

/// Core instances of the module `$m`.
fn instances(count: u32) -> String {
    let all: Vec<String> = (0..count).map(|n| format!("(core instance $m{n} (instantiate $m))")).collect();
    all.concat()
}
