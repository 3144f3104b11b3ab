//! Where a pack's bytes come from: a component in a file, or a folder that is built when it, what it is made of or
//! the toolchain changed.

use super::build::{self, BuildError};
use crate::config::PackSource;
use crate::model::{Context, Digest, Encoder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The largest component that is looked at. Python's and JavaScript's are below 20 MiB.
const MAX_COMPONENT: u64 = 64 << 20;

/// Why a pack's bytes cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is nothing.
    #[error("there is no {what} at `{path}`")]
    Missing {
        /// `file` or `folder`.
        what: &'static str,
        /// As the configuration has it.
        path: String,
    },
    /// It is no regular file, or too large a one.
    #[error("`{path}` is no component: {why}\nhelp: name the `.wasm` file of a pack")]
    Unusable {
        /// As the configuration has it.
        path: String,
        /// Why.
        why: String,
    },
    /// A link on the way to it leads out of the tree, so not everybody who has the tree has the pack.
    #[error("`{path}` leads out of the tree through a link\nhelp: put the pack itself into the tree")]
    Outside {
        /// As the configuration has it.
        path: String,
    },
    /// It cannot be read.
    #[error("cannot read `{path}`: {source}\nhelp: give this user read access to it")]
    Read {
        /// As the configuration has it.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It would have to be built, and is not to be.
    #[error("the pack in `{path}` is not built as it is now")]
    Unbuilt {
        /// As the configuration has it.
        path: String,
    },
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The bytes of the component that a source names. `root` is the folder of the configuration, `cache` where the user's
/// caches are, and `notice` is told before something is built; where there is none, nothing is.
pub fn obtain(
    source: &PackSource,
    root: &Path,
    cache: Option<&Path>,
    notice: Option<&mut dyn FnMut(&str)>,
) -> Result<Vec<u8>, SourceError> {
    match source {
        PackSource::File(path) => {
            within(root, path)?;
            read_component(&root.join(path), path)
        }
        PackSource::Path(path) => {
            let folder = root.join(path);
            if !folder.is_dir() {
                return Err(SourceError::Missing { what: "folder", path: path.clone() });
            }
            within(root, path)?;
            built(&folder, path, cache, notice)
        }
    }
}

/// Refuses what lies elsewhere once all links are followed. What is not there is for the reader to tell.
fn within(root: &Path, path: &str) -> Result<(), SourceError> {
    match (root.canonicalize(), root.join(path).canonicalize()) {
        (Ok(root), Ok(place)) if !place.starts_with(&root) => Err(SourceError::Outside { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Reads a component from a file that somebody named.
pub fn read_component(file: &Path, shown: &str) -> Result<Vec<u8>, SourceError> {
    let read = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => SourceError::Missing { what: "file", path: shown.to_owned() },
        _ => SourceError::Read { path: shown.to_owned(), source },
    };
    let unusable = |why: String| SourceError::Unusable { path: shown.to_owned(), why };
    let metadata = std::fs::metadata(file).map_err(read)?;
    if !metadata.is_file() {
        return Err(unusable("it is not a regular file".to_owned()));
    }
    if metadata.len() > MAX_COMPONENT {
        return Err(unusable(format!("it has {} bytes, and at most {MAX_COMPONENT} are looked at", metadata.len())));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(file).map_err(read)?.take(MAX_COMPONENT + 1).read_to_end(&mut bytes).map_err(read)?;
    Ok(bytes)
}

/// What a build was made of. It stands for the component as long as all of it is unchanged.
#[derive(Debug, Serialize, Deserialize)]
struct Made {
    toolchain: String,
    /// The digest of all files of the pack's folder that its ignore files do not leave out.
    folder: Digest,
    /// Everything else that went into it, by absolute path, as the compiler reports it.
    inputs: BTreeMap<String, Digest>,
    component: Digest,
}

fn built(
    folder: &Path,
    shown: &str,
    cache: Option<&Path>,
    notice: Option<&mut dyn FnMut(&str)>,
) -> Result<Vec<u8>, SourceError> {
    let read = |source| SourceError::Read { path: shown.to_owned(), source };
    let folder = folder.canonicalize().map_err(read)?;
    let toolchain = build::Toolchain::find(&folder)?;
    let place = cache.map(|cache| {
        let name = Encoder::new().bytes(folder.as_os_str().as_encoded_bytes()).finish(Context::Sources).hex();
        (cache.join("built").join(format!("{name}.json")), cache.join("built").join(format!("{name}.wasm")))
    });
    let digest = folder_digest(&folder).map_err(read)?;
    if let Some((made, component)) = &place
        && let Some(bytes) = unchanged(made, component, toolchain.identity(), &digest)
    {
        return Ok(bytes);
    }
    let Some(notice) = notice else { return Err(SourceError::Unbuilt { path: shown.to_owned() }) };
    notice(&format!(
        "building the pack in {shown}; the first time takes minutes, since a standard library is built with it"
    ));
    let product = toolchain.build(&folder)?;
    let bytes = read_component(&product.component, shown)?;
    let inputs = product.inputs.into_iter().filter_map(|path| {
        let digest = Digest::of(&std::fs::read(&path).ok()?);
        Some((path, digest))
    });
    let made = Made {
        toolchain: toolchain.identity().to_owned(),
        folder: digest,
        inputs: inputs.collect(),
        component: Digest::of(&bytes),
    };
    // Without the cache the next run builds again, which costs time and nothing else.
    if let Some((place, component)) = &place
        && let Err(error) = keep(place, component, &made, &bytes)
    {
        tracing::warn!(%error, "the built pack could not be kept");
    }
    Ok(bytes)
}

fn unchanged(made: &Path, component: &Path, toolchain: &str, digest: &Digest) -> Option<Vec<u8>> {
    let made: Made = serde_json::from_slice(&std::fs::read(made).ok()?).ok()?;
    let same =
        |(path, digest): (&String, &Digest)| std::fs::read(path).is_ok_and(|contents| Digest::of(&contents) == *digest);
    if made.toolchain != toolchain || made.folder != *digest || !made.inputs.iter().all(same) {
        return None;
    }
    let bytes = std::fs::read(component).ok()?;
    (Digest::of(&bytes) == made.component).then_some(bytes)
}

fn keep(place: &Path, component: &Path, made: &Made, bytes: &[u8]) -> io::Result<()> {
    let folder = place.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let write = |path: &Path, contents: &[u8]| -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        io::Write::write_all(&mut file, contents)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    // The description last: it vouches for the component by its digest.
    write(component, bytes)?;
    write(place, &serde_json::to_vec(made)?)
}

/// The digest of every file of the folder that its ignore files do not leave out, by path and contents.
fn folder_digest(folder: &Path) -> io::Result<Digest> {
    let walker = ignore::WalkBuilder::new(folder)
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .sort_by_file_path(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git" && !(entry.depth() == 1 && entry.file_name() == "target"))
        .build();
    let mut encoder = Encoder::new();
    for entry in walker {
        let entry = entry.map_err(io::Error::other)?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            encoder.bytes(path.as_os_str().as_encoded_bytes()).digest(&Digest::of(&std::fs::read(entry.path())?));
        }
    }
    Ok(encoder.finish(Context::Sources))
}
