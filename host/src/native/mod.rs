//! Command checks: an argument vector, run as a process of its own with a declared environment, its output
//! in a file. And probes of what this machine has.
//!
//! Must not: use a shell, know about verdicts or logic checks, or leave a process of the group behind.

mod capability;
mod environment;
mod process;

pub use capability::{Cut, Probes, probe};
pub use environment::{Environment, declared, inherited};
pub use process::{Ending, Job, Stop, run};
