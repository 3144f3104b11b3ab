//! The parent's side of logic checks: from a pack's bytes to a report that can be believed as far as its form goes.
//!
//! Invariants: no guest code runs in this process, and nothing that a guest could have shaped is parsed here beyond
//! plain frames; what does not fit the contract becomes that check's error; a check's failure is a value here, never
//! an `Err`. One worker serves one pack and one grant; what it may read is decided here, request by request.

mod artefact;
mod call;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod idle;
mod inbox;
mod merge;
mod process;
mod run;
#[cfg(test)]
mod tests;
mod trial;
mod validate;

pub use crate::worker::{Crossing, GuestError, Limits, LoadError, Node, SchemaError, View, Walls, What, missing_walls};
pub use run::{CheckResult, CheckRun, Job};
pub use trial::{Saw, Trial, Tried};

use crate::model::{Digest, PackInfo};
use crate::system::clock;
use crate::worker::{Ask, Engine, Inspection, Say, caps};
use artefact::Cache;
use idle::Idle;
use process::{Lost, Patience, Worker};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Fuel for `describe`, which only lists what is in the pack: a tenth of what a check may use.
const DESCRIBE_FUEL: u64 = 1_000_000_000;

/// How long a pack may take to compile. The largest seen, of 18 MB, takes 20 seconds.
const COMPILE_TIME: Duration = Duration::from_mins(5);

/// How long anything else but a check may take.
const ANSWER_TIME: Duration = Duration::from_mins(1);

/// Loads packs.
#[derive(Debug)]
pub struct Host {
    cache: Option<Cache>,
    engine: OnceLock<Engine>,
    place: Place,
}

/// Where guests run.
#[derive(Debug, Clone)]
enum Place {
    /// In processes of this program.
    Workers(PathBuf),
    /// In this process: what the tests of the engine's side use.
    #[cfg(test)]
    Here,
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
    code: Arc<[u8]>,
    place: Place,
    idle: Arc<Idle>,
}

/// What is kept of a pack beside its compiled code.
#[derive(Serialize, Deserialize)]
struct Kept {
    inspection: Inspection,
    info: PackInfo,
}

impl Host {
    /// A host whose guests run in processes of `program`, which must be Probity. It keeps compiled code in a folder,
    /// under a key that others do not know; or nowhere. Touches nothing yet.
    pub fn new(program: PathBuf, cache: Option<(PathBuf, [u8; 32])>) -> Self {
        let cache = cache.map(|(folder, key)| Cache::new(folder, key));
        Self { cache, engine: OnceLock::new(), place: Place::Workers(program) }
    }

    #[cfg(test)]
    fn open(folder: Option<PathBuf>) -> Self {
        let cache = folder.map(|folder| Cache::new(folder, [7; 32]));
        Self { cache, engine: OnceLock::new(), place: Place::Here }
    }

    /// Loads a pack: looks at what it imports, compiles it and asks what it holds, unless all that was done before.
    pub fn load(&self, bytes: &[u8]) -> Result<Pack, LoadError> {
        let digest = Digest::of(bytes);
        let mut warnings = Vec::new();
        let name = artefact::name(&digest, &self.engine()?.compatibility());
        let found = self.cache.as_ref().and_then(|cache| unpack(&cache.get(&name, &mut warnings)?));
        let compiled = found.is_none();
        let (kept, code) = if let Some(found) = found { found } else { self.prepare(bytes)? };
        if let (true, Some(cache)) = (compiled, &self.cache) {
            cache.put(&name, &pack(&kept, &code), &mut warnings);
        }
        let Kept { inspection, info } = kept;
        let (place, idle) = (self.place.clone(), Arc::default());
        Ok(Pack { digest, info, inspection, warnings, compiled, code: code.into(), place, idle })
    }

    fn engine(&self) -> Result<&Engine, LoadError> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine);
        }
        let engine = Engine::new()?;
        Ok(self.engine.get_or_init(|| engine))
    }

    /// Looks at a component, compiles it and asks what it holds.
    fn prepare(&self, bytes: &[u8]) -> Result<(Kept, Vec<u8>), LoadError> {
        let limits = Limits { fuel: DESCRIBE_FUEL, ..Limits::default() };
        let (inspection, info, code) = match &self.place {
            Place::Workers(program) => {
                let (inspection, code) = compile(program, bytes)?;
                let mut worker = Worker::load(program, &code)?;
                (inspection, described(&mut worker, limits)?, code)
            }
            #[cfg(test)]
            Place::Here => tests::prepare(self.engine()?, bytes, &limits)?,
        };
        caps::pack(&info).map_err(|(_, excess)| LoadError::Info(excess))?;
        validate::pack(&info).map_err(LoadError::Info)?;
        Ok((Kept { inspection, info }, code))
    }
}

fn patience(time: Duration) -> Patience<'static> {
    Patience { deadline: Some(clock::now() + time), cancelled: None }
}

fn lost(what: &str, lost: &Lost) -> LoadError {
    LoadError::Engine(format!("{what}: {lost}"))
}

fn compile(program: &std::path::Path, bytes: &[u8]) -> Result<(Inspection, Vec<u8>), LoadError> {
    let failed = |error: std::io::Error| LoadError::Engine(format!("the compiler cannot be started: {error}"));
    let mut worker = Worker::start(program).map_err(failed)?;
    let patience = patience(COMPILE_TIME);
    let asked = worker.ask(&Ask::Compile, patience).and_then(|()| worker.give(bytes, patience));
    asked.map_err(|error| lost("the compiler cannot be asked", &error))?;
    match worker.hear(patience) {
        Ok(Say::Compiled(Ok(inspection))) => {
            let code = worker.bytes(patience).map_err(|error| lost("the compiler did not finish", &error))?;
            Ok((inspection, code))
        }
        Ok(Say::Compiled(Err(error))) => Err(error),
        Ok(_) => Err(LoadError::Engine("the compiler answers out of turn".to_owned())),
        Err(error) => Err(lost("the compiler did not finish", &error)),
    }
}

fn described(worker: &mut Worker, limits: Limits) -> Result<PackInfo, LoadError> {
    let patience = patience(ANSWER_TIME);
    worker.ask(&Ask::Describe { limits }, patience).map_err(|error| lost("its worker cannot be asked", &error))?;
    match worker.hear(patience) {
        Ok(Say::Described(described)) => described,
        Ok(_) => Err(LoadError::Engine("its worker answers out of turn".to_owned())),
        Err(error) => Err(lost("it did not describe itself", &error)),
    }
}

impl Pack {
    /// What is wrong with a configuration, by a check's own schema. Evaluated in a worker, since the schema is the
    /// pack's.
    pub fn validate(&self, schema: &str, config: &serde_json::Value) -> Result<Vec<SchemaError>, LoadError> {
        match &self.place {
            Place::Workers(program) => {
                let mut worker = self.idle.take().map_or_else(|| Worker::load(program, &self.code), Ok)?;
                let patience = patience(ANSWER_TIME);
                let ask = Ask::Validate { schema: schema.to_owned(), config: config.clone() };
                worker.ask(&ask, patience).map_err(|error| lost("its worker cannot be asked", &error))?;
                match worker.hear(patience) {
                    Ok(Say::Validated(errors)) => {
                        self.idle.put(worker);
                        Ok(errors)
                    }
                    Ok(_) => Err(LoadError::Engine("its worker answers out of turn".to_owned())),
                    Err(error) => Err(lost("its configuration could not be checked", &error)),
                }
            }
            #[cfg(test)]
            Place::Here => Ok(crate::worker::validate_config(schema, config).err().unwrap_or_default()),
        }
    }
}

/// One byte string of what is kept: the length of the JSON, the JSON, the code.
fn pack(kept: &Kept, code: &[u8]) -> Vec<u8> {
    // Texts and numbers only, which always have a JSON form; an empty one would be made again.
    let json = serde_json::to_vec(kept).unwrap_or_default();
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(&json);
    bytes.extend_from_slice(code);
    bytes
}

fn unpack(bytes: &[u8]) -> Option<(Kept, Vec<u8>)> {
    let (length, rest) = bytes.split_at_checked(8)?;
    let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
    let (json, code) = rest.split_at_checked(length)?;
    Some((serde_json::from_slice(json).ok()?, code.to_vec()))
}
