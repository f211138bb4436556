"""Kept views that a process changed before it ended, and that their table property does not show.

A view is created, replaced or dropped before its table property changes.  If the process ends in between, the
table looks as it did before the migration, so its undo finds nothing to do about the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from icemigrate.changes.keep_view import (
    DropKeptView,
    KeepView,
    KeptViewChange,
    ReplaceKeptView,
    is_kept_view,
)
from icemigrate.errors import CatalogError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import replace
from icemigrate.iceberg.kept_views import is_kept_view_key, kept_view, kept_views, view_name
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table, differing_keys
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.iceberg.views import View
from icemigrate.planning.plan import MigrationPlan, PlannedMigrations, TablePlan
from icemigrate.planning.stages import later_name
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange


def with_interrupted_views(
    session: EnvironmentSession,
    planned: PlannedMigrations,
    records: Iterable[UndoRecord],
    actual: Mapping[TableName, Table | None],
) -> PlannedMigrations:
    """The plans of undos, with the changes of such views; a request for each view that a version changed.

    :param records: of the versions, in the order of the plans.
    :param actual: the catalog's tables by their name there.
    """
    migrations = tuple(
        _with_views(session, migration, record, actual)
        for migration, record in zip(planned.migrations, records, strict=True)
    )
    return replace(planned, migrations=migrations)


def _with_views(
    session: EnvironmentSession,
    migration: MigrationPlan,
    record: UndoRecord,
    actual: Mapping[TableName, Table | None],
) -> MigrationPlan:
    undos = [undo for undo in record.tables if any(_changed_keys(undo))]
    if not undos or record.baseline:
        return migration
    tables = list(migration.tables)
    for at, plan in enumerate(tables):
        there = actual.get(plan.first_name)
        undo = next((u for u in undos if plan.declared in (u.declared_before, u.declared_after)), None)
        if there is not None and undo is not None:
            tables[at] = _with_table_views(session, plan, undo, there)
    return replace(migration, tables=tuple(tables))


def _with_table_views(
    session: EnvironmentSession, plan: TablePlan, undo: TableUndo, there: Table
) -> TablePlan:
    catalog = session.environment.catalog.name
    is_dropped = undo.after is None
    changes = list(
        _views_of_kept_table(session, plan, undo, there)
        if is_dropped
        else _remaining_changes(session, plan, undo, there)
    )
    first = [DetectedChange(c, there) for c in changes if isinstance(c, DropKeptView)]
    last = [
        DetectedChange(c, replace(there, name=c.table)) for c in changes if not isinstance(c, DropKeptView)
    ]
    steps = (*as_steps(first, catalog), *plan.steps, *as_steps(last, catalog))
    return replace(plan, steps=steps) if changes else plan


def _changed_keys(undo: TableUndo) -> Iterator[str]:
    """The keys of the kept views that a migration changed on one table, or dropped with it."""
    if undo.after is None and undo.actual_before is not None:
        yield from filter(is_kept_view_key, undo.actual_before.properties)
    elif undo.before is not None and undo.after is not None:
        yield from filter(is_kept_view_key, differing_keys(undo.before.properties, undo.after.properties))


def _remaining_changes(
    session: EnvironmentSession, plan: TablePlan, undo: TableUndo, there: Table
) -> Iterator[KeptViewChange]:
    """The changes of views whose property is as before the migration, while the view is not."""
    assert undo.before is not None, "a table without a state before has no changed views"
    assert undo.after is not None, "a table without a state after has no changed views"
    catalog = session.environment.catalog.name
    for key in sorted(_changed_keys(undo)):
        before, after = (t.properties.get(key) for t in (undo.before, undo.after))
        if there.properties.get(key) != before:
            continue  # its property shows what to do
        old, new = (None if value is None else kept_view(key, value) for value in (before, after))
        named = old or new
        found = None if named is None else _find_view(session, view_name(there.name, named.name))
        is_new = found is not None and new is not None and is_kept_view(found, there.name, new, catalog)
        if old is None and new is not None and is_new:
            yield DropKeptView(plan.first_name, new)
        elif old is not None and found is None:
            yield KeepView(later_name(plan), old)
        elif old is not None and new is not None and is_new:
            yield ReplaceKeptView(later_name(plan), old, new)


def _views_of_kept_table(
    session: EnvironmentSession, plan: TablePlan, undo: TableUndo, there: Table
) -> Iterator[KeptViewChange]:
    """The dropped views of a table that an interrupted run was to drop, and has not moved yet."""
    if plan.steps or undo.actual_before is None:
        return  # the undo restores the table, with its views
    for view in kept_views(undo.actual_before.properties):
        if _find_view(session, view_name(there.name, view.name)) is None:
            yield KeepView(there.name, view)


def _find_view(session: EnvironmentSession, name: TableName) -> View | None:
    try:
        if name in session.catalog.views(name.namespace):
            return next(iter(session.catalog.load_views([name])), None)
    except CatalogError:
        return None
    return None
