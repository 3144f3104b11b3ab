//! What can go wrong with a pack, in words for its author and its user.
//!
//! Invariant: nothing of this machine is in an error about a guest: no path, no stack of the host, no text of the
//! engine that was not chosen here or made from the guest's own names.

use super::caps;
use super::limits::Limits;
use super::wasi::Stop;
use crate::model::ErrorKind;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use wasmtime::{Trap, WasmBacktrace};

/// The most bytes of an error's message. More than a screen of it is not read.
const MAX_MESSAGE: usize = 8 << 10;

/// The most bytes of what a guest wrote that its error's message quotes: a panic's text is in the last lines.
const MAX_QUOTE: usize = 2 << 10;

/// The most bytes of a function's name in a message. Generic Rust names reach hundreds.
const MAX_NAME: usize = 200;

/// The most frames in a message; the innermost ones tell what happened.
const MAX_FRAMES: usize = 16;

/// Why bytes cannot be used as a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum LoadError {
    /// Too large.
    #[error("it has {0} bytes, and a pack may have {max}", max = super::MAX_COMPONENT_BYTES)]
    TooLarge(u64),
    /// Nothing in it.
    #[error("it is empty")]
    Empty,
    /// A core module.
    #[error(
        "it is a core WebAssembly module, not a component: build it for `wasm32-wasip2`, or wrap it with \
         `wasm-tools component new`"
    )]
    CoreModule,
    /// Machine code.
    #[error("it is precompiled machine code, which is never loaded from a pack: give the component it was made from")]
    Precompiled,
    /// Component text.
    #[error("it is WebAssembly text: turn it into a binary with `wasm-tools parse`")]
    Text,
    /// Something else.
    #[error("it is not WebAssembly: give a component, as `cargo build --target wasm32-wasip2` makes one")]
    NotWasm,
    /// Broken.
    #[error("it is not a valid component: {message} (at byte {offset}); it may be damaged or cut short")]
    Malformed {
        /// What is wrong.
        message: String,
        /// Where.
        offset: u64,
    },
    /// It wants something that no pack gets.
    #[error("it imports `{0}`, which is not part of what a pack may use (WASI 0.2 and `probity:check`)")]
    Import(String),
    /// It was built for another WASI.
    #[error("it imports `{0}`: packs use WASI 0.2; build it for `wasm32-wasip2`")]
    OtherWasi(String),
    /// It is something else than a check pack.
    #[error("it does not export `probity:check/checker@{version}`; it exports {exports}", version = super::CONTRACT_VERSION)]
    NoChecker {
        /// What it has instead, as a list in words.
        exports: String,
    },
    /// It was built for another contract.
    #[error(
        "it was built for `probity:check@{found}` and this Probity speaks `probity:check@{ours}`: use a version of the \
         pack or of Probity that matches the other",
        ours = super::CONTRACT_VERSION
    )]
    OtherContract {
        /// The pack's version of the contract.
        found: String,
    },
    /// The compiler refuses it.
    #[error("it cannot be compiled: {0}")]
    Compile(String),
    /// An import or export has another type than its name promises.
    #[error("it does not fit: {0}")]
    Link(String),
    /// Compiled code that is not this engine's.
    #[error("compiled code cannot be loaded: {0}")]
    Artefact(String),
    /// The engine cannot be made on this machine.
    #[error("the WebAssembly engine does not start on this machine: {0}")]
    Engine(String),
    /// Its description of itself could not be had.
    #[error("it could not describe itself: {0}")]
    Describe(GuestError),
    /// Its description of itself breaks the contract.
    #[error("its description breaks the contract: {0}")]
    Info(String),
}

/// Why a call of a guest gave no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct GuestError {
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// What happened, in plain words; then perhaps what the guest said, and where in the guest it was. Has no control
    /// characters but line ends and tabs.
    pub message: String,
    /// All that the guest wrote to its outputs, as far as it is text.
    pub stderr: String,
}

impl GuestError {
    /// An error without output.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), stderr: String::new() }
    }

    /// The same error, saying which file was being judged.
    #[must_use]
    pub fn on(mut self, path: &str) -> Self {
        self.message = format!("on `{}`: {}", clean(path, 300), self.message);
        self
    }
}

/// What was going on when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Start,
    Describe,
    Run,
}

impl Phase {
    fn doing(self) -> &'static str {
        match self {
            Self::Start => "starting",
            Self::Describe => "describing itself",
            Self::Run => "checking",
        }
    }
}

/// Says in plain words what the engine reports.
pub(super) fn classify(error: &wasmtime::Error, phase: Phase, limits: &Limits, output: &[u8]) -> GuestError {
    let stderr = String::from_utf8_lossy(output).into_owned();
    let (kind, cause) = cause(error, phase, limits);
    let mut message = cause;
    if matches!(kind, ErrorKind::Trap | ErrorKind::Exit | ErrorKind::OutOfMemory) {
        let said = tail(&stderr);
        if !said.is_empty() {
            // Writing into a string does not fail, here and below.
            let _ = write!(message, "\nit said: {said}");
        }
    }
    if kind != ErrorKind::Host {
        for name in frames(error) {
            let _ = write!(message, "\n  in {name}");
        }
    }
    GuestError { kind, message: cut(&message, MAX_MESSAGE).to_owned(), stderr }
}

fn cause(error: &wasmtime::Error, phase: Phase, limits: &Limits) -> (ErrorKind, String) {
    let doing = phase.doing();
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return (stop.kind(), stop.to_string());
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return match trap {
            Trap::OutOfFuel => {
                let limit = if phase == Phase::Start { limits.init_fuel } else { limits.fuel };
                (
                    ErrorKind::OutOfFuel,
                    format!("it used up its {limit} units of fuel while {doing}: it may loop for ever"),
                )
            }
            Trap::StackOverflow => (ErrorKind::StackOverflow, format!("it recursed too deeply while {doing}")),
            other => (ErrorKind::Trap, format!("it trapped while {doing}: {}", trap_in_words(*other))),
        };
    }
    let text = clean(&error.root_cause().to_string(), 300);
    // These come from the engine as text only; tests hold on to them.
    if text.contains("handle limit exceeded") {
        return (ErrorKind::HandleLimit, format!("it held more than {} handles", limits.handles));
    }
    if text.contains("hostcalls has been exhausted") {
        let max = caps::HOST_CALL_BYTES;
        return (ErrorKind::OutputLimit, format!("it handed over more than {max} bytes at once while {doing}"));
    }
    if text.contains("resource limit exceeded") {
        return (ErrorKind::OutOfMemory, format!("it is made of too many parts: {text}"));
    }
    if error.downcast_ref::<WasmBacktrace>().is_some() {
        return (ErrorKind::Trap, format!("it called the host in a way that cannot be while {doing}: {text}"));
    }
    match phase {
        Phase::Start => (ErrorKind::Host, format!("it could not be started: {text}")),
        Phase::Describe | Phase::Run => {
            (ErrorKind::BadResult, format!("what it returned while {doing} is malformed: {text}"))
        }
    }
}

fn trap_in_words(trap: Trap) -> String {
    let words = match trap {
        Trap::UnreachableCodeReached => "it gave up (`unreachable`), which is how a panic or an abort ends",
        Trap::MemoryOutOfBounds => "it used memory that it does not have",
        Trap::TableOutOfBounds => "it called a function that does not exist",
        Trap::IndirectCallToNull => "it called a function that is not there",
        Trap::BadSignature => "it called a function as if it had another type",
        Trap::IntegerOverflow => "an integer overflowed in a division or conversion",
        Trap::IntegerDivisionByZero => "it divided by zero",
        Trap::BadConversionToInteger => "it converted a number that is no integer",
        Trap::InvalidDiscriminant => "a value is none of its type's cases",
        Trap::StringOutOfBounds | Trap::ListOutOfBounds => "a text or list reaches beyond its memory",
        Trap::UnalignedPointer => "a pointer is not aligned",
        Trap::CannotEnterComponent => "it was entered again while it was at work",
        Trap::CannotLeaveComponent => "it called the host where that is not allowed",
        other => return other.to_string(),
    };
    words.to_owned()
}

/// The guest's own functions, innermost first.
fn frames(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    let frames = backtrace.frames().iter().take(MAX_FRAMES);
    frames
        .map(|frame| match frame.func_name() {
            Some(name) => clean(&format!("{:#}", rustc_demangle::demangle(cut(name, 4 * MAX_NAME))), MAX_NAME),
            None => format!("function {}", frame.func_index()),
        })
        .collect()
}

/// The last lines of what a guest wrote, cleaned.
fn tail(text: &str) -> String {
    let text = text.trim_end();
    let mut start = text.len().saturating_sub(MAX_QUOTE);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let text = &text[start..];
    // Where something is cut off, begin with a whole line.
    let text = if start > 0 { text.split_once('\n').map_or(text, |(_, rest)| rest) } else { text };
    clean(text, MAX_QUOTE)
}

/// At most `max` bytes, without control and direction characters: whoever prints an error prints it as it is.
pub(super) fn clean(text: &str, max: usize) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    cut(text, max).chars().map(|c| if hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// The longest beginning that has at most `max` bytes.
pub(super) fn cut(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
