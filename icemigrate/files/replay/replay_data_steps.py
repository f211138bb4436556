"""Replays the data steps of a table entry, and checks them against the declared table."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from icemigrate.data_steps.backfill import Backfill
from icemigrate.data_steps.column_mentions import is_column_mentioned
from icemigrate.data_steps.data_step_kind import TABLE_PLACEHOLDER, TableDataStep, dropped_field_names
from icemigrate.data_steps.query_check import QueryCheck
from icemigrate.data_steps.retype import Retype
from icemigrate.data_steps.rewrite import Rewrite
from icemigrate.data_steps.sql_syntax_checks import expression_fault, is_one_aggregate, query_fault
from icemigrate.files.read.migration_file import TableEntry
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.schema_draft import SchemaDraft
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import List, Map


def replay_data_steps(
    entry: TableEntry,
    before: Table | None,
    after: Table,
    retyped: tuple[Retype, ...],
    diagnostics: EntryDiagnostics,
) -> tuple[TableDataStep, ...]:
    """The steps in running order; only names are checked, because Spark checks the expressions.

    :param before: the declared table before the migration; ``None`` at its first mention.
    :param after: the declared table after it.
    :param retyped: the result of replaying its columns.
    """
    if before is None:
        _check_first_mention(entry, diagnostics)
    for step in entry.retype:
        _check_expression(step.using, diagnostics, ("retype", step.column, "using"))
    steps = (
        *retyped,
        *_backfills(entry, after, [work.path for work in retyped], diagnostics),
        *_checks(entry, diagnostics),
        *_rewrites(entry, after),
    )
    return tuple(sorted(steps, key=lambda step: step.stage))


def _check_first_mention(entry: TableEntry, diagnostics: EntryDiagnostics) -> None:
    message = "has no rows yet"
    for key in ("backfill",) * bool(entry.backfill) + ("rewrite",) * entry.rewrites_old:
        diagnostics.error("first-mention", (key,), f"a table that is mentioned for the first time {message}")
    for number, check in enumerate(entry.checks):
        if not check.is_after:
            diagnostics.error(
                "first-mention",
                ("checks", str(number), "before"),
                f"a table that is mentioned for the first time {message} to check before",
                "check `after`, or in a later migration",
            )


def _backfills(
    entry: TableEntry, after: Table, retyped: Collection[FieldPath], diagnostics: EntryDiagnostics
) -> Iterator[Backfill]:
    for number, step in enumerate(entry.backfill):
        seen: set[FieldPath] = set()
        if step.where is not None:
            _check_expression(step.where, diagnostics, ("backfill", str(number), "where"))
            _check_reads(step.where, entry, after, diagnostics, ("backfill", str(number), "where"))
        for column, value in step.sets:
            subject = ("backfill", str(number), "set", column)
            path = diagnostics.path(column, subject)
            if path is None:
                continue
            _check_column(path, entry, after, diagnostics, subject)
            _check_reads(value, entry, after, diagnostics, subject)
            taken = next((r for r in retyped if r[: len(path)] == path[: len(r)]), None)
            if taken is not None:
                # While rows are written, its name still belongs to the old column, which is dropped after
                # that.
                column = format_path(taken)
                diagnostics.error(
                    "backfill-retyped",
                    subject,
                    f"`{format_path(path)}` would be set in the column that `retype` replaces",
                    f"compute the value in `using` of `{column}`, or fill it in a later migration",
                )
            if path in seen:
                diagnostics.error(
                    "duplicate-column", subject, f"`{format_path(path)}` is set twice in one step"
                )
            seen.add(path)
            _check_expression(value, diagnostics, subject)
        yield Backfill(step.sets, step.where, number)


def _check_column(
    path: FieldPath, entry: TableEntry, after: Table, diagnostics: EntryDiagnostics, subject: tuple[str, ...]
) -> None:
    """Report a path that is not a column, or is part of a list or a map, which ``UPDATE`` cannot assign."""
    for depth in range(1, len(path)):
        field = after.schema.find(path[:depth])
        if field is not None and isinstance(field.type, (List, Map)):
            diagnostics.error(
                "bad-path",
                subject,
                f"`{format_path(path)}` is inside a list or a map, whose parts cannot be set alone",
                f"set `{format_path(path[:depth])}` as a whole",
            )
            return
    if after.schema.find(path) is None:
        renamed = dict(entry.renames)
        name = format_path(path)
        hint = (
            f"this migration renames it: write `{renamed[name]}`"
            if name in renamed
            else SchemaDraft(after.schema, ()).nearest(path)
        )
        diagnostics.error(
            "unknown-column", subject, f"there is no column `{name}` to fill after this migration", hint
        )


def _check_reads(
    expression: str, entry: TableEntry, after: Table, diagnostics: EntryDiagnostics, subject: tuple[str, ...]
) -> None:
    """Complain about an expression that plainly reads a column by the name which this entry takes from it."""
    if not entry.renames:
        return
    there = {tuple(map(str.lower, path)) for path, _ in after.schema.walk()}
    for old, new in entry.renames:
        path = diagnostics.path(old, subject)
        renamed = diagnostics.path(new, subject)
        if path is None or renamed is None or tuple(map(str.lower, path)) in there:
            continue
        if is_column_mentioned(expression, path):
            called = format_path((*path[:-1], renamed[-1]))
            diagnostics.error(
                "unknown-column",
                subject,
                f"the expression reads `{old}`, which this migration renames to `{called}`",
                f"write `{called}`",
            )


def _check_expression(text: str, diagnostics: EntryDiagnostics, subject: tuple[str, ...]) -> None:
    """Report text that would change the statement around it, or is not an expression."""
    if fault := expression_fault(text):
        what, hint = fault
        diagnostics.error("bad-expression", subject, f"the expression {what}", hint)


def _rewrites(entry: TableEntry, after: Table) -> Iterator[Rewrite]:
    if entry.rewrites_old:
        yield Rewrite(bool(after.sort_order.fields), dropped_field_names(after.dropped, after))


def _checks(entry: TableEntry, diagnostics: EntryDiagnostics) -> Iterator[QueryCheck]:
    for number, check in enumerate(entry.checks):
        subject = ("checks", str(number), "after" if check.is_after else "before")
        if TABLE_PLACEHOLDER not in check.query:
            diagnostics.error(
                "table-mark-missing",
                subject,
                "the query does not read the rows of this table",
                f"write `{TABLE_PLACEHOLDER}` instead of the table name: "
                f"`select count(*) from {TABLE_PLACEHOLDER}`",
            )
        if fault := query_fault(check.query):
            what, hint = fault
            diagnostics.error("bad-query", subject, f"the query {what}", hint)
        elif check.gives == "[]" and is_one_aggregate(check.query):
            diagnostics.error(
                "check-always-fails",
                subject,
                "the query always returns one row, and a check without `gives` expects no rows",
                "add the expected value, such as `gives: 0`",
            )
        yield QueryCheck(check.query, check.gives, check.is_after, check.name, number)
