//! Checks that every repository can use.
//!
//! What each check judges, and where it differs from the tools people know, is in the pack's `README.md`.
//!
//! The checks of file contents share [`text`]: they read a file piece by piece, so that memory does not grow with the
//! file, and skip what is binary. Paths, sizes and kinds come from the request, which costs no call into the host.

mod attributes;
#[cfg(test)]
mod cases;
mod conflict_markers;
mod final_newline;
mod findings;
mod large_files;
mod pattern;
mod text;
mod trailing_whitespace;

use probity_sdk::{Need, Pack};

/// What the checks of file contents ask to read.
const CONTENTS: Need = Need::tree(&["**"], "The contents of each file are what is judged; nothing else is read.");

/// The pack.
pub fn pack() -> Pack {
    Pack::new(
        "hygiene",
        env!("CARGO_PKG_VERSION"),
        "Finds conflict markers, trailing whitespace, wrong ends of files, and large files.",
    )
    .license("MIT OR Apache-2.0")
    .check(conflict_markers::check())
    .check(trailing_whitespace::check())
    .check(final_newline::check())
    .check(large_files::check())
}

probity_sdk::export!(pack);
