//! A loaded pack: compiled code, linked once, instantiated afresh for each call.

use super::caps::{self, Excess};
use super::contract::{self, CheckPack, CheckPackPre};
use super::engine::{BigStack, Engine};
use super::error::{GuestError, LoadError, Phase, classify, clean};
use super::limits::Limits;
use super::state::State;
use super::view::{Noted, View};
use super::wasi;
use crate::model::{PackInfo, Refusal, Report, Request};
use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::Component;

/// A pack that can be called.
#[derive(Clone)]
pub struct Program {
    engine: Engine,
    pre: CheckPackPre<State>,
}

/// What became of one call of `run`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Called {
    /// What the guest returned, within the caps and not yet checked; or why it did not return.
    pub result: Result<Result<Report, Refusal>, GuestError>,
    /// Fuel used. None unless the call returned: after a trap the count is not exact.
    pub fuel: Option<u64>,
    /// All that the guest wrote to its outputs, as far as it is text.
    pub stderr: String,
    /// What the guest learned of its files.
    pub observed: Vec<Noted>,
}

impl Program {
    /// Loads compiled code and links it.
    ///
    /// # Safety
    ///
    /// `artefact` must be, byte for byte, what [`super::compile`] returned for some component: it is machine code that
    /// will be executed. The engine compares versions and settings; it cannot tell honest code from other code.
    #[expect(unsafe_code, reason = "loading machine code: the caller vouches for where it comes from")]
    pub unsafe fn load(engine: &Engine, artefact: &[u8]) -> Result<Self, LoadError> {
        // SAFETY: the caller promises that `compile` made these bytes and nobody changed them since. They are copied
        // here, so what happens to them afterwards does not matter.
        let component = unsafe { Component::deserialize(engine.inner(), artefact) };
        let component = component.map_err(|error| LoadError::Artefact(clean(&format!("{error:#}"), 300)))?;
        let link = |error: wasmtime::Error| LoadError::Link(clean(&format!("{error:#}"), 500));
        let linker = wasi::linker(engine.inner(), &component).map_err(link)?;
        let pre = linker.instantiate_pre(&component).and_then(CheckPackPre::new).map_err(link)?;
        Ok(Self { engine: engine.clone(), pre })
    }

    /// Asks the pack what it holds, with no files to look at.
    pub fn describe(&self, stack: &BigStack, limits: &Limits) -> Result<PackInfo, GuestError> {
        let _room = self.engine.enter();
        let mut store = self.store(View::empty(), limits, &[0; 32]);
        let described = self.start(stack, &mut store, limits).and_then(|pack| {
            let result = pack.probity_check_checker().call_describe(&mut store);
            result.map_err(|error| failed(&store, &error, Phase::Describe, limits))
        })?;
        let info = contract::pack(described);
        caps::pack(&info).map_err(|excess| too_much(&store, excess))?;
        Ok(info)
    }

    /// Runs one check in a fresh instance that sees `view`. `seed` is where all randomness comes from.
    pub fn run(&self, stack: &BigStack, request: &Request, view: View, limits: &Limits, seed: &[u8; 32]) -> Called {
        let _room = self.engine.enter();
        let mut store = self.store(view, limits, seed);
        let called = self.start(stack, &mut store, limits).and_then(|pack| {
            let result =
                contract::with_request(request, |request| pack.probity_check_checker().call_run(&mut store, request));
            result.map_err(|error| failed(&store, &error, Phase::Run, limits))
        });
        let fuel = match &called {
            // Fuel is counted while it is switched on, which it always is.
            Ok(_) => store.get_fuel().ok().map(|left| limits.fuel.saturating_sub(left)),
            Err(_) => None,
        };
        let result = called.and_then(|returned| {
            let capped = match returned {
                Ok(report) => {
                    let report = contract::report(report);
                    caps::report(&report, limits.findings).map(|()| Ok(report))
                }
                Err(refusal) => {
                    let refusal = contract::refusal(refusal);
                    caps::refusal(&refusal).map(|()| Err(refusal))
                }
            };
            capped.map_err(|excess| too_much(&store, excess))
        });
        let stderr = match &result {
            Ok(_) => String::from_utf8_lossy(&store.data().output.bytes).into_owned(),
            Err(error) => error.stderr.clone(),
        };
        let observed = store.data().observed.notes(&store.data().view);
        Called { fuel: fuel.filter(|_| result.is_ok()), result, stderr, observed }
    }

    fn store(&self, view: View, limits: &Limits, seed: &[u8; 32]) -> Store<State> {
        let mut store = Store::new(self.engine.inner(), State::new(view, limits, seed));
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(caps::HOST_CALL_BYTES);
        store.set_max_component_handles(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        store
    }

    /// Instantiates under the budget for it, then gives the store the budget for the call. The token says that this
    /// thread's stack can hold a guest.
    fn start(&self, _stack: &BigStack, store: &mut Store<State>, limits: &Limits) -> Result<CheckPack, GuestError> {
        let pack = store.set_fuel(limits.init_fuel).and_then(|()| self.pre.instantiate(&mut *store));
        let pack = pack.map_err(|error| failed(store, &error, Phase::Start, limits))?;
        store.set_fuel(limits.fuel).map_err(|error| failed(store, &error, Phase::Start, limits))?;
        Ok(pack)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("engine", &self.engine).finish_non_exhaustive()
    }
}

fn failed(store: &Store<State>, error: &wasmtime::Error, phase: Phase, limits: &Limits) -> GuestError {
    classify(error, phase, limits, &store.data().output.bytes)
}

fn too_much(store: &Store<State>, (kind, message): Excess) -> GuestError {
    let stderr = String::from_utf8_lossy(&store.data().output.bytes).into_owned();
    GuestError { kind, message: format!("what it returned is too large: {message}"), stderr }
}
