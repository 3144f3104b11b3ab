//! `probity doctor`: what this machine has of what Probity needs, and whether the walls around packs hold.

use super::args::Doctor;
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use crate::guest::{Crossing, Saw, Trial, Tried, missing_walls};
use crate::report::escape;
use crate::subject::git;
use crate::system;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// One wall, as a person is told of it.
struct Wall {
    name: &'static str,
    /// What it forbids.
    forbids: &'static str,
    /// Why it does not stand. None where it does.
    missing: Option<String>,
}

pub(super) fn doctor(folder: &Path, options: &Doctor, printer: &Printer) -> Result<u8, CliError> {
    let host = prepare::host()?;
    printer.status(Some("trying the walls"));
    let trial = host.try_walls();
    printer.status(None);
    let trial = trial.map_err(|error| CliError::trouble(error.to_string()))?;
    let walls = walls(&trial);
    let sound = walls.iter().all(|wall| wall.missing.is_none()) && trial.tried.iter().all(Tried::holds);
    let places = places(folder);
    let git = git::version(folder);
    if options.json {
        let document = json!({
            "schema": "probity/doctor/1",
            "sound": sound,
            "probity": env!("CARGO_PKG_VERSION"),
            "engine": crate::worker::engine_id(),
            "git": match &git {
                Ok((program, version)) => json!({ "program": program.to_string_lossy(), "version": version }),
                Err(error) => json!({ "missing": error.to_string() }),
            },
            "places": places.iter().map(|(name, place)| match place {
                Ok(path) => json!({ "name": name, "path": path }),
                Err(why) => json!({ "name": name, "missing": why }),
            }).collect::<Vec<_>>(),
            "walls": walls.iter().map(|wall| json!({
                "name": wall.name, "stands": wall.missing.is_none(), "forbids": wall.forbids, "missing": wall.missing,
            })).collect::<Vec<_>>(),
            "crossings": trial.tried.iter().map(document).collect::<Vec<_>>(),
        });
        printer.json(&document);
    } else {
        let mut text = format!("probity  {}\nengine   {}\n", env!("CARGO_PKG_VERSION"), crate::worker::engine_id());
        // Writing into a string does not fail, here and below.
        let _ = match &git {
            Ok((program, version)) => writeln!(text, "git      {version}, {}", escape(&program.to_string_lossy())),
            Err(error) => writeln!(text, "git      {}", first_line(&error.to_string())),
        };
        for (name, place) in &places {
            let _ = match place {
                Ok(path) => writeln!(text, "{name:<8} {}", escape(path)),
                Err(why) => writeln!(text, "{name:<8} {}", escape(why)),
            };
        }
        text.push_str("\nwalls around packs\n");
        for wall in &walls {
            let word = if wall.missing.is_none() { "stands " } else { "MISSING" };
            let _ = writeln!(text, "  {word}  {:<18}  {}", wall.name, wall.forbids);
            if let Some(why) = &wall.missing {
                let _ = writeln!(text, "           {why}");
            }
        }
        text.push_str("\ntried from behind them, by a process each, and what holds it alone\n");
        for tried in &trial.tried {
            let word = if tried.holds() { "held" } else { "OPEN" };
            let _ = writeln!(text, "  {word}  {:<31}  {}", tried.crossing.words(), told(tried));
        }
        let _ = writeln!(text, "\n{}", closing(&trial, sound));
        printer.out(&text);
    }
    Ok(u8::from(!sound))
}

fn closing(trial: &Trial, sound: bool) -> &'static str {
    match (sound, trial.tried.iter().all(Tried::holds)) {
        (true, _) => "all walls stand, and all that was tried was held",
        (false, true) => {
            "a wall is missing: what others hold is held; `verify --walls strict` refuses to run packs here"
        }
        (false, false) => "the walls do not hold here: run no pack that you do not trust",
    }
}

/// The walls and whether they stand: those that say so themselves, and those that only trying shows.
fn walls(trial: &Trial) -> Vec<Wall> {
    let missing = missing_walls(trial.walls);
    let why = |name: &str| missing.iter().find(|(missing, _)| *missing == name).map(|(_, why)| why.clone());
    let shown = |crossing: Crossing| {
        let tried = trial.tried.iter().find(|tried| tried.crossing == crossing)?;
        // Where seccomp stands it does not come to asking, so the answer behind Landlock or behind nothing counts.
        let saw = match crossing {
            Crossing::Privileges => tried.behind_landlock.as_ref().unwrap_or(&tried.behind_all),
            _ => &tried.behind_none,
        };
        (!saw.held()).then(|| "the system did not take it".to_owned())
    };
    vec![
        Wall {
            name: "landlock",
            forbids: "files, ports, named sockets, programs, and signals to and the memory of other processes",
            missing: why("landlock"),
        },
        Wall {
            name: "seccomp",
            forbids: "all system calls but two dozen: no file, socket, thread or process, no memory that becomes code",
            missing: why("seccomp"),
        },
        Wall {
            name: "no new privileges",
            forbids: "gaining rights through a program that has them",
            missing: shown(Crossing::Privileges),
        },
        Wall { name: "not dumpable", forbids: "being looked into by others", missing: shown(Crossing::Dumpable) },
        Wall { name: "no core dumps", forbids: "leaving its memory on disk", missing: shown(Crossing::DumpCore) },
    ]
}

/// The walls that hold something, each by itself.
fn alone(tried: &Tried) -> Vec<&'static str> {
    let mut alone = Vec::new();
    for (name, saw) in [("landlock", &tried.behind_landlock), ("seccomp", &tried.behind_seccomp)] {
        if saw.as_ref().is_some_and(Saw::held) && !tried.is_start() {
            alone.push(name);
        }
    }
    alone
}

/// What holds something, or how it got through.
fn told(tried: &Tried) -> String {
    let open = [
        ("behind all", Some(&tried.behind_all)),
        ("behind landlock", tried.behind_landlock.as_ref()),
        ("behind seccomp", tried.behind_seccomp.as_ref()),
    ];
    if !tried.holds() {
        let mut ways = open.into_iter().filter_map(|(name, saw)| match saw? {
            Saw::Open(what) => Some(format!("{name}: {}", if what.is_empty() { "it went through" } else { what })),
            Saw::Held(_) => None,
        });
        return escape(&ways.next().unwrap_or_default());
    }
    let mut text = alone(tried).join(", ");
    if tried.is_start() {
        let how = match &tried.behind_none {
            Saw::Held(how) => how.as_str(),
            Saw::Open(_) => "",
        };
        text = format!("how it is started: {how}");
    } else if tried.behind_none.held() {
        text.push_str("; this system refuses it without them too");
    }
    escape(&text)
}

fn document(tried: &Tried) -> Value {
    let saw = |saw: &Saw| match saw {
        Saw::Held(how) => json!({ "held": how }),
        Saw::Open(what) => json!({ "open": what }),
    };
    json!({
        "crossing": tried.crossing,
        "holds": tried.holds(),
        "behind_all": saw(&tried.behind_all),
        "behind_landlock": tried.behind_landlock.as_ref().map(saw),
        "behind_seccomp": tried.behind_seccomp.as_ref().map(saw),
        "behind_none": saw(&tried.behind_none),
    })
}

/// Where things are kept, or why they cannot be.
fn places(folder: &Path) -> Vec<(&'static str, Result<String, String>)> {
    let state = prepare::state_place(folder).map_err(|error| first_line(error.message()));
    let cache = system::cache_folder().ok_or_else(|| "no place: set HOME or XDG_CACHE_HOME".to_owned());
    let key = system::key().map(|_| "kept".to_owned());
    vec![
        ("state", state.and_then(|path| writable(&path))),
        ("cache", cache.and_then(|path| writable(&path))),
        ("key", key.ok_or_else(|| "cannot be kept: compiled code is made again each time".to_owned())),
    ]
}

/// The path, if it can be written to or made.
fn writable(path: &Path) -> Result<String, String> {
    let nearest = path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(path);
    match rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(path.display().to_string()),
        Err(error) => Err(format!("{} cannot be written to: {error}", path.display())),
    }
}

fn first_line(text: &str) -> String {
    escape(text.lines().next().unwrap_or_default())
}
