"""Probity beside its peers: which there are, how each is configured for the same checks, and what these cost."""

import json
import re
import shlex
import subprocess
import sys
import time

from common import PROBITY, ROOT, config, ratio, repository

# Peers as tests/bench/run installs them, and how each runs all of its checks on all files.
PEERS = ROOT / "target/bench/peers"
RUN_ALL = {
    "prek": "run --all-files",
    "pre-commit": "run --all-files",
    "lefthook": "run pre-commit --all-files --force",
}


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
    """How Probity and each peer run everything."""
    return {"probity": f"{PROBITY} verify"} | {name: f"{program} {RUN_ALL[name]}" for name, (program, _) in peers.items()}


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
