//! The walls of a worker: what it can still do once a guest has broken out of the engine.
//!
//! On Linux: no file, socket or other process by Landlock, and about twenty system calls by seccomp; everything else
//! kills it. Elsewhere there are none, and that is said. [`super::crossing`] tries each of them.

use serde::{Deserialize, Serialize};

/// Bytes of addresses for a compiler. Python's pack, the largest seen, takes a third of it.
const COMPILER_MEMORY: u64 = 6 << 30;

/// Seconds of processor time for a compiler. The same pack takes a tenth of it.
const COMPILER_SECONDS: u64 = 300;

/// Which walls stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    /// Landlock forbids files, sockets and signals to others.
    pub landlock: bool,
    /// seccomp leaves only what running a guest needs.
    pub seccomp: bool,
}

impl Walls {
    /// Every wall: what guests get, as far as the system has it.
    pub const ALL: Self = Self { landlock: true, seccomp: true };

    /// In words, for records and people: `landlock, seccomp`, or `none`.
    pub fn words(self) -> &'static str {
        match (self.landlock, self.seccomp) {
            (true, true) => "landlock, seccomp",
            (true, false) => "landlock",
            (false, true) => "seccomp",
            (false, false) => "none",
        }
    }
}

/// What a worker inherits of its parent's parents is not for guests. To be called first of all, while nothing is open but
/// the pipes.
pub(super) fn close_inherited() {
    #[cfg(target_os = "linux")]
    {
        const FIRST: u32 = 3;
        #[expect(unsafe_code, reason = "there is no safe way to close descriptors that nobody owns")]
        // SAFETY: this process has just been started and has opened nothing, so no value owns any of them.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, 0) };
        // The call is there wherever Landlock is. Elsewhere the first thousand are all that a shell gives.
        for descriptor in (FIRST.cast_signed()..1024).filter(|_| closed != 0) {
            #[expect(unsafe_code, reason = "as above")]
            // SAFETY: as above.
            unsafe {
                libc::close(descriptor);
            }
        }
    }
}

/// The first half of locking up a process that runs guests: to be called when it has loaded everything and before it
/// starts a thread, since Landlock holds the thread that asks for it and those that this one starts, and no others.
pub(super) fn first(wanted: Walls) -> Half {
    limits();
    Half { landlock: wanted.landlock && landlock(), wanted }
}

/// A process that is locked up by half.
#[derive(Debug)]
pub(super) struct Half {
    landlock: bool,
    wanted: Walls,
}

impl Half {
    /// The second half, which holds all threads: to be called when they have been started.
    pub(super) fn second(self) -> Walls {
        Walls { landlock: self.landlock, seccomp: self.wanted.seccomp && seccomp() }
    }
}

/// Why walls cannot stand on this system: each that is missing from `walls`, and what is in its way.
pub fn missing(walls: Walls) -> Vec<(&'static str, String)> {
    let mut missing = Vec::new();
    if !walls.landlock {
        missing.push(("landlock", why_no_landlock()));
    }
    if !walls.seccomp {
        missing.push(("seccomp", why_no_seccomp()));
    }
    missing
}

/// The version of Landlock that all of its wall needs: the first that also keeps signals in.
#[cfg(target_os = "linux")]
const LANDLOCK_VERSION: i64 = 6;

#[cfg(target_os = "linux")]
fn why_no_landlock() -> String {
    const ASK_VERSION: u32 = 1;
    #[expect(unsafe_code, reason = "the only way to ask for the version")]
    // SAFETY: with this flag the call takes no memory and makes nothing.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, ASK_VERSION)
    };
    if version >= LANDLOCK_VERSION {
        return "the kernel has it and did not enforce it".to_owned();
    }
    if version >= 0 {
        return format!(
            "the kernel has version {version} of it, and {LANDLOCK_VERSION} is needed: Linux 6.12 or later has that"
        );
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel does not have it: Linux 6.12 or later has all of it".to_owned(),
        Some(libc::EOPNOTSUPP) => "it is switched off: `landlock` is not among the kernel's `lsm=`".to_owned(),
        _ => format!("the kernel refuses it: {error}"),
    }
}

#[cfg(target_os = "linux")]
fn why_no_seccomp() -> String {
    const ASK_ACTION: u32 = 2;
    let action = libc::SECCOMP_RET_KILL_PROCESS;
    #[expect(unsafe_code, reason = "the only way to ask what the kernel can")]
    // SAFETY: the call reads four bytes at the address, which live until it returns.
    let known = unsafe { libc::syscall(libc::SYS_seccomp, ASK_ACTION, 0, &raw const action) };
    if known == 0 {
        return "the kernel has it and did not take the filter".to_owned();
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel does not have it, or a filter around this process forbids it".to_owned(),
        _ => format!("the kernel refuses it: {error}"),
    }
}

#[cfg(not(target_os = "linux"))]
fn why_no_landlock() -> String {
    "this system does not have it".to_owned()
}

#[cfg(not(target_os = "linux"))]
fn why_no_seccomp() -> String {
    "this system does not have it".to_owned()
}

/// Locks up a process that compiles: it still starts threads and makes code, but reaches no file and no socket.
pub(super) fn compiler() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    limits();
    // A small component can say that it consists of very many others, and no fuel counts what a compiler does.
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    let _ = setrlimit(Resource::As, limit(COMPILER_MEMORY));
    let _ = setrlimit(Resource::Cpu, limit(COMPILER_SECONDS));
    landlock();
}

/// No core dumps, which would write the subject's contents to disk, and nobody looks in. A limit on the size of files is
/// not among these: it would also hit the images of memory that the engine makes.
fn limits() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    // What cannot be lowered stays as it is; the walls do not rest on these.
    let _ = setrlimit(Resource::Core, none);
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(target_os = "linux")]
fn landlock() -> bool {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetStatus,
        Scope,
    };
    let locked = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V5)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    // An older kernel that knows a part of it is a wall with holes: what is missing is then not claimed.
    locked.is_ok_and(|status| status.ruleset == RulesetStatus::FullyEnforced)
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> bool {
    false
}

/// `PAGEMAP_SCAN` of the kernel's headers: `_IOWR('f', 16, struct pm_scan_arg)`.
#[cfg(target_os = "linux")]
const PAGEMAP_SCAN: u64 = 0xc060_6610;

#[cfg(target_os = "linux")]
fn seccomp() -> bool {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        apply_filter_all_threads,
    };
    // Memory, the two pipes, signals that traps become, and the end. `mremap` is what a growing list of findings needs.
    let free = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_close,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_sigaltstack,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_sched_yield,
        libc::SYS_memfd_create,
        libc::SYS_ppoll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        // Two threads can come to the end at once, when the pipe closes; the second one waits with this.
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let filter = || -> Result<BpfProgram, seccompiler::BackendError> {
        let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
        // No memory becomes code: what was compiled is mapped already.
        let no_code = || {
            let masked = SeccompCmpOp::MaskedEq(executable);
            SeccompRule::new(vec![SeccompCondition::new(2, SeccompCmpArgLen::Dword, masked, 0)?])
        };
        let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
            free.into_iter().map(|call| (call, Vec::new())).collect();
        // By its second argument `fcntl` would also have a pipe signal any process. What is left asks for flags, and
        // seals images of memory.
        let second = |value: u64| {
            SeccompRule::new(vec![SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
        };
        let harmless = [libc::F_GETFD, libc::F_GETFL, libc::F_GET_SEALS, libc::F_ADD_SEALS];
        let fcntl = harmless.map(|command| second(u64::from(command.unsigned_abs())));
        rules.insert(libc::SYS_fcntl, fcntl.into_iter().collect::<Result<_, _>>()?);
        // The pool asks its page map, which it opened before, which pages were written.
        rules.insert(libc::SYS_ioctl, vec![second(PAGEMAP_SCAN)?]);
        rules.insert(libc::SYS_mmap, vec![no_code()?]);
        rules.insert(libc::SYS_mprotect, vec![no_code()?]);
        let architecture = std::env::consts::ARCH.try_into()?;
        SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, architecture)?.try_into()
    };
    filter().is_ok_and(|program| apply_filter_all_threads(&program).is_ok())
}

#[cfg(not(target_os = "linux"))]
fn seccomp() -> bool {
    false
}
