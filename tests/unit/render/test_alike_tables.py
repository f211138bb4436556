"""Reports about the tables of tenants: equal ones are shown once, with a count, and exceptions by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.planning.plan import Plan
from icemigrate.render.alike_tables import TableLines, alike_tables, number_ranges
from icemigrate.render.formats import render
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.command_results import CheckResult, Failure, ImportResult, OldSpecTable, PlanResult
from icemigrate.results.diff_results import DiffResult, TableDiff
from icemigrate.results.drift_results import DriftFact, DriftResult, ReconcileResult, TableDrift
from icemigrate.results.maintain_results import ActionSummary, MaintainResult, SkippedTable
from icemigrate.results.reset_results import ResetResult, ResetTable
from icemigrate.results.status_results import ListProgress, MigrationStatus, Status, TableStatus

NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)
NAMES = [f"otel.tenant{number:03}_traces" for number in range(200)]


def drifted() -> DriftResult:
    """A column in each table, added at another time; one table has another difference."""

    def fact(at: int) -> DriftFact:
        time = NOW + timedelta(seconds=at)
        return DriftFact("columns.x", "added", "", "string", after=time, before=time, writers=(f"w{at % 2}",))

    tables = [TableDrift(name, name, facts=(fact(at),)) for at, name in enumerate(NAMES)]
    tables[7] = TableDrift(NAMES[7], NAMES[7], state="gone")
    return DriftResult("otel", "prod", "rest", 200, True, tuple(tables))


def maintained() -> MaintainResult:
    """Snapshots to expire in each table, of other numbers and under other ids; one table is skipped."""
    acts = [
        ActionSummary(
            "snapshots",
            name,
            f"expire {at + 1} of 300 snapshots: kept for 7d",
            f"CALL expire_snapshots('{name}', {10**17 + at})",
            (f"the rows of `{name}` are lost",),
        )
        for at, name in enumerate(NAMES)
        if at != 7
    ]
    kept = SkippedTable("snapshots", NAMES[7], "it belongs to project `other`", is_refused=True)
    return MaintainResult("otel", "prod", ("snapshots",), NOW, tuple(acts), (kept,))


def checked() -> CheckResult:
    """A finding for each table of a template, and another one for one of them."""
    place = FilePosition("0001_traces.yaml", 3, 11)
    found = [
        Diagnostic("IM104", f"readers of `x` of `{name}` fail", place, f"write `drop {name}.x`")
        for name in NAMES
    ]
    found[7] = Diagnostic("IM104", f"readers of `y` of `{NAMES[7]}` fail", place, severity=Severity.WARNING)
    return CheckResult("otel", 1, 200, tuple(found))


def moved() -> ResetResult:
    """Tables that go into the trash, each under a name of its own; one stays."""
    tables = [
        ResetTable(name, "trash", trash=f"icemigrate_trash.otel__tenant{at}_{at}")
        for at, name in enumerate(NAMES)
    ]
    tables[7] = ResetTable(NAMES[7], "keep", reason="it is paused")
    return ResetResult("otel", "prod", tuple(tables), versions=1)


def noted() -> Status:
    """Tables that cannot be read; one has another problem."""
    reasons = [f"no file s3://lake/{name}.json" for name in NAMES]
    reasons[7] = "the request timed out"
    tables = (TableStatus(n, n, "0001", True, unreadable=r) for n, r in zip(NAMES, reasons, strict=True))
    return Status("otel", "prod", "rest", "0001", tables=tuple(tables))


def different() -> DiffResult:
    """A column of each table; one table gets another one."""
    tables = [TableDiff(name, ("+ x string",)) for name in NAMES]
    tables[7] = TableDiff(NAMES[7], ("+ y string",))
    return DiffResult("otel", "0002.yaml", "…", tuple(tables), left_out=tuple(f"table {n}" for n in NAMES))


def imported() -> ImportResult:
    """A note for each table, and another one for one of them."""
    notes = [f"{name} is skipped: it is a view" for name in NAMES]
    notes[7] = f"{NAMES[7]} is skipped: it belongs to project `other`"
    return ImportResult("otel", "prod", "0001.yaml", (), "…", tuple(notes))


REPORTS: dict[str, Callable[[], object]] = {
    "drift": drifted,
    "maintain": maintained,
    "check": checked,
    "a failure": lambda: Failure("Mistakes", "errors", None, 3, checked().diagnostics),
    "reset": moved,
    "diff": different,
    "import": imported,
    "status": noted,
}


@pytest.mark.parametrize("name", REPORTS)
def test_equal_tables_are_shown_once(name: str) -> None:
    result = REPORTS[name]()
    shown = render(result)
    assert len(shown.splitlines()) < 25
    assert "also 198 other" in shown
    assert NAMES[7] in shown
    assert "tenant100" not in shown
    # `--verbose` and JSON have each table.
    for text in (render(result, style=TerminalStyle(details=True)), render(result, "json")):
        assert all(name.removeprefix("otel.") in text for name in NAMES)


@pytest.mark.parametrize("name", ["check", "a failure"])
def test_equal_findings_are_one_line_of_a_comment(name: str) -> None:
    shown = render(REPORTS[name](), "markdown")
    assert "also 198 others: " in shown
    assert "`" not in shown
    assert shown.count("IM104") == 2


def unpartitioned() -> PlanResult:
    """A plan without changes, of tables with files of an old partitioning."""
    old = tuple(OldSpecTable(name, name, OldSpecFiles(1, 2)) for name in NAMES)
    return PlanResult(Plan("otel", "prod", "rest", "lake", ()), old_partition_tables=old)


def progressed() -> Status:
    """Versions to extend, and values that left the list."""
    lists = (ListProgress("seen", 1, 2, ("globex",), tuple(NAMES)),)
    migrations = (MigrationStatus(f"{at:04}", "Traces", "applied", lists=lists) for at in range(200))
    return Status("otel", "prod", "rest", "0199", migrations=tuple(migrations))


@pytest.mark.parametrize(
    ("result", "others"),
    [
        (unpartitioned(), "also 199 other tables"),
        (ReconcileResult("otel", "prod", tuple(NAMES), 0), f"{NAMES[2]}, …, {NAMES[199]}"),
        (progressed(), "0002, … and 0199 applied"),
    ],
)
def test_verbose_text_names_all_in_remarks(result: object, others: str) -> None:
    assert others in render(result)
    shown = render(result, style=TerminalStyle(details=True))
    assert others not in shown
    assert all(name in shown for name in NAMES)


def test_a_group_has_the_range_of_times_and_numbers() -> None:
    shown = render(drifted())
    assert "between 2027-01-01 00:00:00 UTC and 2027-01-01 00:03:19 UTC" in shown
    assert "writers in that period: w0; w1" in shown
    assert "expire 1 to 200 of 300 snapshots: kept for 7d" in render(maintained())


@pytest.mark.parametrize(
    ("texts", "ranges"),
    [
        (["expire 2 of 9", "expire 10 of 9"], "expire 2 to 10 of 9"),
        (["1,200 rows in 1.5 MB", "3 rows in 2 MB"], "3 to 1,200 rows in 1.5 to 2 MB"),
        (["before 2027-01-01 10:00:00, 1 file"] * 2, "before 2027-01-01 10:00:00, 1 file"),
        (["drop 3 of 5", "drop # of 5"], "drop 3 of 5"),
    ],
)
def test_texts_that_differ_in_numbers(texts: list[str], ranges: str) -> None:
    assert number_ranges(texts) == ranges


def test_a_literal_hash_is_no_name_and_no_number() -> None:
    names = ["otel.a.x", "#", "otel.b.x", "otel.c.x", "otel.d.x"]
    found = [Diagnostic("IM104", f"column `t` of {name} is dropped") for name in names]
    shown = render(CheckResult("otel", 1, 5, tuple(found)))
    assert "column `t` of # is dropped" in shown
    assert "also 3 others: otel.b.x, otel.c.x, otel.d.x" in shown
    acts = [
        ActionSummary("orphans", f"s.t{at}", f"drop {'#' if at == 2 else at} of 5", "…") for at in range(5)
    ]
    shown = render(MaintainResult("otel", "prod", ("orphans",), NOW, tuple(acts), ()))
    assert "s.t0: drop 0 to 4 of 5\n" in shown
    assert "s.t2: drop # of 5\n" in shown


def test_a_text_may_have_the_value_of_a_list() -> None:
    values = ["acme", "globex", "initech", "umbrella"]
    tables = [TableLines((f"otel.{v}_a",), (f"+ otel.{v}_a", f"events of {v}")) for v in values]
    (group,) = alike_tables(tables, values=values)
    assert group.others == ("otel.globex_a", "otel.initech_a", "otel.umbrella_a")
    assert len(list(alike_tables(tables))) == 4
