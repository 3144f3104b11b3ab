//! What one call of a guest may use.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The limits of one call. They are part of what a result depends on, so they are never taken from the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Fuel for `run` or `describe`: about one unit for each instruction, and what the host does for the guest is
    /// charged too. 10^10 is between ten seconds and a minute of work, more than a hundred times what a check of a
    /// large tree has been seen to use: a limit that real checks never meet and that a loop meets within a minute.
    pub fuel: u64,
    /// Fuel for instantiation, counted apart: how much of it is used depends on how memory is initialised, so it must
    /// not eat into what the check itself gets. Interpreters run some code here; 10^9 is 300 times what JavaScript's
    /// uses.
    pub init_fuel: u64,
    /// Bytes of all memories and tables of the guest together. Only what is touched is really used. An interpreter
    /// with a parsed source tree needs 100 to 200 MiB; 512 MiB on two threads still fits a small machine.
    pub memory: u64,
    /// Bytes the guest may write to its standard output and error together. Nobody reads more than a megabyte of it.
    pub output: u64,
    /// Findings in one report. Beyond ten thousand a report says one thing: that the check is set up wrongly.
    pub findings: u64,
    /// Handles (open files, streams, listings) held at the same time. Unix gives a process 1024.
    pub handles: u64,
    /// The safety net for what fuel cannot see. It is never a result: whoever enforces it ends the process.
    pub wall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 10_000_000_000,
            init_fuel: 1_000_000_000,
            memory: 512 << 20,
            output: 1 << 20,
            findings: 10_000,
            handles: 1024,
            wall: Duration::from_mins(5),
        }
    }
}
