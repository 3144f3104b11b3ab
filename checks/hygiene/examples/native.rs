//! Runs one check natively over a folder, and prints how many findings it has.
//!
//! The benchmarks compare the sandboxed run with this one: the same code, without a sandbox.
//!
//! `native CHECK DIR [CONFIG]`, where the configuration is JSON.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the command line, and nothing else prints in it"
)]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use probity_sdk::testing::Subject;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (check, folder, config) = match arguments.as_slice() {
        [check, folder] => (check, folder, "{}"),
        [check, folder, config] => (check, folder, config.as_str()),
        _ => {
            eprintln!("usage: native CHECK DIR [CONFIG]");
            return ExitCode::from(2);
        }
    };
    let subject = match Subject::scan(Path::new(folder)) {
        Ok(subject) => subject,
        Err(error) => {
            eprintln!("error: failed to list {folder}: {error}");
            return ExitCode::FAILURE;
        }
    };
    match subject.run(&hygiene::pack(), check, config) {
        Ok(report) => {
            println!("{}", report.findings.len());
            ExitCode::SUCCESS
        }
        Err(refusal) => {
            eprintln!("error: {refusal:?}");
            ExitCode::FAILURE
        }
    }
}
