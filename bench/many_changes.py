"""How many statements 500 changes to one table take, and how long they take to plan.

``python -m bench.many_changes`` plans, for each kind of change that comes in hundreds and for all together, a
migration of a table of 1,000 columns.  The floor is reading its metadata file as JSON, in the same process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench import lake, project
from icemigrate import Project

COLUMNS = 1000
CHANGES = 500
_TYPES = ("int", "string")

Keys = Mapping[str, list[str]]
"""Entries of a table's keys in a migration file."""


def adding(numbers: range) -> Keys:
    """New columns."""
    return {"columns": [f"{{name: new_{n}, type: long}}" for n in numbers]}


def dropping(numbers: range) -> Keys:
    """Columns that go."""
    return {"drop_columns": [f"column_{n}" for n in numbers]}


def renaming(numbers: range) -> Keys:
    """Other names."""
    return {"renames": [f"column_{n}: renamed_{n}" for n in numbers]}


def widening(numbers: range) -> Keys:
    """Wider types: every second column is an ``int``."""
    return {"columns": [f"{{name: column_{2 * n}, type: long}}" for n in numbers]}


def describing(numbers: range) -> Keys:
    """Descriptions."""
    return {"columns": [f"{{name: column_{n}, description: What {n} is}}" for n in numbers]}


def setting(numbers: range) -> Keys:
    """Properties."""
    return {"properties": [f"bench.key-{n}: v{n}" for n in numbers]}


CASES: Mapping[str, tuple[tuple[Callable[[range], Keys], range], ...]] = {
    "new columns": ((adding, range(CHANGES)),),
    "dropped columns": ((dropping, range(CHANGES)),),
    "renamed columns": ((renaming, range(CHANGES)),),
    "widened types": ((widening, range(CHANGES)),),
    "descriptions": ((describing, range(CHANGES)),),
    "properties": ((setting, range(CHANGES)),),
    "of everything": (
        (adding, range(100)),
        (dropping, range(100)),
        (renaming, range(200, 300)),
        (describing, range(400, 500)),
        (setting, range(100)),
    ),
}


def columns(count: int = COLUMNS) -> lake.Fields:
    """A table's columns; the fifth id is a timestamp's."""
    plain = [
        {"id": i + 6, "name": f"column_{i}", "required": False, "type": _TYPES[i % 2]} for i in range(count)
    ]
    first = [{"id": i + 1, "name": f"first_{i}", "required": False, "type": "timestamptz"} for i in range(5)]
    return [*first, *plain]


def migration(keys: Iterator[Keys]) -> str:
    """The file."""
    merged: dict[str, list[str]] = {}
    for some in keys:
        for key, entries in some.items():
            merged.setdefault(key, []).extend(entries)
    lines = ["description: Many changes", "allow: [destructive]", "tables:", "  - name: bench.t00000"]
    for key, entries in merged.items():
        ends = "{}" if key in ("renames", "properties") else "[]"
        lines.append(f"    {key}: {ends[0]}{', '.join(entries)}{ends[1]}")
    return "\n".join(lines) + "\n"


def compare(case: str, rounds: int) -> str:
    """One line of the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project.make(folder, 1, columns(), migration(make(numbers) for make, numbers in CASES[case]))
        (file,) = (folder / "warehouse" / lake.NAMESPACE).rglob("*.metadata.json")
        ours, floor = [], []
        for _ in range(rounds):
            before = time.perf_counter()
            found = Project(folder).plan()
            ours.append(time.perf_counter() - before)
            before = time.perf_counter()
            json.loads(gzip.decompress(file.read_bytes()))
            floor.append(time.perf_counter() - before)
    assert found.ready, found.diagnostics
    steps = [step for table in found.plan.migrations[0].tables for step in table.steps]
    changes = sum(len(step.changes) for step in steps)
    statements = sum(len(step.statements) for step in steps)
    mine, other = statistics.median(ours), statistics.median(floor)
    return (
        f"{changes:4} {case:16} {statements:4} statements; plan {mine * 1e3:6.0f} ms; "
        f"as JSON {other * 1e3:4.1f} ms; ratio {mine / other:.0f}"
    )


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for case in CASES:
        print(compare(case, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
