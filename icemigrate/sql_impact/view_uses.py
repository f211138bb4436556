"""Searches the SQL of a catalog's views, which is parsed and never run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from icemigrate.files.parse.source_text import SourceText
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import View
from icemigrate.sql_impact.affected import AffectedObject, ChangeKind, DeclaredTables
from icemigrate.sql_impact.name_resolver import DbtNames
from icemigrate.sql_impact.script import Language, Script
from icemigrate.sql_impact.search import find_sql_uses
from icemigrate.sql_impact.sql_parser import is_sqlglot_installed, sql_dialects, view_definition


class ViewUses(Frozen):
    """The views that use what migrations change.

    :param uses: by what changes and the view's name, whether the view breaks for sure.
    :param unread: why a view that may use what changes was not searched, by its name.
    """

    uses: dict[tuple[AffectedObject, TableName], bool]
    unread: dict[TableName, str]


def find_view_uses(views: Iterable[View], declared_tables: DeclaredTables) -> ViewUses:
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
    return found


def _mentions_changed_table(sql: str, declared_tables: DeclaredTables) -> bool:
    words = set(re.findall(r"\w+", sql.lower()))
    return any(affected.table.name.lower() in words for affected in declared_tables.affected_objects)
