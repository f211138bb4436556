"""SQL that reads or writes more than the tables it may, at each place where a user gives SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from icemigrate import IcebergManager
from icemigrate.errors import ExitCode, IcemigrateError, UsageError
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.table_data import row_changes
from icemigrate.table_data.duckdb_statements import open_alone, require_expression, require_reads
from icemigrate.table_data.insert_rows import insert_data
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.row_changes import delete_data, update_data
from icemigrate.table_data.row_expressions import RowExpression
from icemigrate.table_data.spark_expressions import spark_condition
from tests.support.table_project import TableProject

TABLES = """tables:
  - {name: s.t, columns: [{name: id, type: long}, {name: city, type: string}]}
  - {name: s.ids, format_version: 3, columns: [{name: id, type: long}, {name: city, type: string}]}
"""
CONTENT = "content-of-another-file"

ATTACKS = [
    "id IN (SELECT length(content) FROM read_text('{file}'))",
    "EXISTS (FROM read_csv('{file}'))",
    "EXISTS (FROM read_blob('{file}') WHERE error(content::varchar))",
    "error((SELECT content FROM read_text('{file}')))",
    "EXISTS (SELECT * FROM '{file}')",
    "EXISTS (FROM glob('{folder}/*'))",
    "EXISTS (TABLE pg_settings)",
    "EXISTS (SELECT * FROM (WITH pg_settings AS (SELECT 1) SELECT 1), pg_settings)",
    "EXISTS (WITH a AS (TABLE pg_settings), pg_settings AS (SELECT 1) FROM a)",
    "EXISTS (FROM query('SELECT 1'))",
    "EXISTS (FROM s.t, LATERAL read_text('{file}'))",
    "getenv('HOME') IS NULL",
    "current_setting('temp_directory') IS NOT NULL",
    "error(system.main.current_setting('allowed_directories')::varchar)",
    "city.current_setting() IS NULL",
    "len(list_transform([city], lambda c: current_setting('access_mode'))) > 0",
    "getvariable('x') IS NULL",
    "write_log('x') IS NULL",
    "json_serialize_plan('SELECT * FROM read_csv(''{file}'')') IS NOT NULL",
    "true; COPY (SELECT 1) TO '{folder}/written.csv'",
    "true; ATTACH '{folder}/written.db'",
    "true; DROP TABLE s.t",
    "true; SET lock_configuration = false",
    "id = 1) OR (true",
    "id = 1) UNION SELECT content, 1 FROM read_text('{file}') WHERE (true",
    "true) --",
    "true /*",
    "true -- \n) OR EXISTS (FROM read_text('{file}')",
    "city = $$a$$ OR EXISTS (FROM read_text($${file}$$))",
    "city = $t$ $$ $t$ OR EXISTS (FROM read_text($t${file}$t$))",
    "city = '\\' OR EXISTS (FROM read_text('{file}')) --'",
    "city = e'\\' OR true --' OR EXISTS (FROM read_text('{file}'))",
    "city = 'a' /* /* */ ' */ OR EXISTS (FROM read_text('{file}')) --'",
    "true \0 AND id = 2",
    "id = $1",
    "id = ?",
]


class SqlTexts:
    """The places that take SQL of a user, each with a text that is not permitted."""

    def __init__(self, project: TableProject, manager: IcebergManager) -> None:
        self.project, self.manager = project, manager
        first = manager.list_snapshots("s.t")[0]
        self.others: dict[str, Callable[[str], object]] = {
            "query_table": lambda text: manager.query_table("s.t", text),
            "query_snapshot": lambda text: manager.query_snapshot("s.t", first.snapshot_id, text),
            "update_data": lambda text: manager.update_data("s.t", {"city": text}, "true"),
            "update_data where": lambda text: manager.update_data("s.t", {"city": "'x'"}, text),
            "delete_data": lambda text: manager.delete_data("s.t", text),
            "upsert": lambda text: manager.upsert("s.t", [{"id": 1, "city": "x"}], [text]),
        }

    def give(self, place: str, text: str) -> None:
        """Give the text in one place; an error of the project is raised for a refusal."""
        if place in self.others:
            self.others[place](text)
            return
        command, _, option = place.partition(" ")
        args = {
            "sql": ["sql", f"SELECT * FROM s.t WHERE {text}"],
            "query": ["query", "s.t", option, text],
            "update": ["update", "s.t", "--set", "city = 'x'", "--where", text],
            "delete": ["delete", "s.t", option, text],
            "upsert": ["upsert", "s.t", "--data", str(self.project.folder / "rows.csv"), option, text],
        }[command]
        if option == "--set":
            args = ["update", "s.t", option, f"city = {text}", "--where", "true"]
        if self.project.run("table", *args) != ExitCode.OK:
            raise UsageError("refused")


PLACES = ["sql", "query --where", "query --columns", "update --where", "update --set", "delete --where"]
PLACES += ["upsert --on", "query_table", "query_snapshot", "update_data", "update_data where"]
PLACES += ["delete_data", "upsert"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """A project with a row in each table, and a file beside the tables."""
    made = TableProject.create(tmp_path_factory.mktemp("untrusted"), TABLES)
    (made.folder / "file.csv").write_text(f"{CONTENT}\n", encoding="utf-8")
    (made.folder / "rows.csv").write_text("id,city\n1,Rome\n", encoding="utf-8")
    with made.tables() as session:
        for name in ("s.t", "s.ids"):
            insert_data(session, name, [{"id": 1, "city": "Rome"}])
    return made


@pytest.fixture(scope="module")
def texts(project: TableProject) -> Iterator[SqlTexts]:
    with IcebergManager(project.folder) as manager:
        yield SqlTexts(project, manager)


@pytest.mark.parametrize("place", PLACES)
def test_sql_reads_and_writes_tables_alone(
    texts: SqlTexts, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = texts.project.folder
    before = sorted(folder.rglob("*"))
    for attack in ATTACKS:
        text = attack.replace("{file}", str(folder / "file.csv")).replace("{folder}", str(folder))
        with pytest.raises(IcemigrateError) as error:
            texts.give(place, text)
        shown = capsys.readouterr()
        said = f"{shown.out}{shown.err}{error.value.message}".replace(text, "")
        assert CONTENT not in said, attack
        assert "Traceback" not in said, attack
        assert sorted(folder.rglob("*")) == before, attack


def test_the_places_take_what_they_are_for(texts: SqlTexts) -> None:
    """So that the refusals above are of the texts."""
    for place in PLACES:
        if "--set" in place or place == "update_data":
            texts.give(place, "city || ''")
        elif "upsert" in place or "columns" in place:
            texts.give(place, "id")
        else:
            texts.give(place, "city = $$a$$ OR city = 'it''s' /* ) */ OR id = 7 -- )")


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'getenv', 'HOME') = 'x'",
        "java_method('a.B', 'c') IS NULL",
        "parse_url(city, 'HOST') = 'x'",  # sqlglot knows it, and DuckDB does not
        "current_timezone() = 'UTC'",
        "explode([city]) = 'x'",
    ],
)
def test_spark_gets_functions_of_duckdb_alone(
    project: TableProject, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def refused(*_args: Any) -> Any:
        raise AssertionError("Spark gets the expression")

    monkeypatch.setattr(row_changes, "delete_in_spark", refused)
    monkeypatch.setattr(row_changes, "update_in_spark", refused)
    with project.tables() as session:
        with pytest.raises(UsageError, match="DuckDB has no function"):
            delete_data(session, "s.ids", text)
        with pytest.raises(UsageError, match="DuckDB has no function"):
            update_data(session, "s.ids", {"city": text}, "true")


def test_spark_gets_no_comment() -> None:
    columns = [Field(1, "city", Primitive("string"))]
    for text, expected in (
        ("city = 'a' -- */ OR reflect('a') /*", "(city = 'a')"),
        (r"city = '\' AND city <> '$'", r"((city = '\\') AND (city <> '$'))"),
    ):
        assert spark_condition(text, columns, "--where") == expected


@pytest.mark.parametrize("reader", ["read_text('{file}')", "'{file}'", "glob('{folder}/*')"])
def test_duckdb_itself_opens_no_other_file_for_an_expression(
    project: TableProject, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """The last layer: an expression that every check lets through."""
    folder = project.folder
    source = reader.replace("{file}", str(folder / "file.csv")).replace("{folder}", str(folder))
    unchecked = RowExpression(f"EXISTS (FROM {source})")
    monkeypatch.setattr(row_changes, "parse_condition", lambda *_args: unchecked)
    monkeypatch.setattr(row_changes, "parse_new_value", lambda *_args: unchecked)
    with project.tables() as session:
        with pytest.raises(UsageError, match="disabled by configuration"):
            delete_data(session, "s.t", "")
        with pytest.raises(UsageError, match="disabled by configuration"):
            update_data(session, "s.t", {"city": ""}, "")
        assert query_table(session, "s.t").num_rows == 1


QUERIES = [
    ("SELECT * FROM v", None),
    ("FROM v TABLESAMPLE 10%", None),
    ("SELECT (SELECT max(id) FROM V) FROM range(3) r(id)", None),
    ("WITH a AS (SELECT 1), b AS (FROM a) SELECT * FROM b, a UNION ALL SELECT 1, 2 FROM a", None),
    ("WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) FROM a", None),
    ("SELECT * FROM (PIVOT v ON city IN ('x'))", None),
    ("VALUES (1)", None),
    ("SELECT 1; SELECT 2", "DuckDB reads 2 statements"),
    ("", "DuckDB reads no statement"),
    ("PIVOT v ON city", "DuckDB reads 2 statements"),
    ("EXPLAIN SELECT 1", "`EXPLAIN` is not a query"),
    ("COPY v TO 'x'", "`COPY` is not a query"),
    ("PRAGMA version", "Only SELECT statements"),
    ("SHOW TABLES", "`SHOW_REF` is not a query"),
    ("FROM (SUMMARIZE v)", "`SHOW_REF` is not a query"),
    ("FROM 'x.csv'", "`x.csv` is no table of the catalog"),
    ("FROM system.main.duckdb_settings", "`duckdb_settings` is no table of the catalog"),
    ("FROM (WITH t AS (SELECT 1) FROM t), t", "`t` is no table of the catalog"),
    ("WITH a AS (FROM t), t AS (SELECT 1) FROM a", "`t` is no table of the catalog"),
    ("WITH t AS (FROM t) FROM t", "`t` is no table of the catalog"),
    ("WITH RECURSIVE t AS (FROM t UNION ALL FROM t) FROM t", "`t` is no table of the catalog"),
    ("FROM v, LATERAL (FROM glob('*'))", "the table function `glob` is not allowed"),
    ("SELECT v.current_setting() FROM v", "the function `current_setting` reads more than tables"),
    ("SELECT 1 \0 FROM v", "the character U+0000"),
]


@pytest.mark.parametrize(("text", "message"), QUERIES)
def test_duckdb_decides_what_a_query_reads(text: str, message: str | None) -> None:
    import duckdb

    with duckdb.connect() as connection:
        if message is None:
            require_reads(connection, text, ["v"])
            return
        with pytest.raises(UsageError) as error:
            require_reads(connection, text, ["v"])
    assert message in error.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id BETWEEN 1 AND 2 AND NOT l[1:2] IS NULL", None),
        ("CASE WHEN a.b['c'] ILIKE 'x' THEN {'k': TRY_CAST(id AS INT)} END", None),
        ("list_transform([1], lambda x: x + 1) -- all", None),
        ("1, 2", "is not one expression"),
        ("1 AS x", "is not one expression"),
        ("1 FROM v", "is not one expression"),
        ("1 WHERE true", "is not one expression"),
        ("1 UNION SELECT 2", "is not one expression"),
        ("1 LIMIT 1", "is not one expression"),
        ("DISTINCT 1", "is not one expression"),
        ("1) + (2", "is not valid SQL: syntax error"),
        ("1;", "is not valid SQL: syntax error"),
        ("(SELECT 1)", "reads more than one row"),
        ("count(*) OVER ()", "reads more than one row"),
        ("COLUMNS(*)", "reads more than one row"),
        ("#1", "reads more than one row"),
        ("$1", "reads more than one row"),
        ("getvariable('a')", "x: the function `getvariable` reads more than tables"),
        ("+".join(["1"] * 5000), "x: "),
        ("1; SELECT 2", "x: DuckDB reads 2 statements in the text, not an expression"),
        ("1 \0", "x: the SQL has the character U+0000"),
    ],
)
def test_duckdb_decides_what_an_expression_is(text: str, message: str | None) -> None:
    with open_alone() as connection:
        if message is None:
            require_expression(connection, text, "x")
            return
        with pytest.raises(UsageError) as error:
            require_expression(connection, text, "x")
    assert message in error.value.message
    assert "SELECT" not in str(error.value.hint)


@pytest.mark.parametrize(
    "args",
    [
        ("query", "s.t", "--where", "city = '\udcff'"),
        ("query", "s.\udcff"),
        ("query", "s.t", "--columns", "\udcff"),
        ("sql", "SELECT '\udcff'"),
        ("sql", 'SELECT * FROM s."\udcff"'),
        ("update", "s.t", "--set", "city='\udcff'", "--where", "true"),
        ("delete", "s.t", "--where", "city = '\udcff'"),
        ("add-column", "s.t", "\udcff", "string"),
        ("rename-column", "s.t", "city", "\udcff"),
        ("snapshots", "s.\udcff"),
        ("compare", "s.t", "--from", "\udcff", "--to", "main"),
    ],
    ids=lambda args: " ".join(args).encode("ascii", "replace").decode(),
)
def test_an_argument_that_is_not_utf8_is_one_error(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], args: tuple[str, ...]
) -> None:
    project = TableProject.create(tmp_path, TABLES)
    assert project.run("table", *args) not in (ExitCode.OK, ExitCode.INTERRUPTED)
    shown = capsys.readouterr().err
    assert "error: " in shown
    assert "bug" not in shown
