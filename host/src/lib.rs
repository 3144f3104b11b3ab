//! Probity, a check host: it verifies a tree of files with sandboxed logic checks and native commands side by side, and
//! records what it finds as verdicts with a digest.
//!
//! Data flows once: arguments, configuration, subject, plan, units, events, verdict, store, reports. Arrows between the
//! modules run one way:
//!
//! ```text
//! cli -> run, pack, store, report -> plan -> subject, guest, native, config -> model
//! cli -> starter -> subject                  guest -> worker -> model
//! cli, run, subject, guest, native -> system
//! ```
//!
//! `docs/architecture.md` says what each module is for and what it must not do.

pub mod cli;
pub mod config;
pub mod evidence;
#[cfg(any(test, fuzzing))]
mod fuzz_kit;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod guest;
pub mod model;
pub mod native;
pub mod pack;
pub mod plan;
pub mod report;
pub mod run;
pub mod starter;
pub mod store;
pub mod subject;
pub mod system;
pub mod worker;
