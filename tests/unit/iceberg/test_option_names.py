"""Names of columns in options: quotes, separators, and what is no name."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.names import BadName
from icemigrate.iceberg.option_names import (
    parse_assignment,
    parse_column_names,
    parse_column_path,
    parse_column_paths,
    parse_rename,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id", ("id",)),
        (" id , a b ", ("id", "a b")),
        ('"a b",`a,b`, "a=b"', ("a b", "a,b", "a=b")),
        ("select,x.y", ("select", "x.y")),
        ('"say ""hi""",`a``b`', ('say "hi"', "a`b")),
        ('`say "hi"`,"a`b"', ('say "hi"', "a`b")),
        ('"""quoted"""', ('"quoted"',)),
        ('" spaces "', (" spaces ",)),
    ],
)
def test_names(text: str, names: tuple[str, ...]) -> None:
    assert parse_column_names(text) == names


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("address.zip", ("address", "zip")),
        ('"address.zip"', ("address.zip",)),
        ('address."zip.code".`a,b`', ("address", "zip.code", "a,b")),
        ('"a""b".c', ('a"b', "c")),
        ("a,b", ("a,b",)),
        ("a=b", ("a=b",)),
        ("café 1.x", ("café 1", "x")),
        ("a . b", ("a", "b")),
        ('a. "b"', ("a", "b")),
        ('"a" .  `b`', ("a", "b")),
    ],
)
def test_path(text: str, path: tuple[str, ...]) -> None:
    assert parse_column_path(text) == path


def test_paths() -> None:
    assert parse_column_paths('id, "a,b".c ,`d.e`') == (("id",), ("a,b", "c"), ("d.e",))


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("amount=amount * 2", "amount", "amount * 2"),
        ('"a=b" = "a=b" + 1', "a=b", '"a=b" + 1'),
        ("`a,b`=note = 'x'", "a,b", "note = 'x'"),
        ("a b=1", "a b", "1"),
        ("a.b=1", "a.b", "1"),
        ("id=", "id", ""),
        ("id", "id", None),
    ],
)
def test_assignment(text: str, column: str, value: str | None) -> None:
    assert parse_assignment(text) == (column, value)


def test_rename() -> None:
    assert parse_rename('sales.orders."a=b" = `c d`') == (("sales", "orders", "a=b"), ("c d",))
    assert parse_rename("sales.orders") == (("sales", "orders"), None)
    with pytest.raises(BadName, match="a second `=` in `a=b=c`"):
        parse_rename("a=b=c")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"a,b', 'the quote at character 1 of `"a,b` is not closed'),
        ("id,`a", 'the quote at character 4 of "id,`a" is not closed'),
        ('"""', 'the quote at character 1 of `"""` is not closed'),
        ('"a"b,c', 'text after a closing quote in `"a"b,c`: quote the whole name'),
        (
            '5" disk',
            'the quote at character 2 of `5" disk` is inside a name: write the whole name in backticks',
        ),
        ("a`b", 'the quote at character 2 of "a`b" is inside a name: write the whole name in double quotes'),
        ('""', 'the quote at character 1 of `""` has no name before the closing one'),
        ("", "a name is missing in ``"),
        ("id,,city", "a name is missing in `id,,city`"),
        ("id,", "a name is missing in `id,`"),
    ],
)
def test_what_is_no_name(text: str, reason: str) -> None:
    for parse in (parse_column_names, parse_column_paths):
        with pytest.raises(BadName) as found:
            parse(text)
        assert str(found.value) == reason


@pytest.mark.parametrize("text", ["a.", ".a", 'a."', 'a.""', "a..b"])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(BadName):
        parse_column_path(text)
