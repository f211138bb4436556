"""Searches the SQL of a catalog's views, which is parsed and never run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from icemigrate.files.parse.source_text import SourceText
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import View
from icemigrate.sql_impact.affected import AffectedObject, ChangeKind, DeclaredTables
from icemigrate.sql_impact.name_resolver import DbtNames
from icemigrate.sql_impact.script import Language, Script
from icemigrate.sql_impact.search import find_sql_uses
from icemigrate.sql_impact.sql_parser import is_sqlglot_installed, sql_dialects, table_names, view_definition


class ViewUses(Frozen):
    """The views that use what migrations change.

    :param uses: by what changes and the view's name, whether the view breaks for sure.
    :param unread: why a view that may use what changes was not searched, by its name.
    """

    uses: dict[tuple[AffectedObject, TableName], bool]
    unread: dict[TableName, str]


def find_view_uses(views: Sequence[View], declared_tables: DeclaredTables) -> ViewUses:
    """Find the uses of changed objects in views, and in views on these views.

    One readable dialect of a view is enough.
    """
    is_installed = is_sqlglot_installed()
    dialects = sql_dialects() if is_installed else frozenset[str]()
    found = ViewUses({}, {})
    names: dict[str, TableName] = {}
    scripts: list[Script] = []
    for view in views:
        known = [query for query in view.queries if query.dialect in dialects]
        for query in known:
            path = f"{view.name} in {query.dialect}"
            names[path] = view.name
            text = view_definition((*view.name.namespace, view.name.name), query.sql, query.dialect)
            namespace = tuple(part.lower() for part in view.namespace)
            scripts.append(Script(SourceText(path, text), path, Language.VIEW, query.dialect, namespace))
        if view.problem is not None:
            found.unread[view.name] = view.problem
        elif not known and any(_mentions_changed_table(query.sql, declared_tables) for query in view.queries):
            listed = ", ".join(f"`{query.dialect}`" for query in view.queries)
            why = f"SQLGlot has no dialect {listed}" if is_installed else "SQLGlot is not installed"
            found.unread[view.name] = why
    readable: set[TableName] = set()
    for uses in find_sql_uses(scripts, declared_tables, DbtNames({}, {})) if scripts else ():
        name = names[uses.script.source.path]
        for _, use in uses.uses:
            # Whether a wider type breaks a view depends on the engine.
            is_sure = use.is_sure and use.affected.change is not ChangeKind.RETYPED
            found.uses[use.affected, name] = is_sure or found.uses.get((use.affected, name), False)
        if uses.unread:
            found.unread.setdefault(name, uses.unread[0].why)
        else:
            readable.add(name)
    for name in readable & found.unread.keys():
        del found.unread[name]
    _add_readers(found, views, dialects)
    return found


def _add_readers(found: ViewUses, views: Sequence[View], dialects: Collection[str]) -> None:
    """Add the views that read a view with a use, and so on; they need not name the column that changes."""
    readers = _readers({name for _, name in found.uses}, views, dialects)
    for affected, first in list(found.uses):
        waiting = [first]
        while waiting:
            for reader in sorted(readers.get(waiting.pop(), ())):
                if (affected, reader) not in found.uses:
                    found.uses[affected, reader] = False
                    waiting.append(reader)


def _readers(
    names: Collection[TableName], views: Sequence[View], dialects: Collection[str]
) -> Mapping[TableName, set[TableName]]:
    """The views that read each of these views, and that read those, and so on.

    A view is parsed only if it contains the name of one of them, and once, so that circles end.
    """
    readers, read = defaultdict[TableName, set[TableName]](set), dict[TableName, frozenset[TableName]]()
    known = {tuple(part.lower() for part in (*v.name.namespace, v.name.name)): v.name for v in views}
    while names:
        words = [name.name.lower() for name in names]
        for view in views:
            if view.name not in read and any(word in q.sql.lower() for word in words for q in view.queries):
                read[view.name] = frozenset(_views_read(view, known, dialects))
        found = set[TableName]()
        for reader, of in read.items():
            for name in of.intersection(names):
                readers[name].add(reader)
                found.add(reader)
        names = found - readers.keys()
    return readers


def _views_read(
    view: View, known: Mapping[tuple[str, ...], TableName], dialects: Collection[str]
) -> Iterator[TableName]:
    namespace = tuple(part.lower() for part in view.namespace)
    for query in view.queries:
        for name in table_names(query.sql, query.dialect) if query.dialect in dialects else ():
            full = (*namespace, *name) if len(name) == 1 else name
            # The first part may be the name of the catalog.
            found = known.get(full) or known.get(full[1:])
            if found is not None and found != view.name:
                yield found


def _mentions_changed_table(sql: str, declared_tables: DeclaredTables) -> bool:
    words = set(re.findall(r"\w+", sql.lower()))
    return any(affected.table.name.lower() in words for affected in declared_tables.affected_objects)
