//! The configuration: what `probity.toml` says, and what it means.
//!
//! `file` reads what is written, with the place of each value; `resolve` checks what it means. What the user's file says
//! in `[verify]` lies beneath: a value of the project's wins, key by key. Every mistake is
//! reported at once, each with its place and with what to write instead; a configuration with a mistake is no
//! configuration. Whatever is not understood is refused and never ignored: a key that does nothing would be a check
//! that does nothing.
//!
//! Must not: run anything, know what is in a pack or in the subject, read another file than the one it is given, or
//! print.

mod after;
mod argv;
mod capability;
mod diagnostic;
mod duration;
mod environment;
mod error;
mod exits;
mod file;
mod globs;
mod jobs;
mod json;
mod keys;
mod known;
mod limits;
mod load;
mod names;
mod pack;
mod reader;
mod resolve;
mod resolved;
mod schema;
mod settings;
mod size;
mod suggest;
mod tests_of;
mod user;
mod verify;

#[cfg(test)]
mod tests;

pub use diagnostic::{Colour, Diagnostic, MAX_SHOWN, Source, quote, render};
pub use duration::{DurationError, parse_duration};
pub use error::{ConfigError, EXAMPLE, Encoding, Invalid};
pub use globs::{GlobError, Globs, MAX_ALTERNATIVES, MAX_COMPILED_SIZE, MAX_GLOB_LENGTH, MAX_GLOBS};
pub use jobs::MAX_JOBS;
pub use load::{CONFIG_NAME, MAX_CONFIG_SIZE, discover, load, load_as, parse};
pub use resolved::{
    Body, Capability, Check, Command, Config, Evident, Limits, Logic, Pack, PackSource, Scenario, Spec, When,
};
pub use schema::{Layer, schema};
pub use settings::{Origin, Setting, settings};
pub use suggest::did_you_mean;
pub use tests_of::TestsOf;
pub use user::{User, load_user};
pub use verify::{Verify, VerifyCommand};
