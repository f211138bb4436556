"""How long planning a wide and deep table takes, beside reading its metadata file as JSON.

``python -m bench.nested_plan`` plans a migration of a table whose fields are nested six deep: names, types,
new and dropped fields at the deepest level.  Both sides are measured in one process that is warm, since the
floor is a few milliseconds; what a process costs is measured by ``bench.plan_speed``.  What a plan of a small
table takes (project file, migrations, looks into SQLite) has nothing to do with the fields, and is told.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from bench import lake, project
from icemigrate import Project

DEPTH = 6
SMALLEST = 7
"""Fields asked for where as few as can be are wanted: one struct comes in any case."""
_LEAVES = ("long", "string", "double", "int", "date")
_PENDING = """\
description: Changes at the bottom
allow: [destructive]
tables:
  - name: bench.t00000
    renames: {{{path}.leaf_0: renamed}}
    drop_columns: [{path}.leaf_1]
    columns: [{{name: {path}.leaf_3, type: long}}, {{name: {path}.added, type: string}}]
"""


def nested(fields: int) -> lake.Fields:
    """Columns of about so many fields in all, in structs six deep, ten leaves in each of the deepest."""
    ids = count(1)
    plain = [_field(next(ids), f"column_{i}", t) for i, t in enumerate((*_LEAVES[:3], "timestamptz", "int"))]
    columns = list(plain)
    while (number := next(ids)) < fields:
        columns.append(_field(number, f"top_{number}", _struct(DEPTH - 1, ids)))
    return columns


def _struct(depth: int, ids: count[int]) -> dict[str, Any]:
    if depth == 1:
        fields = [_field(next(ids), f"leaf_{i}", _LEAVES[i % len(_LEAVES)]) for i in range(10)]
    else:
        fields = [_field(next(ids), f"inner_{i}", _struct(depth - 1, ids)) for i in range(2)]
    return {"type": "struct", "fields": fields}


def _field(number: int, name: str, type_: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": type_}


def compare(fields: int, rounds: int) -> str:
    """One line of the result."""
    with tempfile.TemporaryDirectory() as wide, tempfile.TemporaryDirectory() as small:
        file = _make(Path(wide), fields)
        _make(Path(small), SMALLEST)
        calls = (
            partial(_plan, wide),
            lambda: json.loads(gzip.decompress(file.read_bytes())),
            partial(_plan, small),
        )
        runs = [tuple(map(_seconds, calls)) for _ in range(rounds + 1)][1:]
        size = len(gzip.decompress(file.read_bytes()))
    ours, floor, least = (statistics.median(run[side] for run in runs) for side in range(3))
    return (
        f"{lake.highest_id(nested(fields)):5} fields {DEPTH} deep, {size / 1e6:4.1f} MB of metadata: "
        f"plan {ours * 1e3:5.1f} ms; as JSON {floor * 1e3:4.1f} ms, ratio {ours / floor:.2f}; "
        f"beyond the {least * 1e3:.1f} ms that a small table takes, ratio {(ours - least) / floor:.2f}"
    )


def _make(folder: Path, fields: int) -> Path:
    """A project with one table and a migration that waits; the table's metadata file."""
    columns = nested(fields)
    path = ".".join([columns[5]["name"], *["inner_0"] * (DEPTH - 2)])
    project.make(folder, 1, columns, _PENDING.format(path=path))
    (file,) = (folder / "warehouse" / lake.NAMESPACE).rglob("*.metadata.json")
    return file


def _plan(folder: str) -> None:
    found = Project(Path(folder)).plan()
    assert found.ready, found.diagnostics
    assert len(list(found.plan.migrations[0].changes())) == 4


def _seconds(call: Callable[[], object]) -> float:
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fields", nargs="*", type=int, default=[1000, 5000], help="sizes of the table")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    for fields in arguments.fields:
        print(compare(fields, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
