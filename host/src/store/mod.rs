//! The store: records in SQLite, logs in files beside it, one run at a time on a tree, and what saves the next run time.
//!
//! Must not: judge, print, or make anything visible before all that it rests on is on disk.

mod aside;
mod begun;
mod copy;
mod database;
mod error;
mod evidence;
mod journal;
mod lock;
mod logs;
mod memory;
mod place;
mod retention;
mod schema;
mod trust;
mod upkeep;

pub use begun::{Label, settle};
pub use database::{Filter, Gone, Store, Summary, new_run_id};
pub use error::StoreError;
pub use evidence::{Deposit, Sealing, logs_hold};
pub use lock::{Lease, TreeLock, Tried};
pub use logs::{Logs, open_combined, open_log, read_tail};
pub use memory::{FileMemory, TreeMemory};
pub use place::{PlaceError, State, state_path};
pub use retention::{MAX_DAYS, MAX_LOG_BYTES, MAX_RUNS, Why};
pub use trust::Trust;
pub use upkeep::{Checked, LeftOver, Tidied, check, tidy};
