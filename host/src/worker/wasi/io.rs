//! `wasi:io`: streams of files and of the three standard streams. Nothing ever waits: what can be had is there.

use super::types::{Error, InputStream, OutputStream, Pollable, StreamError};
use super::{Interface, Stop, for_bytes, give};
use crate::worker::state::State;
use wasmtime::component::{Linker, Resource};

/// The handle of a standard input, which is at its end. Streams of files have the numbers of their slots.
pub(super) const STDIN: u32 = u32::MAX;

/// The only output stream: output and error are kept together, in the order of writing, as on a terminal.
pub(super) const OUTPUT: u32 = 0;

/// What a guest may write at once, as it is told by `check-write`.
const WRITE_MAX: u64 = 64 << 10;

/// Pollables a guest may wait for at once: more than it can hold.
const POLL_MAX: usize = 4096;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    Interface::new(linker, "wasi:io/error")?
        .resource::<Error>("error", |_, _| {})?
        .function("[method]error.to-debug-string", |_, (_error,): (Resource<Error>,)| Ok(("error".to_owned(),)))?;
    Interface::new(linker, "wasi:io/poll")?
        .resource::<Pollable>("pollable", |_, _| {})?
        .function("[method]pollable.ready", |_, (_pollable,): (Resource<Pollable>,)| Ok((true,)))?
        .function("[method]pollable.block", |_, (_pollable,): (Resource<Pollable>,)| Ok(()))?
        .function("poll", |_, (pollables,): (Vec<Resource<Pollable>>,)| {
            if pollables.is_empty() || pollables.len() > POLL_MAX {
                return Err(Stop::Misuse("it polls nothing or too much").into());
            }
            Ok(((0..).take(pollables.len()).collect::<Vec<u32>>(),))
        })?;
    let mut streams = Interface::new(linker, "wasi:io/streams")?;
    streams.resource::<InputStream>("input-stream", |state, rep| state.streams.remove(rep))?;
    streams.resource::<OutputStream>("output-stream", |_, _| {})?;
    input(&mut streams)?;
    output(&mut streams)
}

type Read = Result<Vec<u8>, StreamError>;

fn input(streams: &mut Interface<'_>) -> wasmtime::Result<()> {
    let read = |state: &mut State, (stream, len): (Resource<InputStream>, u64)| -> wasmtime::Result<(Read,)> {
        let Some((bytes, _)) = take(state, &stream, len)? else { return Ok((Err(StreamError::Closed),)) };
        Ok((Ok(bytes),))
    };
    let skip = |state: &mut State, (stream, len): (Resource<InputStream>, u64)| {
        let skipped = take(state, &stream, len)?;
        Ok((skipped.map(|(bytes, _)| bytes.len() as u64).ok_or(StreamError::Closed),))
    };
    streams
        .function("[method]input-stream.read", read)?
        .function("[method]input-stream.blocking-read", read)?
        .function("[method]input-stream.skip", skip)?
        .function("[method]input-stream.blocking-skip", skip)?
        .function("[method]input-stream.subscribe", |state, (_stream,): (Resource<InputStream>,)| {
            Ok((give::<Pollable>(state, 0)?,))
        })?;
    Ok(())
}

/// The next bytes of a stream, and the cost of them noted; none at its end.
fn take(state: &mut State, stream: &Resource<InputStream>, len: u64) -> wasmtime::Result<Option<(Vec<u8>, bool)>> {
    let Some(stream) = state.streams.get_mut(stream.rep()) else { return Ok(None) };
    let piece = state.chunks.read(&state.view, &mut state.observed, stream.file, stream.position, len);
    let piece = piece.map_err(|error| Stop::Host(error.to_string()))?;
    if piece.bytes.is_empty() && piece.end {
        return Ok(None);
    }
    stream.position += piece.bytes.len() as u64;
    state.cost += for_bytes(piece.bytes.len() as u64) + for_bytes(piece.fetched);
    Ok(Some((piece.bytes.to_vec(), piece.end)))
}

type Written = Result<(), StreamError>;

fn output(streams: &mut Interface<'_>) -> wasmtime::Result<()> {
    let write =
        |state: &mut State, (_stream, bytes): (Resource<OutputStream>, Vec<u8>)| -> wasmtime::Result<(Written,)> {
            state.cost += for_bytes(bytes.len() as u64);
            state.output.write(&bytes)?;
            Ok((Ok(()),))
        };
    let zeroes = |state: &mut State, (_stream, len): (Resource<OutputStream>, u64)| -> wasmtime::Result<(Written,)> {
        let len = len.min(WRITE_MAX);
        state.cost += for_bytes(len);
        // At most `WRITE_MAX`.
        state.output.write(&vec![0; usize::try_from(len).unwrap_or(0)])?;
        Ok((Ok(()),))
    };
    let flush =
        |_: &mut State, (_stream,): (Resource<OutputStream>,)| -> wasmtime::Result<(Written,)> { Ok((Ok(()),)) };
    let splice = |state: &mut State,
                  (_stream, source, len): (Resource<OutputStream>, Resource<InputStream>, u64)|
     -> wasmtime::Result<(Result<u64, StreamError>,)> {
        let Some((bytes, _)) = take(state, &source, len)? else { return Ok((Err(StreamError::Closed),)) };
        state.output.write(&bytes)?;
        Ok((Ok(bytes.len() as u64),))
    };
    streams
        .function(
            "[method]output-stream.check-write",
            |_, (_stream,): (Resource<OutputStream>,)| -> wasmtime::Result<(Result<u64, StreamError>,)> {
                Ok((Ok(WRITE_MAX),))
            },
        )?
        .function("[method]output-stream.write", write)?
        .function("[method]output-stream.blocking-write-and-flush", write)?
        .function("[method]output-stream.flush", flush)?
        .function("[method]output-stream.blocking-flush", flush)?
        .function("[method]output-stream.subscribe", |state, (_stream,): (Resource<OutputStream>,)| {
            Ok((give::<Pollable>(state, 0)?,))
        })?
        .function("[method]output-stream.write-zeroes", zeroes)?
        .function("[method]output-stream.blocking-write-zeroes-and-flush", zeroes)?
        .function("[method]output-stream.splice", splice)?
        .function("[method]output-stream.blocking-splice", splice)?;
    Ok(())
}
