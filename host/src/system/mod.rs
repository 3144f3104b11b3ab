//! The seam to the machine: folders of the user, the name of the host, the clock as text.
//!
//! Must not: decide anything.

pub mod clock;

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Whether whoever started this process wants it to pass over a signal, as `nohup` and shells do for what they start in
/// the background.
pub fn ignores(signal: i32) -> bool {
    #[expect(unsafe_code, reason = "there is no other form of it")]
    // SAFETY: it changes nothing and writes to the one value that it is given.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// The user's cache folder for Probity: `$XDG_CACHE_HOME/probity`, else `$HOME/.cache/probity`. None where neither
/// variable names an absolute path.
pub fn cache_folder() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    Some(base.join("probity"))
}

/// The user's file: `$XDG_CONFIG_HOME/probity/config.toml`, else `$HOME/.config/probity/config.toml`. None where neither
/// variable names an absolute path.
pub fn user_file() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")))?;
    Some(base.join("probity/config.toml"))
}

/// Where the user's compiled components are, in a folder of its own that nobody else can look into.
pub fn compiled_folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("compiled"))
}

/// The variable that a key may come from where there is no home that lasts, as in CI. No command sees it.
pub const KEY_VARIABLE: &str = "PROBITY_KEY";

/// The variable that says whose word a run is: `ci:NAME`, or `quarantine` where strangers decide what runs.
pub const TRUST_VARIABLE: &str = "PROBITY_TRUST";

/// Where this user's key is, and what the user disowned: `$XDG_STATE_HOME/probity`, else `$HOME/.local/state/probity`. None
/// where neither variable names an absolute path.
pub fn user_state() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Some(named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")))?.join("probity"))
}

/// What [`TRUST_VARIABLE`] says, unless that is what holds without it.
pub fn trust_class() -> Option<String> {
    std::env::var(TRUST_VARIABLE).ok().filter(|class| !class.is_empty() && class != "local")
}

/// A key: 64 hexadecimal digits.
pub fn parse_key(text: &str) -> Option<[u8; 32]> {
    let digits = text.trim().as_bytes();
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes?.try_into().ok()
}

/// This user's key for what nobody else may make: 32 random bytes in `$XDG_STATE_HOME/probity/key`, else in
/// `$HOME/.local/state/probity/key`, made on first use. None where it cannot be kept, or where others could read it.
///
/// Where [`KEY_VARIABLE`] is set, it is that; none where that says no key.
pub fn key() -> Option<[u8; 32]> {
    static KEY: OnceLock<Option<[u8; 32]>> = OnceLock::new();
    *KEY.get_or_init(find_key)
}

fn find_key() -> Option<[u8; 32]> {
    if let Some(said) = std::env::var_os(KEY_VARIABLE) {
        return said.to_str().and_then(parse_key);
    }
    let folder = user_state()?;
    read_key(&folder).or_else(|| {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).ok()?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
        let mut file = tempfile::NamedTempFile::new_in(&folder).ok()?;
        file.write_all(&bytes).ok()?;
        file.as_file().sync_all().ok()?;
        // Two at once make one key: the second finds the first one's.
        let _ = file.persist_noclobber(folder.join("key"));
        read_key(&folder)
    })
}

fn read_key(folder: &Path) -> Option<[u8; 32]> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(folder.join("key")).ok()?;
    let metadata = file.metadata().ok()?;
    // A mode that ends in six zeros gives nothing to group and others.
    let private = metadata.is_file()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode().trailing_zeros() >= 6
        && metadata.len() == 32;
    let mut bytes = [0; 32];
    if private { (&file).read_exact(&mut bytes).ok().map(|()| bytes) } else { None }
}

/// The name of this host, as far as it is text.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Now: RFC 3339, UTC, milliseconds.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}
