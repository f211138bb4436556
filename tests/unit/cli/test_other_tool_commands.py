"""Commands and options of other tools are answered by what they are here; nothing dangerous is guessed."""

from __future__ import annotations

import re

import pytest

from icemigrate.cli import main
from icemigrate.cli.group import COMMANDS, LEAF_COMMANDS, TABLE_COMMANDS, command_of
from icemigrate.cli.other_tool_commands import (
    CAREFUL_COMMANDS,
    CAREFUL_OPTIONS,
    FOREIGN_COMMANDS,
    FOREIGN_OPTIONS,
    command_hint,
)
from icemigrate.errors import ExitCode

OPTIONS = {option for name in LEAF_COMMANDS for param in command_of(name).params for option in param.opts}


def said(args: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is told behind `error:`."""
    assert main(args.split()) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()[-1].removeprefix("error: ")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        ("apply -auto-approve", "write `--auto-approve`"),
        ("apply -f", "write `--auto-approve`"),
        ("apply --dry-run", "`icemigrate plan` shows what would be done, and changes nothing"),
        ("apply -target=3", "write `--to VERSION`"),
        ("plan -out x", "write `--out`"),
        ("plan -out=x", "write `--out`"),
        ("plan -o x", "write `--out FILE`"),
        ("table insert a.b a.csv", "write `--data a.csv`"),
        ("table upsert a.b a.csv --on id", "write `--data a.csv`"),
        ("--env x table delete a.b id=1 -q", "write `--where id=1`"),
        ("table rollback a.b 12", "write `--snapshot 12`"),
        ("table query a.b id=1", "write `--where id=1`"),
        ("plan --dry-run", "remove it: `plan` changes nothing"),
        ("plan 4", "write `--to 4`"),
        ("status --json", "write `--format json`"),
        ("status -o json", "write `--format json`"),
        ("rollback 4", "`--to 4` rolls back all later versions, `--only 4` that one alone"),
        (
            "rollback --version 4",
            "`--to VERSION` rolls back all later versions, `--only VERSION` that one alone",
        ),
        (
            "unlock --dry-run",
            "remove it: the command shows what it would do and asks before it changes anything",
        ),
        ("rollback --dry-rn", "did you mean `--dry-run`?"),
        ("rollback --plan", "write `--dry-run`"),
        ("rollback -n 2", "`--to VERSION` rolls back all later versions; the default is the last one"),
        ("rollback --steps 2", "`--to VERSION` rolls back all later versions; the default is the last one"),
        ("maintain -n", "write `--dry-run`"),
        ("--json status", "put the options of a command after its name"),
        ("status --formt json", "did you mean `--format`?"),
        ("rollback --metadata-onl", "did you mean `--metadata-only`?"),
        ("migrate", "use `icemigrate apply`"),
        ("info", "use `icemigrate status`"),
        ("validate", "use `icemigrate check`"),
        ("undo", "use `icemigrate rollback`"),
        ("Force_Unlock", "use `icemigrate unlock`"),
        ("rolback", "did you mean `rollback`?"),
        ("describe", "use `icemigrate show`; `icemigrate table describe` is for one table"),
        ("sql", "use `icemigrate table sql`"),
        (
            "compare",
            "`icemigrate plan` shows pending changes, `icemigrate drift` shows changes by other clients; "
            "`icemigrate table compare` is for one table",
        ),
        ("compact", "use `icemigrate maintain`; `icemigrate table compact` is for one table"),
        ("expire", "use `icemigrate maintain`; `icemigrate table expire` is for one table"),
        ("query", "use `icemigrate table query`"),
        ("snapshots", "use `icemigrate table snapshots`"),
        ("Add_Column", "use `icemigrate table add-column`"),
    ],
)
def test_what_is_meant(args: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(args, capsys).endswith(f": {hint}")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("unpack", "there is no command `unpack`"),
        ("maintenance", "there is no command `maintenance`"),
        ("rollback --discard-data", "`icemigrate rollback` has no option `--discard-data`"),
        (
            "rollback somewhere",
            "`icemigrate rollback` takes no argument, but got `somewhere`: remove it, or put quotes around a "
            "value with spaces",
        ),
        ("check --jsn", "`icemigrate check` has no option `--jsn`"),
        ("new", "`icemigrate new` needs the argument `DESCRIPTION`"),
        (
            "apply --lock-timeout 5sec",
            "`--lock-timeout`: `5sec` is not a time to wait: write seconds, such as `30`, or a number and a "
            "unit, such as `5s` or `2m`",
        ),
        (
            "maintain --orphans --older-than 7",
            "`--older-than`: `7` is not a duration: write a number and a unit, such as `30d`, `12h`, `90m` "
            "or `2w`",
        ),
    ],
)
def test_where_nothing_is_guessed(args: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(args, capsys) == message


def test_a_word_of_others_has_one_meaning_and_is_no_command_here() -> None:
    words = [word for _, said in FOREIGN_COMMANDS for word in said.split()]
    assert sorted(words) == sorted(set(words))
    assert not set(words) & COMMANDS.keys()
    for word in words:
        hint = command_hint(word, COMMANDS) or ""
        assert "did you mean" not in hint
        assert set(re.findall(r"`icemigrate ([a-z]+)", hint)) <= COMMANDS.keys()


def test_what_is_answered_and_what_is_careful_is_there() -> None:
    assert COMMANDS.keys() >= CAREFUL_COMMANDS
    assert CAREFUL_OPTIONS <= OPTIONS
    assert {option.split()[0] for option, _ in FOREIGN_OPTIONS} <= OPTIONS


@pytest.mark.parametrize("word", sorted(TABLE_COMMANDS.keys() - COMMANDS.keys()))
def test_a_command_of_table_is_named_in_full(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"`icemigrate table {word}`" in said(f"{word} sales.orders", capsys)


@pytest.mark.parametrize("word", ["drop", "remove", "list", "sync", "expir", "x"])
def test_the_commands_of_table_get_no_hints_about_migrations(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["table", word, "sales.orders"])
    said = capsys.readouterr().err
    assert f"there is no command `table {word}`" in said
    assert "icemigrate reset" not in said
    assert "icemigrate status" not in said
    assert ("did you mean `expire`?" in said) is (word == "expir")
