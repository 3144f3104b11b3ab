//! Probity with workers that an attacker has taken over. What runs in the parent is Probity's own code; a worker behaves
//! until its walls stand, and then does what the code that it was given names: `attack:NAME;` somewhere in it. A worker
//! whose code names nothing is honest.

#![expect(
    clippy::unwrap_used,
    clippy::pedantic,
    clippy::exit,
    reason = "what is unexpected may panic: then the attack has failed and the test tells"
)]

mod attacks;

use probity::worker::{Ask, Called, FRAME_HEADER, Say, attack, write_message};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

/// What an honest worker of this program is called.
const HONEST: &str = "honest";

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_none_or(|word| word != "worker") || words[0] == HONEST {
        return probity::cli::main();
    }
    // Told apart from being killed for an attack: what a panic does otherwise is among what the walls forbid.
    std::panic::set_hook(Box::new(|_| std::process::exit(99)));
    let mut first = frame();
    let mut code = Vec::new();
    if let Ok(Ask::Load) = serde_json::from_slice(&first[FRAME_HEADER..]) {
        code = frame();
        if let Some(name) = named(&code) {
            attacks::carry_out(&name, &mut Parent { walls: attack::lock_up() });
            return ExitCode::SUCCESS;
        }
    }
    first.append(&mut code);
    honest(&first)
}

/// The attack that some code names.
fn named(code: &[u8]) -> Option<String> {
    let mark = b"attack:";
    let at = code.windows(mark.len()).position(|window| window == mark)? + mark.len();
    let end = code[at..].iter().position(|byte| *byte == b';')?;
    Some(String::from_utf8(code[at..at + end].to_vec()).unwrap())
}

/// Stands between the parent and a worker that is as it should be.
fn honest(heard: &[u8]) -> ExitCode {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg0(HONEST).arg("worker").stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // It is gone early where it refuses what it was given, which its exit code says.
    let _ = pipe.write_all(heard).and_then(|()| std::io::copy(&mut std::io::stdin().lock(), &mut pipe));
    drop(pipe);
    ExitCode::from(u8::try_from(child.wait().unwrap().code().unwrap_or(1)).unwrap())
}

/// A whole frame, header included.
fn frame() -> Vec<u8> {
    let mut input = std::io::stdin().lock();
    let mut bytes = vec![0; FRAME_HEADER];
    if input.read_exact(&mut bytes).is_err() {
        // The parent has gone.
        std::process::exit(0);
    }
    let length = u32::from_le_bytes(bytes[1..].try_into().unwrap()) as usize;
    bytes.resize(FRAME_HEADER + length, 0);
    input.read_exact(&mut bytes[FRAME_HEADER..]).unwrap();
    bytes
}

/// The parent, as the attacker has it.
pub(crate) struct Parent {
    walls: probity::worker::Walls,
}

impl Parent {
    /// What it asks next.
    fn hear(&self) -> Ask {
        serde_json::from_slice(&frame()[FRAME_HEADER..]).unwrap()
    }

    /// The bytes it gives.
    fn bytes(&self) -> Vec<u8> {
        frame().split_off(FRAME_HEADER)
    }

    fn say(&self, say: &Say) {
        let mut out = std::io::stdout().lock();
        write_message(&mut out, say).unwrap();
        out.flush().unwrap();
    }

    fn raw(&self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).unwrap();
        out.flush().unwrap();
    }

    /// Answers a call.
    fn answer(&self, call: u64, called: Called) {
        self.say(&Say::Called(call, Box::new(called)));
    }
}
