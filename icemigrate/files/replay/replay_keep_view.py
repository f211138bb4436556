"""Replays ``keep_view`` of a table entry, and lets the views of earlier migrations follow its changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from icemigrate.files.read.migration_file import UNSET, TableEntry
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.replay_names import ColumnNameChanges
from icemigrate.frozen import replace
from icemigrate.iceberg.kept_views import (
    MAX_VIEW_AGE,
    KeptView,
    declared_view,
    default_view_name,
    following_view,
    kept_views,
    with_types,
    without_kept_views,
)
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.table import Table

_MS = timedelta(milliseconds=1)


def replay_keep_view(
    entry: TableEntry,
    before: Table | None,
    after: Table,
    renaming: ColumnNameChanges,
    version: str,
    diagnostics: EntryDiagnostics,
) -> Mapping[str, str]:
    """The properties of the table after the entry, with those that name its kept views.

    :param before: the declared table before the migration; ``None`` at its first mention.
    :param after: the declared table after it.
    :param version: of the migration.
    """
    is_same = before is not None and after.schema.fields is before.schema.fields and after.name == before.name
    if before is None or (is_same and entry.keep_view is UNSET):
        return after.properties  # a table may have thousands of properties, which are not searched then
    others = without_kept_views(after.properties)
    if entry.keep_view is None:
        if others == after.properties:
            message = f"no migration keeps a view of `{after.name}`"
            diagnostics.warn("no-kept-view", ("keep_view",), message, "remove `keep_view`")
        return others
    removed = frozenset(renaming.removed)
    views = {
        view.name: view
        for earlier in kept_views(after.properties)
        if (view := following_view(earlier, after, renaming.renamed, removed)) is not None
    }
    new = _declared(entry, before, after, renaming, version, diagnostics)
    if new is not None and new.name in views:
        subject = ("keep_view", "name")
        message = f"`{before.name}` keeps view `{new.name}` of {views[new.name].version} already"
        hint = "give the view another `name`, or drop that view in an earlier migration: `keep_view: null`"
        diagnostics.error("view-name-taken", subject, message, hint)
    elif new is not None:
        views[new.name] = new
    return {**others, **{view.key: view.value for view in views.values()}} if views else others


def _declared(
    entry: TableEntry,
    before: Table,
    after: Table,
    renaming: ColumnNameChanges,
    version: str,
    diagnostics: EntryDiagnostics,
) -> KeptView | None:
    """The view that the entry declares."""
    if entry.keep_view is UNSET or entry.keep_view is None:
        return None
    subject = ("keep_view",)
    if not _are_columns_renamed(renaming.renamed):
        nested = "; a view cannot give a nested field another name" if renaming.renamed else ""
        message = f"`keep_view` needs `renames` of columns in the same entry{nested}"
        diagnostics.error("keep-view-renames", subject, message, "remove `keep_view`")
        return None
    if entry.keep_view.max_age > MAX_VIEW_AGE:
        message = "a view is kept for at most 100 years"
        diagnostics.error("keep-view-age", subject, message, f"write `{MAX_VIEW_AGE.days}d` or less")
        return None
    below = next((path for path in renaming.renamed if len(path) > 1), None)
    if below is not None:
        diagnostics.error(
            "keep-view-renames",
            subject,
            f"a view cannot give the nested field `{'.'.join(below)}` its old name",
            "rename nested fields in a migration of their own",
        )
        return None
    given = entry.keep_view.name
    name = default_view_name(after.name, version) if given is UNSET else given
    lost = frozenset(renaming.removed)
    view = declared_view(name, version, entry.keep_view.max_age // _MS, before, renaming.renamed)
    left = tuple((old, new) for old, new in view.columns if (old,) not in lost)
    return with_types(replace(view, table=after.name.name, columns=left), after.schema)


def _are_columns_renamed(renamed: Mapping[FieldPath, FieldPath]) -> bool:
    return any(len(path) == 1 for path in renamed)
