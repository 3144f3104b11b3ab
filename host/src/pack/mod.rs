//! Packs: from what the configuration names to the bytes of a component.
//!
//! Must not: run a pack (that is `guest`'s part), or take bytes from anywhere but the named place.

mod build;
mod source;

pub use build::BuildError;
pub use source::{SourceError, obtain, read_component};
