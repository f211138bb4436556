"""Queries on real tables without Java: rows, time travel, and what a query may not do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import ExitCode, IcemigrateError, UsageError
from icemigrate.table_data.insert_rows import insert_data
from icemigrate.table_data.query_readers import ReaderKind
from icemigrate.table_data.query_tables import open_sql_query, open_table_query, query_sql, query_table
from icemigrate.table_data.table_points import ReadPoint
from icemigrate.table_data.table_session import TableSession
from tests.support.stored_rows import append_stored
from tests.support.table_project import ORDERS, TableProject
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

FIRST = {"id": 1, "customer": "ann", "amount": "1.50", "at": "2026-01-01T00:00:00+00:00"}
SECOND = {"id": 2, "customer": None, "amount": "2.50", "at": "2026-01-02T00:00:00+00:00"}
RENAMED = """\
allow: [destructive]
tables:
  - name: sales.orders
    renames: {customer: buyer}
    drop_columns: [amount]
  - name: sales.empty
    columns: [{name: id, type: long}]
"""


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """Two snapshots of `sales.orders`, the first one tagged `one`, before a rename and a drop."""
    project = TableProject.create(tmp_path_factory.mktemp("sales"), ORDERS)
    append_stored(project, "sales.orders", [FIRST], "one")
    append_stored(project, "sales.orders", [SECOND])
    project.migrate(2, RENAMED)
    return project


@pytest.fixture
def tables(sales: TableProject) -> Iterator[TableSession]:
    """The tables of the project, open."""
    with sales.tables() as session:
        yield session


def log(tables: TableSession) -> list[dict[str, Any]]:
    return list(tables.load("sales.orders").metadata["snapshot-log"])


def test_current_rows_have_the_current_columns(tables: TableSession) -> None:
    rows = query_table(tables, "sales.orders", "id > 1 -- the second", ["buyer", "id"], 5)
    assert rows.to_pylist() == [{"buyer": None, "id": 2}]
    assert query_table(tables, "sales.orders", limit=0).column_names == ["id", "buyer", "at"]
    assert query_table(tables, "sales.empty").num_rows == 0


def test_an_earlier_state_has_its_own_columns(tables: TableSession) -> None:
    first = log(tables)[0]
    at = datetime.fromtimestamp(first["timestamp-ms"] / 1000, timezone.utc)
    for point in (
        ReadPoint(snapshot_id=first["snapshot-id"]),
        ReadPoint(tag="one"),
        ReadPoint(ref="one"),
        ReadPoint(timestamp=at),
        *(ReadPoint(snapshot=text) for text in (str(first["snapshot-id"]), "one", at.isoformat())),
    ):
        (row,) = query_table(tables, "sales.orders", at=point).to_pylist()
        assert (row["customer"], row["amount"]) == ("ann", Decimal("1.50"))
    for branch in (ReadPoint(branch="main"), ReadPoint(snapshot="main")):
        assert query_table(tables, "sales.orders", at=branch).column_names[1] == "buyer"
    late = ReadPoint(timestamp=at + timedelta(days=9999))
    assert query_table(tables, "sales.orders", at=late).num_rows == 2


@pytest.mark.parametrize(
    ("point", "message", "hint"),
    [
        ({"snapshot_id": 12}, "has no snapshot 12", "`icemigrate table snapshots sales.orders` lists"),
        ({"snapshot": "12"}, "has no snapshot 12", "`icemigrate table snapshots sales.orders` lists"),
        ({"snapshot": "onee"}, "has no snapshot, tag or branch `onee`", "did you mean `one`?"),
        (
            {"snapshot": "2001-01-01T00:00Z"},
            "no snapshot at or before 2001-01-01T00:00:00+00:00",
            "Z` is the time of the first one",
        ),
        ({"snapshot": "2001-01-99"}, "`2001-01-99` is not a time", "write a day (`2026-01-31`)"),
        ({"tag": "tow"}, "has no tag `tow`", "its tag names begin with"),
        ({"tag": "onee"}, "has no tag `onee`", "did you mean `one`?"),
        ({"tag": "main"}, "has no tag `main`", "`main` is a branch: use `--branch main`"),
        ({"branch": "one"}, "has no branch `one`", "`one` is a tag: use `--tag one`"),
        ({"tag": "one", "branch": "main"}, "`--tag` and `--branch` exclude each other", "one of them"),
        (
            {"timestamp": datetime(2001, 1, 1, tzinfo=timezone.utc)},
            "has no snapshot at or before 2001-01-01T00:00:00+00:00",
            "Z` is the time of the first one",
        ),
    ],
)
def test_a_state_that_is_not_there_is_one_error(
    tables: TableSession, point: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as error:
        query_table(tables, "sales.orders", at=ReadPoint(**point))
    assert message in error.value.message
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT count(*) FROM sales.orders", [(2,)]),
        ("SELECT sales.orders.id FROM sales.orders FOR VERSION AS OF 'one'", [(1,)]),
        ("SELECT max(orders.id) FROM sales.orders FOR TIMESTAMP AS OF TIMESTAMP '2999-01-01'", [(2,)]),
        ('SELECT o.customer FROM "sales"."orders" FOR VERSION AS OF \'one\' AS o', [("ann",)]),
        (
            "SELECT a.id, b.id FROM sales.orders a LEFT JOIN sales.orders FOR VERSION AS OF 'one' b "
            "USING (id) ORDER BY a.id",
            [(1, 1), (2, None)],
        ),
        ("WITH orders AS (SELECT 7 AS id) SELECT id FROM orders", [(7,)]),
        ("WITH o AS (SELECT * FROM sales.orders) SELECT max(id) FROM (SELECT id FROM o) WHERE id IN "
         "(SELECT id FROM sales.orders FOR VERSION AS OF 'one')", [(1,)]),
        ("SELECT 1 UNION ALL SELECT id FROM sales.orders WHERE id = 2", [(1,), (2,)]),
        ("FROM sales.orders SELECT '; FOR VERSION AS OF sales.orders' AS x LIMIT 1;",
         [("; FOR VERSION AS OF sales.orders",)]),
        ("SELECT sum(range) FROM range(3)", [(3,)]),
        ("SELECT id FROM sales.empty", []),
    ],
)  # fmt: skip
def test_a_query_reads_its_tables(tables: TableSession, text: str, rows: list[tuple[Any, ...]]) -> None:
    found = query_sql(tables, text)
    assert [tuple(row.values()) for row in found.to_pylist()] == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "the table function `read_csv` is not allowed"),
        ("SELECT * FROM glob('/etc/*')", "the table function `glob` is not allowed"),
        ("SELECT * FROM duckdb_settings()", "the table function `duckdb_settings` is not allowed"),
        (
            "SELECT * FROM sales.orders, LATERAL duckdb_settings()",
            "the table function `duckdb_settings` is not allowed",
        ),
        (
            "SELECT * FROM sales.orders CROSS JOIN LATERAL read_text('/etc/passwd')",
            "the table function `read_text` is not allowed",
        ),
        ("SELECT * FROM query('SELECT 1')", "the table function `query` is not allowed"),
        ("SELECT * FROM '/etc/passwd'", "`/etc/passwd` has no namespace"),
        ("SELECT * FROM tables", "`tables` has no namespace"),
        ("SELECT getenv('HOME')", "the function `getenv` reads more than tables"),
        ("SELECT current_setting('allowed_directories')", "the function `current_setting` reads more"),
        ("COPY sales.orders TO '/tmp/x'", "`COPY` is not a query"),
        ("ATTACH 'x.db'", "`ATTACH` is not a query"),
        ("INSTALL httpfs", "`INSTALL` is not a query"),
        ("LOAD httpfs", "`LOAD` is not a query"),
        ("PRAGMA version", "`PRAGMA` is not a query"),
        ("SET threads = 1", "`SET` is not a query"),
        ("SELECT 1; SELECT 2", "there are 2 statements"),
        ("", "there is no statement"),
        ("INSERT INTO sales.orders VALUES (1)", "`INSERT` is not a query"),
        ("UPDATE sales.orders SET id = 1", "`UPDATE` is not a query"),
        ("DELETE FROM sales.orders", "`DELETE` is not a query"),
        ("DROP TABLE sales.orders", "`DROP` is not a query"),
        ("CREATE TABLE x AS SELECT 1", "`CREATE` is not a query"),
        ("SELECT * INTO x FROM sales.orders", "`SELECT INTO` writes a table"),
        ("WITH x AS (DELETE FROM sales.orders RETURNING *) SELECT * FROM x", "`DELETE` is not a query"),
        ("SELECT * FROM sales.nope", "there is no table `sales.nope`"),
        ("SELECT nope FROM sales.orders", "the query:1:8: there is no column `nope`"),
        ("SELECT id FROM sales.orders WHERE", "the query:1:29: something is missing near `WHERE`"),
        ("SELECT 'x", "the query:1:8: the quote that begins here is not closed"),
        ("SELECT * FROM sales.orders FOR VERSION AS OF 5", "has no snapshot 5"),
        ("SELECT * FROM sales.orders FOR VERSION AS OF lower('X')", "is no constant"),
        ("SELECT * FROM sales.orders FOR TIMESTAMP AS OF 'monday'", "`monday` is not a time"),
        ("SELECT * FROM sales.orders AT (VERSION => 3)", "`AT (...)` is not supported"),
        ("WITH o AS (SELECT 1) SELECT * FROM o FOR VERSION AS OF 'x'", "`o` is a name of `WITH`"),
    ],
)
def test_anything_else_is_one_error(tables: TableSession, text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        query_sql(tables, text)
    assert message in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "1 = 1; DROP TABLE x",
        "id = 1) UNION SELECT 1 WHERE (1 = 1",
        "id = 1) AND (id = 1",
        "id = 1) ORDER BY (1",
        "id = 1) --",
        "id = 1 /*",
        "id =",
        "nope = 1",
        "id IN (SELECT id FROM read_csv('/etc/passwd'))",
    ],
)
def test_a_condition_is_one_condition(tables: TableSession, condition: str) -> None:
    with pytest.raises(UsageError):
        query_table(tables, "sales.orders", condition)


@pytest.mark.parametrize("condition", ["id", "1", "NULL", "'true'", "id + 1"])
def test_a_condition_has_values_that_are_true_or_false(tables: TableSession, condition: str) -> None:
    with pytest.raises(UsageError, match=r"is a value of type \w+, not a condition"):
        query_table(tables, "sales.orders", where=condition, limit=3)


def test_columns_are_those_of_the_state(tables: TableSession) -> None:
    with pytest.raises(UsageError) as error:
        query_table(tables, "sales.orders", columns=["customer"])
    assert error.value.hint == "its columns are `id`, `buyer`, `at`"
    assert query_table(tables, "sales.orders", columns=["customer"], at=ReadPoint(tag="one")).num_rows == 1
    with pytest.raises(UsageError, match="is given twice"):
        query_table(tables, "sales.orders", columns=["id", "id"])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{folder}/icemigrate.yaml')",
        "COPY (SELECT 1) TO '{folder}/x.csv'",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "SET lock_configuration = false",
        "SET enable_external_access = true",
        "SELECT * FROM '{folder}/icemigrate.yaml'",
    ],
)
def test_duckdb_itself_refuses_other_files(sales: TableProject, tables: TableSession, statement: str) -> None:
    """The second line of defence: even a statement that the first one lets through reads no file."""
    import duckdb

    with open_sql_query(tables, "SELECT * FROM sales.orders") as query:
        with pytest.raises(duckdb.Error):
            query.connection.execute(statement.format(folder=sales.folder))
        assert query.reads[0].reader.kind is ReaderKind.DUCKDB


def test_a_keyword_as_a_name_needs_quotes(tables: TableSession) -> None:
    with pytest.raises(UsageError) as error:
        query_table(tables, "sales.orders", "at IS NOT NULL AND at >= '2026-01-02'")
    assert (error.value.hint or "").startswith('did you mean `"at"`? a name that is a keyword')
    assert query_table(tables, "sales.orders", "\"at\" >= '2026-01-02'").num_rows == 1


def test_equal_names_of_a_result_get_numbers(tables: TableSession) -> None:
    assert query_sql(tables, "SELECT 1 AS id, 2 AS id, 3 AS id_1").column_names == ["id", "id_2", "id_1"]


def test_an_error_in_another_thread_of_duckdb_is_no_interrupt(tables: TableSession) -> None:
    broken = "SELECT CASE WHEN range = 200000 THEN error('broken') ELSE range END AS n FROM range(200001)"
    with open_sql_query(tables, broken) as query:
        for _ in range(100):
            with pytest.raises(UsageError, match="broken"):
                list(query.batches())
            with pytest.raises(UsageError, match="broken"):
                query.fetch(broken)


@pytest.mark.parametrize("content", [None, b"PAR1", b"PAR1" * 50])
def test_a_missing_or_damaged_data_file_is_one_error(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    project = TableProject.create(tmp_path, ORDERS)
    append_stored(project, "sales.orders", [FIRST])
    for file in tmp_path.rglob("data/*.parquet"):
        file.unlink() if content is None else file.write_bytes(content)
    for command in (("query", "sales.orders"), ("delete", "sales.orders", "--where", "id + 0 = id")):
        assert project.run("table", *command) == ExitCode.ERROR
        err = capsys.readouterr().err
        assert "error: a file of `sales.orders` is missing or damaged: " in err
        assert ".parquet" in err
        assert err.endswith("restore the file from a backup\n")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "SELECT\n  é, buyr FROM sales.orders",
            "the query:2:3: there is no column `é`",
            "the columns are",
        ),
        ("SELECT\n  'é', buyr FROM sales.orders", "the query:2:8: ", "did you mean `buyer`?"),
        ("SELECT o.idd FROM sales.orders o", "the query:1:8: there is no column `idd`", "did you mean `id`?"),
        ("SELECT x.id FROM sales.orders", "there is no table `x` in the query", "its tables are `orders`"),
        ("SELECT lenght(buyer) FROM sales.orders", "has no function `lenght`", "did you mean `length`?"),
        (
            "SELECT sum(buyer) FROM sales.orders",
            "has no function `sum(VARCHAR)`",
            "`sum(DECIMAL) -> DECIMAL`",
        ),
        (
            'SELECT id FROM sales.orders WHERE buyer = "Ann"',
            "the query:1:43: there is no column `Ann`",
            "a text has single quotes: 'Ann'",
        ),
        ("SELECT id = 'a FROM sales.orders", "the query:1:13: the quote that begins here is not", "close it"),
    ],
)
def test_a_mistake_in_a_query_has_its_place_and_a_hint(
    tables: TableSession, text: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as error:
        query_sql(tables, text)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


def test_a_mistake_in_a_condition_has_its_place_in_the_condition(tables: TableSession) -> None:
    with pytest.raises(UsageError, match="--where:2:7: there is no column `nam`"):
        query_table(tables, "sales.orders", where="id = 1\n  AND nam = 2")
    with pytest.raises(UsageError, match="--where:1:4: there is no column `nam`"):
        query_table(tables, "sales.orders", where="1 =nam OR id IN (SELECT id FROM sales.orders)")
    with pytest.raises(UsageError, match="--where:1:20: there is no column `y`"):
        query_table(tables, "sales.orders", where="id IN (SELECT id + orders.y FROM sales.orders)")


def test_a_manifest_that_is_removed_during_a_query_is_one_error(written: WrittenTables) -> None:
    table = written.create("columns: [{name: id, type: long}]")
    insert_data(written.session, table, {"id": 1})
    with open_table_query(written.session, table, "id = 1") as query:
        assert query.rows().num_rows == 1
        (manifest,) = query.reads[0].manifests
        Path(manifest.removeprefix("file://")).unlink()
        for read in (query.rows, lambda: query.fetch("SELECT 1")):
            with pytest.raises(IcemigrateError, match=f"a file of `{table}` is missing: another client"):
                read()
