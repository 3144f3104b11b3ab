//! The same natively: `walk DIR` prints files and bytes.

#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let (files, bytes) = walk::walk(Path::new(&folder))?;
    println!("{files} {bytes}");
    Ok(())
}
