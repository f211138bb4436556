"""How ``check`` grows with the number of migrations of one table.

``python -m bench.replay_speed`` checks projects of 1,000 and 4,000 migrations of one table.  It prints the
CPU time of each process, its memory, and the ratio of the times without what every process takes.  Four
times as many migrations take about four times as long.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.check_speed import compile_modules

_CHECK = "import sys; from icemigrate.cli import main; sys.exit(main(['check']))"
_TABLE = "description: step\ntables:\n  - name: db.t\n"


def _add(number: int) -> str:
    return f"    columns:\n      - {{name: c{number}, type: string}}\n"


def _describe(number: int) -> str:
    return f"    description: step {number}\n"


def _add_or_drop(number: int) -> str:
    return _add(number) if number % 2 else f"    drop_columns: [c{number - 1}]\n"


def _add_or_rename(number: int) -> str:
    return _add(number) if number % 2 else f"    renames: {{c{number - 1}: d{number}}}\n"


def _set_property(number: int) -> str:
    # The number of properties stays the same, and so does the work of a migration.
    return f"    properties: {{custom.p{number % 1000}: x{number}}}\n"


def _set_tag(number: int) -> str:
    return f"    tags: {{t{number % 1000}: {{retention: {{max_age: {number}d}}}}}}\n"


def _set_retention(number: int) -> str:
    return f"    retention: {{snapshots: {{max_age: {number}d}}}}\n"


def _partition(number: int) -> str:
    return f"    partition_by: ['bucket({number}, first0)']\n"


def _sort(number: int) -> str:
    return f"    sort_by: ['bucket({number}, first0)']\n"


def _add_first(number: int) -> str:
    return f"    columns:\n      - {{name: c{number}, type: string, first: true}}\n"


def _add_to_struct(number: int) -> str:
    return f"    columns:\n      - {{name: s, type: 'struct<a{number}: int>'}}\n"


def _create_table(number: int) -> str:
    return f"    description: step {number}\n  - name: db.u{number}\n    columns: [{{name: a, type: long}}]\n"


KINDS: dict[str, Callable[[int], str]] = {
    "add": _add,
    "describe": _describe,
    "add_or_drop": _add_or_drop,
    "add_or_rename": _add_or_rename,
    "set_property": _set_property,
    "set_tag": _set_tag,
    "set_retention": _set_retention,
    "partition": _partition,
    "sort": _sort,
    "add_first": _add_first,
    "add_to_struct": _add_to_struct,
    "create_table": _create_table,
}
"""What a migration of this number does to the table."""


def make(folder: Path, migrations: int, kind: str, columns: int = 1) -> None:
    """A project with a table of some columns and the migrations that follow its creation."""
    (folder / "migrations").mkdir(parents=True)
    (folder / "icemigrate.yaml").write_text("project: bench\n", encoding="utf-8")
    first = "".join(f"      - {{name: first{i}, type: long}}\n" for i in range(columns))
    texts = [f"namespaces: [db]\n{_TABLE}    columns:\n{first}"]
    texts += [f"allow: [destructive]\n{_TABLE}{KINDS[kind](number)}" for number in range(1, migrations)]
    for number, text in enumerate(texts, start=1):
        (folder / "migrations" / f"{number:05}_step.yaml").write_text(text, encoding="utf-8")


def cpu_seconds(migrations: int, kind: str, columns: int) -> tuple[float, float]:
    """CPU time and memory (MB) of a check of so many migrations."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), migrations, kind, columns)
        child = subprocess.Popen([sys.executable, "-c", _CHECK], cwd=name, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=1000)
    parser.add_argument("--many", type=int, default=4000)
    parser.add_argument("--columns", type=int, default=1, help="of the table at the beginning")
    parser.add_argument("--kind", choices=KINDS, action="append")
    given = parser.parse_args()
    compile_modules()
    for kind in given.kind or KINDS:
        start, _ = cpu_seconds(1, kind, given.columns)
        few, few_memory = cpu_seconds(given.few, kind, given.columns)
        many, many_memory = cpu_seconds(given.many, kind, given.columns)
        print(
            f"{kind}: {given.few} migrations {few:.2f} s, {few_memory:.0f} MB; "
            f"{given.many} migrations {many:.2f} s, {many_memory:.0f} MB; "
            f"ratio {(many - start) / (few - start):.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
