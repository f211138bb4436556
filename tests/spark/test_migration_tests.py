"""``test`` on a real Spark: one file with tests that pass, that fail and that cannot run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.commands.diff import DiffOptions, diff
from icemigrate.commands.show import show
from icemigrate.commands.test import run_tests
from icemigrate.project import open_project

if TYPE_CHECKING:
    pass

MIGRATIONS = {
    "0001_events.yaml": """\
namespaces: [demo]
tables:
  - name: demo.events
    columns:
      - {name: id, type: long, required: true}
      - {name: at, type: timestamptz}
      - {name: kind, type: string}
      - {name: tags, type: "list<struct<a: int, b: string>>"}
      - {name: content, type: binary}
    partition_by: [day(at)]
""",
    "0002_source.yaml": """\
tables:
  - name: demo.events
    renames: {kind: source}
    columns: [{name: amount, type: "decimal(10,2)"}]
    backfill: [{set: {amount: "id * 1.5"}}]
""",
}
TESTS = """\
tests:
  - name: passes
    version: 2
    given:
      demo.events:
        - {id: 1, at: 2026-03-02 09:00:00, kind: opened, tags: [{a: 1, b: x}, {a: 2}], content: abc}
        - {id: 2, kind: "null"}
    expect:
      demo.events:
        - {id: 2, source: "null", amount: 3.00, at: null}
        - id: 1
          source: opened
          amount: 1.5
          at: 2026-03-02T09:00:00Z
          tags: [{a: 1, b: x}, {a: 2, b: null}]
          content: abc
    queries:
      - sql: select source, sum(amount) as total from demo.events group by source order by source desc
        rows: [{source: opened, total: 1.50}, {source: "null", total: 3}]
        ordered: true
    rollback: true
    after_rollback:
      demo.events: [{id: 1, kind: opened}, {id: 2, kind: "null"}]
  - name: differs
    version: 2
    given: {demo.events: [{id: 1, kind: opened}]}
    expect: {demo.events: [{id: 1, source: closed}]}
  - name: cannot run
    version: 2
    given: {demo.events: [{id: x}]}
    expect: {demo.events: []}
  - name: generated rows return
    version: 2
    given: {demo.events: {generate: {rows: 500, seed: 7}}}
    queries:
      - sql: select count(*) as n, count_if(amount = id * 1.5) as filled from demo.events
        rows: [{n: 500, filled: 500}]
    rollback: true
    after_rollback: {demo.events: given}
  - name: a cast keeps the values
    version: 3
    given: {demo.events: [{id: 1, source: "12"}, {id: 2}]}
    expect: {demo.events: [{id: 1, source: 12}, {id: 2, source: null}]}
    rollback: true
    after_rollback: {demo.events: given}
  - name: a cast loses a value
    version: 3
    given: {demo.events: [{id: 1, source: "12"}, {id: 2, source: "007"}]}
    expect: {demo.events: []}
  - name: begins on an empty catalog
    version: 1
    expect: {demo.events: []}
"""


@pytest.mark.usefixtures("spark")
def test_tests_of_migrations_run_on_catalogs_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    (folder / "tests").mkdir(parents=True)
    text = "project: market\nenvironments: {local: {catalog: {type: sqlite}}}\ndefault_environment: local\n"
    (tmp_path / "icemigrate.yaml").write_text(text, encoding="utf-8")
    for name, content in MIGRATIONS.items():
        (folder / name).write_text(content, encoding="utf-8")
    desired = tmp_path / "desired.yaml"
    desired.write_text(show(open_project(tmp_path)).replace("source, type: string", "source, type: int"))
    written = diff(open_project(tmp_path), desired, options=DiffOptions(description="Cast"))
    assert written.path is not None
    consent = "description: Cast\nallow: [destructive demo.events.source]\nbecause: reviewed\n"
    (folder / Path(written.path).name).write_text(written.content.replace("description: Cast\n", consent))
    (folder / "tests" / "events.yaml").write_text(TESTS, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    result = run_tests(open_project(tmp_path))
    found = {case.name: (case.outcome, case.failures) for case in result.cases}
    assert found["passes"] == ("passed", ())
    assert found["differs"][0] == "failed"
    assert found["differs"][1][0].splitlines() == [
        "expect: demo.events: expected 1 row, found 1; they differ",
        "    id | source",
        "  - 1 | closed",
        "  + 1 | opened",
    ]
    assert found["cannot run"][0] == "error"
    assert found["cannot run"][1][0].startswith("given: ")
    assert found["a cast keeps the values"] == ("passed", ())
    assert found["a cast loses a value"][0] == "error"
    assert "source keeps its values" in found["a cast loses a value"][1][0]
    assert found["generated rows return"] == ("passed", ())
    assert found["begins on an empty catalog"] == ("passed", ())
    assert sorted(tmp_path.rglob("*")) == before, "no environment is touched"
