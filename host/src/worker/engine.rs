//! The engine: one configuration, chosen so that the same inputs give the same bytes everywhere.
//!
//! Every setting is set, even where it is the default, and all of them are written down in [`engine_id`], so that a
//! result that depends on the engine says on which.

use super::error::LoadError;
use super::state::{MAX_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES};
use super::view::VIEW_VERSION;
use super::wasi::COSTS;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use wasmtime::{
    Config, Enabled, Inlining, InstanceAllocationStrategy, ModuleVersionStrategy, OperatorCost, OptLevel,
    PoolingAllocationConfig, Strategy, VariableOperatorCost, WasmBacktraceDetails, WasmFeatures,
};

/// The engine's version; a test holds it against the lock file.
const WASMTIME: &str = "48.0.8";

/// How deep a guest may recurse, in bytes of stack. Where exactly it ends depends on the size of compiled frames, which
/// no setting can pin, so it is far beyond what fuel and memory allow to ordinary recursion, and running into it is
/// never kept as a result.
const WASM_STACK: usize = 4 << 20;

/// The stack of a thread that runs guests: the guest's share, and room for the host functions it calls and for the
/// signal handler. Running over the guest's share is a trap; running over the thread's would end the process.
const THREAD_STACK: usize = WASM_STACK + (4 << 20);

/// Frames of a guest that an error shows.
const BACKTRACE_FRAMES: usize = 32;

/// What guests may not use. Garbage collection, exceptions, threads, tail calls, several or 64-bit memories and
/// asynchronous components are each young or had holes of their own this year, and no toolchain needs them; relaxed
/// SIMD gives different results on different machines by design.
fn refused_features() -> WasmFeatures {
    WasmFeatures::GC
        | WasmFeatures::FUNCTION_REFERENCES
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::LEGACY_EXCEPTIONS
        | WasmFeatures::THREADS
        | WasmFeatures::SHARED_EVERYTHING_THREADS
        | WasmFeatures::TAIL_CALL
        | WasmFeatures::MULTI_MEMORY
        | WasmFeatures::MEMORY64
        | WasmFeatures::RELAXED_SIMD
        | WasmFeatures::STACK_SWITCHING
        | WasmFeatures::WIDE_ARITHMETIC
        | WasmFeatures::CUSTOM_PAGE_SIZES
        | WasmFeatures::CM_ASYNC
        | WasmFeatures::CM_ASYNC_STACKFUL
        | WasmFeatures::CM_MORE_ASYNC_BUILTINS
        | WasmFeatures::CM_THREADING
        | WasmFeatures::CM_ERROR_CONTEXT
        | WasmFeatures::CM_GC
        | WasmFeatures::CM_MAP
        | WasmFeatures::CM64
        | WasmFeatures::CM_FIXED_LENGTH_LISTS
        | WasmFeatures::CM_IMPLEMENTS
}

/// What instructions cost. The flat costs are the engine's defaults (one unit, nothing for what makes no code), which
/// a test pins by digest; costs by size are written out here.
fn operator_cost() -> OperatorCost {
    OperatorCost {
        variable: VariableOperatorCost {
            memory_copy_per_byte: 1,
            memory_fill_per_byte: 1,
            memory_init_per_byte: 1,
            // The kernel has to find and clear each page.
            memory_grow_per_page: 200,
            table_copy_per_element: 1,
            table_fill_per_element: 1,
            table_init_per_element: 1,
            table_grow_per_element: 1,
            array_copy_per_element: 1,
            array_fill_per_element: 1,
            array_new_data_per_element: 1,
            array_init_data_per_element: 1,
            array_new_elem_per_element: 1,
            array_init_elem_per_element: 1,
            array_new_default_per_element: 1,
            array_new_per_element: 1,
        },
        ..OperatorCost::new()
    }
}

/// Guests at work at the same time in one process. Each has room set aside in the pool, a terabyte of addresses for
/// all of them; more threads than this would only wait for memory.
const MAX_CALLS: usize = 16;

/// Bytes of a guest's memory that stay with the pool when the call ends, to be cleared instead of given back and asked
/// for again: what a small check touches.
const KEEP_MEMORY: usize = 256 << 10;

/// The same for its tables.
const KEEP_TABLES: usize = 16 << 10;

/// Room for guests that is set aside once and cleared after each call. A check that is called for each file needs a
/// fresh instance ten thousand times, and asking the kernel for its memory each time costs more than the check does:
/// measured 75 µs a file instead of 210. Where pages that were written can be told apart (Linux 6.7), only those are
/// cleared.
fn pool() -> InstanceAllocationStrategy {
    let count = |count: usize| u32::try_from(MAX_CALLS * count).unwrap_or(u32::MAX);
    // How many of each one guest may have is bounded where it is counted, with or without a pool.
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(count(1))
        .total_core_instances(count(MAX_INSTANCES))
        .total_memories(count(MAX_MEMORIES))
        .total_tables(count(MAX_TABLES))
        .table_elements(MAX_TABLE_ELEMENTS)
        .linear_memory_keep_resident(KEEP_MEMORY)
        .table_keep_resident(KEEP_TABLES)
        .pagemap_scan(Enabled::Auto);
    InstanceAllocationStrategy::Pooling(pool)
}

fn config(allocation: InstanceAllocationStrategy) -> Result<Config, wasmtime::Error> {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        // Otherwise the sign and payload of a NaN depend on the machine.
        .cranelift_nan_canonicalization(true)
        .parallel_compilation(true)
        .compiler_inlining(Inlining::No);
    config
        .wasm_component_model(true)
        .gc_support(false)
        .shared_memory(false)
        .concurrency_support(false)
        .relaxed_simd_deterministic(true)
        .wasm_features(refused_features(), false);
    config.consume_fuel(true).operator_cost(operator_cost()).epoch_interruption(false);
    config
        .max_wasm_stack(WASM_STACK)
        // Checked against the line above although nothing is asynchronous.
        .async_stack_size(WASM_STACK + (2 << 20))
        // Growing in place cannot fail for want of a second copy, so it does not depend on the machine.
        .memory_may_move(false)
        // A fresh instance for each file is affordable only if its memory is not copied: measured 34 µs instead of
        // 1.3 ms for a component of 12 MB. What it makes different is the fuel used by instantiation, which is
        // therefore counted apart and never reported.
        .memory_init_cow(true)
        .signals_based_traps(true)
        // Where the memory comes from makes no difference to a guest.
        .allocation_strategy(allocation);
    config
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES))
        // Line numbers would have the host parse debug information that the guest made up.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .generate_address_map(true)
        .native_unwind_info(false)
        .debug_info(false);
    config.module_version(ModuleVersionStrategy::Custom(build_id()))?;
    Ok(config)
}

/// What the configuration is, in words: whatever changes a result, an error or compiled code is in it.
fn description() -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = write!(
        text,
        "wasmtime {WASMTIME}; cranelift speed, nan canonical, no inlining; stack {WASM_STACK}; refused {:?}; \
         memory in place, copy on write; costs {:?}; host {COSTS:?}; view {VIEW_VERSION}",
        refused_features(),
        operator_cost(),
    );
    text
}

/// The name of this engine and its configuration: part of the key of every result that depends on it.
pub fn engine_id() -> &'static str {
    static ID: LazyLock<String> = LazyLock::new(|| {
        let digest = blake3::hash(description().as_bytes()).to_hex();
        format!("wasmtime-{WASMTIME}-{}", &digest[..16])
    });
    &ID
}

/// What compiled code must have been compiled by. The engine itself only compares its major version, and does not
/// compare whether NaNs are made canonical at all.
fn build_id() -> String {
    format!("{}+{}", engine_id(), env!("CARGO_PKG_VERSION"))
}

/// The engine. Cheap to clone; one for the life of a process.
#[derive(Clone)]
pub struct Engine {
    engine: wasmtime::Engine,
    gate: Arc<Gate>,
}

impl Engine {
    /// Makes the engine, which takes well under a millisecond.
    pub fn new() -> Result<Self, LoadError> {
        // Where addresses are rationed there is no room for a pool, and everything works without one.
        let engine = Self::with(pool()).or_else(|_| Self::with(InstanceAllocationStrategy::OnDemand));
        engine.map_err(|error| LoadError::Engine(format!("{error:#}")))
    }

    fn with(allocation: InstanceAllocationStrategy) -> Result<Self, wasmtime::Error> {
        let engine = wasmtime::Engine::new(&config(allocation)?)?;
        Ok(Self { engine, gate: Arc::new(Gate { free: Mutex::new(MAX_CALLS), freed: Condvar::new() }) })
    }

    pub(super) fn inner(&self) -> &wasmtime::Engine {
        &self.engine
    }

    /// Waits until there is room for one more guest. To be held for as long as its store lives.
    pub(super) fn enter(&self) -> Permit<'_> {
        // A panic while it is held leaves the count as it is, so a poisoned lock is as good as another.
        let mut free = self.gate.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.gate.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Permit(&self.gate)
    }

    /// What compiled code has to agree with to be loadable: the engine's own settings, this machine's kind, and which
    /// Probity compiled it. As text for a key.
    pub fn compatibility(&self) -> String {
        let mut hasher = Plain(blake3::Hasher::new());
        std::hash::Hash::hash(&self.engine.precompile_compatibility_hash(), &mut hasher);
        format!("{} {}", build_id(), hasher.0.finalize().to_hex())
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(engine_id())
    }
}

/// Counts guests, so that a pool is never asked for more than it has: that would be an error which depends on how many
/// threads there are.
struct Gate {
    free: Mutex<usize>,
    freed: Condvar,
}

/// Room for one guest.
pub(super) struct Permit<'a>(&'a Gate);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// Hashes whatever is written with BLAKE3, whose result does not change with the compiler as the standard library's may.
struct Plain(blake3::Hasher);

impl std::hash::Hasher for Plain {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0.finalize().as_bytes()[..8]);
        u64::from_le_bytes(first)
    }
}

/// The proof that this thread's stack is large enough for guests. Only [`on_big_stack`] makes one.
#[derive(Debug)]
pub struct BigStack(());

/// Runs `work` on a thread whose stack can hold a guest.
pub fn on_big_stack<R: Send>(work: impl FnOnce(&BigStack) -> R + Send) -> std::io::Result<R> {
    std::thread::scope(|scope| Ok(join(spawn(scope, work)?)))
}

/// Runs `work` on so many threads at once, as far as that many guests can be, and gives what each made.
pub fn on_big_stacks<R: Send>(count: usize, work: impl Fn(&BigStack) -> R + Sync) -> std::io::Result<Vec<R>> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads = (0..count.min(MAX_CALLS)).map(|_| spawn(scope, work)).collect::<std::io::Result<Vec<_>>>()?;
        Ok(threads.into_iter().map(join).collect())
    })
}

fn spawn<'scope, R: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce(&BigStack) -> R + Send + 'scope,
) -> std::io::Result<std::thread::ScopedJoinHandle<'scope, R>> {
    std::thread::Builder::new()
        .name("guest".to_owned())
        .stack_size(THREAD_STACK)
        .spawn_scoped(scope, || work(&BigStack(())))
}

fn join<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    // A panic of ours stays a panic, as if the work had been called directly.
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        assert!(lock.contains(&format!("name = \"wasmtime\"\nversion = \"{WASMTIME}\"")));
    }

    #[test]
    fn flat_costs_are_what_they_were() {
        let digest = blake3::hash(format!("{:?}", operator_cost()).as_bytes()).to_hex();
        assert_eq!(&digest[..16], "227d03aeb20cce39", "another fuel cost makes stored results of another engine");
    }

    #[test]
    fn engines_of_one_build_agree() {
        let (one, two) = (Engine::new().unwrap(), Engine::new().unwrap());
        assert_eq!(one.compatibility(), two.compatibility());
    }

    #[test]
    fn compiled_code_does_not_depend_on_the_pool() {
        let pooled = Engine::with(pool()).unwrap();
        let plain = Engine::with(InstanceAllocationStrategy::OnDemand).unwrap();
        assert_eq!(pooled.compatibility(), plain.compatibility());
    }

    #[test]
    fn there_are_never_more_guests_than_room() {
        let engine = Engine::new().unwrap();
        let held: Vec<_> = (0..MAX_CALLS).map(|_| engine.enter()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(engine.enter()));
            assert!(!waiting.is_finished());
            drop(held);
        });
        assert_eq!(*engine.gate.free.lock().unwrap(), MAX_CALLS);
    }

    #[test]
    fn big_stacks_are_big() {
        fn deep(n: usize) -> usize {
            let block = std::hint::black_box([n; 1024]);
            if n == 0 { block[0] } else { deep(n - 1) + block[1] % 2 }
        }
        assert!(on_big_stack(|_| deep(200)).unwrap() > 0);
        assert_eq!(on_big_stacks(3, |_| 1).unwrap(), [1, 1, 1]);
    }
}
