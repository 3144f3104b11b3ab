//! `probity pack inspect`.

use super::args::Inspect;
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use crate::guest::Pack;
use crate::model::Scope;
use crate::pack;
use crate::report::escape;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn inspect(folder: &Path, options: &Inspect, printer: &Printer) -> Result<u8, CliError> {
    let shown = options.file.display().to_string();
    let bytes = pack::read_component(&folder.join(&options.file), &shown)
        .map_err(|error| CliError::usage(error.to_string()))?;
    let host = prepare::host()?;
    printer.status(Some("loading the pack"));
    let loaded = host.load(&bytes);
    printer.status(None);
    let pack = loaded.map_err(|error| CliError::usage(format!("{shown}: {error}")))?;
    for warning in &pack.warnings {
        printer.note(&format!("warning: {warning}"));
    }
    if options.json {
        let document = serde_json::json!({
            "schema": "probity/pack/1",
            "digest": pack.digest,
            "size": bytes.len(),
            "imports": pack.inspection.imports.iter().map(|import| &import.name).collect::<Vec<_>>(),
            "pack": pack.info,
        });
        printer.json(&document);
    } else {
        printer.out(&describe(&pack, bytes.len()));
    }
    Ok(0)
}

fn describe(pack: &Pack, size: usize) -> String {
    let info = &pack.info;
    let mut text = String::new();
    let _ = writeln!(text, "{} {}  {}", escape(&info.name), escape(&info.version), escape(&info.summary));
    let _ = writeln!(text, "digest   {}", pack.digest);
    let _ = writeln!(text, "size     {size} bytes");
    let _ = writeln!(text, "license  {}", escape(info.license.as_deref().unwrap_or("not said")));
    let _ = writeln!(text, "imports");
    for import in &pack.inspection.imports {
        let note = if import.denied { "  (always fails)" } else { "" };
        let _ = writeln!(text, "  {}{note}", escape(&import.name));
    }
    for check in &info.checks {
        let scope = match check.scope {
            Scope::File => "called for each file",
            Scope::Tree => "called once",
        };
        let _ = writeln!(text, "\n{}/{}  {}", escape(&info.name), escape(&check.id), escape(&check.title));
        let _ = writeln!(text, "  {scope}, about {}", escape(&check.files.join(" ")));
        for need in &check.needs {
            let _ = writeln!(
                text,
                "  reads /{} {}: {}",
                need.mount.name(),
                escape(&need.globs.join(" ")),
                escape(&need.why)
            );
        }
        for rule in &check.rules {
            let _ = writeln!(text, "  {:<24} {:<8} {}", escape(&rule.id), rule.severity.name(), escape(&rule.summary));
        }
        if check.config_schema.is_some() {
            let _ = writeln!(text, "  takes a configuration; `--json` shows its schema");
        }
    }
    text
}
