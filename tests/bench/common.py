"""What all parts of the bench use: where things are, how long commands take, and folders to run them in."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Another build can be measured; the page then says so.
PROBITY = Path(os.environ.get("PROBITY", ROOT / "target/release/probity")).resolve()
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
    return turns_in(commands, [folder], environment)[0]


def turns_in(commands, folders, environment):
    """The same in each of several folders, which take turns, too: the medians of each folder."""
    times = [{name: [] for name in commands} for _ in folders]
    for _ in range(1 + int(RUNS)):
        for folder, here in zip(folders, times):
            with tempfile.NamedTemporaryFile(suffix=".json") as export:
                call = ["hyperfine", "-N", "--style", "none", "--runs", "1", "--export-json", export.name]
                subprocess.run(call + list(commands.values()), cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
                for name, result in zip(commands, json.load(open(export.name))["results"]):
                    here[name].append(result["median"] * 1000)
    return [{name: middle(taken[1:]) for name, taken in here.items()} for here in times]


def middle(times):
    """The median of what was measured."""
    return sorted(times)[len(times) // 2]


def ratio(a, b):
    """How many times as long as the second the first took."""
    return f"{a / b:.2f}"


def tree(folder, files):
    """A tree of source-like files of about 2 kB, twenty to a folder."""
    line = "    let value = compute(input, &options)?; // as it was before\n"
    for number in range(files):
        path = folder / f"d{number // 20:04}" / f"f{number:05}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// file {number}\n" + line * 32)


def repository(folder, environment):
    """Commits all that is in a folder."""
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-q", "-m", "all"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


def config(folder, body):
    """Configures Probity."""
    (folder / "probity.toml").write_text(body)
