"""Findings, status, history and failures in each format."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity, format_count, format_size
from icemigrate.events import (
    FilesRewritten,
    MigrationRecorded,
    MigrationStarted,
    NoteAdded,
    SparkStarted,
    StatementFinished,
    StatementStarted,
    TablePublished,
    TableVerified,
)
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.render.display import elapsed_text, one_line, timestamp_text, visible_text
from icemigrate.render.formats import names_for, render
from icemigrate.render.phrases import join_with_and
from icemigrate.render.progress_text import ProgressWriter
from icemigrate.render.terminal_style import PLAIN_STYLE, TerminalStyle, style_for
from icemigrate.results.command_results import (
    ApplyResult,
    CheckResult,
    Failure,
    RebaseResult,
    RenamedFile,
    RepairedMigration,
    RepairResult,
    RuleOption,
    RulesResult,
    RuleStatus,
    SquashResult,
)
from icemigrate.results.reset_results import ResetResult, ResetTable
from icemigrate.results.status_results import (
    HistoryEntry,
    HistoryEvent,
    HistoryResult,
    MigrationStatus,
    Status,
    TableStatus,
)

SCHEMAS = Path(__file__).parents[3] / "schemas"
AT = datetime(2026, 11, 27, 21, 37, tzinfo=timezone(timedelta(hours=1)))
ERROR = Diagnostic(
    "unknown-key", "`colums` is unknown", FilePosition("m/1.yaml", 2, 3), "did you mean `columns`?"
)
WARNING = Diagnostic("near-name", "near", None, None, Severity.WARNING)
CHECK = CheckResult("market", 2, 1, (ERROR, WARNING))
STATUS = Status(
    "market",
    "prod",
    "rest:x#y",
    "0001",
    (MigrationStatus("0001", "one", "applied", AT), MigrationStatus("0002", "two", "late")),
    (
        TableStatus("data.größe", "data.größe", "0001", True),
        TableStatus("data.b", "prod.b", "0001", False, ("0002",)),
        TableStatus("data.c", "data.c", None, False, ("0002",)),
        TableStatus("data.d", "data.d", None, True, ("0002",)),
        TableStatus("data.e", "data.e", None, True, ("0002",), ours=True),
    ),
)
HISTORY = HistoryResult(
    "market",
    "prod",
    (HistoryEntry("0001", "one", "applied", AT, "ada", 65_400, "c0"),),
    (HistoryEvent("applied", "0001", "one", AT, "ada", "ci", 65_400, "f00d"),),
)
APPLIED = ApplyResult("market", "prod", ("0001", "0002"), 1234, ("0001: a note",))
FAILURE = Failure("Mistakes", "1 mistake", "mend it", 3, (ERROR,))
RULES = RulesResult(
    "market",
    (
        RuleStatus("IM104", "drop", "error", "warning", "A column goes"),
        RuleStatus("IM201", "kept", "off", "off", "Kept", (RuleOption("at_least", None, "an age"),)),
        RuleStatus("IM301", "many", "note", "note", "Many", (RuleOption("at_most", 10, "a number"),)),
    ),
)
DOCUMENTS = {
    "check": CHECK,
    "status": STATUS,
    "history": HISTORY,
    "apply": APPLIED,
    "repair": RepairResult("market", "prod", (RepairedMigration("0001", "c0", "c1"),)),
    "reset": ResetResult(
        "market",
        "dev",
        (ResetTable("db.a", "trash", "icemigrate_trash.db__a__market__0001__c0ffee00"),),
        2,
        done=True,
        elapsed_ms=12,
    ),
    "rebase": RebaseResult("market", "prod", (RenamedFile("m/0001_a.yaml", "m/0003_a.yaml"),)),
    "squash": SquashResult("market", "m/0002_squash_0001_to_0002.yaml", ("m/0001_a.yaml", "m/0002_b.yaml")),
    "rules": RULES,
    "error": FAILURE,
}


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_json_fits_its_schema(name: str) -> None:
    document = json.loads(render(DOCUMENTS[name], "json"))
    jsonschema.validate(document, schema(name), format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_schemas_are_schemas_and_say_what_everything_is(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(document)
    assert {"$id", "title", "description"} <= document.keys()


@pytest.mark.parametrize("value", DOCUMENTS.values(), ids=list(DOCUMENTS))
def test_every_output_ends_with_one_line_break(value: object) -> None:
    for name in names_for(type(value)):
        text = render(value, name)
        assert text.endswith("\n")
        assert not text.endswith("\n\n")


def test_times_are_in_utc() -> None:
    assert json.loads(render(STATUS, "json"))["migrations"][0]["applied_at"] == "2026-11-27T20:37:00.000Z"
    assert "2026-11-27 20:37:00 UTC" in render(HISTORY)


def test_findings_have_their_place_and_their_hint() -> None:
    assert render(CHECK).splitlines() == [
        "m/1.yaml:2:3: error: `colums` is unknown [unknown-key]",
        "    did you mean `columns`?",
        "warning: near [near-name]",
        "",
        "market: 2 migrations, 1 table: 1 error and 1 warning.",
    ]


def test_findings_as_markdown() -> None:
    text = render(CHECK, "markdown")
    assert "- ❌ <code>m/1.yaml:2:3</code>: <code>colums</code> is unknown <sub>unknown-key</sub>" in text
    assert "- ⚠️ near" in text


def test_many_findings_fit_into_a_comment() -> None:
    text = render(CheckResult("market", 1, 1, (WARNING,) * 2000 + (ERROR,) * 300), "markdown")
    assert 60_000 < len(text) < 65_536
    assert text.count("- ❌ <code>") == 300, "the weightiest come first"
    assert text.count("<details>") == text.count("</details>") == 1
    left = 2000 - text.count("- ⚠️ near")
    assert 0 < left < 2000
    assert f"Not shown: {left:,} warnings, which do not fit into a comment" in text


def test_status_of_tables() -> None:
    lines = render(STATUS).splitlines()
    rows = {
        line.split()[0]: [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in lines
        if line.startswith("data.")
    }
    assert rows["data.größe"] == ["data.größe", "0001", "there", "–"]
    assert "data.b (in the catalog: prod.b)" in rows["data.b"]
    assert "missing" in rows["data.b"]
    assert "not yet" in rows["data.c"]
    assert "there, unmanaged" in rows["data.d"]
    assert "there, incomplete" in rows["data.e"]
    assert lines[-1] == "market in prod: at 0001, nothing pending, 1 refused by `plan`."
    (refused,) = [m for m in STATUS.migrations if m.state in ("edited", "missing", "late", "partial")]
    (line,) = [line for line in lines if line.startswith(f"{refused.version} ") and "`" in line]
    assert "is out of order" in line
    edited = replace(STATUS, migrations=(replace(refused, state="edited"),))
    assert "was edited after it was applied: restore the file, or run `icemigrate repair`" in render(edited)


def test_columns_stay_aligned_with_colour_and_wide_characters() -> None:
    status = Status("p", "e", "c", None, (), tuple(TableStatus(n, n, "1", True) for n in ("表", "ab", "é")))
    plain = render(status).splitlines()
    ends = {line.index("there") + (1 if "表" in line else 0) for line in plain if "there" in line}
    assert len(ends) == 1
    coloured = render(STATUS, "text", TerminalStyle(True))
    assert "\x1b[32mapplied\x1b[0m" in coloured


def test_a_history_without_entries_says_so() -> None:
    assert render(HistoryResult("p", "e")) == "p in e: no migration was applied yet.\n"


def test_the_lines_of_why_something_failed_are_told_apart_in_a_history() -> None:
    why = "expected 2, got 8\n\nmigration 0001 stopped at: select 1"
    event = HistoryEvent("failed", "0001", "one", AT, "ada", "ci", 65_400, "f00d", why)
    shown = render(HistoryResult("p", "e", (), (event,)))
    assert "expected 2, got 8; migration 0001 stopped at: select 1" in shown


def test_applying_nothing_says_so() -> None:
    assert render(ApplyResult("p", "e", (), 0)) == "Nothing to apply: every migration is applied.\n"
    assert "Applied 2 migrations to prod in 1.2 s: 0001, 0002." in render(APPLIED)


def test_progress_is_a_line_for_each_statement() -> None:
    stream = io.StringIO()
    progress = ProgressWriter(stream, PLAIN_STYLE)
    table = TableName(("db",), "t")
    progress(SparkStarted(9.0))
    progress(MigrationStarted("0001", "one", 1, 2))
    progress(StatementStarted("0001", table, "ALTER TABLE\n  " + "x" * 200, 1, 3))
    progress(StatementFinished("0001", table, "", 0.25))
    progress(StatementStarted("0001", table, "ALTER", 2, 3, on_copy=True))
    progress(StatementFinished("0001", table, "", 0.1, on_copy=True))
    progress(TablePublished("0001", table, 1, 0.3))
    progress(TablePublished("0001", table, 1, 0.4))  # of another table, with a marker alone
    progress(TableVerified("0001", table))
    progress(NoteAdded("0001", None, "by hand"))
    progress(MigrationRecorded("0001", 75.0))
    progress(MigrationStarted("0002", "two", 2, 2))
    progress(MigrationRecorded("0002", 0.25))
    progress(StatementStarted("0002", None, "create namespace db", 1, 1))
    progress.close()
    progress.close()
    first, *lines = stream.getvalue().splitlines()
    assert first == "Spark started in 9.0 s"
    assert lines[0] == "0001  one (1 of 2)"
    assert lines[1].startswith("  [1/3] db.t: ALTER TABLE xxx")
    assert lines[1].endswith("x… 0.2 s")
    assert lines[2:] == [
        "  [2/3] db.t (on a copy): ALTER 0.1 s",
        "  db.t: all of it is published in one commit 0.3 s",
        "  note: by hand",
        "  done in 1 min 15 s",
        "0002  two (2 of 2)",
        "  recorded in 0.2 s",
        "  [1/1] create namespace db ",
    ]


def test_what_is_told_while_a_statement_runs_leaves_its_time_a_line_that_says_whose_it_is() -> None:
    stream = io.StringIO()
    progress = ProgressWriter(stream, PLAIN_STYLE)
    table = TableName(("db",), "t")
    progress(StatementStarted("0001", table, "CALL rewrite", 2, 3))
    progress(FilesRewritten("0001", table, 2, 2))
    progress(FilesRewritten("0001", table, 0, 2))
    progress(StatementFinished("0001", table, "CALL rewrite", 0.7))
    progress(StatementStarted("0001", table, "ALTER", 3, 3))
    progress(StatementFinished("0001", table, "ALTER", 0.2))
    assert stream.getvalue().splitlines() == [
        "  [2/3] db.t: CALL rewrite ",
        "  db.t: 2 of 2 files to rewrite",
        "  db.t: 0 of 2 files to rewrite",
        "  [2/3] 0.7 s",
        "  [3/3] db.t: ALTER 0.2 s",
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *((0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (1_536, "1.54 kB")),
        *((999_499, "999 kB"), (999_500, "1 MB"), (3_400_000_000, "3.4 GB")),
        (1_500_000_000_000_000_000, "1.5 EB"),
    ],
)
def test_a_size_has_three_digits_and_a_unit(size: int, text: str) -> None:
    assert format_size(size) == text


def test_words() -> None:
    assert (format_count(1, "table"), format_count(2000, "table"), format_count(0, "entry", "entries")) == (
        "1 table",
        "2,000 tables",
        "0 entries",
    )
    assert (join_with_and(["a"]), join_with_and(["a", "b", "c"])) == ("a", "a, b and c")
    assert (elapsed_text(None), elapsed_text(9_940), elapsed_text(61_000)) == ("", "9.9 s", "1 min 1 s")
    assert (elapsed_text(4 * 3_600_000 + 720_000), elapsed_text(51 * 3_600_000)) == ("4 h 12 min", "2 d 3 h")
    assert timestamp_text(None) == ""
    assert one_line("a\n\tb\x07") == r"a b\u0007"
    assert one_line("`x y`  →\r\n   `x  y` ") == "`x y`  → `x  y`"
    assert visible_text("a\nb\x1b") == "a\nb\\u001b"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted", "expected"),
    [
        (Terminal(), {}, True, True),
        (Terminal(), {}, False, False),
        (Terminal(), {"NO_COLOR": "1"}, True, False),
        (Terminal(), {"TERM": "dumb"}, True, False),
        (io.StringIO(), {}, True, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colour_only_where_the_terminal_has_it(
    monkeypatch: pytest.MonkeyPatch,
    stream: io.StringIO,
    environment: dict[str, str],
    wanted: bool,
    expected: bool,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert style_for(stream, wanted).colour is expected
