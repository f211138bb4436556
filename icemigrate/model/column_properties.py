"""Table properties that name a column, and what Iceberg makes of them when the column changes.

``SchemaUpdate`` moves or removes ``write.metadata.metrics.column.*``,
``write.parquet.bloom-filter-enabled.column.*`` and ``write.parquet.stats-enabled.column.*`` in the
commit that renames or drops a column (``PropertyUtil.applySchemaChanges``, Iceberg 1.12).  It looks at
the renamed or dropped field alone: the properties of the fields *below* it keep the old path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icemigrate.model.names import Path

PREFIXES = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)
"""After these a property's key goes on with a column's full name."""


def column_key(path: Path) -> str:
    """A field's full name as Iceberg writes it into keys: joined by dots, nothing quoted."""
    return ".".join(path)


def name_columns(properties: Mapping[str, str]) -> bool:
    """Whether a property is of one column."""
    return any(True for _ in of_columns(properties))


def after_rename(properties: Mapping[str, str], renamed: Mapping[Path, Path]) -> dict[str, str]:
    """The properties after fields were renamed, all at once.

    A moved property wins over one that stood under the new name before.

    :param renamed: full path before → full path after, for the renamed fields only.
    """
    names = {column_key(old): column_key(new) for old, new in renamed.items()}
    moved = {key: prefix + names[name] for key, prefix, name in of_columns(properties) if name in names}
    kept = {key: value for key, value in properties.items() if key not in moved}
    return kept | {new: properties[old] for old, new in moved.items()}


def after_drop(properties: Mapping[str, str], paths: Iterable[Path]) -> dict[str, str]:
    """The properties after fields were dropped; those of the fields below them stay, as Iceberg leaves them.

    :param paths: full paths of the dropped fields.
    """
    names = {column_key(path) for path in paths}
    gone = {key for key, _, name in of_columns(properties) if name in names}
    return {key: value for key, value in properties.items() if key not in gone}


def of_columns(properties: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    """The properties that are of one column: key, prefix, and the column's full name."""
    for key in properties:
        if key.startswith(PREFIXES):
            prefix = next(p for p in PREFIXES if key.startswith(p))
            yield key, prefix, key[len(prefix) :]
