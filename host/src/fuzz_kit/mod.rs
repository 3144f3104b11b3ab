//! What the fuzz targets are made with: inputs read as lines of text, a watch on memory, and a fixed supply of inputs.
//!
//! Must not: know another module. In builds for fuzzing and for tests only.

mod lines;
mod memory;
#[cfg(test)]
mod noise;

pub(crate) use lines::{Fields, lines};
pub(crate) use memory::largest_allocation;
#[cfg(test)]
pub(crate) use noise::Noise;
