//! The WASI 0.2 interfaces that packs import, each function of them, with one answer in every place.
//!
//! They are written here and not taken from the engine's own implementation, which reads real files, real clocks and
//! real randomness through an asynchronous runtime: none of it can be had in a locked process, and none of it is the
//! same twice. What a guest cannot have is answered as if nothing were there (no arguments, no terminal, an input at
//! its end), and what it may not do fails with the error code that says so.

mod basics;
mod denied;
mod filesystem;
mod io;
#[cfg(test)]
mod tests;
mod types;

use super::state::State;
use crate::model::ErrorKind;
use wasmtime::component::{Component, ComponentNamedList, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType};
use wasmtime::{AsContextMut, Engine, StoreContextMut, Trap};

/// The version under which the interfaces are linked. Any 0.2 matches any other: a name that a guest's version has and
/// this one has not is refused by name.
const VERSION: &str = "0.2.12";

/// What the host's work costs a guest, in fuel. One unit is about a nanosecond, and so are these: otherwise a guest
/// could make the host work a thousand times as long as its own fuel lasts.
#[derive(Debug)]
#[expect(dead_code, reason = "read by Debug, which is how the prices get into the engine's name")]
pub(super) struct Costs {
    call: u64,
    step: u64,
    bytes_per_unit: u64,
}

/// The prices in force.
pub(super) const COSTS: Costs = Costs { call: CALL, step: STEP, bytes_per_unit: BYTES_PER_UNIT };

/// Any call of the host.
const CALL: u64 = 100;

/// A name walked in a path, an entry listed, a link followed.
const STEP: u64 = 50;

/// Bytes that are copied or fetched for one unit.
const BYTES_PER_UNIT: u64 = 8;

/// Why a guest is ended in the middle of a call. A guest never sees these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    #[error("it called `exit` with {0} instead of returning")]
    Exit(u32),
    #[error("it wrote more than {0} bytes to its standard output and error")]
    Output(u64),
    #[error("it asked for more than {0} bytes of memory")]
    Memory(u64),
    #[error("it asked for a table of more than {0} elements")]
    Table(usize),
    #[error("it held more than {0} handles")]
    Handles(u64),
    #[error("it called `{function}` of `{interface}`, which no check may use")]
    Denied { interface: String, function: String },
    #[error("it called the host in a way that cannot be: {0}")]
    Misuse(&'static str),
    #[error("{0}")]
    Host(String),
}

impl Stop {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Exit(_) => ErrorKind::Exit,
            Self::Output(_) => ErrorKind::OutputLimit,
            Self::Memory(_) | Self::Table(_) => ErrorKind::OutOfMemory,
            Self::Handles(_) => ErrorKind::HandleLimit,
            Self::Denied { .. } | Self::Misuse(_) => ErrorKind::Trap,
            Self::Host(_) => ErrorKind::Host,
        }
    }
}

/// Everything that `component` may import.
pub(super) fn linker(engine: &Engine, component: &Component) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    io::link(&mut linker)?;
    basics::link(&mut linker)?;
    filesystem::link(&mut linker)?;
    denied::link(&mut linker, engine, component)?;
    Ok(linker)
}

/// One interface being linked.
struct Interface<'a>(LinkerInstance<'a, State>);

impl<'a> Interface<'a> {
    fn new(linker: &'a mut Linker<State>, name: &str) -> wasmtime::Result<Self> {
        Ok(Self(linker.instance(&format!("{name}@{VERSION}"))?))
    }

    /// Links a function. Its fixed price is paid before it works, what it says in [`State::cost`] after.
    fn function<P, R>(
        &mut self,
        name: &str,
        body: impl Fn(&mut State, P) -> wasmtime::Result<R> + Send + Sync + 'static,
    ) -> wasmtime::Result<&mut Self>
    where
        P: ComponentNamedList + Lift + 'static,
        R: ComponentNamedList + Lower + Send + Sync + 'static,
    {
        self.0.func_wrap(name, move |mut store: StoreContextMut<'_, State>, params: P| {
            pay(&mut store, CALL)?;
            let result = body(store.data_mut(), params)?;
            let cost = std::mem::take(&mut store.data_mut().cost);
            pay(&mut store, cost)?;
            Ok(result)
        })?;
        Ok(self)
    }

    /// Links a resource type and what happens when a guest drops one.
    fn resource<T: 'static>(
        &mut self,
        name: &str,
        dropped: impl Fn(&mut State, u32) + Send + Sync + 'static,
    ) -> wasmtime::Result<&mut Self> {
        self.0.resource(name, ResourceType::host::<T>(), move |mut store, rep| {
            let mut store = store.as_context_mut();
            pay(&mut store, CALL)?;
            store.data_mut().drop_handle();
            dropped(store.data_mut(), rep);
            Ok(())
        })?;
        Ok(self)
    }
}

/// A new handle for the guest. `rep` is all that the host remembers of it.
fn give<T: 'static>(state: &mut State, rep: u32) -> wasmtime::Result<Resource<T>> {
    state.take_handle()?;
    Ok(Resource::new_own(rep))
}

/// The price of so many bytes.
fn for_bytes(len: u64) -> u64 {
    len / BYTES_PER_UNIT
}

fn pay(store: &mut StoreContextMut<'_, State>, cost: u64) -> wasmtime::Result<()> {
    if cost == 0 {
        return Ok(());
    }
    let fuel = store.get_fuel()?;
    let Some(rest) = fuel.checked_sub(cost) else {
        store.set_fuel(0)?;
        return Err(Trap::OutOfFuel.into());
    };
    store.set_fuel(rest)
}
