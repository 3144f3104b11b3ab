//! Types of WASI's interfaces, as far as they cross into the host. Names and order are those of its WIT.

use wasmtime::component::{ComponentType, Lift, Lower};

/// What a handle of `wasi:io/error` stands for: that something failed, and no more.
pub(super) struct Error;
/// What a pollable stands for: something that is ready.
pub(super) struct Pollable;
/// A file being read, or the standard input at its end.
pub(super) struct InputStream;
/// The standard output or error.
pub(super) struct OutputStream;
/// A node of the view.
pub(super) struct Descriptor;
/// A listing.
pub(super) struct DirectoryEntryStream;
/// Never made.
pub(super) struct TerminalInput;
/// Never made.
pub(super) struct TerminalOutput;

/// `wasi:io/streams.stream-error`, of which only the end occurs.
#[derive(Debug, ComponentType, Lower, Lift)]
#[component(variant)]
pub(super) enum StreamError {
    #[component(name = "last-operation-failed")]
    LastOperationFailed(wasmtime::component::Resource<Error>),
    #[component(name = "closed")]
    Closed,
}

/// `wasi:clocks/wall-clock.datetime`.
#[derive(Debug, Clone, Copy, ComponentType, Lower, Lift)]
#[component(record)]
pub(super) struct Datetime {
    pub(super) seconds: u64,
    pub(super) nanoseconds: u32,
}

/// `wasi:filesystem/types.descriptor-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "the type has cases that a view never has")]
pub(super) enum DescriptorType {
    #[component(name = "unknown")]
    Unknown,
    #[component(name = "block-device")]
    BlockDevice,
    #[component(name = "character-device")]
    CharacterDevice,
    #[component(name = "directory")]
    Directory,
    #[component(name = "fifo")]
    Fifo,
    #[component(name = "symbolic-link")]
    SymbolicLink,
    #[component(name = "regular-file")]
    RegularFile,
    #[component(name = "socket")]
    Socket,
}

wasmtime::component::flags! {
    DescriptorFlags {
        #[component(name = "read")]
        const READ;
        #[component(name = "write")]
        const WRITE;
        #[component(name = "file-integrity-sync")]
        const FILE_INTEGRITY_SYNC;
        #[component(name = "data-integrity-sync")]
        const DATA_INTEGRITY_SYNC;
        #[component(name = "requested-write-sync")]
        const REQUESTED_WRITE_SYNC;
        #[component(name = "mutate-directory")]
        const MUTATE_DIRECTORY;
    }
}

wasmtime::component::flags! {
    PathFlags {
        #[component(name = "symlink-follow")]
        const SYMLINK_FOLLOW;
    }
}

wasmtime::component::flags! {
    OpenFlags {
        #[component(name = "create")]
        const CREATE;
        #[component(name = "directory")]
        const DIRECTORY;
        #[component(name = "exclusive")]
        const EXCLUSIVE;
        #[component(name = "truncate")]
        const TRUNCATE;
    }
}

/// `wasi:filesystem/types.descriptor-stat`.
#[derive(Debug, ComponentType, Lower, Lift)]
#[component(record)]
pub(super) struct DescriptorStat {
    #[component(name = "type")]
    pub(super) kind: DescriptorType,
    #[component(name = "link-count")]
    pub(super) link_count: u64,
    pub(super) size: u64,
    #[component(name = "data-access-timestamp")]
    pub(super) data_access_timestamp: Option<Datetime>,
    #[component(name = "data-modification-timestamp")]
    pub(super) data_modification_timestamp: Option<Datetime>,
    #[component(name = "status-change-timestamp")]
    pub(super) status_change_timestamp: Option<Datetime>,
}

/// `wasi:filesystem/types.new-timestamp`.
#[derive(Debug, ComponentType, Lower, Lift)]
#[component(variant)]
pub(super) enum NewTimestamp {
    #[component(name = "no-change")]
    NoChange,
    #[component(name = "now")]
    Now,
    #[component(name = "timestamp")]
    Timestamp(Datetime),
}

/// `wasi:filesystem/types.directory-entry`.
#[derive(Debug, ComponentType, Lower, Lift)]
#[component(record)]
pub(super) struct DirectoryEntry {
    #[component(name = "type")]
    pub(super) kind: DescriptorType,
    pub(super) name: String,
}

/// `wasi:filesystem/types.metadata-hash-value`.
#[derive(Debug, ComponentType, Lower, Lift)]
#[component(record)]
pub(super) struct MetadataHashValue {
    pub(super) lower: u64,
    pub(super) upper: u64,
}

/// `wasi:filesystem/types.advice`.
#[derive(Debug, Clone, Copy, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "advice is taken and not followed")]
pub(super) enum Advice {
    #[component(name = "normal")]
    Normal,
    #[component(name = "sequential")]
    Sequential,
    #[component(name = "random")]
    Random,
    #[component(name = "will-need")]
    WillNeed,
    #[component(name = "dont-need")]
    DontNeed,
    #[component(name = "no-reuse")]
    NoReuse,
}

/// `wasi:filesystem/types.error-code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "the type has cases that a view never answers with")]
pub(super) enum ErrorCode {
    #[component(name = "access")]
    Access,
    #[component(name = "would-block")]
    WouldBlock,
    #[component(name = "already")]
    Already,
    #[component(name = "bad-descriptor")]
    BadDescriptor,
    #[component(name = "busy")]
    Busy,
    #[component(name = "deadlock")]
    Deadlock,
    #[component(name = "quota")]
    Quota,
    #[component(name = "exist")]
    Exist,
    #[component(name = "file-too-large")]
    FileTooLarge,
    #[component(name = "illegal-byte-sequence")]
    IllegalByteSequence,
    #[component(name = "in-progress")]
    InProgress,
    #[component(name = "interrupted")]
    Interrupted,
    #[component(name = "invalid")]
    Invalid,
    #[component(name = "io")]
    Io,
    #[component(name = "is-directory")]
    IsDirectory,
    #[component(name = "loop")]
    Loop,
    #[component(name = "too-many-links")]
    TooManyLinks,
    #[component(name = "message-size")]
    MessageSize,
    #[component(name = "name-too-long")]
    NameTooLong,
    #[component(name = "no-device")]
    NoDevice,
    #[component(name = "no-entry")]
    NoEntry,
    #[component(name = "no-lock")]
    NoLock,
    #[component(name = "insufficient-memory")]
    InsufficientMemory,
    #[component(name = "insufficient-space")]
    InsufficientSpace,
    #[component(name = "not-directory")]
    NotDirectory,
    #[component(name = "not-empty")]
    NotEmpty,
    #[component(name = "not-recoverable")]
    NotRecoverable,
    #[component(name = "unsupported")]
    Unsupported,
    #[component(name = "no-tty")]
    NoTty,
    #[component(name = "no-such-device")]
    NoSuchDevice,
    #[component(name = "overflow")]
    Overflow,
    #[component(name = "not-permitted")]
    NotPermitted,
    #[component(name = "pipe")]
    Pipe,
    #[component(name = "read-only")]
    ReadOnly,
    #[component(name = "invalid-seek")]
    InvalidSeek,
    #[component(name = "text-file-busy")]
    TextFileBusy,
    #[component(name = "cross-device")]
    CrossDevice,
}
