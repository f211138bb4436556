"""What a user sees while a command waits: a spinner, a line now and then, or nothing."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator

import pytest

from icemigrate.cli import activity_lines
from icemigrate.cli.activity_lines import ActivityLines, is_live
from icemigrate.cli.invocation import InvocationOptions
from icemigrate.diagnostics import format_size
from icemigrate.events import MigrationRecorded, StatementStarted
from icemigrate.render.progress_text import ProgressWriter
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.spark.job_progress import TaskCounts, progress_text
from icemigrate.system.activity import activity, counted_activity, hidden_activity, show_activities
from icemigrate.system.measured_activity import ROWS, WorkUnit, measured_activity, measured_text

SPIN = "\x1b7⠋ {}\x1b[K\x1b8"
ERASE = "\x1b[K"


class Terminal(io.StringIO):
    """A terminal of UTF-8."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


_RUN = ActivityLines._run


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests call `show()` themselves."""
    monkeypatch.setattr(ActivityLines, "_run", lambda self: None)


def test_a_thread_draws_and_ends_with_the_command(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = threading.Event()
    monkeypatch.setattr(ActivityLines, "_run", _RUN)
    monkeypatch.setattr(activity_lines, "SPINNER_DELAY_S", 0.0)
    monkeypatch.setattr(ActivityLines, "_draw", lambda self, text, lasted: drawn.set())
    shown = lines(terminal, live=True)
    with show_activities(shown), activity("Starting Java"):
        assert drawn.wait(60)
    shown.close()
    assert shown._thread is not None
    shown._thread.join(60)
    assert not shown._thread.is_alive()


def lines(
    stream: io.StringIO, *, live: bool = False, quiet: bool = False, verbose: bool = False
) -> ActivityLines:
    return ActivityLines(stream, InvocationOptions(quiet=quiet, verbose=verbose), live=live)


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def spinner(terminal: Terminal) -> Iterator[ActivityLines]:
    shown = lines(terminal, live=True)
    with show_activities(shown):
        yield shown


def test_a_spinner_shows_what_lasts_and_leaves_a_clean_line(
    terminal: Terminal, spinner: ActivityLines
) -> None:
    with activity("Starting Java"):
        spinner.show(time.monotonic())
        assert terminal.getvalue() == "", "a short one is not shown"
        spinner.show(time.monotonic() + 4.2)
        assert terminal.getvalue() == SPIN.format("Starting Java (4 s)")
    assert terminal.getvalue().endswith(ERASE)
    spinner.show(time.monotonic() + 9)
    assert terminal.getvalue().count("Java") == 1


def test_the_innermost_activity_is_shown_with_its_counts(terminal: Terminal, spinner: ActivityLines) -> None:
    with activity("Planning"), counted_activity("Reading {} tables", 40) as count_one:
        for _ in range(12):
            count_one()
        spinner.show(time.monotonic() + 0.5)
    assert terminal.getvalue() == SPIN.format("Reading 12 of 40 tables") + ERASE


def test_an_error_and_an_interrupt_leave_a_clean_line(terminal: Terminal, spinner: ActivityLines) -> None:
    def interrupted() -> None:
        with activity("Starting Java"):
            spinner.show(time.monotonic() + 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().endswith(ERASE)
    with activity("Committing"):
        spinner.show(time.monotonic() + 1)
        spinner.close()
    assert terminal.getvalue().endswith(ERASE)


def test_text_replaces_the_spinner_and_a_spinner_follows_an_unfinished_line(
    terminal: Terminal, spinner: ActivityLines
) -> None:
    progress = ProgressWriter(terminal, PLAIN_STYLE)
    with activity("Running"):
        spinner.show(time.monotonic() + 1)
        progress(StatementStarted("0001", None, "CREATE NAMESPACE a", 1, 1))
        spinner.show(time.monotonic() + 2.1)
        progress(MigrationRecorded("0001", 2))
    assert terminal.getvalue() == (
        SPIN.format("Running (1 s)")
        + f"{ERASE}  [1/1] CREATE NAMESPACE a "
        + "\x1b7⠙ (2 s)\x1b[K\x1b8"
        + f"{ERASE}\n  done in 2.0 s\n"
    )


def test_no_spinner_where_the_unfinished_line_leaves_no_room(
    terminal: Terminal, spinner: ActivityLines
) -> None:
    with activity("Running"):
        with hidden_activity(column=75):
            pass
        spinner.show(time.monotonic() + 1)
    assert terminal.getvalue() == ""


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    stream = io.StringIO()
    shown = lines(stream)
    with show_activities(shown), counted_activity("Reading {} tables", 3) as count_one:
        began = time.monotonic()
        for seconds in (1, 3.5, 4, 8, 9, 14):
            shown.show(began + seconds)
            if seconds in (4, 8):
                count_one()
    assert stream.getvalue() == "Reading 0 of 3 tables …\nReading 2 of 3 tables …\n"


def test_what_a_line_announced_gets_no_second_line() -> None:
    stream = io.StringIO()
    shown = lines(stream)
    with show_activities(shown), activity("Starting Java", is_announced=True):
        shown.show(time.monotonic() + 60)
    assert stream.getvalue() == ""


def test_a_line_ends_the_unfinished_one() -> None:
    stream = io.StringIO()
    shown, progress = lines(stream), ProgressWriter(stream, PLAIN_STYLE)
    with show_activities(shown), activity("Writing rows"):
        progress(StatementStarted("0001", None, "UPDATE a", 1, 1))
        shown.show(time.monotonic() + 4)
    assert stream.getvalue() == "  [1/1] UPDATE a \nWriting rows …\n"


@pytest.mark.parametrize("live", [True, False])
def test_quiet_shows_nothing(live: bool) -> None:
    stream = Terminal()
    shown = lines(stream, live=live, quiet=True)
    with show_activities(shown), activity("Starting Java"):
        shown.show(time.monotonic() + 60)
    assert stream.getvalue() == ""


def test_verbose_shows_durations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_lines, "SPINNER_DELAY_S", 0.0)
    stream = io.StringIO()
    with show_activities(lines(stream, verbose=True)), activity("Starting Java"):
        pass
    assert stream.getvalue() == "Starting Java: 0.0 s\n"


@pytest.mark.parametrize(("term", "expected"), [("xterm", True), ("dumb", False), ("", False)])
def test_only_a_terminal_with_a_cursor_gets_a_spinner(
    term: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert is_live(Terminal()) is expected
    assert not is_live(io.StringIO())


@pytest.mark.parametrize(
    ("tasks", "seconds", "expected"),
    [
        (TaskCounts(0, 0), 3, "Writing rows"),
        (TaskCounts(0, 8), 3, "Writing rows: 0 of 8 tasks"),
        (TaskCounts(2, 8), 10, "Writing rows: 2 of 8 tasks, about 30 s left"),
        (TaskCounts(1, 8), 60, "Writing rows: 1 of 8 tasks, about 7 min left"),
    ],
)
def test_the_remaining_time_follows_from_the_tasks(tasks: TaskCounts, seconds: float, expected: str) -> None:
    assert progress_text("Writing rows", tasks, seconds) == expected


BYTES = WorkUnit(format_size)


@pytest.mark.parametrize(
    ("unit", "done", "total", "seconds", "expected"),
    [
        (BYTES, 0, 120_000_000, 9, "Reading a.csv"),
        (BYTES, 31e6, 120_000_000, 0.5, "Reading a.csv: 31 MB of 120 MB"),
        (BYTES, 30e6, 120_000_000, 3, "Reading a.csv: 30 MB of 120 MB, 10 MB/s, about 9 s left"),
        (
            ROWS,
            1_000,
            1_000_000,
            1,
            "Reading a.csv: 1,000 of 1,000,000 rows, 1,000 rows/s, about 17 min left",
        ),
        (ROWS, 5_000, 5_000, 2, "Reading a.csv: 5,000 of 5,000 rows, 2,500 rows/s"),
        (ROWS, 5_000, None, 2, "Reading a.csv: 5,000 rows, 2,500 rows/s"),
    ],
)
def test_an_amount_has_its_rate_and_remaining_time(
    unit: WorkUnit, done: float, total: int | None, seconds: float, expected: str
) -> None:
    assert measured_text("Reading a.csv", unit, done, total, seconds) == expected


def test_amounts_and_shares_are_shown_on_a_clock(terminal: Terminal, spinner: ActivityLines) -> None:
    times, shares = iter((0.0, 2.0, 2.0, 4.0, 5.0)), list[float | None]([0.25, None, 0.5])

    def clock() -> float:
        return next(times, 5.0)

    def share() -> float | None:
        return shares[0]

    with measured_activity("Reading", ROWS, 400, share, clock) as add:
        assert "100 of 400 rows, 50 rows/s, about 6 s left" in drawn(spinner, terminal)
        shares.pop(0)
        add(300)
        assert "300 of 400 rows, 150 rows/s, about 1 s left" in drawn(spinner, terminal)
    times = iter((0.0,))
    shares.pop(0)
    with measured_activity("Reading", ROWS, None, share, clock) as add:
        add(1_000)
        assert "1,000 rows, 200 rows/s, about 5 s left" in drawn(spinner, terminal)


def drawn(shown: ActivityLines, terminal: Terminal) -> str:
    """What is drawn in half a second."""
    terminal.truncate(0)
    shown.show(time.monotonic() + 0.5)
    return terminal.getvalue()
