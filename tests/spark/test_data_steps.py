"""Data steps on real tables, by the command line: written on a branch, asked there, published, undone."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from icemigrate.events import Event, NoteAdded, StatementFinished
from icemigrate.execution.failures import Interrupted
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_branch_of, is_icemigrate_branch
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREATE = """
    tables:
      - name: db.trades
        format_version: FORMAT
        properties: {write.update.mode: MODE}
        columns:
          - {name: id, type: long}
          - {name: venue, type: string}
          - {name: price, type: double}
          - {name: legs, type: "struct<side: string, size: int>"}
"""


class Desk(OwnProject):
    """A desk whose rows migrate; see :class:`~tests.support.spark_project.OwnProject`."""

    def __init__(self, folder: Path, first: SparkSession, settings: str = "") -> None:
        super().__init__(folder, first, "desk", "steps", settings)

    @property
    def table(self) -> str:
        return f"{self.catalog}.db.trades"

    def file(self, version: str, text: str) -> None:
        (self.folder / "migrations" / f"{version}_step.yaml").write_text(dedent(text), encoding="utf-8")

    def created(self, format_version: int = 2, mode: str = "copy-on-write") -> Desk:
        self.file("0001", CREATE.replace("FORMAT", str(format_version)).replace("MODE", mode))
        self.run("apply", "--auto-approve")
        self.insert("(1, 'xnys', 10.5, named_struct('side', 'buy', 'size', 1))")
        self.insert("(2, null, 20.5, named_struct('side', 'sell', 'size', 2))")
        return self

    def insert(self, values: str) -> None:
        self.spark.sql(f"INSERT INTO {self.table} VALUES {values}")

    def run(self, *words: str) -> None:
        assert main([*words]) == ExitCode.OK, words

    def rows(self, columns: str = "id, venue", at: str = "") -> list[tuple[Any, ...]]:
        self.spark.sql(f"REFRESH TABLE {self.table}")
        return [
            tuple(r) for r in self.spark.sql(f"SELECT {columns} FROM {self.table}{at} ORDER BY id").collect()
        ]

    def main(self) -> list[int]:
        """The snapshots that readers of the table have seen, in order."""
        return [r[0] for r in self.spark.sql(f"SELECT snapshot_id FROM {self.table}.history").collect()]

    def refs(self) -> set[str]:
        return {r[0] for r in self.spark.sql(f"SELECT name FROM {self.table}.refs").collect()}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, spark)


FILL = """
    tables:
      - name: db.trades
        renames: {venue: market}
        columns: [{name: cents, type: long}, {name: legs.lots, type: long}]
        drop_columns: [price, legs.size]
        backfill:
          - set:
              cents: cast(round(price * 100) as bigint)
              legs.side: upper(legs.side)
              legs.lots: legs.size * 10
          - {set: {market: "'none'"}, where: market is null}
        checks:
          - {name: one is missing, before: "select count(*) from {table} where venue is null", gives: 1}
          - {after: "select market, cents from {table}", gives: [[xnys, 1050], [none, 2050]]}
          - name: no row is lost
            after: select (select count(*) from {table}) - (select count(*) from {before})
            gives: 0
          - {name: every market is known, after: "select id from {table} where market is null"}
    allow: [destructive]
"""


@pytest.mark.parametrize(
    ("format_version", "mode"),
    [(1, "copy-on-write"), (2, "merge-on-read")],
)
def test_rows_are_filled_asked_about_and_published(desk: Desk, format_version: int, mode: str) -> None:
    desk.created(format_version, mode)
    desk.file("0002", FILL)
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, market, cents, legs.*") == [
        (1, "xnys", 1050, "BUY", 10),
        (2, "none", 2050, "SELL", 20),
    ]
    assert desk.refs() == {
        "main",
        "icemigrate-desk-0001",
        "icemigrate-desk-0002",
        "icemigrate-desk-0002-before",
    }
    assert desk.rows(at=" VERSION AS OF 'icemigrate-desk-0002-before'") == [(1, "xnys"), (2, None)]
    assert "price" not in desk.spark.table(desk.table).columns
    assert desk.project.plan().is_empty
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, venue, price, legs.*") == [(1, "xnys", 10.5, "buy", 1), (2, None, 20.5, "sell", 2)]


RETYPE = """
    allow: [destructive, incompatible]
    tables:
      - name: db.trades
        retype:
          id: {to: string, using: "concat('T', cast(id as string))"}
          price: {to: "decimal(12,2)", using: "cast(price as decimal(12,2))"}
        columns: [{name: note, type: string, after: price}]
"""


def columns(desk: Desk) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in desk.spark.table(desk.table).schema.fields][:4]


@pytest.mark.parametrize(("format_version", "mode"), [(1, "copy-on-write"), (3, "merge-on-read")])
def test_a_column_is_retyped_in_its_place_and_comes_back_as_it_was(
    desk: Desk, format_version: int, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.created(format_version, mode)
    before = columns(desk)
    desk.file("0002", RETYPE)
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, price") == [("T1", Decimal("10.50")), ("T2", Decimal("20.50"))]
    assert columns(desk) == [
        ("id", "string"),
        ("venue", "string"),
        ("price", "decimal(12,2)"),
        ("note", "string"),
    ]
    assert desk.project.plan().is_empty
    desk.insert("('T3', 'xlon', 30.5, 'late', named_struct('side', 'buy', 'size', 3))")
    capsys.readouterr()
    desk.run("rollback", "--auto-approve")
    # Rows that are marked as deleted stand in the files too.
    share = "2 of 3 rows" if mode == "copy-on-write" else ""
    assert f"values of id, price that are still in the files: {share}" in capsys.readouterr().out
    assert columns(desk) == [*before, ("legs", "struct<side:string,size:int>")][:4]
    assert set(desk.rows("id, price, venue")) == {(1, 10.5, "xnys"), (2, 20.5, None), (None, None, "xlon")}


NESTED = """
    allow: [destructive]
    tables:
      - name: db.trades
        renames: {legs.side: legs.way}
        retype:
          legs.size: {to: string, using: "concat('S', legs.size)"}
          legs.way: {to: boolean, using: legs.way = 'buy'}
"""


def test_fields_of_structs_are_retyped_and_a_struct_that_is_null_stays_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkSession,
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark, ", publish: direct").created(3)
    desk.insert("(3, 'xlon', 1.5, null), (4, 'xpar', 2.5, named_struct('side', null, 'size', null))")
    before, fields = desk.rows("id, legs"), desk.engine.table(TableName.parse("db.trades"))
    desk.file("0002", NESTED)
    desk.run("apply", "--auto-approve")
    after = [(1, (True, "S1")), (2, (False, "S2")), (3, None), (4, (None, None))]
    assert desk.rows("id, legs") == after
    assert (
        desk.spark.table(desk.table).schema["legs"].dataType.simpleString()
        == "struct<way:boolean,size:string>"
    )
    assert desk.project.plan().is_empty
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, legs") == before
    again = desk.engine.table(TableName.parse("db.trades"))
    assert fields is not None
    assert again is not None
    assert again.schema.fields == fields.schema.fields
    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert desk.rows("id, legs") == after


def test_a_value_that_became_null_stops_a_retype_and_nobody_saw_it(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.created()
    before = columns(desk)
    desk.file(
        "0002",
        """
        allow: [destructive]
        tables:
          - name: db.trades
            retype: {venue: {to: int, using: try_cast(venue as int)}}
        """,
    )
    assert main(["apply", "--auto-approve"]) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert "values of venue that became null: expected 0, got 1" in told
    assert "no table was changed" in told
    assert columns(desk) == before
    assert desk.rows() == [(1, "xnys"), (2, None)]
    assert not any(map(is_icemigrate_branch, desk.refs()))


OVERWRITE = """
    allow: [destructive]
    tables:
      - name: db.trades
        columns: [{name: note, type: string}]
        backfill: [{set: {venue: upper(venue), note: "'seen'"}, where: id = 1}]
"""


def test_rows_go_back_only_with_a_word_about_newer_ones(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.created()
    desk.file("0002", OVERWRITE)
    desk.run("apply", "--auto-approve")
    desk.insert("(3, 'xlon', 30.5, named_struct('side', 'buy', 'size', 3), 'late')")
    desk.insert("(4, 'xams', 40.5, named_struct('side', 'buy', 'size', 4), 'late')")
    capsys.readouterr()
    assert main(["rollback", "--auto-approve"]) == ExitCode.FINDINGS
    told = "".join(capsys.readouterr())
    assert "`db.trades` was written to since the migration: 2 snapshots, 2 rows in 2 new files" in told
    assert "--discard-new-data" in told
    assert "--metadata-only" in told
    assert desk.rows("id, venue, note")[0] == (1, "XNYS", "seen")

    desk.run("rollback", "--metadata-only", "--auto-approve")
    assert desk.rows() == [(1, "XNYS"), (2, None), (3, "xlon"), (4, "xams")]
    assert "note" not in desk.spark.table(desk.table).columns

    # The rows that stayed are none that the second time has published.
    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert desk.rows("id, venue, note")[0] == (1, "XNYS", "seen")
    desk.insert("(5, 'xpar', 50.5, named_struct('side', 'buy', 'size', 5), 'late')")
    desk.run("rollback", "--discard-new-data", "--auto-approve")
    assert desk.rows() == [(1, "XNYS"), (2, None), (3, "xlon"), (4, "xams")]


@pytest.mark.parametrize("settings", [", publish: direct", ", record: history"])
def test_other_ways_of_publishing_and_recording_lead_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, settings: str
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark, settings).created()
    desk.file("0002", FILL)
    desk.file(
        "0003",
        "{allow: [destructive], tables: [{name: db.trades, retype: {cents: {to: string, "
        "using: cast(cents as string)}}}]}",
    )
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, market, cents") == [(1, "xnys", "1050"), (2, "none", "2050")]
    desk.run("rollback", "--to", "0001", "--auto-approve")
    assert desk.rows("id, venue, price, legs.side") == [(1, "xnys", 10.5, "buy"), (2, None, 20.5, "sell")]


def test_a_table_without_rows_is_asked_and_not_written(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0001", CREATE.replace("FORMAT", "2").replace("MODE", "copy-on-write"))
    desk.file("0002", OVERWRITE + '        checks: [{after: "select count(*) from {table}", gives: 0}]\n')
    desk.run("apply", "--auto-approve")
    assert "the table has no rows, so none are written" in "".join(capsys.readouterr())
    assert desk.rows("id, note") == []
    desk.insert("(3, 'xlon', 30.5, named_struct('side', 'buy', 'size', 3), 'late')")
    desk.run("rollback", "--auto-approve")
    assert desk.rows() == [(3, "xlon")]


def test_statements_are_counted_through_and_told_of_the_table_as_it_is_called_then(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rename runs on the table itself, what alters it on a copy, and rows on a branch."""
    desk.created()
    desk.file(
        "0002",
        "tables: [{name: db.deals, renamed_from: db.trades, renames: {venue: market}, "
        "columns: [{name: note, type: string}], backfill: [{set: {note: upper(market)}}]}]",
    )
    capsys.readouterr()
    desk.run("apply", "--auto-approve")
    told = re.findall(r"\[(\d)/(\d)\] (\S+)(?: \(on a copy\))?: ", capsys.readouterr().err)
    assert told == [(str(n), "6", "db.trades" if n == 1 else "db.deals") for n in range(1, 7)]


def test_where_main_moves_meanwhile_the_rows_are_written_again(desk: Desk) -> None:
    desk.created()
    desk.file("0002", OVERWRITE.replace("where: id = 1", "where: venue is not null"))
    notes: list[str] = []
    late = iter([3, 4])

    def listen(event: Event) -> None:
        if isinstance(event, NoteAdded):
            notes.append(event.text)
        if isinstance(event, StatementFinished) and event.text.startswith("UPDATE"):
            number = next(late, None)
            if number is not None:
                desk.insert(f"({number}, 'late', 1.0, null, null)")

    desk.project.apply(spark=desk.spark, on_event=listen)
    assert desk.rows("id, venue, note") == [
        (1, "XNYS", "seen"),
        (2, None, None),
        (3, "LATE", "seen"),
        (4, "LATE", "seen"),
    ]
    assert [n for n in notes if "writing its rows again" in n] == [
        f"another client wrote to the table meanwhile; writing its rows again: try {n} of 5" for n in (2, 3)
    ]
    desk.run("rollback", "--auto-approve")
    assert desk.rows() == [(1, "xnys"), (2, None), (3, "late"), (4, "late")]


def test_a_check_that_does_not_hold_undoes_all_though_others_wrote_meanwhile(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.created()
    desk.file(
        "0002",
        OVERWRITE + '        checks: [{name: none is new, after: "select id from {table} where id > 2"}]\n',
    )
    desk.insert("(3, 'xlon', 30.5, null)")
    assert main(["apply", "--auto-approve"]) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert "none is new: expected no rows, got 1 row: (3)" in told
    assert "no table was changed" in told
    assert desk.rows() == [(1, "xnys"), (2, None), (3, "xlon")]
    assert "note" not in desk.spark.table(desk.table).columns
    assert desk.refs() == {"main", "icemigrate-desk-0001"}, "nothing is left that says that it was applied"
    assert desk.project.plan().plan.migrations[0].version == "0002"


def test_nobody_sees_rows_of_a_migration_when_those_of_one_table_do_not_hold(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a type is widened beside the rows: files on a branch that is gone are nobody's."""
    desk.created()
    seen = desk.main()
    desk.file(
        "0002",
        """
        allow: [destructive]
        tables:
          - name: db.trades
            retype: {id: {to: string, using: cast(id as string)}}
            columns: [{name: legs.size, type: long}]
            backfill: [{set: {venue: upper(venue)}}]
          - name: db.notes
            columns: [{name: id, type: long}]
            checks: [{name: there are notes, after: "select count(*) > 0 from {table}", gives: true}]
        """,
    )
    assert main(["apply", "--auto-approve"]) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert "there are notes: expected true, got false" in told
    assert "no table was changed" in told
    assert desk.rows("id, venue") == [(1, "xnys"), (2, None)]
    assert desk.main() == seen


def test_a_retype_that_was_taken_back_is_applied_again(desk: Desk) -> None:
    desk.created()
    desk.file("0002", RETYPE)
    desk.run("apply", "--auto-approve")
    desk.run("rollback", "--auto-approve")
    desk.insert("(3, 'xlon', 30.5, named_struct('side', 'buy', 'size', 3))")
    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert desk.rows("id, price") == [(f"T{n}", Decimal(f"{n}0.50")) for n in (1, 2, 3)]
    assert columns(desk)[2] == ("price", "decimal(12,2)")
    assert desk.project.plan().is_empty


def test_an_expression_that_spark_does_not_understand_is_told_before_the_table_is_touched(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.created()
    desk.file("0002", OVERWRITE.replace("upper(venue)", "uper(venue)"))
    before = desk.engine.metadata_location(TableName.parse("db.trades"))
    for command in (["plan", "--rehearse"], ["apply", "--auto-approve"]):
        assert main(command) == ExitCode.FINDINGS
        told = "".join(capsys.readouterr())
        assert "migrations/0002_step.yaml:6:23: error: fill venue = uper(venue): [UNRESOLVED_ROUTINE]" in told
        assert "no table was changed" in told
    assert desk.engine.metadata_location(TableName.parse("db.trades")) == before


def test_what_a_dead_run_wrote_on_its_branch_does_not_keep_a_type_from_going_back(desk: Desk) -> None:
    desk.file("0001", "tables: [{name: db.trades, columns: [{name: id, type: int}, {name: n, type: int}]}]")
    desk.run("apply", "--auto-approve")
    desk.insert("(1, 2)")
    desk.file(
        "0002",
        "allow: [destructive]\n"
        "tables: [{name: db.trades, columns: [{name: id, type: long}], backfill: [{set: {n: 3}}]}]\n",
    )

    def die(event: Event) -> None:
        if isinstance(event, StatementFinished) and event.text.startswith("UPDATE"):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        desk.project.apply(spark=desk.spark, on_event=die)
    assert any(is_branch_of(name, "desk", "0002") for name in desk.refs())
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, n") == [(1, 2)]
    assert dict(desk.spark.table(desk.table).dtypes)["id"] == "int"
    assert not any(map(is_icemigrate_branch, desk.refs()))


@pytest.mark.parametrize("filled", ["venue: upper(venue)", "note: upper(venue)"])
def test_a_type_goes_back_with_the_rows_that_were_written_under_it(
    desk: Desk, filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files that stand in its way are the migration's own, and go with its rows; not without them."""
    desk.created()
    columns = "[{name: legs.size, type: long}, {name: note, type: string}]"
    text = f"tables: [{{name: db.trades, columns: {columns}, backfill: [{{set: {{{filled}}}}}]}}]"
    desk.file("0002", f"allow: [destructive]\n{text}")
    desk.run("apply", "--auto-approve")
    assert desk.rows("legs.size") == [(1,), (2,)]
    assert main(["rollback", "--auto-approve", "--metadata-only"]) == ExitCode.FINDINGS
    assert "`legs.size` cannot be `int` again" in capsys.readouterr().out
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, venue, legs.size") == [(1, "xnys", 1), (2, None, 2)]
    assert dict(desk.spark.table(desk.table).dtypes)["legs"] == "struct<side:string,size:int>"


LATE = "{allow: [destructive], tables: [{name: db.trades, retype: {venue: {to: int, using: length(venue)}}}]}"


def late_writer(desk: Desk, *, begins: str, is_dead: bool = False) -> Callable[[Event], None]:
    """Writes a row once, when a statement begins or ends that has this text; and may die then."""
    left = ["(9, 'late', 9.5, null)"]

    def listen(event: Event) -> None:
        if left and isinstance(event, StatementFinished) and begins in event.text:
            names = "id, venue, price, legs"
            desk.spark.sql(f"INSERT INTO {desk.table} ({names}) VALUES {left.pop()}")
            if is_dead:
                raise KeyboardInterrupt

    return listen


@pytest.mark.parametrize("settings", ["", ", publish: direct"])
def test_a_row_that_comes_before_columns_are_swapped_keeps_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, settings: str
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark, settings).created()
    desk.file("0002", LATE)
    # A copy is altered before all lands at once, or rows are out and the table is altered then.
    begins = "fast_forward" if settings else "RENAME COLUMN"
    result = desk.project.apply(spark=desk.spark, on_event=late_writer(desk, begins=begins))
    assert desk.rows() == [(1, 4), (2, None), (9, 4)]
    told = "another client added rows" if settings else "writing its rows again: try 2 of 5"
    assert [told in note for note in result.notes].count(True) == 1
    desk.run("rollback", "--auto-approve")
    assert desk.rows() == [(1, "xnys"), (2, None), (9, "late")]


def test_a_row_that_comes_while_nobody_goes_on_keeps_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark, ", publish: direct").created()
    desk.file("0002", LATE)
    with pytest.raises(Interrupted):
        desk.project.apply(spark=desk.spark, on_event=late_writer(desk, begins="fast_forward", is_dead=True))
    desk.run("apply", "--auto-approve")
    assert desk.rows() == [(1, 4), (2, None), (9, 4)]


def test_the_first_row_of_a_table_comes_while_its_column_is_retyped(desk: Desk) -> None:
    desk.file("0001", CREATE.replace("FORMAT", "2").replace("MODE", "copy-on-write"))
    desk.run("apply", "--auto-approve")
    desk.file("0002", LATE)
    desk.project.apply(spark=desk.spark, on_event=late_writer(desk, begins="RENAME COLUMN"))
    assert desk.rows() == [(9, 4)]
