"""SQL that lacks quotes: around the name of a column, or twice inside a text."""

from __future__ import annotations

import pytest

from icemigrate.errors import ExitCode, UsageError
from icemigrate.table_data.query_tables import query_sql, query_table
from icemigrate.table_data.row_changes import delete_data, update_data
from icemigrate.table_data.sql_quotes import quote_hint
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

TABLE = """
columns:
  - {name: id, type: long}
  - {name: city, type: string}
  - {name: ordered at, type: timestamptz}
  - {name: order-id, type: long}
  - {name: 2fa, type: boolean}
  - {name: group, type: long}
  - {name: at, type: long}
  - {name: address, type: 'struct<`zip code`: string>'}
"""
NAMES = [
    ("ordered at > 3", '"ordered at"'),
    ("id = 1 AND ordered  AT IS NULL", '"ordered at"'),
    ("order-id > 3", '"order-id"'),
    ("2fa", '"2fa"'),
    ("group = 1", '"group"'),
    ("at IS NULL", '"at"'),
    ("address.zip code = '1'", '"zip code"'),
]


@pytest.fixture(scope="module")
def table(_shared: WrittenTables) -> str:
    return _shared.create(TABLE)


@pytest.mark.parametrize(("text", "meant"), NAMES)
def test_a_name_that_is_no_plain_word_is_suggested_in_quotes(
    written: WrittenTables, table: str, text: str, meant: str
) -> None:
    calls = (
        lambda: query_table(written.session, table, text),
        lambda: delete_data(written.session, table, text),
        lambda: update_data(written.session, table, {"id": "1"}, text),
        lambda: update_data(written.session, table, {"id": f"CASE WHEN {text} THEN 1 END"}, "true"),
    )
    for call in calls:
        with pytest.raises(UsageError) as error:
            call()
        assert (error.value.hint or "").startswith(f"did you mean `{meant}`? ")


def test_a_query_gets_the_same_hint(written: WrittenTables, table: str) -> None:
    with pytest.raises(UsageError) as error:
        query_sql(written.session, f"SELECT order-id FROM {table}")
    assert (error.value.hint or "").startswith('did you mean `"order-id"`? ')


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("city = 'O'Hara'", "text twice: 'O''Hara'"),
        ("city = 'O'Hara' OR city = 'D'Arcy'", "text twice: 'O''Hara'"),
        ("city = 'it's' AND id = 1", "text twice: 'it''s'"),
        (r"city = 'O\'Hara'", "text twice: 'O''Hara'"),
        ("city IN ('Oslo', 'Aix'en')", "text twice: 'Aix''en'"),
        ('"a"b" = 1', 'name twice: "a""b"'),
    ],
)
def test_a_quote_inside_a_text_is_suggested_twice(
    written: WrittenTables, table: str, text: str, meant: str
) -> None:
    calls = (
        lambda: query_table(written.session, table, text),
        lambda: query_sql(written.session, f"SELECT * FROM {table} WHERE {text}"),
        lambda: delete_data(written.session, table, text),
        lambda: update_data(written.session, table, {"id": f"CASE WHEN {text} THEN 1 END"}, "true"),
    )
    for call in calls:
        with pytest.raises(UsageError) as error:
            call()
        assert error.value.hint == f"write a quote inside a {meant}"


@pytest.mark.parametrize(
    "text",
    [
        "id > > 3",
        '"ordered at" > > 3',
        "city = 'ordered at' > >",
        "city = 'Oslo'AND id > > 3 OR city = 'Rome'",
        "reordered at > > 3",
        "city = 'Oslo",
    ],
)
def test_other_mistakes_get_no_such_hint(text: str) -> None:
    assert quote_hint(text, ["id", "city", "ordered at", "order-id"]) is None


@pytest.mark.parametrize("text", ["CASE WHEN nme = 1 THEN true END", "nme IN (1)", "nme = 1 AND true"])
def test_a_keyword_of_valid_sql_is_no_name(text: str) -> None:
    assert quote_hint(text, ("end", "in", "and", "name")) is None


def test_a_long_text_is_not_repeated() -> None:
    assert quote_hint(f"city = 'O'{'x' * 100}'") == "write a quote inside a text twice"


def test_the_command_shows_the_hint_below_the_error(
    written: WrittenTables, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = written.project.run
    assert run("table", "query", table, "--where", "city = 'O'Hara'") == ExitCode.USAGE
    assert capsys.readouterr().err.endswith("\n    write a quote inside a text twice: 'O''Hara'\n")
    assert run("table", "delete", table, "--where", "ordered at > 3") == ExitCode.USAGE
    assert '    did you mean `"ordered at"`? ' in capsys.readouterr().err
