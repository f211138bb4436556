"""Warnings about views of the catalog that use what a plan drops, renames, retypes or moves.

Views are loaded only where a plan does that, and only from the namespaces of those tables: a request for each
namespace, and one for each view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from icemigrate.changes.change import PlanProblem, Subject
from icemigrate.commands.affected_objects import collect_declared_tables
from icemigrate.commands.kept_view_checks import changed_views
from icemigrate.errors import CatalogError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.views import View
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.rename_tracker import RenameTracker
from icemigrate.render.phrases import join_with_and
from icemigrate.sql_impact.affected import AffectedObject, ChangeKind, DeclaredTables

MOST_VIEWS = 1000
"""How many views of a namespace are searched, since each takes a request."""
_MOST_NAMED = 10
_VERBS = {
    ChangeKind.RENAMED: "renaming",
    ChangeKind.DROPPED: "dropping",
    ChangeKind.RETYPED: "changing the type of",
    ChangeKind.MOVED: "changing the order of columns around",
}
_REVIEW_HINT = "read its SQL, and replace the view if it uses what changes"
_NAMESPACE_HINT = "grant the right to read views, or look for views that use what changes"
_ORDER_HINT = (
    "`*` in a view of Spark takes columns by position: replace the view, or list its columns by name"
)
_REPLACE_HINT = "replace the view when this is applied (`CREATE OR REPLACE VIEW`), or remove the use first"


def with_affected_views(
    session: EnvironmentSession,
    migrations: tuple[MigrationPlan, ...],
    state: DeclaredState,
    actual: Mapping[TableName, Table | None],
) -> tuple[MigrationPlan, ...]:
    """The plans, with warnings that name the views that they break.

    :param state: the declared tables after all plans.
    :param actual: the catalog's tables by their name there.
    """
    declared_tables = _changed_tables(session, migrations, state, actual)
    if not declared_tables.affected_objects or not session.catalog.capabilities.views:
        return migrations
    views, unlisted = list[View](), dict[tuple[str, ...], str]()
    for namespace in sorted({affected.table.namespace for affected in declared_tables.affected_objects}):
        try:
            names = session.catalog.views(namespace)
            views += session.catalog.load_views(names[:MOST_VIEWS])
        except CatalogError as error:
            # A right to read tables need not be one to read views.
            unlisted[namespace] = error.message
            continue
        if len(names) > MOST_VIEWS:
            why = f"`{format_path(namespace)}` has more than {MOST_VIEWS:,} views"
            views.append(View(names[MOST_VIEWS], problem=why))
    if not views and not unlisted:
        return migrations
    first = migrations[0].version
    replaced = {migration.version: changed_views(migration) for migration in migrations}
    found = (
        *_unlisted(unlisted, declared_tables, first),
        *_warnings(views, declared_tables, first, replaced),
    )
    return tuple(
        replace(m, warnings=(*m.warnings, *(_declared(w, m) for version, w in found if version == m.version)))
        for m in migrations
    )


def _changed_tables(
    session: EnvironmentSession,
    migrations: Sequence[MigrationPlan],
    state: DeclaredState,
    actual: Mapping[TableName, Table | None],
) -> DeclaredTables:
    """The tables by their names in the catalog, and what the plans change in them."""
    followed = RenameTracker()
    before = {
        migration.version: {
            plan.declared: table
            for plan in migration.tables
            if (now := followed.now(plan)) is not None and (table := actual.get(now)) is not None
        }
        for migration in migrations
    }
    labelled = ((migration, migration.version, True) for migration in migrations)
    declared_tables = collect_declared_tables(
        session.project, state, labelled, lambda migration: before[migration.version], is_review=True
    )
    there = session.names.table
    return DeclaredTables(
        {there(name): columns for name, columns in declared_tables.columns.items()},
        tuple(
            replace(affected, table=there(affected.table)) for affected in declared_tables.affected_objects
        ),
    )


def _unlisted(
    reasons: Mapping[tuple[str, ...], str], declared_tables: DeclaredTables, first: str
) -> Iterator[tuple[str, PlanProblem]]:
    """A warning for each namespace whose views cannot be read."""
    for namespace, why in reasons.items():
        table = next(a.table for a in declared_tables.affected_objects if a.table.namespace == namespace)
        message = f"the views of `{format_path(namespace)}` cannot be read: {why}"
        yield first, PlanProblem("view-not-read", table, (), message, _NAMESPACE_HINT)


def _warnings(
    views: Sequence[View],
    declared_tables: DeclaredTables,
    first: str,
    replaced: Mapping[str, frozenset[TableName]],
) -> Iterator[tuple[str, PlanProblem]]:
    """Warnings, each with the version that it is about.

    :param first: the version for a view that was not searched.
    :param replaced: the views that a version replaces or drops itself.
    """
    # Most plans need neither this module nor what it imports.
    from icemigrate.sql_impact.view_uses import find_view_uses

    found = find_view_uses(views, declared_tables)
    for affected in declared_tables.affected_objects:
        for is_sure in (True, False):
            own = replaced.get(affected.migration, frozenset())
            names = sorted(
                n for (a, n), sure in found.uses.items() if a == affected and sure is is_sure and n not in own
            )
            if names:
                yield affected.migration, _use_warning(affected, names, is_sure=is_sure)
    for name, why in sorted(found.unread.items()):
        message = f"view `{name}` may use what changes, and was not searched: {why}"
        yield first, PlanProblem("view-not-read", name, (), message, _REVIEW_HINT)


def _use_warning(affected: AffectedObject, names: Sequence[TableName], *, is_sure: bool) -> PlanProblem:
    to = f" to `{affected.to}`" if affected.to else ""
    listed = [f"`{name}`" for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        listed.append(f"{len(names) - _MOST_NAMED} more")
    shown = f"{'view' if len(names) == 1 else 'views'} {join_with_and(listed)}"
    return PlanProblem(
        "view-breaks" if is_sure else "view-may-break",
        affected.table,
        _subject(affected),
        f"{_VERBS[affected.change]} {affected.what}{to} {'breaks' if is_sure else 'may break'} {shown}",
        _ORDER_HINT if affected.change is ChangeKind.MOVED else _REPLACE_HINT if is_sure else _REVIEW_HINT,
    )


def _subject(affected: AffectedObject) -> Subject:
    """The part of a table entry that changes it."""
    path = format_path(affected.path)
    if affected.change is ChangeKind.RENAMED:
        return ("renames", path) if affected.path else ("renamed_from",)
    if affected.change is ChangeKind.DROPPED:
        return ("drop_columns", path) if affected.path else ("drop",)
    return ("columns", path, "type") if affected.change is ChangeKind.RETYPED else ("columns", path)


def _declared(problem: PlanProblem, migration: MigrationPlan) -> PlanProblem:
    """The problem with the declared name of the table, which has a position in the file."""
    for plan in migration.tables:
        if problem.table in (plan.name, *(planned.change.table for planned in plan.changes())):
            return replace(problem, table=plan.declared)
    return problem
