"""Updated, deleted and upserted rows of tables, read by PyIceberg."""

from __future__ import annotations

import io
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icemigrate.errors import ExitCode, IcemigrateError, Mistakes, UsageError
from icemigrate.metadata_engine import data_manifests
from icemigrate.metadata_engine.data_files import data_file_record
from icemigrate.metadata_engine.table_store import CommitConflict, TableCommit
from icemigrate.table_data import row_changes, upsert_rows
from icemigrate.table_data.compare_snapshots import compare_snapshots
from icemigrate.table_data.insert_rows import insert_data
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.row_changes import RowChangeOutcome, delete_data, update_data
from icemigrate.table_data.row_expressions import RowExpression
from icemigrate.table_data.table_session import TableSession
from icemigrate.table_data.upsert_rows import upsert
from tests.support.table_project import TableProject
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

ITEMS = """
format_version: {version}
columns:
  - {{name: id, type: long, required: true}}
  - {{name: city, type: string}}
  - {{name: amount, type: "decimal(10,2)"}}
"""
FIRST = [
    {"id": 1, "city": "Paris", "amount": "1.00"},
    {"id": 2, "city": "Rome", "amount": "2.00"},
    {"id": 3, "city": None, "amount": "3.00"},
]
SECOND = [{"id": 4, "city": "Oslo"}, {"id": 5, "city": "Rome", "amount": "5.00"}]
LAYOUTS = ["1", "2", "2\npartition_by: [city]", "2\npartition_by: [city]\nsort_by: [amount]"]
VERSIONS = pytest.mark.parametrize("layout", LAYOUTS, ids=["v1", "v2", "parts", "sorted"])


def items(written: WrittenTables, layout: str = "2") -> str:
    """A table with two loads, each with files of its own."""
    name = written.create(ITEMS.format(version=layout))
    insert_data(written.session, name, FIRST)
    insert_data(written.session, name, SECOND)
    return name


def ids(written: WrittenTables, name: str) -> list[int]:
    return [row[0] for row in written.rows(name, "id")]


@VERSIONS
def test_rows_whose_condition_is_null_stay(written: WrittenTables, layout: str) -> None:
    name = items(written, layout)
    done = delete_data(written.session, name, "city = 'Rome'")
    assert (done.deleted, done.updated, done.files_removed) == (2, 0, 2)
    assert ids(written, name) == [1, 3, 4]
    *_, snapshot = written.snapshots(name)
    assert snapshot["snapshot-id"] == done.snapshot_id
    assert snapshot["summary"]["total-records"] == "3"
    assert snapshot["summary"]["operation"] in ("overwrite", "delete")


@VERSIONS
def test_only_files_with_such_rows_are_written_again(written: WrittenTables, layout: str) -> None:
    name = items(written, layout)
    before = {task.file.file_path for task in written.static(name).scan().plan_files()}
    done = update_data(written.session, name, {"amount": "amount * 2", "city": "upper(city)"}, "id = 2")
    assert (done.updated, done.files_removed, done.files_added) == (1, 1, 1)
    after = {task.file.file_path for task in written.static(name).scan().plan_files()}
    assert len(before & after) == len(before) - 1
    assert written.rows(name, "id", "city")[:3] == [(1, "Paris"), (2, "ROME"), (3, None)]
    assert [str(row[0]) for row in written.rows(name, "amount")] == ["1.00", "3.00", "4.00", "5.00", "None"]


def test_earlier_snapshots_keep_their_rows(written: WrittenTables) -> None:
    name = items(written)
    (_, second) = written.snapshots(name)
    delete_data(written.session, name, "true")
    assert ids(written, name) == []
    table = written.static(name)
    assert len(table.scan(snapshot_id=second["snapshot-id"]).to_arrow()) == 5
    assert written.snapshots(name)[-1]["summary"]["operation"] == "delete"


def test_a_condition_without_rows_makes_no_snapshot(written: WrittenTables) -> None:
    name = items(written)
    assert delete_data(written.session, name, "id = 99") == RowChangeOutcome()
    assert update_data(written.session, name, {"city": "'x'"}, "id = 99") == RowChangeOutcome()
    empty = written.create(ITEMS.format(version=2))
    assert delete_data(written.session, empty, "true") == RowChangeOutcome()
    assert len(written.snapshots(name)) == 2


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("id =", "is not valid SQL"),
        ("id = 1; DROP TABLE x", "--where:1:7: a condition is one expression, and `;` is not part of it"),
        ("id IN (SELECT 1)", "reads more than one row"),
        ("EXISTS (SELECT * FROM read_csv('/etc/passwd'))", "reads more than one row"),
        ("count(*) > 1", "needs several rows"),
        ("row_number() OVER () = 1", "needs several rows"),
        ("cty = 'x'", "--where:1:1: there is no column `cty`"),
        ("id = 1\n  AND cty = 'x'", "--where:2:7: there is no column `cty`"),
        ('city = "Rome"', "--where:1:8: there is no column `Rome`"),
        ("city > 1", "--where:1:6: a value of type VARCHAR is not comparable with one of type INTEGER"),
        ("substr(id, 1) = '1'", "--where:1:1: DuckDB has no function `substr(BIGINT, INTEGER)`"),
        ("city::int > 1", "`city::int > 1` fails: Could not convert string "),
        ("id", "is a value of type BIGINT, not a condition"),
        ("city > 1 AND nofunction(id)", "is not valid"),
        ("", "--where: the condition is empty"),
    ],
)
def test_a_condition_that_is_not_valid_changes_nothing(
    written: WrittenTables, where: str, message: str
) -> None:
    name = items(written)
    with pytest.raises(UsageError, match="--where") as error:
        delete_data(written.session, name, where)
    assert message in error.value.message
    assert len(written.snapshots(name)) == 2


SET_RETURNING = [
    "unnest([1, 2])",
    "unnest([]::int[])",
    "UNLIST([1, 2])",
    "id + system.main.unnest([1, 2])",
    "[id].unnest()",
    "generate_subscripts([]::int[], 1)",
    "length(regexp_split_to_table(city, 'x'))",
    "CASE WHEN false THEN unnest([1, 2]) ELSE id END",
]


@pytest.mark.parametrize("text", SET_RETURNING)
def test_an_expression_that_gives_several_rows_or_none_changes_nothing(
    written: WrittenTables, text: str
) -> None:
    name = items(written)
    with pytest.raises(UsageError, match=r"--set id: the function `\w+` takes or gives several rows"):
        update_data(written.session, name, {"id": text}, "id = 1")
    with pytest.raises(UsageError, match=r"--where: the function `\w+` takes or gives several rows"):
        delete_data(written.session, name, f"({text}) = 1")
    assert len(written.snapshots(name)) == 2


@pytest.mark.parametrize(
    "call", ["random()", "system.main.random()", "hash(uuid())", "current_query()", "pg_sleep(0)"]
)
def test_a_condition_with_a_volatile_function_changes_nothing(written: WrittenTables, call: str) -> None:
    name = items(written)
    for change in (
        lambda where: delete_data(written.session, name, where),
        lambda where: update_data(written.session, name, {"city": "'x'"}, where),
    ):
        with pytest.raises(UsageError, match="may give another value each time"):
            change(f"{call} IS NOT NULL")
    assert len(written.snapshots(name)) == 2
    assert update_data(written.session, name, {"city": "uuid()::text"}, "id < 3").updated == 2
    assert len({row[0] for row in written.rows(name, "city")}) == 5  # two new texts, null, Oslo and Rome


@VERSIONS
def test_all_statements_of_a_change_have_one_time(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    name, times = items(written, layout), set[str]()
    run = LoadDatabase.query

    def recorded(db: LoadDatabase, sql: str) -> Any:
        if "filename" in sql or "read_parquet" in sql:
            ((time,),) = run(db, "SELECT now()::text")
            times.add(time)
        return run(db, sql)

    monkeypatch.setattr(LoadDatabase, "query", recorded)
    assert update_data(written.session, name, {"amount": "1"}, "now() > '2020-01-01'").updated == 5
    assert len(times) == 1


@VERSIONS
@pytest.mark.parametrize(("text", "rows"), [("unnest([1, 2])", 6), ("unnest([]::int[])", 0)])
def test_new_files_with_another_number_of_rows_are_not_committed(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, layout: str, text: str, rows: int
) -> None:
    """The last layer: an expression that every check lets through."""
    name = written.create(ITEMS.format(version=layout))
    insert_data(written.session, name, [{"id": 1, "city": "Rome"}] * 3)
    monkeypatch.setattr(row_changes, "parse_new_value", lambda text, *_args: RowExpression(text, "INTEGER"))
    before = written.data_files(name)
    with pytest.raises(UsageError, match=f"an expression gives {rows} rows for 3 rows"):
        update_data(written.session, name, {"id": text}, "true")
    assert (ids(written, name), written.data_files(name)) == ([1, 1, 1], before)


def test_a_comment_at_the_end_of_a_condition_hides_nothing(written: WrittenTables) -> None:
    name = items(written)
    assert delete_data(written.session, name, "id = 1 -- only this one").deleted == 1


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ({"amount": "1.255"}, "column `amount` (decimal(10, 2)) cannot have the value `1.255`"),
        ({"amount": "'abc'"}, "column `amount` (decimal(10, 2)) cannot have the value `abc`"),
        ({"id": "NULL"}, "--set id: `NULL`: column `id` (long) is required, and there is no value"),
        ({"city": "'x'", "id": "99999999999999999999"}, "column `id` (long) cannot have the value"),
        ({"id": "true - 1"}, "--set id:1:6: "),
        ({"id": "now()"}, "column `id` (long) has no values of type TIMESTAMP WITH TIME ZONE"),
        ({"city": "ity"}, "--set city:1:1: there is no column `ity`"),
        ({"cty": "1"}, "has no column `cty`"),
        ({"id": "max(id)"}, "needs several rows"),
        ({}, "there is no column to set"),
    ],
)
@pytest.mark.parametrize("where", ["id = 1", "id = 99"])
def test_values_that_do_not_fit_change_nothing(
    written: WrittenTables, updates: dict[str, str], message: str, where: str
) -> None:
    """Types and constants are checked also where no row has the condition."""
    name = items(written)
    files = written.data_files(name)
    with pytest.raises(UsageError) as error:
        update_data(written.session, name, updates, where)
    assert message in error.value.message
    assert (len(written.snapshots(name)), written.data_files(name)) == (2, files)


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        (
            {"city": "'x'", "amount": "id / 3"},
            "--set amount: `id / 3`: column `amount` (decimal(10, 2)) cannot",
        ),
        ({"id": "city"}, "--set id: `city`: column `id` (long) cannot have the value `"),
        ({"id": "nullif(id, 2)"}, "column `id` (long) is required, and there is no value"),
        ({"id": "id + 9223372036854775806"}, "`id + 9223372036854775806` has no value: Overflow in addition"),
    ],
)
@VERSIONS
def test_a_value_of_a_row_that_does_not_fit_is_named(
    written: WrittenTables, layout: str, updates: dict[str, str], message: str
) -> None:
    name = items(written, layout)
    with pytest.raises(UsageError) as error:
        update_data(written.session, name, updates, "city <> 'Bonn'")
    assert message in error.value.message
    assert len(written.snapshots(name)) == 2


def test_a_column_can_become_null(written: WrittenTables) -> None:
    name = items(written)
    update_data(written.session, name, {"city": "NULL", "amount": "'7.5'"}, "id < 3")
    assert [row[1] for row in written.rows(name, "id", "city")] == [None, None, None, "Oslo", "Rome"]


@VERSIONS
def test_upsert_changes_what_differs_and_inserts_the_rest(written: WrittenTables, layout: str) -> None:
    name = items(written, layout)
    data = pa.table({"id": [1, 2, 9], "city": ["Paris", "Bonn", "Lima"]})
    done = upsert(written.session, name, data, ["id"])
    assert (done.inserted, done.updated, done.unchanged) == (1, 1, 1)
    rows = written.rows(name, "id", "city")
    assert rows == [(1, "Paris"), (2, "Bonn"), (3, None), (4, "Oslo"), (5, "Rome"), (9, "Lima")]
    amounts = dict(written.rows(name, "id", "amount"))
    assert (str(amounts[2]), amounts[9]) == ("2.00", None)
    again = upsert(written.session, name, data, ["id"])
    assert again == RowChangeOutcome(unchanged=3)


def test_upsert_into_an_empty_table_inserts_all(written: WrittenTables) -> None:
    name = written.create(ITEMS.format(version=2))
    assert upsert(written.session, name, FIRST, ["id"]).inserted == 3
    assert upsert(written.session, name, FIRST[:1], ["id", "city"]).unchanged == 1


@pytest.mark.parametrize(
    ("data", "on", "message"),
    [
        ([{"id": 1}, {"id": 1}], ["id"], "2 rows of the data have the same key: id = 1"),
        ([{"id": 1}], ["id", "city"], "the data has no column `city`"),
        ([{"id": 1, "city": None}], ["city"], "1 row of the data have no key: `city` is null"),
        ([{"id": 1}], ["nothing"], "has no column `nothing`"),
        ([{"id": 1}], [], "there is no key"),
    ],
)
def test_keys_that_identify_no_row(
    written: WrittenTables, data: list[dict[str, Any]], on: list[str], message: str
) -> None:
    name = items(written)
    with pytest.raises(UsageError, match=message):
        upsert(written.session, name, data, on)
    assert len(written.snapshots(name)) == 2


@pytest.mark.parametrize(
    "files",
    [
        {"a.csv": "id,city\n1,Bonn\n", "b.csv": "id,amount\n2,7\n"},
        {"a.csv": "id,city\n1,Bonn\n", "b.jsonl": '{"id": 2, "city": "Rome", "amount": 7}\n'},
        {"a.jsonl": '{"id": 1, "city": "Bonn"}\n{"id": 2, "amount": 7}\n'},
        {"a.jsonl": '{"id": 1, "city": "Bonn"}\n', "b.jsonl": '{"id": 2, "amount": 7}\n'},
        {
            "a.parquet": pa.table({"id": [1], "city": ["Bonn"]}),
            "b.parquet": pa.table({"id": [2], "amount": ["7"]}),
        },
        {
            "a.arrow": pa.table({"id": [1], "city": ["Bonn"]}),
            "b.arrow": pa.table({"id": [2], "amount": ["7"]}),
        },
        [{"id": 1, "city": "Bonn"}, {"id": 2, "amount": "7"}],
    ],
)
def test_upsert_overwrites_no_value_with_a_column_that_only_other_rows_have(
    written: WrittenTables, files: Any
) -> None:
    name = items(written)
    before = written.rows(name)
    change = partial(upsert, written.session, name, files, ["id"])
    if isinstance(files, dict):
        paths = [written.file(file, _content(file, content)) for file, content in files.items()]
        change = partial(upsert_rows.upsert_files, written.session, name, paths, ["id"])
    with pytest.raises(
        UsageError, match=r"some rows of the data have no `\w+`(| and no `\w+`), and other rows"
    ):
        change()
    assert (written.rows(name), len(written.snapshots(name))) == (before, 2)


def _content(file: str, content: Any) -> str | bytes:
    if isinstance(content, str):
        return content
    stream = io.BytesIO()
    if file.endswith(".parquet"):
        pq.write_table(content, stream)
    else:
        with pa.ipc.new_file(stream, content.schema) as writer:
            writer.write_table(content)
    return stream.getvalue()


def test_upsert_of_no_rows_changes_nothing(written: WrittenTables) -> None:
    name = items(written)
    for data in ([], pa.table({"id": pa.array([], pa.int64())})):
        assert upsert(written.session, name, data, ["id"]) == RowChangeOutcome()


@pytest.mark.parametrize("value", ["uuid()", "random()", "chr(65 + CAST(floor(random() * 9) AS INTEGER))"])
def test_a_new_value_is_evaluated_once(written: WrittenTables, value: str) -> None:
    name = items(written)
    assert update_data(written.session, name, {"city": value}, "id < 3").updated == 2
    assert all(city for _, city in written.rows(name, "id", "city")[:2])


def test_a_new_value_is_evaluated_for_no_other_row(written: WrittenTables) -> None:
    name = items(written)
    update_data(written.session, name, {"amount": "CAST(city AS DECIMAL(10, 2))"}, "city = '1'")
    assert len(written.snapshots(name)) == 2
    update_data(written.session, name, {"city": "'1'"}, "id = 1")
    assert update_data(written.session, name, {"amount": "CAST(city AS INT)"}, "city = '1'").updated == 1


def test_rows_that_do_not_fit_are_not_upserted(written: WrittenTables) -> None:
    name = items(written)
    with pytest.raises(Mistakes, match="1 row does not fit"):
        upsert(written.session, name, pa.table({"id": [1, None]}), ["id"])


def test_a_change_is_made_again_on_the_newest_rows(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, store = items(written), written.session.store
    commit, calls = store.commit, list[int]()

    def fails_once(commits: Any, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            insert_data(written.session, name, [{"id": 6, "city": "Rome"}])
            raise CommitConflict("another writer was faster")
        return commit(commits, *args)

    monkeypatch.setattr(type(store), "commit", lambda _store, *args: fails_once(*args))
    assert delete_data(written.session, name, "city = 'Rome'").deleted == 3
    assert ids(written, name) == [1, 3, 4]
    referenced = {f["file_path"] for f in written.static(name).inspect.all_files().to_pylist()}
    assert {f"file://{path}" for path in written.data_files(name)} == referenced


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("3", "has format version 3, whose rows keep their ids"),
        ("2\nproperties: {write.delete.mode: merge-on-read}", "has `write.delete.mode: merge-on-read`"),
    ],
)
def test_spark_makes_what_python_cannot(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, layout: str, reason: str
) -> None:
    name, notes = items(written, layout), list[str]()
    in_spark = RowChangeOutcome(1, spark_reason=reason)
    monkeypatch.setattr(row_changes, "delete_in_spark", lambda *_args: in_spark)
    monkeypatch.setattr(upsert_rows, "merge_in_spark", lambda *_args: in_spark)
    assert delete_data(written.session, name, "true", notes.append) == in_spark
    assert notes == [f"table `{name}` {reason}"]


@pytest.mark.parametrize(("file_format", "shown"), [("orc", "ORC"), ("AVRO", "Avro")])
def test_spark_changes_rows_of_formats_that_duckdb_does_not_read(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, file_format: str, shown: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(
            data_manifests,
            "data_file_record",
            lambda *args: {**data_file_record(*args), "file_format": file_format},
        )
        name = items(written)
    assert (
        changed_in_spark(written.session, name, monkeypatch)
        == [f"DuckDB does not read table `{name}`, because its data files are in {shown}"] * 3
    )


def test_spark_changes_rows_of_a_partition_whose_nested_field_was_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = "columns: [{name: id, type: long}, {name: at, type: 'struct<city: string, street: string>'}]"
    project = TableProject.create(tmp_path, f"tables: [{{name: s.t, {columns}, partition_by: [at.city]}}]")
    with project.tables() as session:
        insert_data(session, "s.t", [{"id": 1, "at": {"city": "Rome", "street": "Via Appia"}}])
    project.migrate(2, "tables: [{name: s.t, partition_by: []}]")
    project.migrate(3, "allow: [destructive]\ntables: [{name: s.t, drop_columns: [at.city]}]")
    with project.tables() as session:
        assert (
            changed_in_spark(session, "s.t", monkeypatch)
            == [
                "DuckDB does not read table `s.t`, because a partition spec or a delete file needs a nested "
                "field that was dropped"
            ]
            * 3
        )


def changed_in_spark(session: TableSession, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The notes of an update, an upsert and a delete, for which Spark has a substitute."""
    notes, in_spark = list[str](), RowChangeOutcome(1, spark_reason="x")
    monkeypatch.setattr(row_changes, "update_in_spark", lambda *_args: in_spark)
    monkeypatch.setattr(row_changes, "delete_in_spark", lambda *_args: in_spark)
    monkeypatch.setattr(upsert_rows, "merge_in_spark", lambda *_args: in_spark)
    assert update_data(session, name, {"id": "2"}, "id = 1", notes.append) == in_spark
    assert upsert(session, name, [{"id": 1}], ["id"], notes.append) == in_spark
    assert delete_data(session, name, "true", notes.append) == in_spark
    return notes


def test_the_commands_report_counts(written: WrittenTables, capsys: pytest.CaptureFixture[str]) -> None:
    name, run = items(written), written.project.run
    assert run("table", "update", name, "--set", "city='Nice'", "--where", "id = 1") == ExitCode.OK
    assert capsys.readouterr().out.startswith(f"Updated 1 row of {name} in ")
    assert run("table", "snapshots", name) == ExitCode.OK
    assert "Added and deleted count all rows of the files" in capsys.readouterr().out
    path = written.file("u.csv", "id,city\n1,Nice\n8,Bern\n")
    assert run("table", "upsert", name, "--data", path, "--on", "id", "--format", "json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert (document["inserted"], document["updated"], document["unchanged"]) == (1, 0, 1)
    assert run("table", "delete", name, "--where", "id = 99") == ExitCode.OK
    assert capsys.readouterr().out == f"No row of {name} changes.\n"
    path = written.file("new.csv", "id,city\n9,Basel\n")
    assert run("table", "upsert", name, "--data", path, "--on", "id") == ExitCode.OK
    assert "; 1 file added: snapshot " in capsys.readouterr().out
    assert run("table", "delete", name, "--where", "true") == ExitCode.OK
    assert re.search(r"; [234] files removed: snapshot ", capsys.readouterr().out)
    assert run("table", "update", name, "--set", "city", "--where", "true") == ExitCode.USAGE


@pytest.mark.parametrize("change", ["delete", "upsert"])
def test_a_table_that_needs_spark_after_a_conflict_is_changed_there(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    name, store, notes = items(written), written.session.store, list[str]()
    commit, calls = store.commit, list[int]()

    def upgraded_first(commits: Any, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            table = written.session.load(name)
            upgrade = {"action": "upgrade-format-version", "format-version": 3}
            commit([TableCommit(table.name, table.stored, (upgrade,))])
            raise CommitConflict("another writer was faster")
        return commit(commits, *args)

    monkeypatch.setattr(type(store), "commit", lambda _store, *args: upgraded_first(*args))
    in_spark = RowChangeOutcome(1, spark_reason="x")
    monkeypatch.setattr(row_changes, "delete_in_spark", lambda *_args: in_spark)
    monkeypatch.setattr(upsert_rows, "merge_in_spark", lambda *_args: in_spark)
    files = written.data_files(name)
    if change == "delete":
        assert delete_data(written.session, name, "id = 1", notes.append) == in_spark
    else:
        assert upsert(written.session, name, [{"id": 1, "city": "Bonn"}], ["id"], notes.append) == in_spark
    assert notes == [f"table `{name}` has format version 3, whose rows keep their ids"]
    assert written.data_files(name) == files


def test_a_missing_data_file_is_an_error_of_each_change(written: WrittenTables) -> None:
    name = items(written)
    for path in written.data_files(name):
        path.unlink()
    for change in (
        lambda: delete_data(written.session, name, "id = 1"),
        lambda: upsert(written.session, name, [{"id": 1, "city": "Bonn"}], ["id"]),
    ):
        with pytest.raises(IcemigrateError, match="is missing or damaged"):
            change()


def test_structs_of_any_name_are_partitioned_upserted_and_compared(written: WrittenTables) -> None:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    structs = ", ".join(f'{{name: {letter}, type: "struct<v: int>"}}' for letter in letters)
    table = written.create(f'columns: [{{name: id, type: long}}, {structs}]\npartition_by: ["bucket(2, id)"]')

    def row(number: int, value: int) -> dict[str, Any]:
        return {"id": number, **{letter: {"v": value} for letter in letters}}

    first = insert_data(written.session, table, [row(1, 1), row(2, 1)]).snapshot_id
    done = upsert(written.session, table, [row(2, 2), row(3, 3)], ["id"])
    assert (done.updated, done.inserted, done.unchanged) == (1, 1, 0)
    assert [(n, a["v"], z["v"]) for n, a, z in written.rows(table, "id", "a", "z")] == [
        (1, 1, 1),
        (2, 2, 2),
        (3, 3, 3),
    ]
    assert first is not None
    assert done.snapshot_id is not None
    found = compare_snapshots(written.session, table, first, done.snapshot_id, key=["id"]).rows
    assert found is not None
    assert (found.added, found.removed, found.changed) == (1, 0, 1)


@pytest.mark.parametrize("value", ["OSLO", '"OSLO"'])
def test_a_text_whose_quotes_the_shell_removed_has_a_hint(written: WrittenTables, value: str) -> None:
    name = items(written)
    with pytest.raises(UsageError, match="there is no column `OSLO`") as error:
        update_data(written.session, name, {"city": value}, "true")
    assert (error.value.hint or "").endswith("; a text has single quotes: 'OSLO'")
