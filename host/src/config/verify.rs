//! `[verify]`: the short form, a list of commands. What is written, and what it means.

use super::argv::{self, Argv};
use super::diagnostic::{Diagnostic, quote};
use super::environment::{self, Marked};
use super::file::{File, FileCheck, TIMEOUT_HELP};
use super::reader::{At, Field, Keys, Reader, Span, entries, field, get, unsupported};
use super::resolve::{DEFAULT, duration};
use super::{Body, Check, Command, When};
use std::collections::BTreeMap;
use std::time::Duration;
use toml::de::DeTable;

/// `[verify]`. Where it is not written, all of it is absent.
#[derive(Debug, Default)]
pub(super) struct FileVerify {
    pub(super) commands: Option<Field<Vec<At<Argv>>>>,
    pub(super) timeout: Option<Field<String>>,
    pub(super) env: Option<Field<Vec<At<String>>>>,
    pub(super) secrets: Option<Field<Vec<At<String>>>>,
    pub(super) audit: Option<Field<bool>>,
}

const VERIFY: Keys = Keys {
    table: "`[verify]`",
    known: &["commands", "timeout", "env", "secrets", "audit"],
    later: &[
        ("base", "remove it; until then, checks judge the whole tree"),
        ("when", "remove it; until then, every command runs"),
        (
            "fail-fast",
            "set it in `[scenarios.default]`, with `checks = [\"verify-1\", \"verify-2\"]` for these commands",
        ),
        ("prompts", "remove it; until then, Probity runs commands and packs only"),
    ],
};

pub(super) fn read(reader: &mut Reader, table: &DeTable<'_>) -> FileVerify {
    let mut verify = FileVerify::default();
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "commands" => verify.commands = field(key, argv::commands(reader, name, value)),
            name @ "timeout" => verify.timeout = field(key, reader.string(name, value, Some(TIMEOUT_HELP))),
            name @ "env" => verify.env = field(key, environment::read(reader, name, value)),
            name @ "secrets" => verify.secrets = field(key, environment::read_secrets(reader, name, value)),
            name @ "audit" => verify.audit = field(key, reader.boolean(name, value)),
            _ => reader.unknown(key, &VERIFY),
        }
    }
    verify
}

/// The name of a command of `[verify]`, from 0.
pub(super) fn id_of(index: usize) -> String {
    format!("verify-{}", index + 1)
}

/// The checks that its commands are.
pub(super) fn resolve(file: &FileVerify, marked: &Marked<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Check> {
    if let Some(audit) = get(file.audit.as_ref()).filter(|audit| audit.value) {
        let diagnostic = unsupported(audit.span.clone(), "`audit`").label("nothing would audit");
        diagnostics.push(diagnostic.help("remove it or write `audit = false`; only commands and packs are run so far"));
    }
    let env = get(file.env.as_ref()).map_or_else(Vec::new, |env| environment::entries(&env.value, marked, diagnostics));
    let secrets = environment::secrets(file.secrets.as_ref(), diagnostics);
    let commands = get(file.commands.as_ref()).map_or(&[][..], |commands| commands.value.as_slice());
    let mut checks = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        argv::placeholders(command, diagnostics);
        let argv = argv::resolve(command, diagnostics);
        // The name is in the alphabet of ids, and far from its longest.
        if let (Some(argv), Ok(id)) = (argv, id_of(index).parse()) {
            let body = Body::Command(Command {
                argv,
                env: env.clone(),
                pass_env: Vec::new(),
                tests: Vec::new(),
                secrets: secrets.clone(),
                gap_exit: Vec::new(),
                inherit_env: true,
            });
            let (span, after, needs) = (command.span.clone(), Vec::new(), Vec::new());
            let (timeout, blocking, files, allow_empty, when) = (None, true, None, false, When::default());
            checks.push(Check { id, span, after, needs, timeout, blocking, files, allow_empty, when, body });
        }
    }
    checks
}

/// The budget of `[verify]`, which is that of the scenario `default`.
pub(super) fn timeout(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Option<Duration> {
    let written = get(file.verify.timeout.as_ref())?;
    let timeout = duration(written, diagnostics);
    if let Some(scenario) = file.scenarios.iter().find(|scenario| scenario.name.value == DEFAULT) {
        let diagnostic = Diagnostic::new(written.span.clone(), "the `timeout` of `[verify]` has no effect");
        let diagnostic = diagnostic.label("this is the budget of the scenario `default`");
        let diagnostic = diagnostic.also(scenario.name.span.clone(), "which is written here");
        diagnostics.push(diagnostic.help("move it to `[scenarios.default]`"));
    }
    timeout
}

/// Reports checks that have the name of a command of `[verify]`.
pub(super) fn clashes(short: &[Check], long: &[FileCheck], diagnostics: &mut Vec<Diagnostic>) {
    let short: BTreeMap<&str, &Span> = short.iter().map(|command| (command.id.as_str(), &command.span)).collect();
    for check in long {
        if let Some(command) = short.get(check.id.value.as_str()) {
            let title = format!("{} is the name of a command of `[verify]`", quote(&check.id.value));
            let diagnostic = Diagnostic::new(check.id.span.clone(), title);
            diagnostics.push(diagnostic.also((*command).clone(), "of this one").help("give the check another name"));
        }
    }
}
