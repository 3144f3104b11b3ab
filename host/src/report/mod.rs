//! Reports: consumers of events and records, one a file.
//!
//! Must not: write anywhere (they give text to whoever does), or know where an event came from.

mod human;
mod lines;
mod text;

pub use human::{Human, Style, deselected, produced};
pub use lines::{EVENTS_SCHEMA, line};
pub use text::{escape, escape_in_json, without_codes};
