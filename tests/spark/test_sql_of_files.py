"""What Spark has against the SQL of a migration file: told with its place, before anything is done where that
can be known, whichever way changes come to tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_icemigrate_branch
from icemigrate.spark import data_step_trial
from icemigrate.spark.data_step_trial import require_valid_data_steps
from tests.spark.test_data_steps import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRADES, NOTES = TableName.parse("db.trades"), TableName.parse("db.notes")
BAD = """\
allow: [destructive]
tables:
  - name: db.notes
    columns: [{name: id, type: long}]
    checks: [{after: "select max(nr) from {table}", gives: 1}]
  - name: db.trades
    columns: [{name: note, type: string}]
    backfill:
      - set:
          note: "lower(venue)"
          price: max(price)
          venue: "legs"
          legs.side: "uper(legs.side)"
      - {set: {note: "upper(note)"}, where: id}
      - {set: {note: "überpreis"}, where: "rand() > 0.5"}
      - {set: {note: "drop table db.trades"}}
    retype: {id: {to: string, using: cast(id as strin)}}
    checks:
      - {before: "select id from {table} where note is null"}
      - {after: "with a as (select 1) delete from {table}"}
      - {after: "from {table} insert into db.notes select id"}
      - {before: "select 1 as order, id from {table} group by venue"}
"""
TOLD = {
    "5:15": "with name `nr` cannot be resolved",
    "11:11": "MISSING_GROUP_BY",
    "12:11": 'Cannot safely cast `venue` "STRUCT<SIDE:STRING,SIZE:INT>" to "STRING"',
    "13:11": "Cannot resolve routine `uper`",
    "14:38": "FILTER_NOT_BOOLEAN",
    "15:16": "must be back quoted as: `überpreis`",
    "15:36": "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    "16:16": "PARSE_SYNTAX_ERROR",
    "17:31": 'Unsupported data type "STRIN"',
    "19:10": "with name `note` cannot be resolved",
    "20:10": "PARSE_SYNTAX_ERROR",
    "21:10": "PARSE_SYNTAX_ERROR",
    "22:10": "MISSING_AGGREGATION",
}


@pytest.fixture(params=["atomic", "direct"])
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, spark, f", publish: {request.param}").created()


def test_all_that_spark_would_not_run_is_told_where_it_stands_and_nothing_is_done(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0002", BAD)
    before, rows = desk.engine.metadata_location(TRADES), desk.rows("*")
    for command in (["plan", "--rehearse"], ["apply", "--auto-approve"]):
        capsys.readouterr()
        assert main(command) == ExitCode.FINDINGS
        told = "".join(capsys.readouterr())
        errors = dict(
            line.removeprefix("migrations/0002_step.yaml:").split(": error: ", 1)
            for line in told.splitlines()
            if ": error: " in line
        )
        assert errors.keys() == TOLD.keys(), told
        assert all(part in errors[at] for at, part in TOLD.items()), told
        assert "no table was changed" in told
    assert desk.engine.metadata_location(TRADES) == before
    assert desk.engine.table(NOTES) is None
    assert desk.rows("*") == rows
    capsys.readouterr()
    assert main(["history"]) == ExitCode.OK
    assert "0002" not in capsys.readouterr().out


PLACES = """\
tables:
  - {name: db.places, format_version: 3, columns: [{name: id, type: int}, {name: at, type: geometry}]}
"""
WRITTEN = """\
allow: [destructive]
tables:
  - name: db.places
    backfill: [{set: {at: "st_setsrid(st_geomfromwkb(X'0101000000000000000000F03F0000000000000040'), 4326)"}}]
"""


def test_what_is_no_fault_of_the_expression_has_a_hint_of_its_own(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0002", PLACES)
    desk.file("0003", WRITTEN)
    assert main(["plan", "--rehearse"]) == ExitCode.FINDINGS
    told = " ".join("".join(capsys.readouterr()).split())
    assert "Geospatial feature is disabled. [sql-not-understood]" in told
    assert "set `spark.sql.geospatial.enabled: true` under `spark.conf`" in told
    assert "fix the expression" not in told


BY_NAME = """
    tables:
      - name: db.venues
        columns: [{name: venue, type: string}, {name: country, type: string}]
      - name: db.trades
        columns: [{name: country, type: string}]
        backfill: [{set: {country: "(select max(country) from LAKE.db.venues)"}}]
        checks:
          - after: |
              select id from {table} t -- it's asked by name
              join LAKE.db.venues v on v.venue = t.venue
"""


def test_sql_may_ask_what_the_migration_makes_before(desk: Desk) -> None:
    """The tables of a migration are done one after another, and are there for those that come behind."""
    desk.file("0002", BY_NAME.replace("LAKE", desk.catalog))
    desk.run("plan", "--rehearse")
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, country") == [(1, None), (2, None)]


WRONG = """\
tables:
  - name: db.trades
    backfill: [{set: {country: "uper(country)"}, where: country is null}]
  - match: "db.ext*"
    backfill: [{set: {country: "uper(country)"}, where: country is null}]
"""


def test_what_spark_would_not_run_has_its_place_behind_other_pending_migrations(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    column = "columns: [{name: country, type: string}]"
    desk.file("0002", f"tables: [{{name: db.trades, {column}}}, {{name: db.extra, {column}}}]")
    desk.file("0003", WRONG)
    for command in (["plan", "--rehearse"], ["apply", "--auto-approve"]):
        capsys.readouterr()
        assert main(command) == ExitCode.FINDINGS
        told = "".join(capsys.readouterr())
        assert "0003_step.yaml:3:23: error: " in told
        assert "0003_step.yaml:5:23: error: " in told


ON_ROWS = """
    allow: [destructive, incompatible]
    tables:
      - name: db.trades
        columns: [{name: share, type: double}]
        backfill:
          - {set: {share: "0"}}
          - {set: {STEP}}
"""


FAILS = (
    ('share: "1 / (id - 1)"', "DIVIDE_BY_ZERO"),
    ('share: "cast(venue as double)"', "The value 'xnys' of the type \"STRING\" cannot be cast"),
    ("share: \"raise_error(concat('no ', id))\"", "no "),
    ('id: "if(id = 1, null, id)"', "null"),
)


def test_what_fails_on_some_row_is_told_where_it_stands_and_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark).created()
    desk.file(
        "0002", "{allow: [incompatible], tables: [{name: db.trades, columns: [{name: id, required: true}]}]}"
    )
    desk.run("apply", "--auto-approve")
    rows = desk.rows("*")
    for step, told in FAILS:
        desk.file("0003", ON_ROWS.replace("STEP", step))
        capsys.readouterr()
        assert main(["apply", "--auto-approve"]) == ExitCode.ERROR
        error = capsys.readouterr().err
        assert error.count("error: migrations/0003_step.yaml:8:9: ") == 1, error
        assert told in error.lower() if told.islower() else error
        assert "no table was changed" in error
        assert desk.rows("*") == rows
        assert not any(is_icemigrate_branch(name) for name in desk.refs())


VARIANTS = """
    tables:
      - name: db.trades
        columns: [{name: body, type: variant}, {name: seen, type: boolean}]
        backfill: [{set: {body: "parse_json('{}')", seen: "true"}}]
"""


def test_a_variant_that_is_new_is_filled_by_its_own_migration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Iceberg's trap: before a snapshot knows a variant, Spark reads no row of it, and updates none."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark).created(3)
    desk.file("0002", VARIANTS)
    desk.run("apply", "--auto-approve")
    assert "variant-unknown-to-rows" not in "".join(capsys.readouterr())
    assert desk.rows("id, seen, to_json(body)") == [(1, True, "{}"), (2, True, "{}")]

    desk.file("0003", "tables: [{name: db.trades, renames: {body: payload}}]")
    desk.run("apply", "--auto-approve")
    told = "".join(capsys.readouterr())
    assert "Spark cannot read `payload`" in told
    with pytest.raises(Exception, match="internal error"):
        desk.rows("payload")
    append = "INSERT INTO db.trades SELECT * FROM db.trades WHERE false"
    assert append in told
    desk.spark.sql(append.replace("db.trades", desk.table))
    assert desk.rows("id, to_json(payload)") == [(1, "{}"), (2, "{}")]

    desk.run("rollback", "--auto-approve")
    assert "Spark cannot read `body`" in "".join(capsys.readouterr())
    desk.spark.sql(append.replace("db.trades", desk.table))
    desk.run("rollback", "--auto-approve")
    assert desk.rows() == [(1, "xnys"), (2, None)]


def test_partitions_hide_that_a_struct_is_null(spark: SparkSession, namespace: str) -> None:
    """Iceberg's trap that `identity-partition-in-optional-struct` tells of; another transform is none."""
    name = f"local.{namespace}.t"
    for term, seen in (("s.a", 2), ("truncate(1, s.a)", 1)):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} (s struct<a: int, b: int>) USING iceberg PARTITIONED BY ({term})")
        spark.sql(f"INSERT INTO {name} VALUES (null), (named_struct('a', 1, 'b', 2))")
        assert len(spark.sql(f"SELECT s.a FROM {name} WHERE s IS NOT NULL").collect()) == seen


def test_a_later_migration_is_tried_before_the_first_one_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark).created()
    desk.file("0002", "tables: [{name: db.notes, columns: [{name: id, type: long}]}]")
    desk.file(
        "0003",
        """\
        allow: [destructive]
        tables:
          - name: db.deals
            renamed_from: db.trades
            retype: {id: {to: string, using: cast(id as string)}}
          - name: db.trades
            columns: [{name: nr, type: int}]
          - name: db.notes
            columns: [{name: note, type: string}]
        """,
    )
    late = """\
        allow: [destructive]
        tables:
          - name: db.deals
            renames: {venue: market}
            backfill: [{set: {market: "upper(market)", id: "repeat(id, 2)"}}]
          - name: db.trades
            backfill: [{set: {nr: nr + 1}}]
          - name: db.notes
            backfill: [{set: {note: NOTED}}]
        """
    desk.file("0004", late.replace("NOTED", "uper(note)"))
    assert main(["apply", "--auto-approve"]) == ExitCode.FINDINGS
    told = "".join(capsys.readouterr())
    assert "migrations/0004_step.yaml:9:" in told
    assert "Spark rejects a data step of migration 0004; no table was changed" in told
    assert desk.engine.table(NOTES) is None
    assert desk.rows("id, venue") == [(1, "xnys"), (2, None)]

    desk.file("0004", late.replace("NOTED", "read"))
    assert main(["check"]) == ExitCode.OK
    word = "the expression is the name `read`, but table `db.notes` has no such column"
    assert word in "".join(capsys.readouterr())
    assert main(["plan"]) == ExitCode.FINDINGS
    assert word in "".join(capsys.readouterr())

    # What only the rows show is told together with what was applied before it.
    failing = "cast(assert_true(market = 'x') as string)"
    desk.file("0004", late.replace("NOTED", "id").replace("upper(market)", failing))
    assert main(["apply", "--auto-approve"]) != ExitCode.OK
    assert "applied earlier in this run: 0002, 0003" in "".join(capsys.readouterr())
    desk.file("0004", late.replace("NOTED", "id"))
    desk.run("apply", "--auto-approve")
    found = desk.spark.sql(f"SELECT id, market FROM {desk.catalog}.db.deals ORDER BY id").collect()
    assert [tuple(row) for row in found] == [("11", "XNYS"), ("22", None)]


def test_a_table_that_another_client_changes_right_before_the_trial_is_reported(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.spark.sql(f"ALTER TABLE {desk.table} ADD PARTITION FIELD id AS part")
    desk.file("0002", "tables: [{name: db.trades, partition_by: [id as part]}]")
    desk.run("apply", "--auto-approve")
    desk.file(
        "0003",
        """\
        allow: [destructive]
        tables:
          - {name: db.trades, partition_by: [], backfill: [{set: {venue: "'a'"}, where: venue is null}]}
        """,
    )

    def later(*given: Any, **named: Any) -> None:
        desk.spark.sql(f"ALTER TABLE {desk.table} DROP PARTITION FIELD part")
        require_valid_data_steps(*given, **named)

    monkeypatch.setattr(data_step_trial, "require_valid_data_steps", later)
    code = main(["apply", "--auto-approve"])
    said = capsys.readouterr()
    assert "bug in icemigrate" not in said.err
    assert code == ExitCode.CONFLICT, said
    assert "another client changed the table" in said.err
