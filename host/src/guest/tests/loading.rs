//! Bytes that are no pack, and packs that are not this host's.

use super::*;
use crate::worker::{Engine, compile};

fn refused(bytes: &[u8], part: &str) {
    let error = Host::open(None).load(bytes).unwrap_err();
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn what_is_no_component_is_told_apart() {
    refused(b"", "empty");
    refused(b"#!/bin/sh\n", "not WebAssembly");
    refused(b"\0asm", "header");
    refused(b"\0asm\x01\0\0\0", "core WebAssembly module");
    refused(&wat::parse_str("(module (func))").unwrap(), "core WebAssembly module");
    refused(b"(component)", "text");
    refused(&wat::parse_str("(component)").unwrap(), "exports nothing");
    let code = compile(&Engine::new().unwrap(), &bytes(&Guest::default())).unwrap();
    refused(&code, "precompiled");
}

#[test]
fn imports_are_refused_by_name() {
    let with = |import: &str| bytes(&Guest { top: format!("(import \"{import}\" (instance))"), ..Guest::default() });
    refused(&with("evil:host/shell@1.0.0"), "`evil:host/shell@1.0.0`");
    refused(&with("wasi:keyvalue/store@0.2.0"), "wasi:keyvalue/store");
    refused(&with("wasi:cli/stderr@0.3.0"), "WASI 0.2");
    refused(&with("wasi:cli/stderr"), "WASI 0.2");
    let function = Guest { top: "(import \"shell\" (func))".into(), ..Guest::default() };
    refused(&bytes(&function), "`shell`");
}

#[test]
fn a_served_name_must_have_its_type() {
    let guest = Guest {
        top: "(import \"wasi:cli/environment@0.2.0\" (instance (export \"get-environment\" (func (result string)))))"
            .into(),
        ..Guest::default()
    };
    refused(&bytes(&guest), "does not fit");
    let newer = "(import \"wasi:cli/environment@0.2.99\" (instance (export \"get-shell\" (func (result string)))))";
    refused(&bytes(&Guest { top: newer.into(), ..Guest::default() }), "get-shell");
}

#[test]
fn sockets_may_be_imported_and_not_called() {
    let top = "(import \"wasi:sockets/tcp-create-socket@0.2.9\" (instance $tcp
        (export \"tcp-socket\" (type $socket (sub resource)))
        (export \"create-tcp-socket\" (func (result (own $socket))))))
        (alias export $tcp \"create-tcp-socket\" (func $create))
        (core func $create (canon lower (func $create)))
        (core module $try (import \"\" \"create\" (func (result i32))) (func (export \"go\") (drop (call 0))))
        (core instance $try (instantiate $try (with \"\" (instance (export \"create\" (func $create))))))";
    let pack = load(&Guest { top: top.into(), ..Guest::default() }).unwrap();
    let denied: Vec<_> = pack.inspection.imports.iter().filter(|import| import.denied).collect();
    assert_eq!(denied[0].name, "wasi:sockets/tcp-create-socket@0.2.9");
    let start = "(core module $go (import \"\" \"go\" (func $go)) (start $go))
        (core instance (instantiate $go (with \"\" (instance $try))))";
    let failed = load(&Guest { top: format!("{top}{start}"), ..Guest::default() }).unwrap_err().to_string();
    assert!(failed.contains("`create-tcp-socket` of `wasi:sockets/tcp-create-socket@0.2.9`"), "{failed}");
}

#[test]
fn another_contract_names_both_versions() {
    let error = load(&Guest { contract: "0.2.0", ..Guest::default() }).unwrap_err().to_string();
    assert!(error.contains("probity:check@0.2.0") && error.contains("probity:check@0.1.0"), "{error}");
}

#[test]
fn damage_never_loads_and_never_panics() {
    let whole = bytes(&Guest::default());
    let host = Host::open(None);
    for end in (0..whole.len()).step_by(101) {
        assert!(host.load(&whole[..end]).is_err(), "cut at {end}");
    }
    for at in (0..whole.len()).step_by(53) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x21;
        // A flipped byte in a text or a constant is another valid pack.
        let _ = host.load(&bytes);
    }
}

#[test]
fn refused_features_do_not_compile() {
    for (code, more) in [
        ("(return_call $nothing)", ""),
        ("", "(memory 1) (memory 1)"),
        ("(drop (i32.atomic.load (i32.const 0)))", ""),
        ("", "(type $s (struct (field i32)))"),
    ] {
        let guest = Guest { on_start: code.into(), more: more.into(), ..Guest::default() };
        let error = load(&guest).unwrap_err();
        assert!(matches!(error, LoadError::Compile(_)), "{error}");
    }
}

#[test]
fn a_component_may_be_large_and_not_too_large() {
    let mut bytes = bytes(&Guest::default());
    bytes.resize(usize::try_from(crate::worker::MAX_COMPONENT_BYTES).unwrap() + 1, 0);
    refused(&bytes, "may have");
}
