"""Measures Probity against peers and floors, and writes docs/benchmarks.md: all of it, or the parts that `ONLY` names.

Every row is a ratio of medians, one after the other or in turns on the same machine, so that a slow machine is slow for
both sides.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import page
from behaviour import behaviour
from common import PROBITY, ROOT, RUNS, config, median, middle, ratio, tree, turns, turns_in
from evidence import evidence
from peers import RUN_ALL, beside, calls, committed, installed, no_ops, side_by_side

NATIVE = ROOT / "checks/target/native/examples/native"
PACK = ROOT / "checks/target/packs/hygiene.wasm"
WALK = ROOT / "target/bench/walk.wasm"
NATIVE_WALK = ROOT / "checks/target/native/examples/walk"
CHECKS = ["conflict-markers", "trailing-whitespace", "final-newline", "large-files"]


def logic(check):
    """Configures one check of the hygiene pack."""
    return (
        '[packs.hygiene]\nsource = "file:hygiene.wasm"\nallow = ["tree:**", "tree:!hygiene.wasm"]\n\n'
        f'[checks.{check}]\nuse = "hygiene/{check}"\nfiles = ["**/*.rs"]\n'
    )


def main():
    """Measures the parts that are asked for, and writes them into the page."""
    chosen = [name for name in os.environ.get("ONLY", "").split(",") if name] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        raise SystemExit(f"error: ONLY names no part of the bench: {', '.join(unknown)} (there are {', '.join(PARTS)})")
    measured = {}
    with tempfile.TemporaryDirectory(prefix="probity-bench-") as place:
        place = Path(place)
        environment = {"PATH": os.environ["PATH"], "HOME": str(place / "home"), "LC_ALL": "C.UTF-8"}
        (place / "home").mkdir()
        peers = installed(environment)
        for name, part in PARTS.items():
            if name in chosen:
                table = page.Table()
                part(table, place, environment, peers)
                measured[name] = table.lines
    page.write(ROOT / "docs/benchmarks.md", measured, PARTS)


def start(table, place, environment, peers):
    """What it takes to start at all."""
    table.section("Start", ["what", "time", "against", "its time", "ratio", "aim: ahead"])
    programs = {"probity": f"{PROBITY} --version", "floor": "true"}
    programs |= {name: f"{program} --version" for name, (program, _) in peers.items()}
    times = turns(programs, place, environment)
    ours, floor = times["probity"], times["floor"]
    table.row("`probity --version`", ours, "`true`", floor, ratio(ours, floor), "")
    side_by_side(table, "`probity --version`", times, peers)


def commands(table, place, environment, peers):
    """Command checks that do nothing: beside peers, and above a shell loop of the same."""
    how = ", ".join(f"`{name} {arguments}`" for name, arguments in RUN_ALL.items())
    table.section(
        "Command checks that do nothing, side by side",
        ["what", "`probity verify`", "against", "its time", "ratio", "aim: ahead"],
        "The same repository with everything committed, and `/bin/true` for every check. The programs take turns, and each "
        f"runs its checks one after the other, as it does by default: {how}.",
    )
    floors = []
    for files in (10, 1000, 10000):
        folders = {count: place / f"commands-{files}-{count}" for count in (1, 10)}
        for count, folder in folders.items():
            folder.mkdir()
            tree(folder, files)
            no_ops(folder, count)
            committed(folder, environment)
            # The same of a shell: its loop is part of the folder, so that both counts are the same call.
            (folder / ".git/loop").write_text("for i in " + " ".join(map(str, range(count))) + "; do /bin/true; done\n")
        programs = calls(peers if files >= 1000 else {}) | {"floor": "sh .git/loop"}
        times = dict(zip(folders, turns_in(programs, folders.values(), environment)))
        if files >= 1000:
            side_by_side(table, f"one check, {files:,} files", times[1], peers)
            side_by_side(table, f"ten checks, {files:,} files", times[10], peers)
        ours, floor = ({count: times[count][name] for count in times} for name in ("probity", "floor"))
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


def sandbox(table, place, environment, _peers):
    """Checks of a pack against the same code without a sandbox."""
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


def view(table, place, environment, _peers):
    """Reading a whole tree from inside the sandbox."""
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


def snapshot(table, place, environment, _peers):
    """Finding out what is in a tree."""
    table.section("The snapshot of 10,000 files", ["what", "time", "against", "its time", "ratio"])
    folder = place / "snapshot"
    folder.mkdir()
    tree(folder, 10000)
    config(folder, '[verify]\ncommands = [["/bin/true"]]\n')
    committed(folder, environment)
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


def cache(table, place, environment, _peers):
    """The first run of a pack against the next."""
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


# The parts of the page, in its order. `ONLY` names some of them.
PARTS = {
    "start": start,
    "commands": commands,
    "peers": beside,
    "behaviour": behaviour,
    "sandbox": sandbox,
    "view": view,
    "snapshot": snapshot,
    "evidence": evidence,
    "cache": cache,
}

if __name__ == "__main__":
    main()
