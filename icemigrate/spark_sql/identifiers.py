"""Names in Spark SQL: bare where they read well and are safe, in backticks where they must be."""

from __future__ import annotations

import re

from icemigrate.iceberg.names import FieldPath, TableName

# Spark would accept letters of other scripts without quotes, Iceberg's own part of the grammar does not.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_WORDS = """
all and any array as authorization both call case cast check collate collation column constraint
create cross current_date current_time current_timestamp current_user distinct else end escape
except execute false fetch filter for foreign from full grant group having in inner intersect into
is join lateral leading left natural not null offset on only or order outer overlaps primary
recursive references retention right select session_user some sql table then time to trailing union
unique unknown use user using when where with within
"""

RESERVED = frozenset(_WORDS.split())
"""Words that need quotes as names, in lower case.

Spark 4.1's words under ``spark.sql.ansi.enforceReservedKeywords`` (``SELECT * FROM sql_keywords()``), because
that is the user's setting; ``use``, which begins a statement; and ``array`` and ``retention``, which
Iceberg's extensions of the grammar reserve.
"""


def quote(name: str) -> str:
    """A name in a statement; backticks inside are doubled."""
    if _PLAIN.match(name) and name.lower() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def path_sql(path: FieldPath) -> str:
    """A path to a field: ``address.`zip.code```."""
    return ".".join(quote(name) for name in path)


def table_sql(catalog: str, table: TableName) -> str:
    """A table's full name, catalog first."""
    return path_sql((catalog, *table.namespace, table.name))


def namespace_sql(catalog: str, namespace: tuple[str, ...]) -> str:
    """A namespace's full name, catalog first."""
    return path_sql((catalog, *namespace))
