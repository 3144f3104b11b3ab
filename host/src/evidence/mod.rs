//! Evidence: when the record of one run may answer for another, and why it may not.
//!
//! Two runs are one question where their [`Identity`] is one: the whole resolved plan, what is verified, and what was found
//! out about this machine before anything ran. `docs/evidence.md` tells the model.
//!
//! Must not: run a check, write a record, or trust a row of the store whose MAC and digests do not hold.

mod answer;
mod delivery;
mod identity;
mod rests;
mod tools;

pub use answer::{Answer, Asking, age, answer};
pub use delivery::{Delivery, Wanted, delivery, last_probed};
pub use identity::{CheckInputs, CommandInputs, Facts, IDENTITY_SCHEMA, Identity, Mode, VOLATILE, differences};
pub use rests::{QUARANTINE, withheld};
pub use tools::{Fingerprints, Found, Tools};
