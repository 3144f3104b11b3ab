//! The side that runs untrusted code: one engine, one view of files, one set of limits.
//!
//! Invariants: this module knows `model` and nothing else of Probity. It opens no file, reads no clock and no
//! environment: the bytes a guest reads come through [`Contents`], everything else it can observe is made here
//! from its inputs. So it can live in a locked process of its own without a change.
//!
//! Two rules keep a hostile guest from harming its host. Whatever a guest hands over is capped before it is kept
//! (each cap is a documented constant), and whatever it makes the host do is paid for in its own fuel.

pub mod caps;
mod compile;
mod contract;
mod crossing;
mod engine;
mod error;
mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod imports;
mod limits;
mod lockdown;
mod program;
mod schema;
mod serve;
mod state;
mod view;
mod wasi;

pub use compile::compile;
pub use crossing::{CANARY, Crossed, Crossing, Target};
pub use engine::{BigStack, Engine, engine_id, on_big_stack, on_big_stacks};
pub use error::{GuestError, LoadError};
pub use frame::{
    HEADER as FRAME_HEADER, Kind as FrameKind, MAX_BYTES as FRAME_MOST, header as frame_header, write_bytes,
    write_message,
};
pub use imports::{CONTRACT_VERSION, Import, Inspection, MAX_COMPONENT_BYTES, inspect};
pub use limits::Limits;
pub use lockdown::{Walls, missing as missing_walls};
pub use program::{Called, Program};
pub use schema::{MAX_SCHEMA_BYTES, SchemaError, check_schema, validate_config};
#[cfg(test)]
pub(crate) use serve::describe;
pub use serve::{Ask, Node, Piece, Say, What, serve};
pub use view::{
    Contents, ContentsError, Found, FoundKind, Noted, Tree, TreeBuilder, TreeError, Untrue, View, observations,
};

/// For the test that plays a worker which an attacker has taken over: the walls that it stands behind are these and no
/// copy.
#[doc(hidden)]
pub mod attack {
    use super::crossing::{self, Crossed, Crossing, Target};
    use super::lockdown::{self, Walls};

    /// Locks this process up as one that runs guests.
    pub fn lock_up() -> Walls {
        lockdown::close_inherited();
        lockdown::first(Walls::ALL).second()
    }

    /// Tries to cross the walls.
    pub fn cross(crossing: Crossing, target: &Target) -> Crossed {
        crossing::cross(crossing, target, &[])
    }
}
