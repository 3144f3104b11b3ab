"""Probity beside its peers: which there are, how each is configured for the same checks, and what these cost."""

import json
import re
import shlex
import subprocess
import sys
import time

from common import PROBITY, ROOT, config, ratio, repository, tree, turns, turns_in

# Peers as tests/bench/run installs them, and how each runs all of its checks on all files.
PEERS = ROOT / "target/bench/peers"
RUN_ALL = {
    "prek": "run --all-files",
    "pre-commit": "run --all-files",
    "lefthook": "run pre-commit --all-files --force",
}
# Those that cannot be had as a prebuilt program from a package registry.
NOT_HAD = ["hk"]
SIDE_BY_SIDE = 10
OUTPUT = 20_000_000


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


def no_ops(folder, count):
    """Configures the same checks for all: so many that do nothing, one after the other."""
    others(folder, [["/bin/true"]] * count)
    config(folder, "[verify]\ncommands = [" + ", ".join(['["/bin/true"]'] * count) + "]\n")


def configure(folder, commands, parallel=False, timeout=None):
    """Configures the same commands for all. Where they may run side by side, all of them may; a timeout is that of
    each command, for those that have one."""
    others(folder, commands, parallel, timeout)
    body = ""
    for number, command in enumerate(commands):
        body += f"[checks.check-{number}]\ncommand = {json.dumps(command)}\n"
        body += "parallel = true\n" if parallel else ""
        body += f'timeout = "{timeout}"\n' if timeout else ""
    config(folder, (f"[verify]\njobs = {len(commands)}\n" if parallel else "") + body)


def others(folder, commands, parallel=False, timeout=None):
    """Configures commands for the peers."""
    hooks, jobs = [], {}
    for number, command in enumerate(commands):
        name = f"check-{number}"
        hook = {"id": name, "name": name, "language": "system", "entry": shlex.join(command)}
        hooks.append(hook | {"pass_filenames": False, "always_run": True} | ({"priority": 0} if parallel else {}))
        jobs[name] = {"run": shlex.join(command)} | ({"timeout": timeout} if timeout else {})
    # What is JSON is YAML too.
    (folder / ".pre-commit-config.yaml").write_text(json.dumps({"repos": [{"repo": "local", "hooks": hooks}]}))
    (folder / "lefthook.yml").write_text(json.dumps({"pre-commit": {"parallel": parallel, "commands": jobs}}))


def calls(peers):
    """How Probity and each peer run everything; Probity whatever is recorded."""
    return {"probity": f"{PROBITY} verify --fresh"} | {name: f"{program} {RUN_ALL[name]}" for name, (program, _) in peers.items()}


def committed(folder, environment):
    """Commits all, and waits: what was written a moment ago could be written again without a trace, and is not
    remembered."""
    repository(folder, environment)
    time.sleep(2.5)


def side_by_side(table, what, times, peers):
    """A row for each peer, from one round of turns."""
    ours = times["probity"]
    for name in RUN_ALL:
        if name in peers:
            aim = "met" if ours < times[name] else "not met"
            table.row(what, ours, f"{name} {peers[name][1]}", times[name], ratio(ours, times[name]), aim)
        else:
            table.row(what, ours, name, "could not be installed", "", "not measured")


def beside(table, place, environment, peers):
    """Probity and its peers at other work than checks that do nothing."""
    table.section(
        "Other work, side by side with peers",
        ["what", "`probity verify`", "against", "its time", "ratio", "aim: ahead"],
        "The same repository of 1,000 files with everything committed; the programs take turns. Side by side is, for "
        f"Probity, `parallel = true` and `jobs = {SIDE_BY_SIDE}`; for prek one `priority` for all hooks and "
        f"`PREK_CONCURRENT_HOOKS={SIDE_BY_SIDE}`; for lefthook `parallel: true`; pre-commit has nothing for it, and runs "
        "one hook after the other. Of the output Probity keeps everything, lefthook shows it, and prek and pre-commit show "
        "none of a hook that passes. The last rows are the time of ten checks that do nothing less that of one, divided "
        "by nine, each program's own. " + not_had(),
    )
    environment = environment | {"PREK_CONCURRENT_HOOKS": str(SIDE_BY_SIDE)}
    programs = calls(peers)
    script = f"yes 'a line of output, as a test prints it when it passes' | head -c {OUTPUT}"
    floor = {"floor": f"sh -c \"{script} > '{place}/output'\""}
    work = {
        "ten checks of 200 ms side by side": ([["sleep", "0.2"]] * SIDE_BY_SIDE, True, {"floor": "sleep 0.2"}),
        "one check with 20 MB of output": ([["sh", "-c", script]], False, floor),
    }
    for number, (what, (commands, parallel, floor)) in enumerate(work.items()):
        folder = place / f"beside-{number}"
        tree(folder, 1000)
        configure(folder, commands, parallel)
        committed(folder, environment)
        times = turns(programs | floor, folder, environment)
        alone = "`sleep 0.2`" if parallel else "the same into a file"
        table.row(what, times["probity"], alone, times["floor"], ratio(times["probity"], times["floor"]), "")
        side_by_side(table, what, times, peers)
    side_by_side(table, "a further check that does nothing", further(place, environment, programs), peers)


def further(place, environment, programs):
    """What each further check costs that does nothing, for each program."""
    folders = {count: place / f"further-{count}" for count in (1, 10)}
    for count, folder in folders.items():
        tree(folder, 1000)
        no_ops(folder, count)
        committed(folder, environment)
    one, ten = turns_in(programs, folders.values(), environment)
    return {name: (ten[name] - one[name]) / 9 for name in programs}


def not_had():
    """What the page says of peers that cannot be had."""
    return f"Not measured, since no package registry has it as a prebuilt program: {', '.join(NOT_HAD)}."
