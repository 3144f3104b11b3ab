//! Values: what everything else talks about.
//!
//! Must not: do IO, read a clock or the environment, know any other module, or depend on the order
//! of a hash map. Whatever is hashed or stored has its form defined here.

mod canonical;
mod capability;
mod contract;
mod digest;
mod event;
mod evidence;
mod finding;
mod form;
mod id;
mod observation;
mod outcome;
mod reaped;
mod secrets;
mod verdict;

pub use canonical::{Bytes, CanonicalError, to_canonical};
pub use capability::{Capability, Os, Probe, State, Version, VersionError};
pub use contract::{
    Change, ChangeKind, CheckInfo, Entry, EntryKind, Mount, Need, PackInfo, Refusal, Report, Request, Rule, Scope,
};
pub use digest::{Context, Digest, DigestError, Encoder, hex};
pub use event::{Busy, Event, Stopping};
pub use evidence::{Because, Input, Reuse, Withheld, spoken};
pub use finding::{Edit, Finding, Place, Position, Severity};
pub use form::{MAX_INTEGER, id_form, line_form, unique_ids};
pub use id::{CapabilityName, CheckId, IdError, PackName, RunId, ScenarioName};
pub use observation::{Observation, Step, observations_digest};
pub use outcome::{CheckOutcome, Class, Deselected, ErrorKind, RunOutcome, SkipReason};
pub use reaped::Reaped;
pub use secrets::{Concealer, Secrets};
pub use verdict::{
    CheckKind, Coverage, EnvironmentMode, Exit, Log, NamedBase, Passed, PlanRow, Record, RecordRow, Remark, Row, Seen,
    Spec, SpecVersion, Subject, Unnamed, UsedPack, VERDICT_SCHEMA, Verdict,
};
