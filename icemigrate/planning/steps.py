"""Groups changes in running order to steps: changes of one statement or one metadata commit form a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.change import Change, MetadataCommit, Statement
from icemigrate.changes.keep_view import VIEW_PHASES
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import PlannedChange, Step
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.spark_sql.type_sql import are_names_distinct, spark_loads


def as_steps(found: Sequence[DetectedChange], catalog: str) -> Iterator[Step]:
    """The steps of one table, in order.

    :param catalog: the catalog's name in Spark SQL.
    """
    at = 0
    while at < len(found):
        run = _run(found, at)
        combined = _in_words(run, render_statements([f.change for f in run], run[0].before, catalog))
        if _is_commit(combined):
            run, combined = _widen_commit(found, at, run, combined, catalog)
        yield Step(tuple(planned_change(f) for f in run), combined)
        at += len(run)


def as_unwritten_steps(found: Sequence[DetectedChange]) -> Iterator[Step]:
    """The changes of one table in order, without the statements that do them."""
    return (Step((planned_change(f),), ()) for f in found)


def _run(found: Sequence[DetectedChange], at: int) -> Sequence[DetectedChange]:
    """The changes from ``at`` on that one statement makes."""
    following = (found[i].change for i in range(at, len(found)))
    alike = sum(1 for _ in type(found[at].change).combinable(following))
    return found[at : at + max(alike, 1)]


def render_statements(changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
    """The statements of one step.

    :param before: the table as it is when they run.
    """
    if len(changes) == 1:
        return changes[0].statements(before, catalog)
    return type(changes[0]).combine(changes, before, catalog)


def _in_words(run: Sequence[DetectedChange], statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements, or one commit in their place where Spark cannot work with the table.

    No commit can drop a view, and Spark drops one without loading its table.
    """
    if _is_commit(statements) or not statements or run[0].change.phase in VIEW_PHASES:
        return statements
    schema = run[0].before.schema
    if not spark_loads(schema):
        why = "Spark cannot load this table"
    elif not are_names_distinct(schema):
        why = "Spark ignores case, and two names differ only in case"
    else:
        return statements
    summary = "; ".join(f.change.describe() for f in run)
    return (MetadataCommit(f"{summary} ({why})"),)


def _is_commit(statements: tuple[Statement, ...]) -> bool:
    return len(statements) == 1 and isinstance(statements[0], MetadataCommit)


def _widen_commit(
    found: Sequence[DetectedChange],
    at: int,
    run: Sequence[DetectedChange],
    first: tuple[Statement, ...],
    catalog: str,
) -> tuple[Sequence[DetectedChange], tuple[Statement, ...]]:
    """One commit for all neighbouring changes of one table name that only a metadata commit can do."""
    commits = list(first)
    end = at + len(run)
    while end < len(found) and found[end].before.name == found[at].before.name:
        statements = _in_words(found[end : end + 1], found[end].change.statements(found[end].before, catalog))
        if not _is_commit(statements) or not found[at].before.schema.fields:
            break
        commits.extend(statements)
        end += 1
    summary = "; ".join(c.summary for c in commits if isinstance(c, MetadataCommit))
    return found[at:end], (MetadataCommit(summary),)


def planned_change(f: DetectedChange) -> PlannedChange:
    """A change with its hazards, its reversal and its notes, for display before it runs."""
    return PlannedChange(
        f.change, f.change.describe(), f.change.hazards(f.before), f.change.reversal(f.before)
    )
