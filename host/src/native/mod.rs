//! Command checks: an argument vector, run as a process of its own with a declared environment, its output
//! in a file. And probes of what this machine has.
//!
//! Must not: use a shell, know about verdicts or logic checks, or leave a process behind.

mod capability;
mod environment;
pub mod files;
mod process;
mod result;
mod supervisor;

pub use capability::{Cut, MAX_SAID, Place, Probes, find_program, probe, said};
pub use environment::{Environment, declared, inherited, value_digest, with_passed};
pub use process::{Ending, Job, Stop, run};
pub use result::{MAX_RESULT_BYTES, RESULT_VARIABLE, ResultClass, ResultFile, Written};
pub use supervisor::{Supervisor, supervise};
