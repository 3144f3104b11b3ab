//! `killer NUMBER PROGRAM WORD…`: runs a program and kills it, with SIGKILL, right before the call of that number by which
//! it would write, sync, make, rename, remove or lock something, counted over all its threads and not its children. Exit
//! code 99 if it came to that, else the program's own.
//!
//! By ptrace: so it is the program itself that is killed, with no place in it made for that.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main().unwrap_or(std::process::ExitCode::from(2))
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(2)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, ExitCode};

    /// What `struct ptrace_syscall_info` has at the entry of a call; the kernel fills in no more than is asked for.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        kind: u8,
        padding: [u8; 3],
        arch: u32,
        instruction: u64,
        stack: u64,
        number: u64,
        arguments: [u64; 6],
    }

    const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    const ENTRY: u8 = 1;

    /// Whether a call changes what others will find.
    fn writes(info: &Info) -> bool {
        let Ok(number) = i64::try_from(info.number) else { return false };
        #[cfg(target_arch = "x86_64")]
        if [libc::SYS_rename, libc::SYS_unlink, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_link].contains(&number) {
            return true;
        }
        #[cfg(target_arch = "x86_64")]
        if number == libc::SYS_open {
            return info.arguments[1] & libc::O_CREAT as u64 != 0;
        }
        if number == libc::SYS_openat {
            return info.arguments[2] & libc::O_CREAT as u64 != 0;
        }
        [
            libc::SYS_write,
            libc::SYS_pwrite64,
            libc::SYS_writev,
            libc::SYS_fsync,
            libc::SYS_fdatasync,
            libc::SYS_ftruncate,
            libc::SYS_fallocate,
            libc::SYS_renameat,
            libc::SYS_renameat2,
            libc::SYS_unlinkat,
            libc::SYS_mkdirat,
            libc::SYS_linkat,
            libc::SYS_flock,
        ]
        .contains(&number)
    }

    /// # Safety
    /// What `ptrace(2)` says of the request holds for the arguments.
    #[expect(unsafe_code, reason = "there is no safe way to trace a process")]
    unsafe fn ptrace(request: libc::c_uint, process: i32, size: usize, data: usize) -> i64 {
        // SAFETY: by the caller.
        unsafe { libc::ptrace(request as _, process, size, data) }
    }

    #[expect(unsafe_code, reason = "there is no safe way to trace a process")]
    pub(super) fn main() -> Option<ExitCode> {
        let mut words = std::env::args_os().skip(1);
        let number: u64 = words.next()?.to_str()?.parse().ok()?;
        let mut command = Command::new(words.next()?);
        command.args(words);
        // SAFETY: one call, which allocates nothing.
        unsafe {
            command.pre_exec(|| {
                ptrace(libc::PTRACE_TRACEME as _, 0, 0, 0);
                Ok(())
            });
        }
        let process = i32::try_from(command.spawn().ok()?.id()).ok()?;
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
        let (mut seen, mut set, mut killed) = (0, false, false);
        loop {
            let mut status = 0;
            // SAFETY: the status is there to be written to.
            let who = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
            if who < 0 {
                return None;
            }
            if !libc::WIFSTOPPED(status) {
                if who != process {
                    continue;
                }
                let code = if killed { 99 } else { libc::WEXITSTATUS(status) };
                return Some(ExitCode::from(u8::try_from(code).ok()?));
            }
            if !set {
                // SAFETY: the process is stopped, right after it became the program.
                unsafe { ptrace(libc::PTRACE_SETOPTIONS as _, process, 0, usize::try_from(options).ok()?) };
                set = true;
            }
            let mut signal = libc::WSTOPSIG(status);
            if signal == libc::SIGTRAP | 0x80 {
                let mut info = Info::default();
                // SAFETY: the process is stopped, and as many bytes are there to be written to as is said.
                unsafe { ptrace(GET_SYSCALL_INFO, who, size_of::<Info>(), (&raw mut info) as usize) };
                if info.kind == ENTRY && writes(&info) && !killed {
                    seen += 1;
                    if seen == number {
                        killed = true;
                        // SAFETY: it is a child that nobody waited for yet, so the number is still its own.
                        unsafe { libc::kill(process, libc::SIGKILL) };
                        continue;
                    }
                }
                signal = 0;
            } else if signal == libc::SIGTRAP || signal == libc::SIGSTOP {
                // The start of the program or of a thread of it: for us and not for it.
                signal = 0;
            }
            // SAFETY: the process is stopped; the signal is the one that it was to get.
            unsafe { ptrace(libc::PTRACE_SYSCALL as _, who, 0, usize::try_from(signal).ok()?) };
        }
    }
}
