//! The seam to the machine: folders of the user, the name of the host, the clock as text.
//!
//! Must not: decide anything.

use std::path::PathBuf;

/// The user's cache folder for Probity: `$XDG_CACHE_HOME/probity`, else `$HOME/.cache/probity`. None where neither
/// variable names an absolute path.
pub fn cache_folder() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    Some(base.join("probity"))
}

/// Where the user's compiled components are, in a folder of its own that nobody else can look into.
pub fn compiled_folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("compiled"))
}

/// The name of this host, as far as it is text.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Now: RFC 3339, UTC, milliseconds.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}
