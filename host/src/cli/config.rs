//! `probity config`: what holds, and where each value comes from. Nothing is run and no pack is loaded.

use super::args::{self, SchemaOf};
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use crate::config::{self, Layer, Limits, Origin, Setting};
use crate::report::escape;
use crate::{system, worker};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn config(folder: &Path, options: &args::Config, printer: &Printer) -> Result<u8, CliError> {
    if let Some(which) = options.schema {
        let layer = match which {
            SchemaOf::Project => Layer::Project,
            SchemaOf::User => Layer::User,
        };
        printer.out(&format!("{:#}\n", config::schema(layer)));
        return Ok(0);
    }
    let user = prepare::user(printer)?;
    let project = prepare::project(folder, &user, printer)?;
    for scenario in &project.config.scenarios {
        prepare::within_ceilings(&project, scenario, &user, printer)?;
    }
    let settings = config::settings(&project.config, &user, &engine());
    let files = Files {
        project: &project.config.source.name,
        user: system::user_file().map(|path| path.display().to_string()),
        user_is_there: user.source.is_some(),
    };
    if options.json {
        let document = json!({
            "schema": "probity/config/1",
            "root": project.root.display().to_string(),
            "project": { "path": files.project },
            "user": { "path": files.user, "exists": files.user_is_there },
            "settings": settings.iter().map(document).collect::<Vec<_>>(),
        });
        printer.out(&format!("{document:#}\n"));
    } else {
        printer.out(&text(&files, &settings));
    }
    Ok(0)
}

/// The limits of a check for which nobody says anything.
fn engine() -> Limits {
    let worker::Limits { fuel, init_fuel: _, memory, output, findings, handles, wall } = worker::Limits::default();
    Limits {
        fuel: Some(fuel),
        memory: Some(memory),
        wall: Some(wall),
        output: Some(output),
        findings: Some(findings),
        handles: Some(handles),
    }
}

/// The files that a configuration is made of.
struct Files<'a> {
    project: &'a str,
    /// None where there is no place for it.
    user: Option<String>,
    user_is_there: bool,
}

fn text(files: &Files<'_>, settings: &[Setting]) -> String {
    let user = match &files.user {
        Some(path) if files.user_is_there => path.clone(),
        Some(path) => format!("{path} (not there)"),
        None => "no place: set HOME or XDG_CONFIG_HOME".to_owned(),
    };
    let mut text = format!("project      {}\nuser's file  {}\n\n", escape(files.project), escape(&user));
    let rows: Vec<_> = settings.iter().map(|setting| (origin(setting.origin, files.project), setting)).collect();
    let width = rows.iter().map(|(origin, _)| origin.chars().count()).max().unwrap_or(0);
    for (origin, setting) in rows {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{origin:<width$}  {} = {}", escape(&setting.key), escape(&value(setting)));
    }
    text
}

fn origin(origin: Origin, project: &str) -> String {
    match origin {
        Origin::Line(Layer::Project, line) => format!("{}:{line}", escape(project)),
        Origin::Line(Layer::User, line) => format!("user's file:{line}"),
        Origin::Default => "default".to_owned(),
    }
}

fn document(setting: &Setting) -> Value {
    let (from, line) = match setting.origin {
        Origin::Line(Layer::Project, line) => ("project", Some(line)),
        Origin::Line(Layer::User, line) => ("user", Some(line)),
        Origin::Default => ("default", None),
    };
    let mut document = json!({ "key": setting.key, "from": from, "line": line });
    // The values of variables are nobody's to see, so that a list of names is never taken for one of values.
    let field = if setting.names_only { "names" } else { "value" };
    document[field] = setting.value.clone();
    document
}

/// A value as a file would have it.
fn value(setting: &Setting) -> String {
    if setting.names_only {
        let names = setting.value.as_array().into_iter().flatten().filter_map(Value::as_str);
        return format!("[{}]", names.map(|name| format!("\"{name}=…\"")).collect::<Vec<_>>().join(", "));
    }
    toml(&setting.value)
}

fn toml(value: &Value) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", joined(items.iter().map(toml).collect())),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{} = {}", key(name), toml(value));
            format!("{{ {} }}", joined(fields.iter().map(field).collect()))
        }
        // JSON's strings, numbers and booleans are TOML's too.
        other => other.to_string(),
    }
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { name.to_owned() } else { json!(name).to_string() }
}
