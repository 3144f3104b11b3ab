"""Measures Probity against peers and floors in the same run, and writes docs/benchmarks.md.

Every row is a ratio of medians taken by hyperfine, one after the other or in turns on the same machine, so that a slow
machine is slow for both sides.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Another build can be measured; the page then says so.
PROBITY = Path(os.environ.get("PROBITY", ROOT / "target/release/probity"))
NATIVE = ROOT / "checks/target/native/examples/native"
PACK = ROOT / "checks/target/packs/hygiene.wasm"
WALK = ROOT / "target/bench/walk.wasm"
NATIVE_WALK = ROOT / "checks/target/native/examples/walk"
# Peers as tests/bench/run installs them, and how each runs all of its checks on all files.
PEERS = ROOT / "target/bench/peers"
RUN_ALL = {
    "prek": "run --all-files",
    "pre-commit": "run --all-files",
    "lefthook": "run pre-commit --all-files --force",
}
CHECKS = ["conflict-markers", "trailing-whitespace", "final-newline", "large-files"]
RUNS = os.environ.get("RUNS", "15")


def median(command, folder, environment, prepare=None, ignore_failure=False):
    """The median of a command, in milliseconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as export:
        call = ["hyperfine", "-N", "--style", "none", "--warmup", "2", "--runs", RUNS, "--export-json", export.name]
        if prepare:
            call += ["--prepare", prepare]
        if ignore_failure:
            call += ["--ignore-failure"]
        call.append(command)
        subprocess.run(call, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        return json.load(open(export.name))["results"][0]["median"] * 1000


def turns(commands, folder, environment):
    """The median of each of several commands, in milliseconds. They take turns, so that what slows the machine for a
    while slows all of them; the first turn of each does not count."""
    times = {name: [] for name in commands}
    for _ in range(1 + int(RUNS)):
        with tempfile.NamedTemporaryFile(suffix=".json") as export:
            call = ["hyperfine", "-N", "--style", "none", "--runs", "1", "--export-json", export.name]
            subprocess.run(call + list(commands.values()), cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
            for name, result in zip(commands, json.load(open(export.name))["results"]):
                times[name].append(result["median"] * 1000)
    return {name: middle(taken[1:]) for name, taken in times.items()}


def tree(folder, files):
    """A tree of source-like files of about 2 kB, twenty to a folder."""
    line = "    let value = compute(input, &options)?; // as it was before\n"
    for number in range(files):
        path = folder / f"d{number // 20:04}" / f"f{number:05}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// file {number}\n" + line * 32)


def repository(folder, environment):
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-q", "-m", "all"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


def config(folder, body):
    (folder / "probity.toml").write_text(body)


def logic(check):
    return (
        '[packs.hygiene]\nsource = "file:hygiene.wasm"\nallow = ["tree:**", "tree:!hygiene.wasm"]\n\n'
        f'[checks.{check}]\nuse = "hygiene/{check}"\nfiles = ["**/*.rs"]\n'
    )


def no_ops(folder, count):
    """Configures the same checks for Probity and its peers: so many that do nothing, one after the other."""
    config(folder, "[verify]\ncommands = [" + ", ".join(['["/bin/true"]'] * count) + "]\n")
    names = [f"check-{number}" for number in range(count)]
    hook = {"language": "system", "entry": "/bin/true", "pass_filenames": False, "always_run": True}
    hooks = [{"id": name, "name": name} | hook for name in names]
    lefthook = {"parallel": False, "commands": {name: {"run": "/bin/true"} for name in names}}
    # What is JSON is YAML too.
    (folder / ".pre-commit-config.yaml").write_text(json.dumps({"repos": [{"repo": "local", "hooks": hooks}]}))
    (folder / "lefthook.yml").write_text(json.dumps({"pre-commit": lefthook}))


def installed(environment):
    """The program and the version of each peer that tests/bench/run could install."""
    found = {}
    for name in RUN_ALL:
        program = PEERS / "bin" / name
        if name == "lefthook":
            # The program itself: what is in `bin` is a script that starts it.
            program = next(PEERS.glob("lib/python*/site-packages/lefthook/bin/*/lefthook"), program)
        try:
            run = subprocess.run([program, "--version"], env=environment, capture_output=True, check=True, text=True)
            found[name] = (program, re.search(r"[0-9]+(\.[0-9]+)+", run.stdout)[0])
        except (OSError, subprocess.CalledProcessError):
            print(f"note: {name} does not run, and is left out", file=sys.stderr)
    return found


class Table:
    def __init__(self):
        self.lines = []

    def section(self, title, head, note=None):
        self.lines += ["", f"## {title}", ""]
        if note:
            self.lines += [note, ""]
        self.lines += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]

    def row(self, *cells):
        cells = [f"{cell:.1f} ms" if isinstance(cell, float) else str(cell) for cell in cells]
        self.lines.append("| " + " | ".join(cells) + " |")
        print(" | ".join(cells), file=sys.stderr)


def ratio(a, b):
    return f"{a / b:.2f}"


def main():
    table = Table()
    with tempfile.TemporaryDirectory(prefix="probity-bench-") as place:
        place = Path(place)
        environment = {"PATH": os.environ["PATH"], "HOME": str(place / "home"), "LC_ALL": "C.UTF-8"}
        (place / "home").mkdir()
        peers = installed(environment)
        start(table, place, environment, peers)
        commands(table, place, environment, peers)
        sandbox(table, place, environment)
        view(table, place, environment)
        snapshot(table, place, environment)
        cache(table, place, environment)
    head = [
        "# Benchmarks",
        "",
        "Made by `make bench`, which writes this page. Medians by hyperfine, all in one run on one machine with "
        f"{os.cpu_count()} cores; what counts are the ratios.",
    ]
    if "PROBITY" in os.environ:
        head[-1] += f" Measured with another build than the released one: `{PROBITY.parent.name}`."
    (ROOT / "docs/benchmarks.md").write_text("\n".join(head + table.lines) + "\n")


def start(table, place, environment, peers):
    table.section("Start", ["what", "time", "against", "its time", "ratio", "aim: ahead"])
    calls = {"probity": f"{PROBITY} --version", "floor": "true"}
    calls |= {name: f"{program} --version" for name, (program, _) in peers.items()}
    times = turns(calls, place, environment)
    ours, floor = times["probity"], times["floor"]
    table.row("`probity --version`", ours, "`true`", floor, ratio(ours, floor), "")
    side_by_side(table, "`probity --version`", times, peers)


def side_by_side(table, what, times, peers):
    """A row for each peer, from one round of turns."""
    ours = times["probity"]
    for name in RUN_ALL:
        if name in peers:
            aim = "met" if ours < times[name] else "not met"
            table.row(what, ours, f"{name} {peers[name][1]}", times[name], ratio(ours, times[name]), aim)
        else:
            table.row(what, ours, name, "could not be installed", "", "not measured")


def commands(table, place, environment, peers):
    calls = ", ".join(f"`{name} {arguments}`" for name, arguments in RUN_ALL.items())
    table.section(
        "Command checks that do nothing, side by side",
        ["what", "`probity verify`", "against", "its time", "ratio", "aim: ahead"],
        "The same repository with everything committed, and `/bin/true` for every check. The programs take turns, and each "
        f"runs its checks one after the other, as it does by default: {calls}.",
    )
    floors = []
    for files in (10, 1000, 10000):
        ours, floor = {}, {}
        for count, checks in ((1, "one check"), (10, "ten checks")):
            folder = place / f"commands-{files}-{count}"
            folder.mkdir()
            tree(folder, files)
            no_ops(folder, count)
            repository(folder, environment)
            # What was written a moment ago could be written again without a trace, and is not remembered.
            time.sleep(2.5)
            loop = place / f"loop-{count}.sh"
            loop.write_text("for i in " + " ".join(map(str, range(count))) + "; do /bin/true; done\n")
            calls = {"probity": f"{PROBITY} verify", "floor": f"sh {loop}"}
            if files >= 1000:
                calls |= {name: f"{program} {RUN_ALL[name]}" for name, (program, _) in peers.items()}
            times = turns(calls, folder, environment)
            ours[count], floor[count] = times["probity"], times["floor"]
            if files >= 1000:
                side_by_side(table, f"{checks}, {files:,} files", times, peers)
        each = (ours[10] - floor[10]) / 10
        further = (ours[10] - ours[1] - (floor[10] - floor[1])) / 9
        floors.append((f"{files:,} files", ours[10], floor[10], each, "met" if each <= 3 else "not met", further))
    table.section(
        "Ten command checks that do nothing, above the floor",
        [
            "tree",
            "`probity verify`",
            "a shell loop of the same ten",
            "for each check above the floor",
            "aim: 3 ms or less",
            "for each after the first, above the floor",
        ],
    )
    for row in floors:
        table.row(*row)


def sandbox(table, place, environment):
    table.section(
        "The hygiene pack in the sandbox, against the same code as a native program",
        ["check", "files", "`probity verify`", "native", "ratio", "the check alone", "ratio", "a file and core"],
    )
    for files in (1000, 10000):
        folder = place / f"sandbox-{files}"
        folder.mkdir()
        tree(folder, files)
        shutil.copy(PACK, folder / "hygiene.wasm")
        for check in CHECKS:
            config(folder, logic(check))
            ours = median(f"{PROBITY} verify", folder, environment)
            native = median(f"{NATIVE} {check} {folder}", folder, environment, ignore_failure=True)
            alone = duration(folder, check, environment)
            each = f"{alone * 1000 * os.cpu_count() / files:.0f} µs"
            table.row(check, f"{files:,}", ours, native, ratio(ours, native), alone, ratio(alone, native), each)


def duration(folder, check, environment):
    """What the record says of the check itself: the median of five runs."""
    times = []
    for _ in range(5):
        run = subprocess.run([PROBITY, "verify", "--json"], cwd=folder, env=environment, capture_output=True, check=True)
        rows = json.loads(run.stdout)["record"]["rows"]
        times += [row["duration_ms"] for row in rows if row["id"] == check]
    return float(sorted(times)[len(times) // 2])


def events(folder, environment, event, runs=int(RUNS)):
    """The times that Probity's own log says of an event, in milliseconds, one for each run."""
    units = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}
    times = []
    for _ in range(runs):
        run = subprocess.run(
            [PROBITY, "verify"], cwd=folder, env=environment | {"PROBITY_LOG": "debug"}, capture_output=True, check=True
        )
        found = re.search(event + r".* elapsed=([0-9.]+)(ns|µs|ms|s)\b", run.stderr.decode())
        times.append(float(found[1]) * units[found[2]])
    return times


def middle(times):
    return sorted(times)[len(times) // 2]


def view(table, place, environment):
    table.section(
        "The view of files: walking and reading 10,000 files, once for the tree",
        ["what", "time", "against", "its time", "ratio"],
    )
    folder = place / "view"
    folder.mkdir()
    tree(folder, 10000)
    shutil.copy(WALK, folder / "walk.wasm")
    config(
        folder,
        '[packs.walk]\nsource = "file:walk.wasm"\nallow = ["tree:**", "tree:!walk.wasm"]\n\n'
        '[checks.walk]\nuse = "walk/walk"\n',
    )
    ours = duration(folder, "walk", environment)
    native = median(f"{NATIVE_WALK} {folder}", folder, environment)
    table.row("the check alone, with the start of its worker", ours, "the same code, native", native, ratio(ours, native))
    floor = median("true", folder, environment)
    ready = middle(events(folder, environment, "worker ready"))
    table.row("a worker with compiled code at hand, until guests can run", ready, "`true`", floor, ratio(ready, floor))


def snapshot(table, place, environment):
    table.section("The snapshot of 10,000 files", ["what", "time", "against", "its time", "ratio"])
    folder = place / "snapshot"
    folder.mkdir()
    tree(folder, 10000)
    config(folder, '[verify]\ncommands = [["/bin/true"]]\n')
    repository(folder, environment)
    # What was written a moment ago could be written again without a trace, and is not remembered.
    time.sleep(2.5)
    status = "git status --porcelain"
    subprocess.run([PROBITY, "verify"], cwd=folder, env=environment, check=True, capture_output=True)
    ours = middle(events(folder, environment, "remembered=true"))
    floor = median(status, folder, environment)
    table.row("nothing has changed", ours, f"`{status}`", floor, ratio(ours, floor))
    fresh = []
    for _ in range(int(RUNS)):
        shutil.rmtree(folder / ".git/probity")
        fresh += events(folder, environment, "remembered=false", 1)
    hashing = place / "hash.sh"
    hashing.write_text("git ls-files | git hash-object --stdin-paths > /dev/null\n")
    floor = median(f"sh {hashing}", folder, environment)
    table.row("from nothing", middle(fresh), "`git hash-object` of all files", floor, ratio(middle(fresh), floor))


def cache(table, place, environment):
    table.section("Compiled code", ["what", "time", "ratio"])
    folder = place / "cache"
    folder.mkdir()
    tree(folder, 10)
    shutil.copy(PACK, folder / "hygiene.wasm")
    config(folder, logic("final-newline"))
    cold = median(f"{PROBITY} verify", folder, environment, prepare=f"rm -rf {place}/home/.cache")
    warm = median(f"{PROBITY} verify", folder, environment)
    table.row("first run, the pack is compiled", cold, ratio(cold, warm))
    table.row("second run, compiled code at hand", warm, "1.00")


if __name__ == "__main__":
    main()
