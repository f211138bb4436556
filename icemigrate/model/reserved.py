"""What is reserved: properties that are no properties, and the keys of snapshot summaries that are ours."""

from __future__ import annotations

from types import MappingProxyType

SUMMARY_PREFIX = "icemigrate."
"""Before every key that icemigrate writes into a snapshot's summary."""

_ITSELF = "Iceberg keeps it itself; take the property out"

OWNER_PROPERTY = "icemigrate.owner"
"""On a table: the project that owns it; set by the first commit of the project."""
FENCE_PROPERTY = "icemigrate.fence"
"""On a table: which holder of the lock fenced it last; see :mod:`icemigrate.engine.guard`."""

RESERVED_PROPERTIES = MappingProxyType(
    {
        "format-version": "write `format_version: 3`",
        "sort-order": "write `sort_by: […]`",
        "default-sort-order": "write `sort_by: […]`",
        "default-partition-spec": "write `partition_by: […]`",
        "identifier-fields": "write `identifier: […]`",
        "current-schema": "write `columns: […]`",
        "location": "write `location: …`",
        "provider": "tables are always Iceberg's; take the property out",
        "format": "tables are always Iceberg's; the files' format is `write.format.default`",
        "owner": "the catalog sets it when the table is made; take the property out",
        "external": "the catalog decides it; take the property out",
        "is_managed_location": "the catalog decides it; take the property out",
        "collation": "columns have no collation in Iceberg; take the property out",
        "uuid": _ITSELF,
        "snapshot-count": _ITSELF,
        "current-snapshot-id": _ITSELF,
        "current-snapshot-summary": _ITSELF,
        "current-snapshot-timestamp-ms": _ITSELF,
        OWNER_PROPERTY: "icemigrate sets it to the project that owns the table; take the property out",
        FENCE_PROPERTY: "icemigrate sets it when a lock is taken over; take the property out",
        "cherry-pick-snapshot-id": "it moves rows, not the table's definition; take the property out",
    }
)
"""Reserved names, in lower case, and what to do instead.

They are ``TableProperties.RESERVED_PROPERTIES`` of Iceberg, those that its ``SparkCatalog.alterTable``
takes for something else, and ``CatalogV2Util.TABLE_RESERVED_PROPERTIES`` of Spark.
"""


def instead(key: str) -> str | None:
    """What to do instead of setting a reserved property; ``None`` where it is an ordinary one.

    Spark and Iceberg compare some of these names without regard to case, so all are.
    """
    return RESERVED_PROPERTIES.get(key.lower())
