"""A migration that is taken back and done again ends where it ended the first time, or says why it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.types import is_nested
from tests.spark.test_data_steps import Desk
from tests.support.undo_project import OURS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, spark)


def create(desk: Desk, keys: str, format_version: int = 2) -> None:
    desk.file(
        "0001",
        f"""
        tables:
          - name: db.trades
            format_version: {format_version}
            columns:
              - {{name: id, type: long, required: true}}
              - {{name: zip, type: int, required: true, description: where}}
              - {{name: region, type: string}}
              - {{name: leg, type: "struct<a: required int, b: string>", required: true}}
            {keys}
        """,
    )
    desk.run("apply", "--auto-approve")


def state(desk: Desk) -> dict[str, Any]:
    """All that a migration can speak of, in names: ids may be others after a redo."""
    table = desk.engine.table(TableName.parse("db.trades"))
    assert table is not None
    entries = schema_index(table.schema)
    paths = {i: format_path(entry.path) for i, entry in entries.items()}
    fields = [(paths[i], entry.field) for i, entry in entries.items()]
    return {
        "columns": [
            (
                path,
                type(f.type) if is_nested(f.type) else f.type,
                f.required,
                f.doc,
                f.initial_default,
                f.write_default,
            )
            for path, f in fields
        ],
        "identifier": {paths[i] for i in table.schema.identifier_ids},
        "spec": [(paths[f.source_ids[0]], str(f.transform), f.name) for f in table.spec.live],
        "order": [(paths[f.source_ids[0]], f.direction, f.null_order) for f in table.sort_order.fields],
        "properties": dict(table.properties),
        "references": sorted(name for name in table.refs if not name.startswith(OURS)),
        "format": table.format_version,
    }


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return "".join(capsys.readouterr())


ALL_AT_ONCE = """
    allow: [destructive, incompatible]
    tables:
      - name: db.trades
        retype:
          zip: {to: string, using: "lpad(cast(zip as string), 5, '0')"}
          region: {to: int, using: length(region)}
          leg.a: {to: string, using: cast(leg.a as string)}
        columns: [{name: n, type: long, required: true, description: number, after: id}MORE]
        backfill: [{set: {n: id}, where: n is null}]
        identifier: [zip, leg.a, n]
        sort_by: [region]
        KEYS
"""


@pytest.mark.parametrize(
    ("format_version", "keys", "more"),
    [
        (1, "", ""),
        (3, 'partition_by: ["bucket(4, region)"]', ", {name: kind, type: int, required: true, default: 7}"),
    ],
)
def test_what_is_retyped_and_filled_is_required_again(
    desk: Desk, capsys: pytest.CaptureFixture[str], format_version: int, keys: str, more: str
) -> None:
    create(desk, f"identifier: [zip, leg.a]\n            {keys}", format_version)
    desk.insert("(1, 501, 'eu', named_struct('a', 1, 'b', 'x'))")
    desk.file("0002", ALL_AT_ONCE.replace("KEYS", keys).replace("MORE", more))
    desk.run("apply", "--auto-approve")
    first = state(desk)
    assert first["identifier"] == {"zip", "leg.a", "n"}
    assert {"id", "zip", "leg", "leg.a", "n"} <= {
        path for path, _, required, *_ in first["columns"] if required
    }

    desk.insert(f"(2, 8, '33', 5, named_struct('a', '2', 'b', 'y'){', 9' if more else ''})")
    desk.run("rollback", "--auto-approve", "--metadata-only")
    desk.insert(f"(3, {'44' if more else 'null'}, 'us', named_struct('a', 3, 'b', 'z'))")
    if not more:
        assert main(["apply", "--redo", "0002", "--auto-approve"]) == ExitCode.ERROR
        said = told(capsys)
        assert "rows without a value of zip, which becomes required: expected 0, got 1" in said
        desk.spark.sql(f"UPDATE {desk.table} SET zip = 44 WHERE id = 3")
    desk.run("apply", "--redo", "0002", "--auto-approve")
    rows = [(1, 1, "00501", 2, "1"), (2, 8, "33", 5, "2"), (3, 3, "00044", 2, "3")]
    assert (state(desk), desk.rows("id, n, zip, region, leg.a")) == (first, rows)

    if more:
        desk.run("rollback", "--auto-approve", "--metadata-only")
        desk.run("apply", "--redo", "0002", "--auto-approve")
        assert (state(desk), desk.rows("id, n, zip, region, leg.a")) == (first, rows)
    assert desk.project.plan().is_empty
    desk.run("drift")


PARTITIONED = """
    allow: [destructive]
    tables:
      - name: db.trades
        retype: {region: {to: int, using: length(region)}}
        partition_by: [region]
"""


def test_a_column_that_is_partitioned_by_as_it_is_comes_anew_or_not_at_all(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    create(desk, "partition_by: [region]")
    desk.insert("(1, 501, 'eu', named_struct('a', 1, 'b', 'x'))")
    desk.file("0002", PARTITIONED)
    desk.run("apply", "--auto-approve")
    first = state(desk)
    desk.run("rollback", "--auto-approve")
    desk.insert("(2, 502, 'asia', named_struct('a', 2, 'b', 'y'))")
    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert (state(desk), desk.rows("id, region")) == (first, [(1, 2), (2, 4)])

    desk.insert("(3, 503, 6, named_struct('a', 3, 'b', 'z'))")
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, region") == [(1, "eu"), (2, "asia"), (3, None)]
    capsys.readouterr()
    assert main(["apply", "--redo", "0002", "--auto-approve"]) == ExitCode.CONFLICT
    assert "but 1 of 3 rows has no value of the current `region`, and values written to it as int" in told(
        capsys
    )
    desk.spark.sql(f"UPDATE {desk.table} SET region = 'africa' WHERE id = 3")
    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert (state(desk), desk.rows("id, region")) == (first, [(1, 2), (2, 4), (3, 6)])


REQUIRED = "{{allow: [incompatible], tables: [{{name: db.trades, columns: [{{name: {}, required: true}}]}}]}}"


def test_what_rows_have_no_value_of_is_not_required_again(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    create(desk, "")
    desk.file("0002", REQUIRED.format("n, type: int"))
    desk.file("0003", REQUIRED.format("region"))
    desk.run("apply", "--auto-approve")
    desk.insert("(1, 501, 'eu', named_struct('a', 1, 'b', 'x'), 5)")
    desk.run("rollback", "--to", "0001", "--auto-approve")
    desk.insert("(2, 502, null, named_struct('a', 2, 'b', 'y'))")
    assert main(["apply", "--redo", "0002", "--auto-approve"]) == ExitCode.FINDINGS
    assert "`n` cannot be required: 1 row is in a file that lacks it" in told(capsys)
    assert main(["apply", "--redo", "0003", "--auto-approve"]) == ExitCode.FINDINGS
    assert "`region` cannot be required: there is a null in it" in told(capsys)
    assert desk.rows("id, region") == [(1, "eu"), (2, None)]


def test_a_required_column_that_comes_back_optional_is_drift_until_it_is_led_back(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    create(desk, "identifier: [zip]")
    desk.insert("(1, 501, 'eu', named_struct('a', 1, 'b', 'x'))")
    first = state(desk)
    desk.file(
        "0002", "{allow: [destructive], tables: [{name: db.trades, identifier: [], drop_columns: [zip]}]}"
    )
    desk.run("apply", "--auto-approve")
    dropped = state(desk)
    desk.insert("(2, 'us', named_struct('a', 2, 'b', 'y'))")
    desk.run("rollback", "--auto-approve")
    assert "zip was required and comes back as optional" in told(capsys)
    assert main(["drift", "--format", "json"]) == ExitCode.CONFLICT
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    found = {fact["fact"]: (fact["recorded"], fact["actual"], fact["note"]) for fact in table["facts"]}
    assert found["identifier"][:2] == ("zip", "none")
    assert found["columns.zip.required"][:2] == ("required", "optional")
    assert str(found["columns.zip.required"][2]).startswith("the rollback of 0002 left it optional")

    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert state(desk) == dropped
    desk.run("rollback", "--auto-approve")
    lead_back = ["apply", "--reconcile", "--auto-approve", "--allow", "incompatible"]
    capsys.readouterr()
    assert main(lead_back) == ExitCode.FINDINGS
    assert "`zip` cannot be required again" in told(capsys)
    desk.spark.sql(f"UPDATE {desk.table} SET zip = 502 WHERE id = 2")
    desk.run(*lead_back)
    assert (state(desk), desk.rows("id, zip")) == (first, [(1, 501), (2, 502)])
    desk.run("drift")
