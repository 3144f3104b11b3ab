//! How many commands may run side by side.

use super::diagnostic::Diagnostic;
use super::reader::{At, Reader, wrong};
use toml::Spanned;
use toml::de::DeValue;

/// The most commands that may run side by side. Each takes a thread, a process and about five open files of Probity, and
/// many systems let a process have 1024 of these and a user some thousand processes. Commands bring threads of their own,
/// so that more than this would only take turns.
pub const MAX_JOBS: u8 = 64;

/// What holds where nothing is written: one after the other.
pub(super) const DEFAULT: u8 = 1;

/// Reads the value of `jobs`.
pub(super) fn read(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<i64>> {
    match value.get_ref() {
        DeValue::Integer(number) => reader.integer(name, number, value.span()),
        other => {
            let diagnostic = wrong(name, "an integer", other, value.span());
            reader.report(diagnostic.help("write for example `jobs = 4`: up to four commands at once"));
            None
        }
    }
}

/// What it means.
pub(super) fn resolve(number: &At<i64>, diagnostics: &mut Vec<Diagnostic>) -> Option<u8> {
    let jobs = u8::try_from(number.value).ok().filter(|jobs| (1..=MAX_JOBS).contains(jobs));
    if jobs.is_none() {
        let title = format!("`jobs` is {}, and has to be from 1 to {MAX_JOBS}", number.value);
        let help = if number.value < 1 {
            "write `jobs = 1`, or leave it out, to run one command after the other".to_owned()
        } else {
            format!("write `jobs = {MAX_JOBS}` or less")
        };
        diagnostics.push(Diagnostic::new(number.span.clone(), title).help(help));
    }
    jobs
}
