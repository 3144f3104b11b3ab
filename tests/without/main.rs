//! `without landlock PROGRAM WORD…`, or `seccomp`, or `locks`: runs a program where the kernel says that it does not know
//! the call which makes that wall, or which locks files.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(wall), Some(program)) = (words.next(), words.next()) else { return ExitCode::from(2) };
    let rules: BTreeMap<i64, Vec<SeccompRule>> = match wall.to_str() {
        Some("landlock") => [(libc::SYS_landlock_create_ruleset, Vec::new())].into(),
        Some("locks") => [(libc::SYS_flock, Vec::new())].into(),
        Some("seccomp") => {
            let mode = SeccompCondition::new(
                0,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Eq,
                libc::PR_SET_SECCOMP.unsigned_abs().into(),
            );
            let Ok(rule) = mode.and_then(|mode| SeccompRule::new(vec![mode])) else { return ExitCode::from(2) };
            [(libc::SYS_seccomp, Vec::new()), (libc::SYS_prctl, vec![rule])].into()
        }
        _ => return ExitCode::from(2),
    };
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let Ok(architecture) = std::env::consts::ARCH.try_into() else { return ExitCode::from(2) };
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, unknown, architecture);
    let Ok(filter) = filter.and_then(BpfProgram::try_from) else { return ExitCode::from(2) };
    if seccompiler::apply_filter(&filter).is_err() {
        return ExitCode::from(2);
    }
    let _ = Command::new(program).args(words).exec();
    ExitCode::from(2)
}
