"""`check --fix` writes misspelled keys and types right, and `lock` writes the lock file."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.check import check
from icemigrate.errors import ExitCode
from icemigrate.project import open_project
from tests.support.embedded_project import Embedded

WRONG = """\
# Why: the shop asked for it.
descripton: Orders   # as the shop calls them
tables:
  - name: db.orders
    colums:            # two of them
      - {name: id, "typ": long}
      - name: at
        type: timestmptz
      - {name: m, type: "map<strng, list<lng>>"}
"""
RIGHT = (
    WRONG.replace("descripton", "description")
    .replace("colums", "columns")
    .replace('"typ"', '"type"')
    .replace("timestmptz", "timestamptz")
    .replace("strng", "string")
    .replace("lng", "long")
)


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    shop = Embedded(tmp_path)
    shop.write("0001_orders.yaml", WRONG)
    return shop


def test_words_are_corrected_and_everything_else_stays(shop: Embedded) -> None:
    result = check(open_project(shop.folder), fix=True)
    assert (shop.folder / "migrations" / "0001_orders.yaml").read_text() == RIGHT
    assert [d.message for d in result.diagnostics if d.code == "spelling-fixed"]
    assert not [d for d in check(open_project(shop.folder)).diagnostics if d.severity.value == "error"]
    assert (shop.folder / "migrations" / "icemigrate.lock").exists()


def test_without_fix_nothing_is_written(shop: Embedded) -> None:
    check(open_project(shop.folder))
    assert (shop.folder / "migrations" / "0001_orders.yaml").read_text() == WRONG


def test_a_word_without_a_suggestion_stays(shop: Embedded) -> None:
    text = "tables: [{name: db.t, columns: [{name: id, type: long}], qqq: 1}]\n"
    shop.write("0001_orders.yaml", text)
    check(open_project(shop.folder), fix=True)
    assert (shop.folder / "migrations" / "0001_orders.yaml").read_text() == text


def test_terms_of_other_tools_are_corrected(shop: Embedded) -> None:
    text = (
        "tables:\n"
        "  - name: db.t\n"
        "    columns: [{name: id, type: long}, {name: at, type: timestamp}, {name: s, type: string}]\n"
        "    partition_by: ['bucket[16](id)', date(at), \"truncate(s, 4)\"]   # as before\n"
        "    sort_by:\n"
        "      - dayss(at) desc\n"
    )
    shop.write("0001_orders.yaml", text)
    check(open_project(shop.folder), fix=True)
    fixed = (shop.folder / "migrations" / "0001_orders.yaml").read_text()
    assert fixed == (
        text.replace("bucket[16](id)", "bucket(16, id)")
        .replace("date(at)", "day(at)")
        .replace("truncate(s, 4)", "truncate(4, s)")
        .replace("dayss(at)", "days(at)")
    )
    assert not [d for d in check(open_project(shop.folder)).diagnostics if d.severity.value == "error"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("struct<lng: lng>", "struct<lng: long>"),
        ("map<string, struct<strng: int, x: strng>>", "map<string, struct<strng: int, x: string>>"),
        ("struct<x: list<lng>, lng: lng>", "struct<x: list<long>, lng: long>"),
    ],
)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_field_with_the_name_of_a_misspelled_type_keeps_its_name(
    wrong: str, right: str, quote: str, shop: Embedded
) -> None:
    text = f"tables: [{{name: db.t, columns: [{{name: s, type: {quote}{wrong}{quote}}}]}}]\n"
    shop.write("0001_orders.yaml", text)
    check(open_project(shop.folder), fix=True)
    assert (shop.folder / "migrations" / "0001_orders.yaml").read_text() == text.replace(wrong, right)


def test_a_key_that_destroys_is_suggested_and_not_written(shop: Embedded) -> None:
    text = "tables: [{name: db.t, drp: true}]\n"
    shop.write("0001_orders.yaml", text)
    found = check(open_project(shop.folder), fix=True).diagnostics
    assert "did you mean `drop`?" in [d.hint for d in found]
    assert (shop.folder / "migrations" / "0001_orders.yaml").read_text() == text


def test_lock_writes_the_lock_file(
    shop: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.folder)
    assert main(["lock"]) == ExitCode.FINDINGS
    path = shop.folder / "migrations" / "icemigrate.lock"
    assert not path.exists()
    shop.write("0001_orders.yaml", RIGHT)
    assert main(["lock"]) == ExitCode.OK
    assert capsys.readouterr().out == "migrations/icemigrate.lock\n"
    assert "0001" in path.read_text()


def test_a_key_of_another_tool_is_replaced_where_its_value_may_stay(shop: Embedded) -> None:
    text = (
        "tables:\n"
        "  - name: db.t   # one row each\n"
        "    comment: Orders   # as the shop calls them\n"
        "    columns: [{name: id, datatype: long, doc: The id}]\n"
        "    order_by: [id]\n"
    )
    shop.write("0001_orders.yaml", text)
    check(open_project(shop.folder), fix=True)
    fixed = (shop.folder / "migrations" / "0001_orders.yaml").read_text()
    assert fixed == (
        text.replace("comment:", "description:")
        .replace("datatype:", "type:")
        .replace("doc:", "description:")
        .replace("order_by:", "sort_by:")
    )
    assert not [d for d in check(open_project(shop.folder)).diagnostics if d.severity.value == "error"]
