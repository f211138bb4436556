"""Checks of the views that plans create, replace and drop, which need the catalog.

A request for each view, and for each name that a view gets; most plans have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.keep_view import (
    CHANGED_VIEW,
    VIEW_PHASES,
    DropKeptView,
    KeepView,
    KeptViewChange,
    SetKeptView,
)
from icemigrate.errors import CatalogError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import View
from icemigrate.planning.plan import Direction, MigrationPlan, TablePlan


def with_kept_view_problems(
    session: EnvironmentSession, migrations: tuple[MigrationPlan, ...]
) -> tuple[MigrationPlan, ...]:
    """The plans, with problems of views that cannot be created or replaced.

    A view that a plan drops, and that another client changed, stays: its table gets a note.
    """
    changes = [c for m in migrations for c in _view_changes(m)]
    if not changes:
        return migrations
    if not session.catalog.capabilities.views:
        return tuple(replace(m, problems=(*m.problems, *_without_views(session, m))) for m in migrations)
    names = {change.view_name for change in changes}
    views = {view.name: view for view in _load_views(session, names)}
    new = sorted({c.view_name for c in changes if isinstance(c, KeepView)} - views.keys())
    loaded = session.catalog.load(new) if new else {}
    tables = {name for name, table in loaded.items() if table is not None}
    checked = []
    for migration in migrations:
        problems = (*_with_hints(migration), *_taken_names(session, migration, views, tables))
        plans = tuple(_with_notes(session, plan, views) for plan in migration.tables)
        checked.append(replace(migration, problems=problems, tables=plans))
        for change in _view_changes(migration):
            found = views.get(change.view_name)
            if found is not None and change.is_own(found, session.environment.catalog.name):
                del views[change.view_name]  # a later plan finds what this one leaves
    return tuple(checked)


def _with_hints(migration: MigrationPlan) -> Iterator[PlanProblem]:
    for problem in migration.problems:
        if problem.rule == "keep-view-unreadable" and problem.hint is not None:
            problem = replace(problem, hint=_hint(migration, problem.hint))
        yield problem


def changed_views(migration: MigrationPlan) -> frozenset[TableName]:
    """The views that a migration creates, replaces or drops itself."""
    return frozenset(change.view_name for change in _view_changes(migration))


def _view_changes(migration: MigrationPlan) -> Iterator[KeptViewChange]:
    # A plan may have thousands of changes, and `isinstance` with an abstract class is slow.
    found = (c.change for c in migration.changes() if c.change.phase in VIEW_PHASES)
    return (change for change in found if isinstance(change, KeptViewChange))


def _load_views(session: EnvironmentSession, names: set[TableName]) -> Iterator[View]:
    """The views of these names that exist."""
    for namespace in sorted({name.namespace for name in names}):
        try:
            there = names.intersection(session.catalog.views(namespace))
        except CatalogError:
            continue  # only apply can find a name that is taken
        yield from session.catalog.load_views(sorted(there))


def _without_views(session: EnvironmentSession, migration: MigrationPlan) -> Iterator[PlanProblem]:
    for plan in migration.tables:
        for change in (c.change for c in plan.changes()):
            if isinstance(change, SetKeptView):
                kind = session.environment.catalog.type
                yield PlanProblem(
                    "no-views",
                    plan.declared,
                    change.subject,
                    f"catalog `{session.environment.catalog.name}` ({kind}) has no views, so "
                    f"`{change.view_name}` cannot be created",
                    _hint(migration, "remove `keep_view`"),
                )


def _taken_names(
    session: EnvironmentSession,
    migration: MigrationPlan,
    views: Mapping[TableName, View],
    tables: set[TableName],
) -> Iterator[PlanProblem]:
    catalog = session.environment.catalog.name
    for plan in migration.tables:
        for change in (c.change for c in plan.changes()):
            if not isinstance(change, SetKeptView):
                continue
            name, found = change.view_name, views.get(change.view_name)
            is_foreign = found is not None and not change.is_own(found, catalog)
            if name not in tables and not is_foreign:
                continue
            what = "a table" if name in tables else "another view"
            verb = "created" if isinstance(change, KeepView) else "replaced"
            yield PlanProblem(
                "view-name-taken",
                plan.declared,
                change.subject,
                f"view `{name}` cannot be {verb}: the catalog has {what} of this name",
                _hint(migration, "give the view another `name`")
                if isinstance(change, KeepView)
                else "drop or rename the other view first",
            )


def _hint(migration: MigrationPlan, of_file: str) -> str:
    """What to do about a view that cannot be created: a rollback has no file to edit.

    :param of_file: where a migration file declares the view.
    """
    if migration.direction is Direction.ROLLBACK:
        return f"`icemigrate revert {migration.version}` writes a migration that undoes it without the view"
    return of_file


def _with_notes(session: EnvironmentSession, plan: TablePlan, views: Mapping[TableName, View]) -> TablePlan:
    catalog = session.environment.catalog.name
    notes = [
        f"view {change.view_name} stays: {CHANGED_VIEW}"
        for change in (c.change for c in plan.changes())
        if isinstance(change, DropKeptView)
        and (found := views.get(change.view_name)) is not None
        and not change.is_own(found, catalog)
    ]
    return replace(plan, notes=(*plan.notes, *notes)) if notes else plan
