//! Exit codes of a command.

use super::diagnostic::Diagnostic;
use super::reader::At;
use std::collections::BTreeMap;

/// The value of `gap-exit`: codes from 1 to 255, each once.
pub(super) fn gap_exit(items: &[At<i64>], diagnostics: &mut Vec<Diagnostic>) -> Vec<u8> {
    let mut seen = BTreeMap::new();
    let mut codes = Vec::new();
    for item in items {
        let refused = |title: String| Diagnostic::new(item.span.clone(), title);
        match u8::try_from(item.value) {
            Ok(0) => {
                let diagnostic = refused("exit code 0 cannot mean that something is missing".to_owned());
                let help = "remove it; a command that ends with 0 can say `env_gap` in the file `$PROBITY_RESULT`";
                diagnostics.push(diagnostic.label("with 0 a command says that all is well").help(help));
            }
            Ok(code) => match seen.insert(code, &item.span) {
                None => codes.push(code),
                Some(first) => {
                    let diagnostic = refused(format!("exit code {code} is named twice"));
                    diagnostics.push(diagnostic.also(first.clone(), "here first").help("remove one of them"));
                }
            },
            Err(_) => {
                let diagnostic = refused(format!("{} is no exit code", item.value));
                diagnostics.push(diagnostic.help("exit codes that say something are 1 to 255"));
            }
        }
    }
    codes
}
