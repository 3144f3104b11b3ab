//! `[capabilities.NAME]`: what is written, and what it means. Nothing is probed here.

use super::argv::{self, Argv};
use super::diagnostic::{Diagnostic, quote};
use super::file::TIMEOUT_HELP;
use super::known::Names;
use super::reader::{At, Field, Keys, Reader, Span, entries, field, get, list};
use super::suggest::did_you_mean;
use super::{Capability, names, resolve};
use crate::model::{CapabilityName, Os, Probe, Version};
use std::collections::BTreeSet;
use std::time::Duration;
use toml::de::DeTable;

/// How long finding out may take where nothing is written.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest name that a network has.
const LONGEST_HOST: usize = 253;

const CAPABILITY: Keys = Keys {
    table: "`[capabilities.NAME]`",
    known: &["probe", "program", "at-least", "resolves", "os", "timeout"],
    later: &[],
    elsewhere: &[],
};

/// `[capabilities.NAME]` as it is written.
#[derive(Debug)]
pub(super) struct FileCapability {
    name: At<String>,
    probe: Option<Field<Argv>>,
    program: Option<Field<String>>,
    at_least: Option<Field<String>>,
    resolves: Option<Field<String>>,
    os: Option<Field<String>>,
    timeout: Option<Field<String>>,
}

pub(super) fn read(reader: &mut Reader, name: At<String>, table: &DeTable<'_>) -> FileCapability {
    let mut capability =
        FileCapability { name, probe: None, program: None, at_least: None, resolves: None, os: None, timeout: None };
    for (key, value) in entries(table) {
        let into = match key.get_ref().as_ref() {
            name @ "probe" => {
                capability.probe = field(key, argv::read(reader, name, value));
                continue;
            }
            "program" => (&mut capability.program, "write for example `program = \"docker\"`"),
            "at-least" => (&mut capability.at_least, "write for example `at-least = \"24.0\"`"),
            "resolves" => (&mut capability.resolves, "write for example `resolves = \"example.org\"`"),
            "os" => (&mut capability.os, "write `os = \"linux\"` or `os = \"macos\"`"),
            "timeout" => (&mut capability.timeout, TIMEOUT_HELP),
            _ => {
                reader.unknown(key, &CAPABILITY);
                continue;
            }
        };
        let (place, help) = into;
        *place = field(key, reader.string(key.get_ref().as_ref(), value, Some(help)));
    }
    capability
}

/// What it means. None where something of it is wrong, which is reported.
pub(super) fn resolve(file: &FileCapability, diagnostics: &mut Vec<Diagnostic>) -> Option<Capability> {
    let name = names::id("capability", &file.name, diagnostics);
    let own = get(file.timeout.as_ref()).and_then(|timeout| resolve::duration(timeout, diagnostics));
    let timeout = own.unwrap_or(TIMEOUT);
    let at_least = get(file.at_least.as_ref()).and_then(|version| self::version(version, diagnostics));
    let written = [
        file.probe.as_ref().map(|field| &field.key),
        file.program.as_ref().map(|field| &field.key),
        file.resolves.as_ref().map(|field| &field.key),
        file.os.as_ref().map(|field| &field.key),
    ];
    let mut written: Vec<&Span> = written.into_iter().flatten().collect();
    written.sort_by_key(|span| span.start);
    let quoted = quote(&file.name.value);
    match written[..] {
        [] => {
            let diagnostic = Diagnostic::new(file.name.span.clone(), format!("capability {quoted} is never found out"));
            let help = "add one of `probe = [\"docker\", \"info\"]`, `program = \"docker\"`, `resolves = \"example.org\"` and `os = \"linux\"`";
            diagnostics.push(diagnostic.help(help));
            return None;
        }
        [_] => {}
        [first, second, ..] => {
            let title = format!("capability {quoted} is found out in two ways");
            let diagnostic = Diagnostic::new(second.clone(), title).also(first.clone(), "and this");
            diagnostics.push(diagnostic.help("make two capabilities of it; a check may need both"));
            return None;
        }
    }
    if let (Some(at_least), None) = (&file.at_least, &file.program) {
        let diagnostic = Diagnostic::new(at_least.key.clone(), "`at-least` has no meaning without `program`");
        diagnostics.push(diagnostic.help("add `program`, or remove it"));
    }
    let waits = file.probe.is_some() || file.resolves.is_some() || file.at_least.is_some();
    if let (Some(timeout), false) = (&file.timeout, waits) {
        let diagnostic = Diagnostic::new(timeout.key.clone(), "`timeout` has no meaning here");
        diagnostics.push(diagnostic.label("nothing is waited for").help("remove it"));
    }
    let probe = if let Some(field) = &file.probe {
        let argv = field.value.as_ref().and_then(|argv| {
            argv::placeholders(argv, diagnostics);
            argv::resolve(argv, diagnostics)
        });
        Probe::Command { argv: argv?, timeout }
    } else if let Some(field) = &file.program {
        let program = field.value.as_ref().and_then(|program| self::program(program, diagnostics));
        Probe::Program { program: program?, at_least, timeout }
    } else if let Some(field) = &file.resolves {
        let host = field.value.as_ref().and_then(|host| self::host(host, diagnostics));
        Probe::Resolves { host: host?, timeout }
    } else {
        let os = get(file.os.as_ref()).and_then(|os| self::os(os, diagnostics));
        Probe::Os(os?)
    };
    Some(Capability { name: name?, span: file.name.span.clone(), probe })
}

fn version(text: &At<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<Version> {
    let version = text.value.parse();
    if let Err(error) = version {
        let title = format!("{} is no version: {error}", quote(&text.value));
        let diagnostic = Diagnostic::new(text.span.clone(), title);
        diagnostics.push(diagnostic.help("write the least one that will do, for example `at-least = \"24.0\"`"));
    }
    version.ok()
}

fn program(text: &At<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    if text.value.is_empty() || text.value.contains(char::is_control) {
        let diagnostic = Diagnostic::new(text.span.clone(), format!("{} is no name of a program", quote(&text.value)));
        diagnostics.push(diagnostic.help("write for example `program = \"docker\"`"));
        return None;
    }
    Some(text.value.clone())
}

fn host(text: &At<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if text.value.is_empty() || text.value.len() > LONGEST_HOST || !text.value.chars().all(plain) {
        let diagnostic = Diagnostic::new(text.span.clone(), format!("{} is no name of a network", quote(&text.value)));
        diagnostics
            .push(diagnostic.help("write a name without scheme and port, for example `resolves = \"example.org\"`"));
        return None;
    }
    Some(text.value.clone())
}

fn os(text: &At<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<Os> {
    let found = Os::ALL.into_iter().find(|os| os.name() == text.value);
    if found.is_none() {
        let diagnostic = Diagnostic::new(text.span.clone(), format!("there is no system {} here", quote(&text.value)));
        let names = Os::ALL.map(Os::name);
        diagnostics.push(match did_you_mean(&text.value, names) {
            Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
            None => diagnostic.help(format!("the systems are {}", list(&names))),
        });
    }
    found
}

/// How long finding it out may take, where anything is waited for.
pub(super) fn waits(probe: &Probe) -> Option<Duration> {
    match probe {
        Probe::Command { timeout, .. }
        | Probe::Program { at_least: Some(_), timeout, .. }
        | Probe::Resolves { timeout, .. } => Some(*timeout),
        Probe::Program { at_least: None, .. } | Probe::Os(_) => None,
    }
}

/// What checks may need: every capability, also one that has mistakes.
pub(super) fn declared<'a>(files: &'a [FileCapability], unreadable: &'a BTreeSet<String>) -> Names<'a> {
    let declare = |name: &str| {
        let name = if name.parse::<CapabilityName>().is_ok() { name } else { "NAME" };
        format!("declare it, for example:\n\n[capabilities.{name}]\nprogram = \"docker\"")
    };
    let declared = files.iter().map(|file| file.name.value.as_str().into()).collect();
    Names::new("capability", declare, declared, unreadable)
}
