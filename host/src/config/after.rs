//! The order of checks: those that wait for each other.

use super::diagnostic::{Diagnostic, quote};
use super::file::FileCheck;
use super::reader::{At, get};
use std::collections::{BTreeMap, BTreeSet};

/// Reports checks that wait for each other.
pub(super) fn circles(checks: &[FileCheck], diagnostics: &mut Vec<Diagnostic>) {
    let after = |check: &FileCheck| get(check.after.as_ref()).map_or(&[][..], |after| after.value.as_slice()).to_vec();
    let by_name: BTreeMap<&str, &FileCheck> = checks.iter().map(|check| (check.id.value.as_str(), check)).collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in checks {
        // The way to where we are, each with the names it waits for that were not looked at yet.
        let mut way: Vec<(&str, Vec<At<String>>)> = vec![(&start.id.value, after(start))];
        let mut on_way: BTreeSet<&str> = BTreeSet::from([start.id.value.as_str()]);
        while let Some((name, waits)) = way.last_mut() {
            let name = *name;
            let Some(next) = waits.pop() else {
                done.insert(name);
                on_way.remove(name);
                way.pop();
                continue;
            };
            if on_way.contains(next.value.as_str()) {
                let title = format!("check {} waits for itself", quote(&next.value));
                let names: Vec<&str> = way.iter().map(|(on, _)| *on).skip_while(|on| *on != next.value).collect();
                let names: Vec<String> = names.into_iter().chain([next.value.as_str()]).map(quote).collect();
                let label = names.join(" comes after ");
                let diagnostic = Diagnostic::new(next.span.clone(), title).label(label);
                diagnostics.push(diagnostic.help("remove one of the names in `after`"));
                // One circle is enough to mend at a time, and what leads into it is no other.
                return;
            }
            if let Some(check) = by_name.get(next.value.as_str()).filter(|_| !done.contains(next.value.as_str())) {
                on_way.insert(&check.id.value);
                way.push((&check.id.value, after(check)));
            }
        }
    }
}
