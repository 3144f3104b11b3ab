//! `wasi:filesystem` over a view. A handle is the number of a node, so nothing is kept for it; only streams and
//! listings have a place they have come to.

use super::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, Error,
    ErrorCode, InputStream, MetadataHashValue, NewTimestamp, OpenFlags, OutputStream, PathFlags,
};
use super::{Interface, STEP, Stop, for_bytes, give};
use crate::worker::state::{Listing, State, Stream};
use crate::worker::view::{Kind, NodeId, Sight, Trouble, View};
use wasmtime::Result;
use wasmtime::component::{Linker, Resource};

type File = Resource<Descriptor>;
type Answer<T> = std::result::Result<T, ErrorCode>;

impl From<Trouble> for ErrorCode {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoEntry => Self::NoEntry,
            Trouble::NotDirectory => Self::NotDirectory,
            Trouble::NotPermitted => Self::NotPermitted,
            Trouble::Loop => Self::Loop,
            Trouble::NameTooLong => Self::NameTooLong,
            Trouble::NotText => Self::IllegalByteSequence,
        }
    }
}

pub(super) fn link(linker: &mut Linker<State>) -> Result<()> {
    let mut types = Interface::new(linker, "wasi:filesystem/types")?;
    types.resource::<Descriptor>("descriptor", |_, _| {})?;
    types.resource::<DirectoryEntryStream>("directory-entry-stream", |state, rep| state.listings.remove(rep))?;
    reading(&mut types)?;
    looking(&mut types)?;
    refusing_on_descriptors(&mut types)?;
    refusing_on_paths(&mut types)?;
    types.function("filesystem-error-code", |_, (_error,): (Resource<Error>,)| Ok((None::<ErrorCode>,)))?;
    Interface::new(linker, "wasi:filesystem/preopens")?.function("get-directories", |state, ()| {
        let mounts: Vec<_> = state.view.mounts().collect();
        let handles = mounts.into_iter().map(|(mount, root)| Ok((give(state, root.0)?, format!("/{}", mount.name()))));
        Ok((handles.collect::<Result<Vec<(File, String)>>>()?,))
    })?;
    Ok(())
}

fn node(file: &File) -> NodeId {
    // The engine hands back only numbers that it was given.
    NodeId(file.rep())
}

fn kind(view: &View, node: NodeId) -> DescriptorType {
    match view.tree().kind(node) {
        Kind::Directory { .. } => DescriptorType::Directory,
        Kind::File { .. } => DescriptorType::RegularFile,
        Kind::Symlink { .. } => DescriptorType::SymbolicLink,
    }
}

fn stat(state: &mut State, node: NodeId) -> DescriptorStat {
    state.observed.see(node, Sight::SIZE);
    let view = &state.view;
    DescriptorStat {
        kind: kind(view, node),
        link_count: 1,
        size: view.tree().facts(node).size,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    }
}

fn metadata_hash(state: &mut State, node: NodeId) -> MetadataHashValue {
    state.cost += STEP;
    state.observed.see(node, Sight::SIZE);
    let (lower, upper) = state.view.tree().metadata_hash(node);
    MetadataHashValue { lower, upper }
}

/// Resolves a path and notes its cost.
fn resolve(state: &mut State, base: &File, path: &str, follow: bool) -> Answer<NodeId> {
    state.cost += for_bytes(path.len() as u64);
    let resolved = state.view.resolve(node(base), path, follow, &mut state.observed)?;
    state.cost += STEP * u64::from(resolved.steps);
    Ok(resolved.node)
}

fn following(flags: PathFlags) -> bool {
    flags.contains(PathFlags::SYMLINK_FOLLOW)
}

/// Whether a node's contents can be read.
fn readable(view: &View, node: NodeId) -> Answer<()> {
    match view.tree().kind(node) {
        Kind::File { .. } => Ok(()),
        Kind::Directory { .. } => Err(ErrorCode::IsDirectory),
        Kind::Symlink { .. } => Err(ErrorCode::Invalid),
    }
}

fn reading(types: &mut Interface<'_>) -> Result<()> {
    types
        .function("[method]descriptor.read-via-stream", |state, (file, position): (File, u64)| {
            let file = node(&file);
            if let Err(code) = readable(&state.view, file) {
                return Ok((Err(code),));
            }
            let rep = state.streams.insert(Stream { file, position });
            Ok((Ok(give::<InputStream>(state, rep)?),))
        })?
        .function("[method]descriptor.read", |state, (file, len, offset): (File, u64, u64)| {
            let file = node(&file);
            if let Err(code) = readable(&state.view, file) {
                return Ok((Err(code),));
            }
            let piece = state.chunks.read(&state.view, &mut state.observed, file, offset, len);
            let piece = piece.map_err(|error| Stop::Host(error.to_string()))?;
            state.cost += for_bytes(piece.bytes.len() as u64) + for_bytes(piece.fetched);
            Ok((Ok((piece.bytes.to_vec(), piece.end)),))
        })?
        .function("[method]descriptor.read-directory", |state, (directory,): (File,)| {
            let directory = node(&directory);
            if !matches!(state.view.tree().kind(directory), Kind::Directory { .. }) {
                return Ok((Err(ErrorCode::NotDirectory),));
            }
            state.observed.see(directory, Sight::LISTING);
            let rep = state.listings.insert(Listing { directory, position: 0 });
            Ok((Ok(give::<DirectoryEntryStream>(state, rep)?),))
        })?
        .function(
            "[method]directory-entry-stream.read-directory-entry",
            |state, (listing,): (Resource<DirectoryEntryStream>,)| -> Result<(Answer<Option<DirectoryEntry>>,)> {
                // A listing lives as long as its handle.
                let Some(listing) = state.listings.get_mut(listing.rep()) else { return Ok((Ok(None),)) };
                let Some((child, position)) = state.view.next_child(listing.directory, listing.position) else {
                    return Ok((Ok(None),));
                };
                state.cost += STEP * u64::from(position - listing.position);
                listing.position = position;
                let name = state.view.tree().name(child).to_owned();
                Ok((Ok(Some(DirectoryEntry { kind: kind(&state.view, child), name })),))
            },
        )?;
    Ok(())
}

fn looking(types: &mut Interface<'_>) -> Result<()> {
    types
        .function(
            "[method]descriptor.open-at",
            |state, (base, path_flags, path, open, wanted): (File, PathFlags, String, OpenFlags, DescriptorFlags)| {
                Ok((match open_at(state, &base, following(path_flags), &path, open, wanted) {
                    Ok(node) => Ok(give::<Descriptor>(state, node.0)?),
                    Err(code) => Err(code),
                },))
            },
        )?
        .function("[method]descriptor.stat", |state, (file,): (File,)| -> Result<(Answer<DescriptorStat>,)> {
            Ok((Ok(stat(state, node(&file))),))
        })?
        .function("[method]descriptor.stat-at", |state, (base, flags, path): (File, PathFlags, String)| {
            let node = resolve(state, &base, &path, following(flags));
            Ok((node.map(|node| stat(state, node)),))
        })?
        .function("[method]descriptor.get-type", |state, (file,): (File,)| -> Result<(Answer<DescriptorType>,)> {
            Ok((Ok(kind(&state.view, node(&file))),))
        })?
        .function("[method]descriptor.get-flags", |_, (_file,): (File,)| -> Result<(Answer<DescriptorFlags>,)> {
            Ok((Ok(DescriptorFlags::READ),))
        })?
        .function("[method]descriptor.readlink-at", |state, (base, path): (File, String)| {
            Ok((resolve(state, &base, &path, false).and_then(|link| readlink(state, link)),))
        })?
        .function("[method]descriptor.is-same-object", |_, (one, other): (File, File)| {
            Ok((node(&one) == node(&other),))
        })?
        .function(
            "[method]descriptor.metadata-hash",
            |state, (file,): (File,)| -> Result<(Answer<MetadataHashValue>,)> {
                Ok((Ok(metadata_hash(state, node(&file))),))
            },
        )?
        .function("[method]descriptor.metadata-hash-at", |state, (base, flags, path): (File, PathFlags, String)| {
            let node = resolve(state, &base, &path, following(flags));
            Ok((node.map(|node| metadata_hash(state, node)),))
        })?
        .function(
            "[method]descriptor.advise",
            |_, (_file, _offset, _len, _advice): (File, u64, u64, Advice)| -> Result<(Answer<()>,)> { Ok((Ok(()),)) },
        )?;
    let sync = |_: &mut State, (_file,): (File,)| -> Result<(Answer<()>,)> { Ok((Ok(()),)) };
    types.function("[method]descriptor.sync", sync)?.function("[method]descriptor.sync-data", sync)?;
    Ok(())
}

fn open_at(
    state: &mut State,
    base: &File,
    follow: bool,
    path: &str,
    open: OpenFlags,
    wanted: DescriptorFlags,
) -> Answer<NodeId> {
    if wanted.contains(DescriptorFlags::WRITE)
        || wanted.contains(DescriptorFlags::MUTATE_DIRECTORY)
        || open.contains(OpenFlags::CREATE)
        || open.contains(OpenFlags::EXCLUSIVE)
        || open.contains(OpenFlags::TRUNCATE)
    {
        return Err(ErrorCode::ReadOnly);
    }
    let node = resolve(state, base, path, follow)?;
    match state.view.tree().kind(node) {
        Kind::File { .. } | Kind::Symlink { .. } if open.contains(OpenFlags::DIRECTORY) => Err(ErrorCode::NotDirectory),
        Kind::Directory { .. } | Kind::File { .. } => Ok(node),
        // As opening a link without following it does on Linux.
        Kind::Symlink { .. } => Err(ErrorCode::Loop),
    }
}

fn readlink(state: &mut State, link: NodeId) -> Answer<String> {
    let Kind::Symlink { start, len } = state.view.tree().kind(link) else { return Err(ErrorCode::Invalid) };
    state.cost += for_bytes(u64::from(len));
    let text = std::str::from_utf8(state.view.tree().link_text(start, len));
    text.map(str::to_owned).map_err(|_| ErrorCode::IllegalByteSequence)
}

const READ_ONLY: Answer<()> = Err(ErrorCode::ReadOnly);

fn refusing_on_descriptors(types: &mut Interface<'_>) -> Result<()> {
    types
        .function(
            "[method]descriptor.write-via-stream",
            |_, (_file, _offset): (File, u64)| -> Result<(Answer<Resource<OutputStream>>,)> {
                Ok((Err(ErrorCode::ReadOnly),))
            },
        )?
        .function(
            "[method]descriptor.append-via-stream",
            |_, (_file,): (File,)| -> Result<(Answer<Resource<OutputStream>>,)> { Ok((Err(ErrorCode::ReadOnly),)) },
        )?
        .function("[method]descriptor.set-size", |_, (_file, _size): (File, u64)| Ok((READ_ONLY,)))?
        .function(
            "[method]descriptor.set-times",
            |_, (_file, _access, _modification): (File, NewTimestamp, NewTimestamp)| Ok((READ_ONLY,)),
        )?
        .function(
            "[method]descriptor.write",
            |_, (_file, _bytes, _offset): (File, Vec<u8>, u64)| -> Result<(Answer<u64>,)> {
                Ok((Err(ErrorCode::ReadOnly),))
            },
        )?;
    Ok(())
}

fn refusing_on_paths(types: &mut Interface<'_>) -> Result<()> {
    let one_path = |_: &mut State, (_base, _path): (File, String)| Ok((READ_ONLY,));
    types
        .function("[method]descriptor.create-directory-at", one_path)?
        .function("[method]descriptor.remove-directory-at", one_path)?
        .function("[method]descriptor.unlink-file-at", one_path)?
        .function("[method]descriptor.symlink-at", |_, (_base, _old, _new): (File, String, String)| {
            Ok((READ_ONLY,))
        })?
        .function(
            "[method]descriptor.rename-at",
            |_, (_base, _old, _to, _new): (File, String, File, String)| Ok((READ_ONLY,)),
        )?
        .function(
            "[method]descriptor.link-at",
            |_, (_base, _flags, _old, _to, _new): (File, PathFlags, String, File, String)| Ok((READ_ONLY,)),
        )?
        .function(
            "[method]descriptor.set-times-at",
            |_, (_base, _flags, _path, _access, _modification): (File, PathFlags, String, NewTimestamp, NewTimestamp)| {
                Ok((READ_ONLY,))
            },
        )?;
    Ok(())
}
