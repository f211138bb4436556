"""Texts of `--where` and `--set` that are more or less than one expression."""

from __future__ import annotations

import pytest

from icemigrate.errors import UsageError
from icemigrate.table_data.compaction import plan_compaction
from icemigrate.table_data.one_expression import CONDITION, NEW_VALUE, SPARK, require_one_expression
from icemigrate.table_data.query_statements import check_condition
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

NOT_PART = "a condition is one expression, and `{}` is not part of it"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("id=1; drop table x", "w:1:5: " + NOT_PART.format(";"), "remove it and the text after it"),
        ("id=1;", "w:1:5: " + NOT_PART.format(";"), "remove it"),
        ("id=1\n  ; -- end", "w:2:3: " + NOT_PART.format(";"), "remove it"),
        ("(id=1; id=2)", "w:1:6: " + NOT_PART.format(";"), "remove it and the text after it"),
        (";", "w:1:1: " + NOT_PART.format(";"), "remove it"),
        ("id=1, id=2", "w:1:5: " + NOT_PART.format(","), "join conditions by `AND` or `OR`"),
        ("id=1 order  by id", "w:1:6: " + NOT_PART.format("ORDER BY"), "remove it and the text after it"),
        ("id=1 LIMIT 1", "w:1:6: " + NOT_PART.format("LIMIT"), "remove it and the text after it"),
        (
            "limit > 5",
            "w:1:1: " + NOT_PART.format("limit"),
            'put a column of that name in double quotes: `"limit"`',
        ),
        ("order by id", "w:1:1: " + NOT_PART.format("ORDER BY"), "write an expression, such as `id = 7`"),
        (
            "where id=1",
            "w:1:1: " + NOT_PART.format("where"),
            "leave it out: the text is what follows `WHERE`",
        ),
        ("id=1) or (id=2", "w:1:5: `)` closes nothing", "remove it, or open it before"),
        ("(id=1] or true", "w:1:6: `]` closes nothing", "remove it, or open it before"),
        ("id in (1, (2)", "w:1:7: `(` is not closed", "close it"),
        ("note = 'it''s", "w:1:8: the quote that begins here is not closed", "close it"),
        ("note = '--' or\n\"id = 1", "w:2:1: the quote that begins here is not closed", "close it"),
        ("id=1 /* note", "w:1:6: the comment that begins here is not closed", "close it"),
        ("", "w: the condition is empty", "write one, such as `id = 7`"),
        ("-- all", "w: the condition is empty", "write one, such as `id = 7`"),
        (
            "drop table x",
            "w:1:1: `drop` begins a statement, and a condition is one expression",
            "write an expression, such as `id = 7`",
        ),
        (
            "SELECT 1",
            "w:1:1: `SELECT` begins a statement, and a condition is one expression",
            "write an expression, such as `id = 7`",
        ),
    ],
)
def test_what_is_more_or_less_than_a_condition(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        require_one_expression(text, "w", CONDITION)
    assert (error.value.message, error.value.hint) == (message, hint)
    # `table query` reports the same.
    with pytest.raises(UsageError) as error:
        check_condition(text)
    assert error.value.message == message.replace("w", "--where", 1)


@pytest.mark.parametrize(
    "text",
    [
        "note = 'a;b' -- ; no\n",
        '"a;b" = $$;$$ /* ; */ AND l[1:2] = [1, 2]',
        "update = 1",
        "id IS DISTINCT FROM 3",
        "CASE WHEN a IN (1, 2) THEN {'k': 1} END IS NULL",
        "id IN (SELECT id FROM s.t ORDER BY id LIMIT 1)",
    ],
)
def test_one_expression(text: str) -> None:
    require_one_expression(text, "w", CONDITION)


def test_a_new_value() -> None:
    with pytest.raises(
        UsageError, match="--set a:1:2: a new value is one expression, and `,` is not"
    ) as error:
        require_one_expression("1, b = 2", "--set a", NEW_VALUE)
    assert error.value.hint == "repeat `--set` for another column"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("id=1; drop table x", "--where:1:5: " + NOT_PART.format(";"), "remove it and the text after it"),
        ("id = 1) OR (true", "--where:1:7: `)` closes nothing", "remove it, or open it before"),
        (
            "limit > 5",
            "--where:1:1: " + NOT_PART.format("limit"),
            "put a column of that name in backticks: `limit`",
        ),
        ("note = 'it\\'s", "--where:1:8: the quote that begins here is not closed", "close it"),
        ("`a b = 1", "--where:1:1: the quote that begins here is not closed", "close it"),
        ("", "--where: the condition is empty", "write one, such as `id = 7`"),
    ],
)
def test_a_condition_of_a_compaction_is_one_expression_of_spark(
    written: WrittenTables, text: str, message: str, hint: str
) -> None:
    table = written.create("columns: [{name: id, type: long}]")
    with pytest.raises(UsageError) as error:
        plan_compaction(written.session, table, where=text)
    assert (error.value.message, error.value.hint) == (message, hint)


@pytest.mark.parametrize("text", ["note = \"a;b\" AND n = 'it\\'s'", "`a;b` = 1", "note = '--' OR id <=> 2"])
def test_quotes_of_spark(text: str) -> None:
    require_one_expression(text, "w", CONDITION, SPARK)
