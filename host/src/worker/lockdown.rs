//! The walls of a worker: what it can still do once a guest has broken out of the engine.
//!
//! On Linux: no file, socket or other process by Landlock, and about twenty system calls by seccomp; everything else
//! kills it. Elsewhere there are none, and that is said.

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

/// Locks up a process that runs guests. To be called when it has loaded everything and started its threads.
pub(super) fn worker() -> Walls {
    limits();
    Walls { landlock: landlock(), seccomp: seccomp() }
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

#[cfg(target_os = "linux")]
fn seccomp() -> bool {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        apply_filter_all_threads,
    };
    // Memory, the two pipes, signals that traps become, and the end. The pool asks `ioctl` of the page map it opened
    // before, and `mremap` is what a growing list of findings needs.
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
        libc::SYS_fcntl,
        libc::SYS_ioctl,
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
