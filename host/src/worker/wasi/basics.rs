//! `wasi:cli`, `wasi:clocks` and `wasi:random`: an environment in which nothing is set, time stands still until it is
//! asked for, and chance comes from a seed.

use super::io::{OUTPUT, STDIN};
use super::types::{Datetime, InputStream, OutputStream, Pollable, TerminalInput, TerminalOutput};
use super::{Interface, Stop, give};
use crate::worker::state::State;
use wasmtime::component::{Linker, Resource};

/// The time on the wall: 2000-01-01T00:00:00Z. Zero would look like a broken clock to some programs.
const WALL: Datetime = Datetime { seconds: 946_684_800, nanoseconds: 0 };

/// How far the other clock moves when it is read, in nanoseconds: a loop that waits for it ends.
const TICK: u64 = 1000;

/// Random bytes in one call. Seeds and keys have tens of them.
const RANDOM_MAX: u64 = 1 << 20;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    cli(linker)?;
    clocks(linker)?;
    random(linker)
}

fn cli(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    Interface::new(linker, "wasi:cli/environment")?
        .function("get-environment", |_, ()| Ok((Vec::<(String, String)>::new(),)))?
        .function("get-arguments", |_, ()| Ok((Vec::<String>::new(),)))?
        .function("initial-cwd", |_, ()| Ok((None::<String>,)))?;
    Interface::new(linker, "wasi:cli/exit")?
        .function("exit", |_, (status,): (Result<(), ()>,)| -> wasmtime::Result<()> {
            Err(Stop::Exit(u32::from(status.is_err())).into())
        })?
        .function("exit-with-code", |_, (code,): (u8,)| -> wasmtime::Result<()> {
            Err(Stop::Exit(u32::from(code)).into())
        })?;
    Interface::new(linker, "wasi:cli/stdin")?
        .function("get-stdin", |state, ()| Ok((give::<InputStream>(state, STDIN)?,)))?;
    Interface::new(linker, "wasi:cli/stdout")?
        .function("get-stdout", |state, ()| Ok((give::<OutputStream>(state, OUTPUT)?,)))?;
    Interface::new(linker, "wasi:cli/stderr")?
        .function("get-stderr", |state, ()| Ok((give::<OutputStream>(state, OUTPUT)?,)))?;
    Interface::new(linker, "wasi:cli/terminal-input")?.resource::<TerminalInput>("terminal-input", |_, _| {})?;
    Interface::new(linker, "wasi:cli/terminal-output")?.resource::<TerminalOutput>("terminal-output", |_, _| {})?;
    Interface::new(linker, "wasi:cli/terminal-stdin")?
        .function("get-terminal-stdin", |_, ()| Ok((None::<Resource<TerminalInput>>,)))?;
    Interface::new(linker, "wasi:cli/terminal-stdout")?
        .function("get-terminal-stdout", |_, ()| Ok((None::<Resource<TerminalOutput>>,)))?;
    Interface::new(linker, "wasi:cli/terminal-stderr")?
        .function("get-terminal-stderr", |_, ()| Ok((None::<Resource<TerminalOutput>>,)))?;
    Ok(())
}

fn clocks(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    Interface::new(linker, "wasi:clocks/monotonic-clock")?
        .function("now", |state, ()| {
            let now = state.clock;
            state.clock = now.saturating_add(TICK);
            Ok((now,))
        })?
        .function("resolution", |_, ()| Ok((TICK,)))?
        // Whoever waits is there already: the clock is moved instead.
        .function("subscribe-instant", |state, (when,): (u64,)| {
            state.clock = state.clock.max(when);
            Ok((give::<Pollable>(state, 0)?,))
        })?
        .function("subscribe-duration", |state, (length,): (u64,)| {
            state.clock = state.clock.saturating_add(length);
            Ok((give::<Pollable>(state, 0)?,))
        })?;
    Interface::new(linker, "wasi:clocks/wall-clock")?
        .function("now", |_, ()| Ok((WALL,)))?
        .function("resolution", |_, ()| Ok((Datetime { seconds: 1, nanoseconds: 0 },)))?;
    Ok(())
}

fn random(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let bytes = |state: &mut State, (len,): (u64,)| {
        if len > RANDOM_MAX {
            return Err(Stop::Misuse("it asks for more than a megabyte of random bytes at once").into());
        }
        state.cost += len;
        // At most `RANDOM_MAX`.
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        state.random.fill(&mut bytes);
        Ok((bytes,))
    };
    let number = |state: &mut State, (): ()| Ok((state.random.number(),));
    Interface::new(linker, "wasi:random/random")?
        .function("get-random-bytes", bytes)?
        .function("get-random-u64", number)?;
    Interface::new(linker, "wasi:random/insecure")?
        .function("get-insecure-random-bytes", bytes)?
        .function("get-insecure-random-u64", number)?;
    Interface::new(linker, "wasi:random/insecure-seed")?
        .function("insecure-seed", |state, ()| Ok(((state.random.number(), state.random.number()),)))?;
    Ok(())
}
