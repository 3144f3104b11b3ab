"""The page that is written: parts that can be measured on their own, each with its tables."""

import datetime
import os
import re
import sys

from common import PROBITY, RUNS

# Where a part begins.
MARK = re.compile(r"^<!-- part: ([a-z-]+) -->$")


class Table:
    """The lines of one part."""

    def __init__(self):
        self.lines = []

    def section(self, title, head, note=None, times=RUNS):
        """Begins a table, which says of what run it is."""
        self.lines += ["", f"## {title}", "", stamp(times), ""]
        if note:
            self.lines += [note, ""]
        self.lines += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
        print(f"\n{title}", file=sys.stderr)

    def row(self, *cells):
        """A row; a float is a time in milliseconds."""
        cells = [f"{cell:.1f} ms" if isinstance(cell, float) else str(cell) for cell in cells]
        self.lines.append("| " + " | ".join(cells) + " |")
        print(" | ".join(cells), file=sys.stderr)


def stamp(times):
    """What a table says of its run."""
    said = f"Run of {datetime.date.today()}, each {times} times."
    load = os.getloadavg()[0]
    if load > os.cpu_count():
        said += f" The machine was busy with other work, too: a load of {load:.1f} on {os.cpu_count()} cores."
    if "PROBITY" in os.environ:
        said += f" Measured with another build than the released one: `{PROBITY.parent.name}`."
    return said


def head():
    """What stands above all parts."""
    return [
        "# Benchmarks",
        "",
        f"Made by `make bench`, which writes this page, on one machine with {os.cpu_count()} cores; what counts are the "
        "ratios. Times are medians: of whole commands by hyperfine, of what is inside a run (a check alone, a worker, the "
        "snapshot) as Probity's own record or log says them. `ONLY=start,peers make bench` measures only these parts and "
        "leaves the rest of the page as it was, so tables may be of different runs and builds: each says of which.",
    ]


def write(path, parts, order):
    """Writes the page: the parts that were measured, and of all others what the page has."""
    parts = kept(path) | parts
    lines = head()
    for name in order:
        if name in parts:
            lines += ["", f"<!-- part: {name} -->", *parts[name]]
    path.write_text("\n".join(lines) + "\n")


def kept(path):
    """The parts that a page has, by name."""
    parts, name = {}, None
    for line in path.read_text().splitlines() if path.exists() else []:
        if found := MARK.match(line):
            name = found[1]
            parts[name] = []
        elif name:
            parts[name].append(line)
    for lines in parts.values():
        while lines and not lines[-1]:
            lines.pop()
    return parts
