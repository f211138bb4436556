"""Names that a migration gives twice: to a kept view, and to a table or another kept view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from icemigrate.frozen import Frozen
from icemigrate.iceberg.declared_sides import TableTarget
from icemigrate.iceberg.kept_views import KEPT_VIEW_PREFIX, is_kept_view_key, kept_views, view_name
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table

_VIEW_SUBJECT = ("keep_view", "name")
_DROP_FIRST = "or drop the views of that table in an earlier migration: `keep_view: null`"


class TakenViewName(Frozen):
    """A name that an entry gives, and that another table or view has.

    :param table: the table of the entry, by its name after the migration.
    :param subject: the key of the entry that gives the name.
    """

    table: TableName
    subject: tuple[str, ...]
    message: str
    hint: str


def find_taken_view_names(
    before: Mapping[TableName, Table], targets: Iterable[TableTarget]
) -> Iterator[TakenViewName]:
    """The names of new views and new tables that another declared view or table has after a migration.

    :param before: the declared tables before it.
    :param targets: its tables.
    """
    targets = tuple(target for target in targets if target.table is not None or target.formerly is not None)
    created = [t for t in targets if t.table is not None and t.name not in before]
    added = [(target, name) for target in targets for name in _added_views(before, target)]
    if not (created or added):
        return
    after = {name: table for name, table in before.items() if name not in {t.formerly for t in targets}}
    after |= {target.name: target.table for target in targets if target.table is not None}
    keepers = _keepers(after.values())
    for target, name in added:
        others = [keeper for keeper in keepers[name] if keeper != target.name]
        if name in after:
            yield TakenViewName(
                target.name, _VIEW_SUBJECT, f"`{name}` is a declared table", "give the view another `name`"
            )
        elif others:
            hint = f"give the view another `name`, {_DROP_FIRST}"
            yield TakenViewName(target.name, _VIEW_SUBJECT, f"`{name}` is a view of `{others[0]}`", hint)
    new = {name for _, name in added}
    for target in created:
        if target.name in keepers and target.name not in new:
            subject = ("name",) if target.formerly is None else ("renamed_from",)
            message = f"`{target.name}` is a view of `{keepers[target.name][0]}`"
            yield TakenViewName(target.name, subject, message, f"choose another name, {_DROP_FIRST}")


def _added_views(before: Mapping[TableName, Table], target: TableTarget) -> Iterator[TableName]:
    """The views that a table keeps after the migration and not before it."""
    if target.table is None or target.formerly is None:
        return
    old = before[target.formerly].properties
    for view in kept_views(target.table.properties):
        if view.key not in old:
            yield view_name(target.name, view.name)


def _keepers(tables: Iterable[Table]) -> dict[TableName, list[TableName]]:
    """The tables that keep a view, by the view's name."""
    found: dict[TableName, list[TableName]] = {}
    for table in tables:
        for key in filter(is_kept_view_key, table.properties):
            name = view_name(table.name, key.removeprefix(KEPT_VIEW_PREFIX))
            found.setdefault(name, []).append(table.name)
    return found
