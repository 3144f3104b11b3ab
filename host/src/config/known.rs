//! Names that are declared in one place and named in another: checks, capabilities, scenarios.
//!
//! Must not report a name twice: one whose declaration has been reported is known.

use super::diagnostic::{Diagnostic, MAX_SHOWN, quote};
use super::reader::{At, Span, list};
use super::suggest::did_you_mean;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// All names of one kind, also of what has mistakes.
pub(super) struct Names<'a> {
    /// One of them: `check`.
    what: &'static str,
    /// What to write where none is declared, for one that was named.
    declare: fn(&str) -> String,
    /// In declared order.
    declared: Vec<Cow<'a, str>>,
    sorted: BTreeSet<Cow<'a, str>>,
    unreadable: &'a BTreeSet<String>,
    /// What begins so cannot be counted, so every such name may be one.
    uncounted: Option<&'static str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        what: &'static str,
        declare: fn(&str) -> String,
        declared: Vec<Cow<'a, str>>,
        unreadable: &'a BTreeSet<String>,
    ) -> Self {
        Self { what, declare, sorted: declared.iter().cloned().collect(), declared, unreadable, uncounted: None }
    }

    /// The same, where names that begin so cannot be counted.
    pub(super) fn uncounted(self, start: Option<&'static str>) -> Self {
        Self { uncounted: start, ..self }
    }

    fn has(&self, name: &str) -> bool {
        self.sorted.contains(name)
            || self.unreadable.contains(name)
            || self.uncounted.is_some_and(|start| name.starts_with(start))
    }

    /// Reports a name that is not declared.
    pub(super) fn know(&self, item: &At<String>, diagnostics: &mut Vec<Diagnostic>) {
        if self.has(&item.value) {
            return;
        }
        let title = format!("there is no {} {}", self.what, quote(&item.value));
        let diagnostic = Diagnostic::new(item.span.clone(), title);
        // Suggestions take time that grows with the names there are, and few of so many mistakes are shown.
        if diagnostics.len() > MAX_SHOWN {
            return diagnostics.push(diagnostic);
        }
        let help = match did_you_mean(&item.value, self.declared.iter().map(Cow::as_ref)) {
            Some(meant) => format!("did you mean {}?", quote(meant)),
            None if self.declared.is_empty() => (self.declare)(&item.value),
            None => format!("the {} are {}", self.many(), list(&self.declared)),
        };
        diagnostics.push(diagnostic.help(help));
    }

    /// Names that are all known, each once. Reports the others; `twice` is what to do about one that is named again.
    pub(super) fn all<T: FromStr>(
        &self,
        items: &[At<String>],
        twice: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Vec<T>> {
        let before = diagnostics.len();
        let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
        let mut all = Vec::new();
        for item in items {
            if let Some(first) = seen.get(item.value.as_str()) {
                let title = format!("{} is named twice", quote(&item.value));
                let diagnostic = Diagnostic::new(item.span.clone(), title).also((*first).clone(), "here first");
                diagnostics.push(diagnostic.help(twice));
                continue;
            }
            seen.insert(&item.value, &item.span);
            self.know(item, diagnostics);
            // One with a name that is none has been reported where it is declared.
            all.extend(item.value.parse().ok());
        }
        (diagnostics.len() == before).then_some(all)
    }

    fn many(&self) -> String {
        self.what.strip_suffix('y').map_or_else(|| format!("{}s", self.what), |stem| format!("{stem}ies"))
    }
}
