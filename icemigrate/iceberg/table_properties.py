"""Table properties: reserved ones, write modes, and those that name a column.

``SchemaUpdate`` moves or removes ``write.metadata.metrics.column.*``,
``write.parquet.bloom-filter-enabled.column.*`` and ``write.parquet.stats-enabled.column.*`` in the
commit that renames or drops a column (``PropertyUtil.applySchemaChanges``, Iceberg 1.12).  It looks at
the renamed or dropped field alone: the properties of the fields *below* it keep the old path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from icemigrate.iceberg.names import FieldPath

SUMMARY_PREFIX = "icemigrate."
"""Before every key that icemigrate writes into a snapshot's summary."""

GC_ENABLED_PROPERTY = "gc.enabled"
"""Where it is false, a table's files may not be deleted (Iceberg's "Table behavior properties")."""

_ITSELF = "Iceberg maintains it; remove the property"

HISTORY_FORMAT_PROPERTY = "icemigrate.format"
"""The format of a history; no other table has this property."""
OWNER_PROPERTY = "icemigrate.owner"
"""On a table: the project that owns it; set by the first commit of the project."""
FENCE_PROPERTY = "icemigrate.fence"
"""On a table: which holder of the lock fenced it last; see :mod:`icemigrate.spark.commit_fence`."""
COMMIT_PROPERTY = "icemigrate.commit"
"""On a table: the run, and a random word, of the last commit of a migration that put no tag on the table.  It
proves which metadata file a run has committed."""
BATCH_PROPERTY = "icemigrate.batch"
"""On a table, and in a snapshot's summary: the batch of ``ingest`` that was committed last."""
ADOPTED_FROM = "icemigrate.adopted-from"
"""In the summary of a snapshot of `adopt-parquet`: the folder or file on this machine that it adopted."""
ADOPTION_UNDONE = "icemigrate.adoption-undone"
"""In the summary of the snapshot that takes such files out of the table again: the same path."""
ROWS_OF_TABLE = "icemigrate.rows-of-table"
"""In the footer of a Parquet file of `ingest` whose rows a table has too: the table's UUID."""
CREATION_PROPERTY = "icemigrate.creation"
"""On a table of a REST catalog: the request that created it, until a second commit sets the field ids;
see :mod:`icemigrate.metadata_engine.rest_creation`."""

RESERVED_PROPERTIES = MappingProxyType(
    {
        "format-version": "write `format_version: 3`",
        "sort-order": "write `sort_by: […]`",
        "default-sort-order": "write `sort_by: […]`",
        "default-partition-spec": "write `partition_by: […]`",
        "identifier-fields": "write `identifier: […]`",
        "current-schema": "write `columns: […]`",
        "location": "write `location: …`",
        "provider": "all tables are Iceberg tables; remove the property",
        "format": "all tables are Iceberg tables; set the file format with `write.format.default`",
        "owner": "the catalog sets it when it creates the table; remove the property",
        "external": "the catalog decides it; remove the property",
        "is_managed_location": "the catalog decides it; remove the property",
        "table_type": "the catalog sets it; remove the property",
        "metadata_location": "the catalog sets it; remove the property",
        "previous_metadata_location": "the catalog sets it; remove the property",
        "collation": "Iceberg columns have no collation; remove the property",
        "uuid": _ITSELF,
        "snapshot-count": _ITSELF,
        "current-snapshot-id": _ITSELF,
        "current-snapshot-summary": _ITSELF,
        "current-snapshot-timestamp-ms": _ITSELF,
        OWNER_PROPERTY: "icemigrate sets it to the project that owns the table; remove the property",
        FENCE_PROPERTY: "icemigrate sets it when a lock is taken over; remove the property",
        COMMIT_PROPERTY: "icemigrate sets it in its commits; remove the property",
        BATCH_PROPERTY: "icemigrate sets it in the commits of `ingest`; remove the property",
        CREATION_PROPERTY: "icemigrate sets it while it creates a table; remove the property",
        "cherry-pick-snapshot-id": "it is a snapshot operation, not a table property; remove the property",
    }
)
"""Reserved names, in lower case, and what to do instead.

They are ``TableProperties.RESERVED_PROPERTIES`` of Iceberg, those that its ``SparkCatalog.alterTable`` reads
as something else, and ``CatalogV2Util.TABLE_RESERVED_PROPERTIES`` of Spark.
"""


def reserved_property_hint(key: str) -> str | None:
    """What to do instead of setting a reserved property; ``None`` for an ordinary one.

    Spark and Iceberg compare some of these names without regard to case, so all are compared so.
    """
    return RESERVED_PROPERTIES.get(key.lower())


DELETE_MODE = "write.delete.mode"
UPDATE_MODE = "write.update.mode"
MERGE_MODE = "write.merge.mode"

COPY_ON_WRITE = "copy-on-write"
MERGE_ON_READ = "merge-on-read"


def has_merge_on_read_updates(properties: Mapping[str, str]) -> bool:
    """Whether an ``UPDATE`` of a table with these properties writes delete files instead of
    rewriting files.
    """
    return properties.get(UPDATE_MODE, "").lower() == MERGE_ON_READ


PREFIXES = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)
"""Prefixes of properties whose key continues with a column's full name."""

ATTRIBUTE_PREFIX = "icemigrate.attribute.column."
"""Before the name of a column that `ingest` fills from an attribute; the value names the attribute."""

ALL_PREFIXES = (
    *PREFIXES,
    ATTRIBUTE_PREFIX,
    "write.parquet.bloom-filter-fpp.column.",
    "write.parquet.bloom-filter-ndv.column.",
    "write.parquet.dict-encoding-enabled.column.",
)
"""The same, and those that the library leaves behind; a migration that renames the column moves them too."""


def column_key(path: FieldPath) -> str:
    """A field's full name in Iceberg's keys: joined by dots, without quotes."""
    return ".".join(path)


def column_properties_after_rename(
    properties: Mapping[str, str],
    renamed: Mapping[FieldPath, FieldPath],
    prefixes: tuple[str, ...] = PREFIXES,
) -> Mapping[str, str]:
    """The properties after fields were renamed, all at once.

    A moved property replaces one that had the new name before.

    :param renamed: full path before → full path after, for the renamed fields only.
    """
    names = {column_key(old): column_key(new) for old, new in renamed.items()}
    moved = {
        prefix + old: prefix + new
        for old, new in names.items()
        for prefix in prefixes
        if prefix + old in properties
    }
    if not moved:
        return properties
    others = {key: value for key, value in properties.items() if key not in moved}
    return others | {new: properties[old] for old, new in moved.items()}


def column_properties_after_drop(
    properties: Mapping[str, str], paths: Iterable[FieldPath], prefixes: tuple[str, ...] = PREFIXES
) -> Mapping[str, str]:
    """The properties after fields were dropped; those of their nested fields stay, as in Iceberg.

    :param paths: full paths of the dropped fields.
    """
    names = [column_key(path) for path in paths]
    gone = {key for name in names for prefix in prefixes if (key := prefix + name) in properties}
    if not gone:
        return properties
    return {key: value for key, value in properties.items() if key not in gone}


def iter_column_properties(
    properties: Mapping[str, str], prefixes: tuple[str, ...] = PREFIXES
) -> Iterable[tuple[str, str, str]]:
    """The properties that are of one column: key, prefix, and the column's full name."""
    for key in [key for key in properties if key.startswith(prefixes)]:
        prefix = next(p for p in prefixes if key.startswith(p))
        yield key, prefix, key[len(prefix) :]


_WHOLE_NUMBER = re.compile(r"[0-9]{1,19}")
"""As many digits as a long of Java has; Python refuses to read some thousands of them."""


def whole_number(text: str | None) -> int | None:
    """The number in a property, a summary or a reference to a snapshot; ``None`` for other texts."""
    return int(text) if text is not None and _WHOLE_NUMBER.fullmatch(text) else None


def is_gc_enabled(properties: Mapping[str, str]) -> bool:
    """Whether a table's files may be deleted."""
    return properties.get(GC_ENABLED_PROPERTY, "true").lower() == "true"


def is_history(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties is a history, of any project."""
    return HISTORY_FORMAT_PROPERTY in properties
