"""The data steps of a table entry, held against the table as it is declared then."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from icemigrate.data.backfill import Backfill
from icemigrate.data.base import TABLE_MARK, RowWork
from icemigrate.data.check import Check
from icemigrate.data.plain_names import plainly_reads
from icemigrate.data.plain_sql import expression_fault, query_fault
from icemigrate.data.retype import Retype
from icemigrate.data.rewrite import Rewrite
from icemigrate.declare.complaints import Complaints
from icemigrate.declare.draft import Draft
from icemigrate.declare.migration import TableEntry
from icemigrate.model.names import Path, format_path
from icemigrate.model.table import Table
from icemigrate.model.types import List, Map


def fold_data(
    entry: TableEntry,
    before: Table | None,
    after: Table,
    retyped: tuple[Retype, ...],
    complaints: Complaints,
) -> tuple[RowWork, ...]:
    """The steps, in running order; only names are read here, the expressions are Spark's to judge.

    :param before: the table as declared before; ``None`` at its first mention.
    :param after: as it is declared then.
    :param retyped: what the fold of its columns has found.
    """
    if before is None:
        _check_first_mention(entry, complaints)
    for step in entry.retype:
        _check_expression(step.using, complaints, ("retype", step.column, "using"))
    steps = (
        *retyped,
        *_backfills(entry, after, [work.path for work in retyped], complaints),
        *_checks(entry, complaints),
        *_rewrites(entry, after),
    )
    return tuple(sorted(steps, key=lambda step: step.stage))


def _check_first_mention(entry: TableEntry, complaints: Complaints) -> None:
    message = "has no rows yet"
    for key in ("backfill",) * bool(entry.backfill) + ("rewrite",) * entry.rewrites_old:
        complaints.error("first-mention", (key,), f"a table that is mentioned for the first time {message}")
    for number, check in enumerate(entry.checks):
        if not check.is_after:
            complaints.error(
                "first-mention",
                ("checks", str(number), "before"),
                f"a table that is mentioned for the first time {message} that could be asked about before",
                "ask `after`, or in a later migration",
            )


def _backfills(
    entry: TableEntry, after: Table, retyped: Collection[Path], complaints: Complaints
) -> Iterator[Backfill]:
    for number, step in enumerate(entry.backfill):
        seen: set[Path] = set()
        if step.where is not None:
            _check_expression(step.where, complaints, ("backfill", str(number), "where"))
            _check_reads(step.where, entry, after, complaints, ("backfill", str(number), "where"))
        for column, value in step.sets:
            subject = ("backfill", str(number), "set", column)
            path = complaints.path(column, subject)
            if path is None:
                continue
            _check_column(path, entry, after, complaints, subject)
            _check_reads(value, entry, after, complaints, subject)
            taken = next((r for r in retyped if r[: len(path)] == path[: len(r)]), None)
            if taken is not None:
                # While rows are written its name is still that of the old column, which then goes.
                column = format_path(taken)
                complaints.error(
                    "backfill-retyped",
                    subject,
                    f"`{format_path(path)}` would be set in the column that `retype` takes away",
                    f"give the value by `using` of `{column}`, or fill it in a later migration",
                )
            if path in seen:
                complaints.error(
                    "duplicate-column", subject, f"`{format_path(path)}` is set twice in one step"
                )
            seen.add(path)
            _check_expression(value, complaints, subject)
        yield Backfill(step.sets, step.where, number)


def _check_column(
    path: Path, entry: TableEntry, after: Table, complaints: Complaints, subject: tuple[str, ...]
) -> None:
    """Complain about what is no column, or a part of a list or a map, which ``UPDATE`` cannot set."""
    for depth in range(1, len(path)):
        field = after.schema.find(path[:depth])
        if field is not None and isinstance(field.type, (List, Map)):
            complaints.error(
                "bad-path",
                subject,
                f"`{format_path(path)}` lies in a list or a map, whose parts cannot be set one by one",
                f"set `{format_path(path[:depth])}` as a whole",
            )
            return
    if after.schema.find(path) is None:
        renamed = dict(entry.renames)
        name = format_path(path)
        hint = (
            f"this migration renames it: write `{renamed[name]}`"
            if name in renamed
            else Draft(after.schema, ()).nearest(path)
        )
        complaints.error(
            "unknown-column", subject, f"there is no column `{name}` to fill after this migration", hint
        )


def _check_reads(
    expression: str, entry: TableEntry, after: Table, complaints: Complaints, subject: tuple[str, ...]
) -> None:
    """Complain about an expression that plainly reads a column by the name which this entry takes from it."""
    there = {tuple(map(str.lower, path)) for path, _ in after.schema.walk()}
    for old, new in entry.renames:
        path = complaints.path(old, subject)
        renamed = complaints.path(new, subject)
        if path is None or renamed is None or tuple(map(str.lower, path)) in there:
            continue
        if plainly_reads(expression, path):
            called = format_path((*path[:-1], renamed[-1]))
            complaints.error(
                "unknown-column",
                subject,
                f"the expression reads `{old}`, and after the migration it is called `{called}`",
                f"write `{called}`",
            )


def _check_expression(text: str, complaints: Complaints, subject: tuple[str, ...]) -> None:
    """Complain about what would change the statement around it, or is no expression in plain sight."""
    if fault := expression_fault(text):
        what, hint = fault
        complaints.error("bad-expression", subject, f"the expression {what}", hint)


def _rewrites(entry: TableEntry, after: Table) -> Iterator[Rewrite]:
    if entry.rewrites_old:
        ends = tuple(format_path(d.path) for d in after.dropped)
        yield Rewrite(bool(after.sort_order.fields), ends)


def _checks(entry: TableEntry, complaints: Complaints) -> Iterator[Check]:
    for number, check in enumerate(entry.checks):
        subject = ("checks", str(number), "after" if check.is_after else "before")
        if TABLE_MARK not in check.query:
            complaints.error(
                "table-mark-missing",
                subject,
                "the query does not say where the rows of this table stand that it asks about",
                f"write `{TABLE_MARK}` in the place of the table: `select count(*) from {TABLE_MARK}`",
            )
        if fault := query_fault(check.query):
            what, hint = fault
            complaints.error("bad-query", subject, f"the query {what}", hint)
        yield Check(check.query, check.gives, check.is_after, check.name, number)
