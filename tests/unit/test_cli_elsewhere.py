"""Commands and options of other tools are answered by what they are here; nothing dangerous is guessed."""

from __future__ import annotations

import re

import pytest

from icemigrate.cli import main
from icemigrate.cli.elsewhere import (
    CAREFUL_COMMANDS,
    CAREFUL_OPTIONS,
    COMMANDS_ELSEWHERE,
    OPTIONS_ELSEWHERE,
    command_hint,
)
from icemigrate.cli.group import COMMANDS, command_of
from icemigrate.errors import ExitCode

OPTIONS = {option for name in COMMANDS for param in command_of(name).params for option in param.opts}


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
        ("apply -y", "write `--auto-approve`"),
        ("apply --dry-run", "`icemigrate plan` shows what would be done, and does nothing"),
        ("apply -target=3", "write `--to VERSION`"),
        ("plan -out x", "write `--out`"),
        ("plan -out=x", "write `--out`"),
        ("plan -o x", "write `--out FILE`"),
        ("plan --dry-run", "leave it away: `plan` changes nothing"),
        ("plan 4", "write `--to 4`"),
        ("status --json", "write `--format json`"),
        ("status -o json", "write `--format json`"),
        ("rollback 4", "`--to 4` takes back all after it, `--only 4` that one alone"),
        ("rollback --version 4", "`--to VERSION` takes back all after it, `--only VERSION` that one alone"),
        ("rollback --dry-run", "leave it away: what would be done is shown and asked about before"),
        ("rollback --steps 2", "`--to VERSION` takes back all after it; without it the last one is"),
        ("maintain -n", "write `--dry-run`"),
        ("plan -e prod", "write `--env NAME`"),
        ("--json status", "options of a command stand behind its name"),
        ("status --formt json", "did you mean `--format`?"),
        ("rollback --metadata-onl", "did you mean `--metadata-only`?"),
        ("migrate", "here it is `icemigrate apply`"),
        ("info", "here it is `icemigrate status`"),
        ("validate", "here it is `icemigrate check`"),
        ("undo", "here it is `icemigrate rollback`"),
        ("Force_Unlock", "here it is `icemigrate unlock`"),
        ("rolback", "did you mean `rollback`?"),
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
        ("rollback somewhere", "Got unexpected extra argument (somewhere)"),
        ("check --jsn", "`icemigrate check` has no option `--jsn`"),
        ("new", "Missing argument 'DESCRIPTION'."),
    ],
)
def test_where_nothing_is_guessed(args: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(args, capsys) == message


def test_a_word_of_others_has_one_meaning_and_is_no_command_here() -> None:
    words = [word for _, said in COMMANDS_ELSEWHERE for word in said.split()]
    assert sorted(words) == sorted(set(words))
    assert not set(words) & COMMANDS.keys()
    for word in words:
        hint = command_hint(word, COMMANDS) or ""
        assert "did you mean" not in hint
        assert set(re.findall(r"`icemigrate ([a-z]+)", hint)) <= COMMANDS.keys()


def test_what_is_answered_and_what_is_careful_is_there() -> None:
    assert COMMANDS.keys() >= CAREFUL_COMMANDS
    assert CAREFUL_OPTIONS <= OPTIONS
    assert {option.split()[0] for option, _ in OPTIONS_ELSEWHERE} <= OPTIONS
