//! Write check packs for Probity.
//!
//! A pack is one WebAssembly component that carries checks. A check is a plain function: it gets its configuration,
//! already parsed, and a [`Context`] with the files it is about, and returns a [`Report`] or says in a [`Refusal`] why it
//! did not judge. [`Pack`] lists the checks and [`export!`] makes the component's two functions out of that list.
//!
//! ```
//! use probity_sdk::{Check, Context, Finding, Need, Pack, Refusal, Report, Rule, Scope};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! /// The configuration of `no-tabs`.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
//! struct Config {
//!     /// How many tabs a file may have.
//!     at_most: u64,
//! }
//!
//! impl Default for Config {
//!     fn default() -> Self {
//!         Self { at_most: 0 }
//!     }
//! }
//!
//! fn no_tabs(config: &Config, ctx: &Context<'_>) -> Result<Report, Refusal> {
//!     let mut report = Report::new();
//!     for file in ctx.files().iter().filter(|file| file.has_contents()) {
//!         let contents = ctx.tree().read(&file.path)?;
//!         let tabs = contents.iter().filter(|&&byte| byte == b'\t').count();
//!         if tabs as u64 > config.at_most {
//!             report.push(Finding::error("tabs", format!("has {tabs} tabs")).in_file(&file.path));
//!         }
//!     }
//!     Ok(report)
//! }
//!
//! fn pack() -> Pack {
//!     Pack::new("tabs", env!("CARGO_PKG_VERSION"), "Finds tabs.").check(
//!         Check::new("no-tabs", "No tabs", no_tabs)
//!             .explain("Counts the tabs of each file.")
//!             .scope(Scope::File)
//!             .need(Need::tree(&["**"], "Tabs are found by reading the files."))
//!             .rule(Rule::error("tabs", "A file has too many tabs.", "Replace them with spaces.")),
//!     )
//! }
//!
//! probity_sdk::export!(pack);
//! # fn main() {}
//! ```
//!
//! The same function runs natively, over any folder, in the pack's own `cargo test`: see [`testing`]. That works
//! because a check only ever reads below the [`Mount`]s of its context, which are `/tree`, `/base` and so on in the
//! component and ordinary folders natively.
//!
//! A check must depend on nothing but its request and what it reads there: no clock, no randomness, no environment, and
//! no order of a hash map. The host grants nothing else anyway; `std::collections::HashMap` alone would make the
//! component import `wasi:random`.

pub mod contract;

mod check;
mod context;
mod export;
mod finding;
mod lines;
mod mount;
mod pack;
pub mod testing;

pub use check::{Check, Need, Rule};
pub use context::{Context, Mounts};
pub use contract::types::{
    Change, ChangeKind, Edit, Entry, Finding, Kind, Place, Position, Refusal, Report, Request, Scope, Severity,
};
pub use lines::{Columns, LineIndex, Mark, column};
pub use mount::{Mount, ReadFailed, Reader};
pub use pack::Pack;
