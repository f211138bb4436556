"""`icemigrate shell`: entries, exit codes, Ctrl-C, and what commands of one session share; without Spark."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icemigrate.cli import main
from icemigrate.cli import shell as cli_shell
from icemigrate.cli.group import COMMANDS
from icemigrate.commands import shell
from icemigrate.commands.shell import EntryReader, ShellEntry, SqlSession
from icemigrate.errors import EngineError, ExitCode
from icemigrate.spark import gateway, session
from icemigrate.spark.session_settings import SparkSettings
from tests.support.embedded_project import Embedded, applied

FIRST = "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n"
SECOND = "tables: [{name: db.t, columns: [{name: b, type: int}]}]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project with an applied migration and a pending one."""
    monkeypatch.chdir(tmp_path)
    made = applied(tmp_path, FIRST)
    made.write("0002_more.yaml", SECOND)
    return made


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SQL statements that ran, each as ``environment: statement``."""
    ran: list[str] = []

    def run(_self: SqlSession, _project: object, environment: str | None, text: str, _: object) -> str:
        if "nothing" in text:
            raise EngineError("the column `nothing` does not exist")
        ran.append(f"{environment}: {text}")
        return "+-+\n|1|\n+-+\n" if text.startswith("SELECT") else ""

    monkeypatch.setattr(SqlSession, "run", run)
    return ran


def script(monkeypatch: pytest.MonkeyPatch, text: str, *options: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return main(["shell", *options])


def test_lines_become_commands_and_statements() -> None:
    reader = EntryReader(COMMANDS)
    text = (
        "plan --to 0002\n\n# a comment\n-- another\nshow db.t\nshow tables;\nSELECT 1\n"
        "  -- the second line\n  FROM db.t;\nplann\n;\n(SELECT 2);\nexplain IM104\nstatus;\n"
    )
    assert [entry for line in text.splitlines(keepends=True) if (entry := reader.feed(line))] == [
        ShellEntry("plan --to 0002", is_sql=False),
        ShellEntry("show db.t", is_sql=False),
        ShellEntry("show tables", is_sql=True),
        ShellEntry("SELECT 1\n  -- the second line\n  FROM db.t", is_sql=True),
        ShellEntry("plann", is_sql=False),
        ShellEntry("(SELECT 2)", is_sql=True),
        ShellEntry("explain IM104", is_sql=False),
        ShellEntry("status", is_sql=False),
    ]
    assert reader.feed("SELECT") is None
    assert reader.is_open


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SELECT 1; -- one", "SELECT 1"),
        ("SELECT 1; /* one; */ ", "SELECT 1"),
        ("SELECT 'a;\nb' -- no end;\n;", "SELECT 'a;\nb' -- no end;"),
        ("SELECT `a;\nb`;", "SELECT `a;\nb`"),
        ("SELECT 'it\\';\ns'\n;;", "SELECT 'it\\';\ns'"),
    ],
)
def test_a_semicolon_in_a_string_or_a_comment_ends_no_statement(text: str, statement: str) -> None:
    reader = EntryReader(COMMANDS)
    *others, last = [reader.feed(line) for line in text.split("\n")]
    assert others == [None] * len(others)
    assert last == ShellEntry(statement, is_sql=True)


def test_commands_and_statements_run_in_order(
    project: Embedded,
    statements: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "icemigrate show\nSELECT 1;\nUPDATE db.t\nSET a = 1;\nhelp\nexit;\nplan\n"
    assert script(monkeypatch, text, "--env", "local") == ExitCode.OK
    out, err = capsys.readouterr()
    assert statements == ["local: SELECT 1", "local: UPDATE db.t\nSET a = 1"]
    assert out.index("name: db.t") < out.index("|1|") < out.index("Usage: icemigrate [OPTIONS] COMMAND")
    assert "Plan:" not in out, "`exit` comes first"
    assert err.startswith("Done in ")


@pytest.mark.parametrize("line", ["exit", "quit", "exit;", "quit ;"])
def test_a_script_may_leave(
    project: Embedded, statements: list[str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert script(monkeypatch, f"{line}\nSELECT 2;\n") == ExitCode.OK
    assert statements == []


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("plann", ExitCode.USAGE, "there is no command `plann`"),
        ("plan --to 0009", ExitCode.USAGE, "0009"),
        ("plan 'x", ExitCode.USAGE, "the command cannot be read: No closing quotation"),
        ("plan --out a\0b", ExitCode.USAGE, "the entry cannot be read: it contains a NUL character"),
        ("SELECT '\0';", ExitCode.USAGE, "the entry cannot be read: it contains a NUL character"),
        ("SELECT nothing;", ExitCode.ERROR, "the column `nothing` does not exist"),
        ("plan --detailed-exitcode", ExitCode.CHANGES, ""),
        ("apply", ExitCode.USAGE, "standard input is not a terminal"),
        ("shell", ExitCode.USAGE, "this is a shell of icemigrate already"),
        ("SELECT 1", ExitCode.USAGE, "the last statement has no end: SELECT 1"),
    ],
)
def test_a_script_ends_with_the_first_failure(
    project: Embedded,
    statements: list[str],
    line: str,
    code: ExitCode,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert script(monkeypatch, f"show\n{line}\n") == code
    assert message in capsys.readouterr().err
    if line != "SELECT 1":
        assert script(monkeypatch, f"{line}\nSELECT 2;\n") == code
        assert statements == []
        assert script(monkeypatch, f"{line}\nSELECT 2;\n", "--keep-going") == code
        assert statements == ["None: SELECT 2"]


def test_every_command_reads_the_project_again(
    project: Embedded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines() -> Iterator[str]:
        yield "status\n"
        project.write("0003_third.yaml", FIRST.replace("name: a", "name: c"))
        (project.folder / "icemigrate.yaml").write_text("project: market\nhistory: db.other\n", "utf-8")
        yield "status\n"

    monkeypatch.setattr("sys.stdin", _Lines(lines()))
    assert main(["shell"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert out.index("at 0001, 1 pending") < out.index("3 pending"), out


class _Lines(io.StringIO):
    """Standard input whose lines are made when they are read."""

    def __init__(self, lines: Iterator[str]) -> None:
        super().__init__()
        self._lines = lines

    def __next__(self) -> str:
        return next(self._lines)


def test_global_options_are_defaults_that_a_command_overrides(
    project: Embedded,
    statements: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (project.folder / "icemigrate.yaml").write_text(
        "project: market\nenvironments:\n"
        "  local: {catalog: {type: sqlite}}\n  other: {catalog: {type: sqlite, name: local}}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir("/")
    options = ("--project", str(project.folder), "--env", "other", "--quiet")
    assert script(monkeypatch, "status --env local\nstatus\nSELECT 1;\n", *options) == ExitCode.OK
    out, err = capsys.readouterr()
    assert out.index("market → local") < out.index("market → other")
    assert (statements, err) == (["other: SELECT 1"], "")
    assert not {name for name in os.environ if name in ("ICEMIGRATE_ENV", "ICEMIGRATE_PROJECT")}


@pytest.fixture
def prompted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the shell at a terminal; an exception among the lines is raised at the prompt."""

    def run(*lines: str | BaseException) -> int:
        waiting = list(lines)

        def answer(_prompt: str) -> str:
            line = waiting.pop(0) if waiting else EOFError()
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr("builtins.input", answer)
        monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
        monkeypatch.setattr(cli_shell, "_complete_names", lambda: None)
        return main(["shell"])

    return run


def test_the_prompt_goes_on_after_failures_and_interrupts(
    project: Embedded,
    statements: list[str],
    prompted: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupt = KeyboardInterrupt()
    assert prompted("plann", "SELECT", interrupt, "SELECT 1;", "quit", "SELECT 2;") == ExitCode.OK
    assert statements == ["None: SELECT 1"], "the interrupted statement is forgotten"
    assert "exit code 64" in capsys.readouterr().err
    assert prompted("show") == ExitCode.OK, "Ctrl-D leaves"


def test_an_interrupt_stops_the_command_and_a_spark_that_it_left(
    project: Embedded,
    prompted: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    discarded: list[object] = []
    monkeypatch.setattr(gateway, "discard_jvm", lambda: discarded.append(1))
    monkeypatch.setattr(gateway, "is_alive", lambda: True)
    monkeypatch.setattr(shell, "running_spark", object)

    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(SqlSession, "run", interrupted)
    assert prompted("show", "SELECT 1;", "show") == ExitCode.OK
    out, err = capsys.readouterr()
    assert (len(discarded), out.count("name: db.t")) == (1, 2)
    assert "Interrupted." in err
    assert "exit code 130" in err
    monkeypatch.setattr(gateway, "is_alive", lambda: False)
    assert shell.discard_broken_spark(ExitCode.OK), "its JVM has ended"


def test_spark_starts_again_for_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    calls: list[str] = []
    running = SimpleNamespace(stop=lambda: calls.append("stop"))
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", running)
    monkeypatch.setattr(gateway, "discard_jvm", lambda: calls.append("discard"))
    monkeypatch.setattr(gateway, "stop_jvm", lambda: calls.append("fresh"))
    monkeypatch.setattr(session, "_another_session", lambda *_: calls.append("another"))
    monkeypatch.setattr("pyspark.sql.SparkSession", lambda context: context)

    def no_java(*_: object) -> Any:
        raise EngineError("no Java")

    monkeypatch.setattr("icemigrate.spark.find_java.find_java", no_java)
    first = SparkSettings("lake", {"uri": "a"})
    monkeypatch.setattr(session, "_started_with", first)
    session.start_spark(SparkSettings("lake", {"uri": "b"}))
    with session.restart_for_other_settings(lambda: calls.append("announced")):
        session.start_spark(SparkSettings("lake", {"uri": "a"}))
        assert calls == ["another", "another"]
        with pytest.raises(EngineError, match="no Java"):
            session.start_spark(SparkSettings("lake", {"uri": "b"}))
    assert calls[2:] == ["announced", "stop", "discard", "fresh"]


@pytest.mark.parametrize(
    ("before", "word", "expected"),
    [
        ("", "ro", ["rollback "]),
        ("", "ex", ["explain ", "exit "]),
        ("", "sh", ["show "]),
        ("rollback ", "--dr", ["--dry-run "]),
        ("SELECT ", "x", []),
    ],
)
def test_the_tab_key_completes_names(before: str, word: str, expected: list[str]) -> None:
    complete = cli_shell._completer(lambda: before)
    assert [complete(word, number) for number in range(len(expected) + 1)] == [*expected, None]
