//! The parent's side of logic checks: from a pack's bytes to a report that can be believed as far as its form goes.
//!
//! Invariant: nothing that a guest made up leaves this module unchecked. What does not fit the contract becomes that
//! check's error; a check's failure is a value here, never an `Err`.

mod artefact;
mod run;
#[cfg(test)]
mod tests;
mod validate;

pub use crate::worker::{GuestError, Limits, LoadError, View};
pub use run::{CheckResult, CheckRun, Job};

use crate::model::{Digest, PackInfo};
use crate::worker::{self, Engine, Inspection, Program, on_big_stack};
use artefact::Cache;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Fuel for `describe`, which only lists what is in the pack: a tenth of what a check may use.
const DESCRIBE_FUEL: u64 = 1_000_000_000;

/// Loads packs.
#[derive(Debug)]
pub struct Host {
    cache: Option<Cache>,
    engine: OnceLock<Engine>,
}

/// A pack that is ready to run.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Of its bytes: which pack it is.
    pub digest: Digest,
    /// What it says of itself, checked.
    pub info: PackInfo,
    /// What its bytes say.
    pub inspection: Inspection,
    /// Trouble with the cache of compiled code. It costs time and nothing else.
    pub warnings: Vec<String>,
    /// Whether it had to be compiled.
    pub compiled: bool,
    program: Program,
}

impl Host {
    /// A host that keeps compiled code in `cache_dir`, or nowhere. Touches nothing yet.
    pub fn open(cache_dir: Option<PathBuf>) -> Self {
        Self { cache: cache_dir.map(Cache::new), engine: OnceLock::new() }
    }

    /// Loads a pack: looks at what it imports, compiles it unless that was done before, and asks what it holds.
    pub fn load(&self, bytes: &[u8]) -> Result<Pack, LoadError> {
        let inspection = worker::inspect(bytes)?;
        let engine = self.engine()?;
        let digest = Digest::of(bytes);
        let mut warnings = Vec::new();
        let (program, compiled) = self.program(engine, &digest, bytes, &mut warnings)?;
        let limits = Limits { fuel: DESCRIBE_FUEL, ..Limits::default() };
        let info = on_big_stack(|stack| program.describe(stack, &limits))
            .map_err(|error| LoadError::Engine(format!("no thread can be started: {error}")))?
            .map_err(LoadError::Describe)?;
        validate::pack(&info).map_err(LoadError::Info)?;
        Ok(Pack { digest, info, inspection, warnings, compiled, program })
    }

    fn engine(&self) -> Result<&Engine, LoadError> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine);
        }
        let engine = Engine::new()?;
        Ok(self.engine.get_or_init(|| engine))
    }

    /// The program from the cache, or freshly compiled, and whether it was.
    fn program(
        &self,
        engine: &Engine,
        digest: &Digest,
        bytes: &[u8],
        warnings: &mut Vec<String>,
    ) -> Result<(Program, bool), LoadError> {
        let name = artefact::name(digest, &engine.compatibility());
        if let Some(cache) = &self.cache
            && let Some(code) = cache.get(&name, warnings)
        {
            #[expect(unsafe_code, reason = "compiled code of our own, checked when it was read")]
            // SAFETY: `Cache::get` gives what this user's Probity wrote under a name made of this component, this
            // engine's settings and this build: it comes from a folder that only this user can write, and its digest
            // is the one that was written with it. Whoever can change both is this user.
            match unsafe { Program::load(engine, &code) } {
                Ok(program) => return Ok((program, false)),
                // Code of another engine, which the name should have told apart, or code that is damaged in spite of
                // its digest: it is made again.
                Err(error) => warnings.push(format!("compiled code in the cache is not used: {error}")),
            }
        }
        let code = worker::compile(engine, bytes)?;
        #[expect(unsafe_code, reason = "code that was compiled a line above")]
        // SAFETY: `code` is what `compile` returned, unchanged.
        let program = unsafe { Program::load(engine, &code) }?;
        if let Some(cache) = &self.cache {
            cache.put(&name, &code, warnings);
        }
        Ok((program, true))
    }
}
