"""Creates, replaces and drops kept views, and leaves a view alone that icemigrate did not create."""

from __future__ import annotations

from icemigrate.changes.change import SqlStatement, Statement
from icemigrate.changes.keep_view import (
    CHANGED_VIEW,
    DropKeptView,
    KeptViewChange,
    drop_view_statements,
    is_kept_view,
    without_kept_view,
)
from icemigrate.errors import ConflictError
from icemigrate.iceberg.kept_views import KeptView, view_name
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import View
from icemigrate.planning.plan import Step
from icemigrate.spark.engine_port import Engine
from icemigrate.spark.statement_events import StatementAnnouncer


def is_view_step(step: Step) -> bool:
    """Whether a step changes a kept view."""
    return isinstance(step.changes[0].change, KeptViewChange)


def run_view_step(engine: Engine, step: Step, announcer: StatementAnnouncer) -> None:
    """Run a step that changes one kept view.

    :raises ConflictError: another client created or changed the view that the step creates or replaces.
    """
    change = step.changes[0].change
    assert isinstance(change, KeptViewChange), "the step is of a view"
    found = engine.view(change.view_name)
    statements = step.statements
    if isinstance(change, DropKeptView):
        statements = _statements_of_drop(change, found, engine.catalog_name, statements, announcer)
    elif found is not None and not change.is_own(found, engine.catalog_name):
        raise ConflictError(
            f"the catalog has another view `{change.view_name}`, which icemigrate did not create",
            "drop or rename that view; then run this again",
        )
    for statement in statements:
        with announcer.statement(change.table, statement.text):
            if isinstance(statement, SqlStatement):
                engine.sql(statement.text)
            else:
                engine.commit(change.table, change.apply)


def _statements_of_drop(
    change: DropKeptView,
    found: View | None,
    catalog: str,
    statements: tuple[Statement, ...],
    announcer: StatementAnnouncer,
) -> tuple[Statement, ...]:
    """The statements without the drop of a view that is gone, or that another client changed."""
    if found is None:
        announcer.note(change.table, f"view {change.view_name} is already dropped")
    elif not change.is_own(found, catalog):
        announcer.note(change.table, f"view {change.view_name} stays: {CHANGED_VIEW}")
    else:
        return statements
    return statements[1:]


def drop_kept_view(engine: Engine, table: TableName, view: KeptView) -> str:
    """Drop a kept view, unless another client changed it, and remove the table property that names it.

    :param table: the table in the catalog.
    :returns: the result in words.
    """
    name = view_name(table, view.name)
    found = engine.view(name)
    is_own = found is not None and is_kept_view(found, table, view, engine.catalog_name)
    if is_own:
        drop, _ = drop_view_statements(engine.catalog_name, table, view)
        engine.sql(drop.text)
    engine.commit(table, lambda now: without_kept_view(now, view))
    if found is None:
        return f"view {name} was already dropped"
    return f"dropped view {name}" if is_own else f"view {name} stays: {CHANGED_VIEW}"
