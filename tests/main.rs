//! End-to-end tests through the real binary: one crate, so that it is linked once.

#![expect(
    unreachable_pub,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests say what they show by their names, what is unexpected may panic, and what is skipped says why"
)]

mod arrows;
mod attacker;
mod baseline;
mod capabilities;
mod changes;
mod commands;
mod configuration;
mod delivery;
mod dirty;
mod ending;
mod events;
mod everywhere;
mod evidence;
mod git;
mod hostile;
mod hygiene;
mod init;
mod inputs;
mod jobs;
mod ledger;
mod logic;
mod mounts;
mod readme;
mod requirements;
mod results;
mod secrets;
mod selection;
mod settings;
mod specification;
mod status;
mod store;
mod support;
mod terminal;
mod told;
mod touched;
mod trees;
mod walls;
