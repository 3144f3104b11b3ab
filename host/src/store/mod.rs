//! The store: records in SQLite, logs in files beside it, and what saves the next run time.
//!
//! Must not: judge, print, or make anything visible before all that it rests on is on disk.

mod database;
mod logs;
mod memory;
mod place;

pub use database::{Store, StoreError, Summary, new_run_id};
pub use logs::{Logs, read_combined, read_log, read_tail};
pub use memory::TreeMemory;
pub use place::{PlaceError, state_folder, state_path};
