//! What a pack author says about one check, and the function that does it.
//!
//! Building a [`Check`] happens once for every call of the component, which for a check with file scope means once for
//! every file: it borrows constants and puts off what is costly, such as the JSON Schema, until somebody asks.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::types;
use crate::{Context, Refusal, Report, Scope, Severity};

/// What a check asks to read, and why. The project decides what is granted.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    mount: types::Mount,
    globs: &'static [&'static str],
    why: &'static str,
}

impl Need {
    /// Asks for paths of the subject. `why` is one sentence for the person who grants it.
    pub const fn tree(globs: &'static [&'static str], why: &'static str) -> Self {
        Self::of(types::Mount::Tree, globs, why)
    }

    /// Asks for paths of the tree that the subject is compared with.
    pub const fn base(globs: &'static [&'static str], why: &'static str) -> Self {
        Self::of(types::Mount::Base, globs, why)
    }

    /// Asks for results and output of earlier checks.
    pub const fn evidence(globs: &'static [&'static str], why: &'static str) -> Self {
        Self::of(types::Mount::Evidence, globs, why)
    }

    /// Asks for what an author claims.
    pub const fn claim(globs: &'static [&'static str], why: &'static str) -> Self {
        Self::of(types::Mount::Claim, globs, why)
    }

    /// Asks for paths of the committed specification.
    pub const fn spec(globs: &'static [&'static str], why: &'static str) -> Self {
        Self::of(types::Mount::Spec, globs, why)
    }

    const fn of(mount: types::Mount, globs: &'static [&'static str], why: &'static str) -> Self {
        Self { mount, globs, why }
    }

    fn describe(&self) -> types::Need {
        types::Need { mount: self.mount, globs: owned(self.globs), why: self.why.to_owned() }
    }
}

/// A kind of finding that a check can make.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    id: &'static str,
    summary: &'static str,
    severity: Severity,
    explain: &'static str,
}

impl Rule {
    /// A rule whose findings fail the check. `summary` is a sentence with a capital and a full stop; `explain` says, in
    /// Markdown, why it matters and what to do.
    pub const fn error(id: &'static str, summary: &'static str, explain: &'static str) -> Self {
        Self::of(Severity::Error, id, summary, explain)
    }

    /// A rule whose findings are worth a look.
    pub const fn warning(id: &'static str, summary: &'static str, explain: &'static str) -> Self {
        Self::of(Severity::Warning, id, summary, explain)
    }

    /// A rule whose findings are worth knowing.
    pub const fn note(id: &'static str, summary: &'static str, explain: &'static str) -> Self {
        Self::of(Severity::Note, id, summary, explain)
    }

    const fn of(severity: Severity, id: &'static str, summary: &'static str, explain: &'static str) -> Self {
        Self { id, summary, severity, explain }
    }

    fn describe(&self) -> types::Rule {
        types::Rule {
            id: self.id.to_owned(),
            summary: self.summary.to_owned(),
            severity: self.severity,
            explain: self.explain.to_owned(),
        }
    }
}

/// A check's function with its configuration still as text.
type Run = dyn Fn(&str, &Context<'_>) -> Result<Report, Refusal>;

/// One check of a pack: what it says about itself, and the function that judges.
pub struct Check {
    id: &'static str,
    title: &'static str,
    explain: &'static str,
    scope: Scope,
    files: &'static [&'static str],
    needs: Vec<Need>,
    wants_changes: bool,
    rules: Vec<Rule>,
    schema: Option<fn() -> String>,
    run: Box<Run>,
}

impl Check {
    /// A check with a configuration. Its type describes itself: `schemars` makes the JSON Schema that the host validates
    /// against, and `serde` parses it. Give it `deny_unknown_fields`, so that a misspelt key is an error, and defaults,
    /// so that no configuration means `{}`.
    ///
    /// Unless said otherwise a check has tree scope and is about all files.
    pub fn new<C, F>(id: &'static str, title: &'static str, run: F) -> Self
    where
        C: DeserializeOwned + JsonSchema,
        F: Fn(&C, &Context<'_>) -> Result<Report, Refusal> + 'static,
    {
        Self::of(id, title, Some(schema::<C>), Box::new(move |config, ctx| run(&parse(config)?, ctx)))
    }

    /// A check that takes no configuration.
    pub fn without_config<F>(id: &'static str, title: &'static str, run: F) -> Self
    where
        F: Fn(&Context<'_>) -> Result<Report, Refusal> + 'static,
    {
        Self::of(
            id,
            title,
            None,
            Box::new(move |config, ctx| {
                let given: serde_json::Map<String, Value> = parse(config)?;
                match given.keys().next() {
                    None => run(ctx),
                    Some(key) => {
                        Err(Refusal::InvalidConfig(format!("the check takes no configuration, but `{key}` was given")))
                    }
                }
            }),
        )
    }

    fn of(id: &'static str, title: &'static str, schema: Option<fn() -> String>, run: Box<Run>) -> Self {
        Self {
            id,
            title,
            explain: "",
            scope: Scope::Tree,
            files: &["**"],
            needs: Vec::new(),
            wants_changes: false,
            rules: Vec::new(),
            schema,
            run,
        }
    }

    /// Says what is judged, and how, in Markdown.
    #[must_use]
    pub fn explain(mut self, explain: &'static str) -> Self {
        self.explain = explain;
        self
    }

    /// Says how often the check is called.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Says which files the check is about, as globs on paths in `/tree`.
    #[must_use]
    pub fn files(mut self, globs: &'static [&'static str]) -> Self {
        self.files = globs;
        self
    }

    /// Adds something the check asks to read.
    #[must_use]
    pub fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// Adds a kind of finding.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Asks for the changes between base and subject. Results then depend on the base.
    #[must_use]
    pub fn wants_changes(mut self) -> Self {
        self.wants_changes = true;
        self
    }

    /// The id, unique within the pack.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// How often the check is called.
    pub fn call_scope(&self) -> Scope {
        self.scope
    }

    /// Runs the check with its configuration as JSON text.
    pub fn run(&self, config: &str, ctx: &Context<'_>) -> Result<Report, Refusal> {
        (self.run)(config, ctx)
    }

    /// What the contract says about this check.
    pub fn describe(&self) -> types::Check {
        types::Check {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            explain: self.explain.to_owned(),
            scope: self.scope,
            files: owned(self.files),
            needs: self.needs.iter().map(Need::describe).collect(),
            wants_changes: self.wants_changes,
            rules: self.rules.iter().map(Rule::describe).collect(),
            config_schema: self.schema.map(|schema| schema()),
        }
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// The JSON Schema of a configuration, in one piece: a reader of `describe` should not have to follow references.
fn schema<C: JsonSchema>() -> String {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let settings = settings.with_transform(RecursiveTransform(unwrap_lines));
    settings.into_generator().into_root_schema_for::<C>().to_value().to_string()
}

/// Descriptions come from comments, which are wrapped for readers of code: their lines become paragraphs again.
fn unwrap_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        let paragraphs = description.split("\n\n").map(|it| it.replace('\n', " "));
        *description = paragraphs.collect::<Vec<_>>().join("\n\n");
    }
}

/// Parses a configuration. The host has validated it against the schema, so this fails only where the schema says less
/// than the type does.
fn parse<C: DeserializeOwned>(config: &str) -> Result<C, Refusal> {
    let mut json = serde_json::Deserializer::from_str(config);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let message = without_position(error.inner());
        match error.path().to_string().as_str() {
            "." => Refusal::InvalidConfig(message),
            path => Refusal::InvalidConfig(format!("`{path}`: {message}")),
        }
    })?;
    json.end().map_err(|error| Refusal::InvalidConfig(without_position(&error)))?;
    Ok(parsed)
}

/// Line and column of the JSON text mean nothing to a person who wrote TOML.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&position) {
        Some(bare) => bare.to_owned(),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, JsonSchema, PartialEq)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    struct Config {
        /// The most there
        /// may be.
        ///
        /// None by default.
        at_most: u8,
        /// Which ones.
        names: Vec<String>,
    }

    fn refused(config: &str) -> String {
        match parse::<Config>(config) {
            Err(Refusal::InvalidConfig(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_empty_object_means_the_defaults() {
        assert_eq!(parse::<Config>("{}"), Ok(Config::default()));
    }

    #[test]
    fn a_wrong_value_is_named_by_its_key() {
        assert_eq!(refused(r#"{"names": ["a", 1]}"#), "`names[1]`: invalid type: integer `1`, expected a string");
        assert_eq!(refused(r#"{"at-most": 300}"#), "`at-most`: invalid value: integer `300`, expected u8");
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_ones() {
        assert_eq!(refused(r#"{"atmost": 3}"#), "`atmost`: unknown field `atmost`, expected `at-most` or `names`");
    }

    #[test]
    fn text_after_the_object_is_refused() {
        assert_eq!(refused("{} {}"), "trailing characters");
        assert_eq!(refused(""), "EOF while parsing a value");
    }

    #[test]
    fn the_schema_says_what_serde_accepts() {
        let schema: Value = serde_json::from_str(&schema::<Config>()).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["at-most"]["default"], 0);
        assert_eq!(schema["properties"]["at-most"]["description"], "The most there may be.\n\nNone by default.");
    }

    #[test]
    fn a_check_without_configuration_accepts_none() {
        let check = Check::without_config("plain", "Plain", |_| Ok(Report::new()));
        let request = crate::testing::request("plain", "{}");
        let mounts = crate::Mounts::nowhere();
        let ctx = Context::new(&request, &mounts);
        assert_eq!(check.run("{}", &ctx), Ok(Report::new()));
        assert_eq!(
            check.run(r#"{"a": 1}"#, &ctx),
            Err(Refusal::InvalidConfig("the check takes no configuration, but `a` was given".to_owned()))
        );
        assert_eq!(check.describe().config_schema, None);
    }
}
