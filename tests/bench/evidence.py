"""Runs that are answered by a record: what they cost, and whether the answer is right, beside programs that cache answers."""

import json
import os
import signal
import subprocess
import time

from common import PROBITY, ROOT, config, ratio, repository, tree, turns

NODE = ROOT / "target/bench/node/node_modules"
JUST = ROOT / "target/bench/peers/bin/just"
# Every program runs this, and so it tells whether it ran, and judges by what it is given.
CHECK = """echo run >> "$BENCH_OUT/ran"
if [ -e "$BENCH_OUT/hold" ]; then
    echo > "$BENCH_OUT/started"
    while [ ! -e "$BENCH_OUT/go" ]; do sleep 0.02; done
fi
[ "$FLAG" != bad ] && [ "$(cat d0000/subject)" = good ] && judge
"""
VARIABLES = ["FLAG", "BENCH_OUT"]


def programs():
    """The call of each program that could be installed, by name and version."""
    found = {"probity": f"{PROBITY} verify"}
    for name, pattern, call in (
        ("turbo", "@turbo/linux-*/bin/turbo", "run check --output-logs=none"),
        ("moon", "@moonrepo/core-*/moon", "run root:check"),
    ):
        if program := next(NODE.glob(pattern), None):
            version = json.loads(next(NODE.glob({"turbo": "turbo", "moon": "@moonrepo/cli"}[name] + "/package.json")).read_text())
            found[f"{name} {version['version']}"] = f"{program} {call}"
    if JUST.exists():
        version = subprocess.run([JUST, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        found[f"just {version}"] = f"{JUST} check"
    return found


def project(folder, files, environment):
    """The same check for each program, about all files."""
    folder.mkdir(parents=True)
    tree(folder, files)
    (folder / "d0000/subject").write_text("good\n")
    (folder / "check").write_text(CHECK)
    passed = json.dumps(VARIABLES)
    config(folder, f'[checks.check]\ncommand = ["judge", "sh", "./check"]\npass-env = {passed}\n')
    names = {"name": "bench", "version": "1.0.0", "packageManager": "npm@10.0.0", "scripts": {"check": "judge sh ./check"}}
    (folder / "package.json").write_text(json.dumps(names))
    (folder / "turbo.json").write_text(json.dumps({"tasks": {"check": {"passThroughEnv": ["BENCH_OUT"], "env": ["FLAG"]}}}))
    (folder / ".moon").mkdir()
    (folder / ".moon/workspace.yml").write_text('projects:\n  root: "."\n')
    inputs = ["d*/**/*", "check", "$FLAG"]
    (folder / "moon.yml").write_text(f'tasks:\n  check:\n    command: "judge sh ./check"\n    inputs: {json.dumps(inputs)}\n')
    (folder / "justfile").write_text(
        'set unstable\n\n[cache(inputs = "d0000/subject", extra = env("FLAG", ""))]\n[script("sh")]\ncheck:\n'
        "  judge sh ./check\n"
    )
    (folder / ".gitignore").write_text(".turbo\n.moon/cache\nnode_modules\n.justcache\n")
    out = folder.parent / f"{folder.name}-out"
    (out / "bin").mkdir(parents=True)
    judge(out, "exit 0")
    repository(folder, environment)
    time.sleep(2.5)
    path = f"{out}/bin:{environment['PATH']}"
    return out, environment | {
        "PATH": path, "BENCH_OUT": str(out), "FLAG": "good", "TURBO_TELEMETRY_DISABLED": "1", "MOON_TELEMETRY": "false"
    }


def judge(out, verdict):
    """The tool of the check: it runs what it is given, and says this where it is given nothing."""
    program = out / "bin/judge"
    program.unlink(missing_ok=True)
    program.write_text(f'#!/bin/sh\n[ $# = 0 ] || exec "$@"\n{verdict}\n')
    program.chmod(0o755)


def evidence(table, place, environment, _peers):
    """Both tables, and how the records grow."""
    table.section(
        "A run that is answered by a record",
        ["files", "program", "its time", "`git status`", "ratio", "aim: 1.5 or less"],
        "Nothing has changed since the last run. Probity looks at every file's times, asks git for the names, and holds the "
        "record's seal and its logs against what is there; `just` takes no list, "
        "and is given the one file that the check reads.",
    )
    for files in (1000, 10000):
        out, around = project(place / f"evidence-{files}", files, environment)
        calls = programs() | {"git status": "git status --porcelain"}
        for call in calls.values():
            subprocess.run(call.split(), cwd=place / f"evidence-{files}", env=around, check=True, capture_output=True)
        before = (out / "ran").read_text().count("run")
        times = turns(calls, place / f"evidence-{files}", around)
        if (out / "ran").read_text().count("run") != before:
            raise SystemExit("error: a program ran the check again, so its time is not that of an answer from its cache")
        floor = times.pop("git status")
        for name, taken in times.items():
            aim = ("met" if taken <= 1.5 * floor else "not met") if name == "probity" else ""
            table.row(f"{files:,}", name, taken, floor, ratio(taken, floor), aim)
    table.section(
        "Whether the answer is right",
        ["what happens between two runs", *programs()],
        "The second run is to be red in the first three rows and to run the check in the last one. Everything the check "
        "rests on is declared in each program's own way, as far as it has one: the variable, the files. In the first row a "
        "file is mended while the check runs and broken again afterwards.",
    )
    for what, case in CASES.items():
        cells = []
        for number, (name, call) in enumerate(programs().items()):
            folder = place / f"case-{len(what)}-{number}"
            out, around = project(folder, 20, environment)
            cells.append(case(folder, out, around, call.split()))
        table.row(what, *cells)
    table.section("Growth of the records", ["after", "`state.db` with its journal", "logs"])
    folder = place / "growth"
    folder.mkdir()
    tree(folder, 10)
    config(folder, '[verify]\ncommands = [["/bin/true"]]\n')
    repository(folder, environment)
    for count in range(1, 1001):
        subprocess.run([PROBITY, "verify", "--fresh"], cwd=folder, env=environment, check=True, capture_output=True)
        if count in (100, 1000):
            state = folder / ".git/probity"
            size = sum(file.stat().st_size for file in state.glob("state.db*"))
            logs = sum(file.stat().st_size for file in state.glob("logs/*/*"))
            table.row(f"{count} runs", f"{size / 1024:.0f} KiB", f"{logs / 1024:.0f} KiB")


def run(call, folder, around):
    """Whether a run is green."""
    return subprocess.run(call, cwd=folder, env=around, capture_output=True).returncode == 0


def red(green):
    """What a cell says of a run that has to be red."""
    return "stale green" if green else "right"


def started(call, folder, out, around):
    """A run whose check has started and waits."""
    (out / "hold").touch()
    child = subprocess.Popen(call, cwd=folder, env=around, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.time() + 20
    while not (out / "started").exists() and time.time() < until:
        time.sleep(0.02)
    (out / "hold").unlink()
    return child


def edited(folder, out, around, call):
    """A file is good only while the check looks at it."""
    subject = folder / "d0000/subject"
    subject.write_text("bad\n")
    subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qam", "bad"], cwd=folder, env=around, check=True)
    child = started(call, folder, out, around)
    subject.write_text("good\n")
    (out / "go").touch()
    child.wait()
    subject.write_text("bad\n")
    return red(run(call, folder, around))


def flipped(folder, _out, around, call):
    """A variable that the check looks at."""
    if not run(call, folder, around):
        return "did not pass"
    return red(run(call, folder, around | {"FLAG": "bad"}))


def replaced(folder, out, around, call):
    """The program that the check is started with."""
    if not run(call, folder, around):
        return "did not pass"
    judge(out, "exit 1")
    return red(run(call, folder, around))


def killed(folder, out, around, call):
    """SIGKILL to the program while the check runs."""
    child = started(call, folder, out, around)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (out / "go").touch()
    time.sleep(0.5)
    before = (out / "ran").read_text().count("run")
    run(call, folder, around)
    return "right" if (out / "ran").read_text().count("run") > before else "not run"


CASES = {
    "a file is mended during the run, and broken again": edited,
    "a variable is flipped": flipped,
    "the check's program is another one": replaced,
    "the program is killed in the middle": killed,
}
