//! From a component's bytes to machine code.

use super::engine::Engine;
use super::error::{LoadError, clean};

/// Compiles a component. What comes out is machine code: it must be kept where nobody else can write, and is loaded
/// only by [`super::Program::load`].
pub fn compile(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, LoadError> {
    // All causes in one line; the engine's texts name functions and offsets of the component and nothing of the host.
    engine
        .inner()
        .precompile_component(component)
        .map_err(|error| LoadError::Compile(clean(&format!("{error:#}"), 500)))
}
