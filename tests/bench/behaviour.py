"""What is left of a check when the program that runs it is ended: by a signal, or by its own timeout."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

from common import RUNS, repository
from peers import RUN_ALL, calls, configure, not_had

# A check with four others: a child, one in a session of its own, a daemon with two forks, and what it waits for. All of
# them ignore what the first line ignores, and each sleeps for a minute. What it is called with marks them all.
NASTY = """trap '' TERM INT
export BENCH_MARK="$1"
BENCH_ROLE=child sleep 60 &
BENCH_ROLE=session setsid sleep 60 &
setsid sh -c 'BENCH_ROLE=daemon sleep 60 < /dev/null > /dev/null 2>&1 &'
BENCH_ROLE=waited sleep 60
"""
ROLES = {"child", "session", "daemon", "waited"}
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}
# The programs that have a timeout for a check.
HAVE_TIMEOUT = {"probity", "lefthook"}
TIMEOUT = "2s"
TRIES = min(3, int(RUNS))
# How long is waited for a program to end, in seconds.
PATIENCE = 10


def behaviour(table, place, environment, peers):
    """The table: a row for each program and each way in which it is ended."""
    table.section(
        "What is left when it is ended",
        ["ended by", "program", "left after 1 s", "left after 5 s", "exit", "ended after", "aim: nothing left, never green"],
        "A shell check that ignores TERM and INT has started a child, a child in a session of its own and a daemon with two "
        "forks, and waits for a fourth: five processes that ignore these signals and go on for a minute. The signal goes to "
        "the main process of the program alone, while the check runs; a timeout is "
        f"{TIMEOUT}, of the check. Counted are all processes of the check and of the program itself, one second after the "
        "program has ended, and five seconds after; then they are killed. The time is from the signal or the start of the check "
        f"to the end of the program, which is waited for {PATIENCE} s at most; of one that goes on is counted what is there then, "
        "itself too, and it is killed. The worst of these tries. At an end that is asked for, Probity leaves checks 2 s before "
        "it kills them. " + not_had(),
        TRIES,
    )
    for way in (*SIGNALS, f"timeout of {TIMEOUT}"):
        for name, call in calls(peers).items():
            label = "Probity" if name == "probity" else f"{name} {peers[name][1]}"
            if way not in SIGNALS and name not in HAVE_TIMEOUT:
                table.row(way, label, "has none", "", "", "", "")
                continue
            tries = [attempt(name, call, place, environment, way) for _ in range(TRIES)]
            table.row(way, label, *worst(tries), verdict(tries) if name == "probity" else "")
        for name in [name for name in RUN_ALL if name not in peers]:
            table.row(way, name, "could not be installed", "", "", "", "")


def attempt(name, call, place, environment, way):
    """One try: runs the check, ends the program, and counts."""
    attempt.number += 1
    mark = f"bench-{os.getpid()}-{attempt.number}"
    folder = place / mark.replace("bench", "behaviour")
    folder.mkdir()
    script = place / "nasty.sh"
    script.write_text(NASTY)
    configure(folder, [["sh", str(script), mark]], timeout=None if way in SIGNALS else TIMEOUT)
    repository(folder, environment)
    # Outside of the tree: what changes there while a check runs makes a run red by itself.
    output = place / f"{mark}.output"
    with open(output, "w") as sink:
        program = subprocess.Popen(
            shlex.split(call),
            cwd=folder,
            # What it starts for itself later on is known by this.
            env=environment | {"BENCH_MARK": mark},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            preexec_fn=hear,
        )
    left = Left(mark)
    try:
        return ended(program, left, way, output)
    finally:
        left.clean(program)


attempt.number = 0


def hear():
    """Ignores no signal, whatever the shell that the bench runs in has ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def ended(program, left, way, output):
    """Ends a program and says what became of it: how many processes are left after one second and after five, its exit
    code (none if it goes on), and how long it took."""
    begun = ready(program, left, output)
    patience = PATIENCE
    if way in SIGNALS:
        time.sleep(0.3)
        begun = time.monotonic()
        program.send_signal(SIGNALS[way])
    else:
        patience += float(TIMEOUT[:-1])
    try:
        code = program.wait(patience)
    except subprocess.TimeoutExpired:
        return len(left.now()), len(left.now()), None, patience
    took = time.monotonic() - begun
    time.sleep(1)
    soon = len(left.now())
    if soon:
        time.sleep(4)
    return soon, len(left.now()), code, took


def ready(program, left, output):
    """Waits until the check has started everything, and says since when."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        environments = left.marked().values()
        if all(any(f"BENCH_ROLE={role}" in environment for environment in environments) for role in ROLES):
            left.begin(program.pid)
            return time.monotonic()
        if program.poll() is not None:
            break
        time.sleep(0.01)
    raise SystemExit(f"error: {program.args[0]} did not run its check: {output.read_text()}")


class Left:
    """The processes of one try that are there: those with its mark, whoever is their parent, and those that were below
    the program while the check ran, which are its own."""

    def __init__(self, mark):
        self.mark = mark
        self.below = set()

    def begin(self, program):
        """Takes note of the program and of what is below it."""
        parents = processes()
        found = {program}
        while more := {pid for pid, (_, parent) in parents.items() if parent in found} - found:
            found |= more
        self.below = {(pid, parents[pid][0]) for pid in found if pid in parents}

    def now(self):
        """The processes that are there."""
        there = {(pid, begun) for pid, (begun, _) in processes().items()}
        return {pid for pid, _ in self.below & there} | set(self.marked())

    def marked(self):
        """The processes with the mark among their arguments or in their environment, each with its environment. One that
        has ended and was not waited for has neither."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (folder / "cmdline").read_bytes().decode(errors="replace")
                environment = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if self.mark in arguments.replace(" ", "\0").split("\0") or f"BENCH_MARK={self.mark}" in environment:
                found[int(folder.name)] = environment
        return found

    def clean(self, program):
        """Kills all that is left."""
        until = time.monotonic() + PATIENCE
        while left := self.now():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until:
                raise SystemExit(f"error: these cannot be killed: {left}")
            program.poll()
            time.sleep(0.02)
        program.wait()


def processes():
    """When each process began that has not ended, and its parent."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # Behind the name, which may have anything in it.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            found[int(folder.name)] = (fields[19], int(fields[1]))
    return found


def worst(tries):
    """The cells of several tries."""
    codes = " or ".join(dict.fromkeys(exit_name(code) for _, _, code, _ in tries))
    took = max(took for _, _, _, took in tries)
    over = any(code is None for _, _, code, _ in tries)
    return max(soon for soon, *_ in tries), max(late for _, late, *_ in tries), codes, f"over {PATIENCE} s" if over else f"{took:.1f} s"


def exit_name(code):
    """How a program ended, as the page says it."""
    if code is None:
        return "goes on"
    return str(code) if code >= 0 else signal.Signals(-code).name


def verdict(tries):
    """Whether the aim is met: in every try it ended, not green, and nothing was left."""
    return "met" if all(soon == 0 and code not in (0, None) for soon, _, code, _ in tries) else "not met"
