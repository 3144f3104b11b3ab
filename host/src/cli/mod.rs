//! The command line: arguments in, one exit code out. Each command is one file.
//!
//! Must not: hold logic that another front end would need again. `printer` alone writes to the terminal.

mod args;
mod asked;
mod baseline;
mod config;
mod current;
mod deliver;
mod disown;
mod doctor;
mod error;
mod init;
mod inspect;
mod log;
mod place;
mod plan;
mod prepare;
mod printer;
mod question;
mod replay;
mod rest;
mod show;
mod shown;
mod signals;
mod status;
mod store;
mod take;
mod turn;
mod verify;
mod why;

use args::{Arguments, Command, PackCommand, StoreCommand};
use clap::Parser as _;
use error::CliError;
use printer::Printer;
use std::process::ExitCode;

/// Parses the arguments of this process, does what they say, and returns its exit code.
pub fn main() -> ExitCode {
    // What guests run in. It comes first since it must do nothing else, and is not for people.
    if std::env::args_os().nth(1).is_some_and(|word| word == "worker") {
        return ExitCode::from(u8::from(crate::worker::serve().is_err()));
    }
    // What commands run below, in the same way.
    if std::env::args_os().nth(1).is_some_and(|word| word == "supervise") {
        return ExitCode::from(u8::from(crate::native::supervise().is_err()));
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return printer::usage(&error),
    };
    printer::start_log(arguments.verbose);
    let printer = Printer::new(arguments.color);
    match dispatch(&arguments, &printer) {
        Ok(code) => match printer.lost() {
            None => ExitCode::from(code),
            Some(error) => {
                printer.error(&CliError::trouble(format!("stdout could not be written to: {error}")));
                // What was asked for was not delivered, whatever it would have said.
                ExitCode::from(if code == 0 { 4 } else { code })
            }
        },
        Err(error) => {
            printer.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(arguments: &Arguments, printer: &Printer) -> Result<u8, CliError> {
    let folder = args::folder(arguments)?;
    match &arguments.command {
        Command::Init => init::init(&folder, printer),
        Command::Verify(options) => verify::verify(&folder, options, arguments.verbose > 0, printer),
        Command::Status(options) => status::status(&folder, options, printer),
        Command::Why(options) => why::why(&folder, options, printer),
        Command::Log(options) => log::log(&folder, options, printer),
        Command::Show(options) => show::show(&folder, options, printer),
        Command::Replay(options) => replay::replay(&folder, options, printer),
        Command::Store { command: StoreCommand::Check } => store::check(&folder, printer),
        Command::Store { command: StoreCommand::Gc(options) } => store::gc(&folder, options, printer),
        Command::Store { command: StoreCommand::Disown(options) } => disown::disown(&folder, options, printer),
        Command::Config(options) => config::config(&folder, options, printer),
        Command::Doctor(options) => doctor::doctor(&folder, options, printer),
        Command::Pack { command: PackCommand::Inspect(options) } => inspect::inspect(&folder, options, printer),
    }
}
