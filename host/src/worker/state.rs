//! What belongs to one call of a guest, and ends with it.

use super::limits::Limits;
use super::view::{Chunks, NodeId, Observed, View};
use super::wasi::Stop;
use wasmtime::ResourceLimiter;

/// Instances of core modules in one component. An interpreter's component has about twenty.
pub(super) const MAX_INSTANCES: usize = 256;

/// Memories of one component: one for each part that it is composed of. Each reserves four gigabytes of addresses.
pub(super) const MAX_MEMORIES: usize = 16;

/// Tables of one component.
pub(super) const MAX_TABLES: usize = 32;

/// Elements of one table. Interpreters have been seen to need 21,160.
pub(super) const MAX_TABLE_ELEMENTS: usize = 1 << 20;

/// The data of one store.
pub(super) struct State {
    pub(super) observed: Observed,
    pub(super) view: View,
    pub(super) chunks: Chunks,
    pub(super) limiter: Limiter,
    pub(super) streams: Slots<Stream>,
    pub(super) listings: Slots<Listing>,
    pub(super) output: Output,
    pub(super) random: Random,
    /// Nanoseconds since the start of the call, on a clock that only the guest's own questions move.
    pub(super) clock: u64,
    /// Fuel that the host function at work wants to be paid beside its fixed price.
    pub(super) cost: u64,
    handles: u64,
    max_handles: u64,
}

/// A file being read from front to back.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) file: NodeId,
    pub(super) position: u64,
}

/// A folder being listed.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) directory: NodeId,
    pub(super) position: u32,
}

impl State {
    pub(super) fn new(view: View, limits: &Limits, seed: &[u8; 32]) -> Self {
        Self {
            observed: Observed::new(&view),
            view,
            chunks: Chunks::default(),
            limiter: Limiter { max: limits.memory, memory: 0, tables: 0 },
            streams: Slots::default(),
            listings: Slots::default(),
            output: Output { bytes: Vec::new(), max: limits.output },
            random: Random::new(seed),
            clock: 0,
            cost: 0,
            handles: 0,
            max_handles: limits.handles,
        }
    }

    /// Counts a handle that the guest is about to get.
    pub(super) fn take_handle(&mut self) -> Result<(), Stop> {
        if self.handles >= self.max_handles {
            return Err(Stop::Handles(self.max_handles));
        }
        self.handles += 1;
        Ok(())
    }

    /// Counts a handle that the guest has dropped.
    pub(super) fn drop_handle(&mut self) {
        self.handles = self.handles.saturating_sub(1);
    }
}

/// Numbered places whose numbers are used again: the lowest free one last freed first, so that the same calls give the
/// same numbers.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self.places[id as usize] = Some(value);
            return id;
        }
        // Handles are limited far below this.
        let id = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.places.push(Some(value));
        id
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.places.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, id: u32) {
        if let Some(place) = self.places.get_mut(id as usize)
            && place.take().is_some()
        {
            self.free.push(id);
        }
    }
}

/// What the guest writes, kept up to a bound.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    max: u64,
}

impl Output {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let room = self.max.saturating_sub(self.bytes.len() as u64);
        if bytes.len() as u64 > room {
            // What still fits is kept: it says what the flood is made of.
            self.bytes.extend_from_slice(&bytes[..usize::try_from(room).unwrap_or(0)]);
            return Err(Stop::Output(self.max));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// Randomness that depends on the seed only.
pub(super) struct Random {
    seed: [u8; 32],
    stream: Option<Box<blake3::OutputReader>>,
}

impl Random {
    fn new(seed: &[u8; 32]) -> Self {
        Self { seed: *seed, stream: None }
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        let seed = self.seed;
        let stream = self.stream.get_or_insert_with(|| {
            let mut hasher = blake3::Hasher::new_derive_key("probity 2026-12-01 randomness of a guest v1");
            Box::new(hasher.update(&seed).finalize_xof())
        });
        stream.fill(bytes);
    }

    pub(super) fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// Bounds the guest's memories and tables, all together. A growth beyond the bound ends the guest instead of failing:
/// how programs go on after a failed allocation is anybody's guess, and the message would be lost.
#[derive(Debug)]
pub(super) struct Limiter {
    max: u64,
    memory: u64,
    tables: u64,
}

impl Limiter {
    fn check(&self) -> wasmtime::Result<bool> {
        if self.memory.saturating_add(self.tables) > self.max {
            return Err(Stop::Memory(self.max).into());
        }
        Ok(true)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Beyond a maximum that the guest set itself, growth fails as its language says.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.memory = self.memory.saturating_sub(current as u64).saturating_add(desired as u64);
        self.check()
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        // That this machine is out of memory is not for the guest to see: it could answer differently for it.
        if error.is::<std::io::Error>() {
            Err(Stop::Host("this machine is out of memory".to_owned()).into())
        } else {
            Ok(())
        }
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Before the maximum is looked at: it is the guest's own or the pool's, which the guest must not tell apart.
        if desired > MAX_TABLE_ELEMENTS {
            return Err(Stop::Table(MAX_TABLE_ELEMENTS).into());
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let bytes = |elements: usize| (elements as u64).saturating_mul(size_of::<usize>() as u64);
        self.tables = self.tables.saturating_sub(bytes(current)).saturating_add(bytes(desired));
        self.check()
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory_grow_failed(error)
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}
