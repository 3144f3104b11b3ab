//! What the benchmarks measure the view of files with: it walks a tree and reads everything, in a sandbox or natively,
//! with the same code.

use probity_sdk::{Check, Context, Need, Pack, Refusal, Report, Rule, Scope};
use std::path::Path;
use std::{fs, io};

/// Files and bytes below a folder, each file read to its end.
pub fn walk(folder: &Path) -> io::Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let (more_files, more_bytes) = walk(&entry.path())?;
            files += more_files;
            bytes += more_bytes;
        } else {
            files += 1;
            bytes += fs::read(entry.path())?.len() as u64;
        }
    }
    Ok((files, bytes))
}

fn run(_context: &Context<'_>) -> Result<Report, Refusal> {
    let (files, bytes) = walk(Path::new("/tree")).map_err(|error| Refusal::Internal(error.to_string()))?;
    let mut report = Report::new();
    report.count("files", files);
    report.count("bytes", bytes);
    Ok(report)
}

/// The pack.
pub fn pack() -> Pack {
    let check = Check::without_config("walk", "Walk and read everything", run)
        .scope(Scope::Tree)
        .need(Need::tree(&["**"], "Everything is read."))
        .rule(Rule::error("none", "It finds nothing.", "It is there since a check has at least one rule."));
    Pack::new("walk", env!("CARGO_PKG_VERSION"), "Walks a tree and reads everything.").check(check)
}

probity_sdk::export!(pack);
