"""Actions for kept views whose time is over, and the time until which each view is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.changes.keep_view import CHANGED_VIEW, drop_view_statements, is_kept_view
from icemigrate.errors import CatalogError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.kept_views import KeptView, kept_views, view_name
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.views import View
from icemigrate.maintenance.context import ActionOrSkipped, MaintenanceAction, MaintenanceContext
from icemigrate.maintenance.retention_actions import DeclaredTable, declared_tables
from icemigrate.results.maintain_results import ActionSummary, SkippedTable

if TYPE_CHECKING:
    from icemigrate.spark.commit_ports import CommittingEngine

VIEWS_PART = "views"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_MS = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(milliseconds=1)
"""The last time that a date can be, in milliseconds since 1970."""


class FoundView(Frozen):
    """A kept view as its table and the catalog have it.

    :param table: the table in the catalog.
    :param found: the view in the catalog; ``None`` where it is gone.
    """

    table: TableName
    view: KeptView
    found: View | None

    @property
    def name(self) -> TableName:
        """The name of the view in the catalog."""
        return view_name(self.table, self.view.name)

    @property
    def until(self) -> datetime | None:
        """The time until which it is kept; ``None`` where its creation is unknown."""
        if self.found is None or self.found.created_ms is None:
            return None
        until_ms = self.found.created_ms + self.view.max_age_ms
        return _EPOCH + timedelta(milliseconds=until_ms) if 0 <= until_ms <= _LAST_MS else None


def find_kept_views(catalog: Catalog, tables: Iterable[Table]) -> Iterator[FoundView]:
    """The kept views of tables, in the order of the tables; a request for each view.

    :raises CatalogError: a view cannot be listed or read.
    """
    named = [(table, view) for table in tables for view in kept_views(table.properties)]
    there: dict[TableName, View] = {}
    for namespace in sorted({table.name.namespace for table, _ in named}):
        names = {view_name(t.name, v.name) for t, v in named if t.name.namespace == namespace}
        listed = sorted(names.intersection(catalog.views(namespace)))
        there |= {view.name: view for view in catalog.load_views(listed)}
    for table, view in named:
        yield FoundView(table.name, view, there.get(view_name(table.name, view.name)))


def find_expired_views(look: MaintenanceContext) -> Iterator[ActionOrSkipped]:
    """The drops of kept views whose time is over, one action for each table."""
    for declared in declared_tables(look, VIEWS_PART):
        if isinstance(declared, SkippedTable):
            yield declared
        elif any(kept_views(declared.table.properties)):
            yield from _of_table(look, declared)


def _of_table(look: MaintenanceContext, declared: DeclaredTable) -> Iterator[ActionOrSkipped]:
    name, catalog = declared.name, look.session.environment.catalog.name
    try:
        views = list(find_kept_views(look.session.catalog, [declared.table]))
    except CatalogError as error:
        yield SkippedTable(VIEWS_PART, str(name), f"its views cannot be read: {error.message}")
        return
    due = list[FoundView]()
    for one in views:
        if one.found is not None and one.found.problem is not None:
            reason = f"view {format_path((one.view.name,))} cannot be read: {one.found.problem}"
            yield SkippedTable(VIEWS_PART, str(name), reason, is_unreadable=True)
        elif one.found is not None and not is_kept_view(one.found, name, one.view, catalog):
            yield SkippedTable(VIEWS_PART, str(name), _changed_text(one), is_refused=True)
        elif one.found is not None and (one.until is None or one.until > look.at):
            yield SkippedTable(VIEWS_PART, str(name), _kept_text(one))
        else:
            due.append(one)
    if due:
        dropped = [drop_view_statements(catalog, name, one.view) for one in due]
        statements = "; ".join(
            statement.text
            for one, both in zip(due, dropped, strict=True)
            for statement in (both if one.found is not None else both[1:])
        )
        text = "; ".join(filter(None, (_listed_text(due, True), _listed_text(due, False))))
        summary = ActionSummary(VIEWS_PART, str(name), text, statements)
        run = partial(_drop, name, tuple(one.view for one in due))
        names = frozenset(one.view.name for one in due)
        yield MaintenanceAction(summary, name, declared.table.uuid, run, views=names)


def _listed_text(views: Iterable[FoundView], is_there: bool) -> str:
    """What to do about the views that the catalog has, or about the others; empty without one."""
    names = [format_path((one.view.name,)) for one in views if (one.found is not None) is is_there]
    verb = "drop" if is_there else "remove the record of dropped"
    return f"{verb} {'view' if len(names) == 1 else 'views'} {', '.join(names)}" if names else ""


def _drop(table: TableName, views: tuple[KeptView, ...], engine: CommittingEngine) -> str:
    from icemigrate.spark.view_statements import drop_kept_view

    return ", ".join(drop_kept_view(engine, table, view) for view in views)


def _changed_text(one: FoundView) -> str:
    name = format_path((one.view.name,))
    return f"view {name} stays: {CHANGED_VIEW}; drop it yourself, and run this again"


def _kept_text(one: FoundView) -> str:
    name = format_path((one.view.name,))
    if one.until is None:
        return f"the time at which view {name} was created is unknown"
    return f"view {name} is kept until {one.until:%Y-%m-%d %H:%M:%S} UTC"
