//! What a component asks for and offers, read from its bytes before anything is compiled.

use super::error::{LoadError, clean};
use serde::{Deserialize, Serialize};
use wasmparser::{ComponentTypeRef, Encoding, Parser, Payload};

/// The largest component. Python's interpreter with its library has 18 MB and JavaScript's 12 MB; 64 MiB leaves room
/// for both and keeps a compiler from being fed for minutes.
pub const MAX_COMPONENT_BYTES: u64 = 64 << 20;

/// The version of `probity:check` that this host speaks.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// The most imports and exports at the top of a component; all of WASI has about forty.
const MAX_NAMES: usize = 512;

/// Interfaces that are served, without their version.
const SERVED: [&str; 20] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// Packages that toolchains import whether or not a check uses them: the imports are satisfied, and every call of them
/// ends the check.
const DENIED: [&str; 2] = ["wasi:sockets/", "wasi:http/"];

/// One import of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Its name, with version.
    pub name: String,
    /// Whether calling it ends the check: it is there only because toolchains import it without need.
    pub denied: bool,
}

/// What is known of a component from its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// Bytes.
    pub size: u64,
    /// What it imports, in its order.
    pub imports: Vec<Import>,
}

/// Reads a component's imports and exports and refuses what cannot be a pack.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, LoadError> {
    let size = bytes.len() as u64;
    if size > MAX_COMPONENT_BYTES {
        return Err(LoadError::TooLarge(size));
    }
    check_kind(bytes)?;
    let (imports, exports) = names(bytes)?;
    let imports = imports.into_iter().map(judge).collect::<Result<Vec<_>, _>>()?;
    check_exports(&exports)?;
    Ok(Inspection { size, imports })
}

fn check_kind(bytes: &[u8]) -> Result<(), LoadError> {
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.starts_with(b"\x7fELF") {
        return Err(LoadError::Precompiled);
    }
    if let Some(rest) = bytes.strip_prefix(b"\0asm") {
        // The version of a core module is 1 and its layer 0; a component's layer is 1.
        return match rest {
            [_, _, 0, 0, ..] => Err(LoadError::CoreModule),
            [_, _, _, _, ..] => Ok(()),
            _ => Err(LoadError::Malformed { message: "it ends within its header".to_owned(), offset: size(bytes) }),
        };
    }
    let start = bytes.trim_ascii_start();
    if start.starts_with(b"(component") || start.starts_with(b"(module") || start.starts_with(b";;") {
        return Err(LoadError::Text);
    }
    Err(LoadError::NotWasm)
}

fn size(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

fn malformed(error: &wasmparser::BinaryReaderError) -> LoadError {
    LoadError::Malformed { message: clean(error.message(), 300), offset: error.offset() as u64 }
}

/// Names of imports and exports at the top level. All of the component is walked, so one that is cut short is found.
fn names(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), LoadError> {
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| malformed(&error))? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => return Err(LoadError::CoreModule),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let import = import.map_err(|error| malformed(&error))?;
                    let name = clean(import.name.name, 200);
                    // A type is a name for something else; it asks for nothing.
                    if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                        imports.push(name);
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    exports.push(clean(export.map_err(|error| malformed(&error))?.name.name, 200));
                }
            }
            _ => {}
        }
        if imports.len() > MAX_NAMES || exports.len() > MAX_NAMES {
            let message = format!("it has more than {MAX_NAMES} imports or exports");
            return Err(LoadError::Malformed { message, offset: 0 });
        }
    }
    Ok((imports, exports))
}

fn judge(name: String) -> Result<Import, LoadError> {
    let (interface, version) = name.split_once('@').unwrap_or((&name, ""));
    if interface == "probity:check/types" {
        return if version == CONTRACT_VERSION {
            Ok(Import { name, denied: false })
        } else {
            Err(LoadError::OtherContract { found: version.to_owned() })
        };
    }
    let denied = is_denied(interface);
    if !denied && !SERVED.contains(&interface) {
        return Err(LoadError::Import(name));
    }
    if !version.starts_with("0.2.") {
        return Err(LoadError::OtherWasi(name));
    }
    Ok(Import { name, denied })
}

/// Whether an import is satisfied by a trap only.
pub(super) fn is_denied(interface: &str) -> bool {
    DENIED.iter().any(|package| interface.starts_with(package))
}

fn check_exports(exports: &[String]) -> Result<(), LoadError> {
    const CHECKER: &str = "probity:check/checker";
    let version = exports.iter().find_map(|name| name.strip_prefix(CHECKER)?.strip_prefix('@'));
    match version {
        Some(CONTRACT_VERSION) => Ok(()),
        Some(other) => Err(LoadError::OtherContract { found: other.to_owned() }),
        None if exports.is_empty() => Err(LoadError::NoChecker { exports: "nothing".to_owned() }),
        None => {
            let shown: Vec<_> = exports.iter().take(8).map(|name| format!("`{name}`")).collect();
            Err(LoadError::NoChecker { exports: shown.join(", ") })
        }
    }
}
