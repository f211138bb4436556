"""Views that keep the old column names of a table readable after a migration renames columns.

A table property names each view: the key has the name of the view, which is in the table's namespace, and the
value says which migration made it, how long it is kept, and which columns it reads.  The property is a part
of the declared state, so that a merge, an undo and a plan compare it like any other property.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import timedelta

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import FieldPath, TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import MAX_NAME_BYTES, Table, shortened
from icemigrate.iceberg.type_text import format_type

KEPT_VIEW_PREFIX = "icemigrate.view."
"""Before the name of a view in the key of its table property."""
MAX_VIEW_AGE = timedelta(days=36_525)
"""The longest time that a view is kept: 100 years."""
_MAX_AGE_MS = MAX_VIEW_AGE // timedelta(milliseconds=1)
_DIGEST_LENGTH = 12


class KeptView(Frozen):
    """A view of a table with the column names from before a migration.

    :param name: its name, in the namespace of the table.
    :param version: the migration that declares it.
    :param max_age_ms: how long it is kept after its creation, in milliseconds.
    :param table: the table's name without its namespace.
    :param columns: the columns in order: the name in the view, and the name in the table.
    :param types: a digest of the columns' types.  Spark refuses to read a view after a column's type changed,
        so the view is created again then.
    """

    name: str
    version: str
    max_age_ms: int
    table: str
    columns: tuple[tuple[str, str], ...]
    types: str = ""

    @property
    def key(self) -> str:
        """The key of its table property."""
        return f"{KEPT_VIEW_PREFIX}{self.name}"

    @property
    def value(self) -> str:
        """The value of its table property; :func:`kept_view` reads it."""
        content = {
            "version": self.version,
            "max-age-ms": self.max_age_ms,
            "table": self.table,
            "columns": dict(self.columns),
            "types": self.types,
        }
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """The columns whose name in the view is not their name in the table."""
        return tuple((old, new) for old, new in self.columns if old != new)


def is_kept_view_key(key: str) -> bool:
    """Whether a key of a table property names a kept view."""
    return key.startswith(KEPT_VIEW_PREFIX)


def kept_view(key: str, value: str) -> KeptView | None:
    """The view of a table property; ``None`` where another client wrote something else there."""
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return None
    match content:
        case {
            "version": str(version),
            "max-age-ms": int(max_age_ms),
            "table": str(table),
            "columns": dict(columns),
            "types": str(types),
        }:
            name = key.removeprefix(KEPT_VIEW_PREFIX)
            is_version = version.isascii() and version.isdigit()
            is_age = not isinstance(max_age_ms, bool) and 0 < max_age_ms <= _MAX_AGE_MS
            are_names = all(old and new and isinstance(new, str) for old, new in columns.items())
            if name and table and is_version and is_age and columns and are_names:
                return KeptView(name, version, max_age_ms, table, tuple(columns.items()), types)
    return None


def kept_views(properties: Mapping[str, str]) -> Iterator[KeptView]:
    """The kept views of a table, by name."""
    for key in sorted(filter(is_kept_view_key, properties)):
        if (view := kept_view(key, properties[key])) is not None:
            yield view


def without_kept_views(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties of a table that do not name a kept view."""
    if not any(map(is_kept_view_key, properties)):
        return properties
    return {key: value for key, value in properties.items() if not is_kept_view_key(key)}


def view_name(table: TableName, view: str) -> TableName:
    """The name of a table's kept view in the catalog."""
    return TableName(table.namespace, view)


def default_view_name(table: TableName, version: str) -> str:
    """The name of a view that declares none: ``orders__before_0004``."""
    end = f"__before_{version}"
    return f"{shortened(table.name, MAX_NAME_BYTES - len(end))}{end}"


def declared_view(
    name: str, version: str, max_age_ms: int, table: Table, renamed: Mapping[FieldPath, FieldPath]
) -> KeptView:
    """The view with the column names from before a migration.

    :param table: the declared table before the migration.
    :param renamed: path before → path after, of the columns that the migration renames.
    """
    names = (f.name for f in table.schema.fields)
    columns = tuple((old, renamed[(old,)][-1] if (old,) in renamed else old) for old in names)
    return KeptView(name, version, max_age_ms, table.name.name, columns)


def following_view(
    view: KeptView, table: Table, renamed: Mapping[FieldPath, FieldPath], removed: frozenset[FieldPath]
) -> KeptView | None:
    """The view after a migration of its table: it keeps its names, and loses the columns that are dropped.

    :param table: the declared table after the migration.
    :param renamed: path before → path after, of the columns that the migration renames.
    :param removed: paths, as before the migration, of the columns that it drops.
    :returns: ``None`` where no column is left.
    """
    columns = tuple(
        (old, renamed[(new,)][-1] if (new,) in renamed else new)
        for old, new in view.columns
        if (new,) not in removed
    )
    if not columns:
        return None
    return with_types(replace(view, columns=columns, table=table.name.name), table.schema)


def with_types(view: KeptView, schema: Schema) -> KeptView:
    """The view with the digest of its columns' types in the table."""
    types = {f.name: format_type(f.type) for f in schema.fields}
    text = json.dumps([types.get(new, "") for _, new in view.columns])
    return replace(view, types=hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH])
