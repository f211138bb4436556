"""Values of options that are no numbers, or no words of a list: each message says what to write."""

from __future__ import annotations

import click
import pytest

from icemigrate.cli import main
from icemigrate.cli.group import LEAF_COMMANDS, command_of
from icemigrate.cli.option_types import DecimalNumber, OneOf, WholeNumber
from icemigrate.errors import ExitCode

PARAMS = [(name, param) for name in LEAF_COMMANDS for param in command_of(name).params]

LIMITS = "0 to 1,000,000,000,000,000,000, such as `10`"


def message(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """What follows `error:` for wrong usage."""
    assert main(args) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()[-1].removeprefix("error: ")


def test_no_option_has_a_type_whose_messages_are_those_of_click() -> None:
    own = (OneOf, WholeNumber, DecimalNumber)
    theirs = (click.Choice, click.IntRange, click.FloatRange, type(click.INT), type(click.FLOAT))
    found = [
        (name, param.name)
        for name, param in PARAMS
        if isinstance(param.type, theirs) and not isinstance(param.type, own)
    ]
    assert found == []
    assert {type(param.type) for _, param in PARAMS} >= set(own)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (
            "table query a.b --limit abc",
            "`--limit`: `abc` is not a whole number: write a whole number, " + LIMITS,
        ),
        (
            "table query a.b --limit -1",
            "`--limit`: `-1` is out of range: write a whole number, " + LIMITS,
        ),
        (
            "table files a.b --limit 1.5",
            "`--limit`: `1.5` is not a whole number: write a whole number, " + LIMITS,
        ),
        (
            "table compare a.b --from x --samples 1001",
            "`--samples`: `1001` is out of range: write a whole number, 0 to 1,000, such as `5`",
        ),
        (
            "table expire a.b --days abc",
            "`--days`: `abc` is not a decimal number: write a number of days, such as `7` or `0.5`",
        ),
        (
            "table expire a.b --days nan",
            "`--days`: `nan` is not a decimal number: write a number of days, such as `7` or `0.5`",
        ),
        (
            "table expire a.b --days 7d",
            "`--days`: `7d` is not a decimal number: write a number of days, such as `7` or `0.5`",
        ),
        (
            "generate a.b --rows 1e6",
            "`--rows`: `1e6` is not a whole number: write a whole number, such as `1000`",
        ),
        ("table query a.b --format jsn", "`--format`: `jsn` is unknown: did you mean `json`?"),
        (
            "table insert a.b --data x --data-format xml",
            "`--data-format`: `xml` is unknown: write one of `csv`, `tsv`, `json`, `parquet`, `arrow`",
        ),
        ("completion ksh", "`SHELL`: `ksh` is unknown: did you mean `zsh`?"),
        ("table query", "`icemigrate table query` needs the argument `NAME`"),
        ("table query a.b --limit", "`--limit` needs a value: write `--limit NUMBER`"),
        ("--env", "`--env` needs a value: write `--env NAME`"),
        ("table --env", "`--env` needs a value: write `--env NAME`"),
        (
            "table query a.b --format",
            "`--format` needs a value: write `--format [table|csv|json|parquet|text]`",
        ),
        ("table query a.b --explain=yes", "`--explain` takes no value: write `--explain` alone"),
        (
            "table describe a.b c.d",
            "`icemigrate table describe` takes no more argument, but got `c.d`: remove it, or put quotes "
            "around a value with spaces",
        ),
    ],
)
def test_a_message_says_what_to_write(args: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message(capsys, *args.split()) == expected


def test_a_long_value_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    text = message(capsys, "table", "query", "a.b", "--limit", "9" * 5_000)
    assert f"`{'9' * 40}…` is out of range" in text
    assert len(text) < 200


@pytest.mark.parametrize(("text", "number"), [("+7", 7), (" 7 ", 7), ("007", 7)])
def test_a_number_may_have_a_sign_spaces_and_zeros(text: str, number: int) -> None:
    assert WholeNumber(0, 10, example="1").convert(text, None, None) == number


@pytest.mark.parametrize(("text", "number"), [("7", 7.0), (".5", 0.5), ("1.", 1.0), ("-1.5", -1.5)])
def test_a_number_with_a_fraction(text: str, number: float) -> None:
    assert DecimalNumber("one").convert(text, None, None) == number
