//! The check `large-files`.
//!
//! Sizes and kinds come with the request. So nothing is read at all, until a file is too large and it matters whether Git
//! LFS has it.

use probity_sdk::{Check, Context, Finding, Need, Refusal, Report, Rule, Scope};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::attributes::Attributes;
use crate::findings::Findings;
use crate::text;

const RULE: &str = "too-large";

/// How many files are listed.
const LISTED: usize = 1_000;

pub(crate) fn check() -> Check {
    Check::new("large-files", "No large files", run)
        .explain(
            "Judges the size of each file, executables included, not only of files that were just added. A file that \
             `.gitattributes` gives to Git LFS (`filter=lfs`) may have any size, since the repository only keeps a \
             pointer to it. Symbolic links and submodules have no contents here and are skipped.",
        )
        .scope(Scope::Tree)
        .need(Need::tree(
            &["**"],
            "The size of every file is judged, and `.gitattributes` in any folder says which are given to Git LFS.",
        ))
        .rule(Rule::error(
            RULE,
            "A file is larger than allowed.",
            "What was once committed stays in the history, and everybody downloads it from then on. Leave the file out, \
             make it when it is needed, or give it to Git LFS: `git lfs track PATH`, which writes `filter=lfs` to \
             `.gitattributes`. Where it has to stay, raise `max-kib` or leave it out with `files`.",
        ))
}

/// How large files may be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Config {
    /// The largest size allowed, in KiB of 1024 bytes.
    max_kib: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_kib: 500 }
    }
}

fn run(config: &Config, ctx: &Context<'_>) -> Result<Report, Refusal> {
    let largest = config.max_kib.saturating_mul(1024);
    let mut attributes = Attributes::new(ctx.tree());
    let mut findings = Findings::with_limit(LISTED);
    let mut report = Report::new();
    for entry in text::files(ctx) {
        report.count("files", 1);
        report.count("bytes", entry.size);
        if entry.size <= largest {
            continue;
        }
        if attributes.filter(&entry.path)?.as_deref() == Some("lfs") {
            report.count("lfs-files", 1);
            continue;
        }
        findings.push(|| {
            // Rounded up, so that it is never said to be as large as is allowed.
            let size = entry.size.div_ceil(1024);
            let allowed = config.max_kib;
            let message = format!("The file has {size} KiB, more than the {allowed} KiB that are allowed.");
            Finding::error(RULE, message)
                .in_file(&entry.path)
                .help("Leave it out of the repository, or give it to Git LFS with `git lfs track`.")
        });
    }
    findings.finish(&mut report, RULE, None);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Case, places};

    const LIMIT: usize = 500 * 1024;

    fn case() -> Case {
        Case::new("large-files")
    }

    #[test]
    fn a_file_may_be_as_large_as_the_limit_and_no_larger() {
        let report = case().file("a", &vec![0; LIMIT]).file("b c\nd", &vec![0; LIMIT + 1]).file("empty", b"").run();
        assert_eq!(places(&report), ["b c\nd"]);
        assert_eq!(report.findings[0].message, "The file has 501 KiB, more than the 500 KiB that are allowed.");
        assert_eq!(report.stat("files"), 3);
        assert_eq!(report.stat("bytes"), 2 * LIMIT as u64 + 1);
    }

    #[test]
    fn the_limit_can_be_set() {
        let run = |config| places(&case().file("a", &[0; 2049]).config(config).run());
        assert_eq!(run(r#"{"max-kib": 2}"#), ["a"]);
        assert_eq!(run(r#"{"max-kib": 3}"#), [""; 0]);
        assert_eq!(run(r#"{"max-kib": 0}"#), ["a"]);
        assert_eq!(run(r#"{"max-kib": 18446744073709551615}"#), [""; 0]);
        let refusal = case().config(r#"{"max-kb": 2}"#).refusal();
        assert!(refusal.contains("max-kib"), "{refusal}");
    }

    #[test]
    fn files_of_git_lfs_may_have_any_size() {
        let report = case()
            .config(r#"{"max-kib": 1}"#)
            .file(".gitattributes", b"*.bin filter=lfs diff=lfs merge=lfs -text\n")
            .file("x/.gitattributes", b"small.bin -filter\n")
            .file("a.bin", &[0; 2000])
            .file("x/small.bin", &[0; 2000])
            .file("x/y/a.bin", &[0; 2000])
            .file("other", &[0; 2000])
            .run();
        assert_eq!(places(&report), ["other", "x/small.bin"]);
        assert_eq!(report.stat("lfs-files"), 2);
    }

    #[cfg(unix)]
    #[test]
    fn executables_are_judged_and_links_and_submodules_are_not() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let case = case()
            .config(r#"{"max-kib": 1}"#)
            .file("run", &[0; 2000])
            .file("sub/.git", b"gitdir: elsewhere\n")
            .file("sub/large", &[0; 2000]);
        std::fs::set_permissions(case.root().join("run"), PermissionsExt::from_mode(0o755)).unwrap();
        symlink("run", case.root().join("link")).unwrap();
        assert_eq!(places(&case.run()), ["run"]);
    }

    #[test]
    fn only_so_many_files_are_listed() {
        use probity_sdk::testing::Subject;
        let case = case().file("a", b"");
        let mut subject = Subject::scan(case.root()).unwrap();
        let entry = subject.entries.remove(0);
        for number in 0..LISTED + 5 {
            let mut entry = entry.clone();
            entry.path = format!("{number:05}");
            entry.size = u64::MAX;
            subject.entries.push(entry);
        }
        let report = subject.run(&crate::pack(), "large-files", "{}").unwrap();
        assert_eq!(report.findings.len(), LISTED + 1);
        assert!(report.findings[LISTED].message.contains("5 more"));
        assert_eq!(report.stat("bytes"), u64::MAX);
    }
}
