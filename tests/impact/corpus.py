"""Small projects of SQL, dbt models and Spark jobs, and all that ``check`` tells of their SQL.

Documents parted by ``---``:

- ``case``: a title, unique;
- ``change``: the migration that changes :data:`BEFORE`; without it :data:`CHANGE`;
- ``impact``: that part of the project file; without it all files below ``sql``;
- ``files``: what stands where;
- ``told``: a line each, ``file:line:column severity code: message``.

``python -m tests.impact.corpus`` writes ``told`` anew; read what it wrote, since a document is right because
somebody judged it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from icemigrate.commands.check import check
from icemigrate.project import open_project
from tests.checks.corpus import _Dumper

HERE = Path.cwd()
FILES = sorted(Path(__file__).parent.glob("*.yaml"))
BEFORE = """
tables:
  - name: shop.orders
    columns:
      - {name: id, type: long}
      - {name: note, type: string}
      - {name: total, type: int}
      - {name: address, type: "struct<zip: string, town: string>"}
      - {name: items, type: "list<struct<sku: string, pieces: int>>"}
  - name: shop.customers
    columns: [{name: id, type: long}, {name: name, type: string}, {name: email, type: string}]
  - name: shop.returns
    columns: [{name: id, type: long}, {name: reason, type: string}]
"""
CHANGE = """
allow: [destructive]
tables:
  - name: shop.orders
    renames: {total: amount, address.zip: code}
    drop_columns: [note]
"""
Case = Mapping[str, Any]


def cases(file: Path) -> list[Case]:
    """The documents of a file."""
    return [case for case in yaml.safe_load_all(file.read_text(encoding="utf-8")) if case]


def told(case: Case, folder: Path) -> Iterator[str]:
    """What is told of the SQL of a document; ``folder`` is empty, and the working directory."""
    project = {"project": "shop", "impact": case.get("impact", ["sql"]), **case.get("project", {})}
    (folder / "migrations").mkdir()
    for name, text in {
        "icemigrate.yaml": yaml.safe_dump(project),
        "migrations/0001_create.yaml": BEFORE,
        "migrations/0002_change.yaml": case.get("change", CHANGE),
        **case["files"],
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for d in check(open_project(folder)).diagnostics:
        if d.place is not None and not d.place.file.startswith("migrations"):
            yield f"{d.place} {d.severity.value} {d.code}: {d.message}"


def _write(file: Path) -> None:
    text = ""
    for case in cases(file):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            says = {**case, "told": list(told(case, Path(folder)))}
            os.chdir(HERE)
        text += ("---\n" if text else "") + yaml.dump(
            says, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2000
        )
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for one in FILES:
        _write(one)
