"""Which reader gives the rows of a table: DuckDB's own, or PyIceberg's scan.

The choice is made from metadata, before a data file is opened: DuckDB's reader ends the process for some
tables.  ``tests/spark/test_query_readers.py`` compares both with Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from icemigrate.catalog.metadata_files import local_path
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Geography, Geometry, Primitive
from icemigrate.table_data.object_storage import ObjectStorage, object_folders
from icemigrate.table_data.query_metadata import PointMetadata


class ReaderKind(str, Enum):
    """What reads data files."""

    DUCKDB = "duckdb"
    PYICEBERG = "pyiceberg"


class ReaderChoice(Frozen):
    """A reader, and why it is the one.

    :param reason: a sentence without a subject, such as ``column `g` has the type ...``.
    """

    kind: ReaderKind
    reason: str


_DUCKDB_LACKS = ("unknown", "timestamptz_ns")
"""Types that DuckDB 1.5.5 refuses; it reads ``variant``, which is given as JSON."""
_DUCKDB_FORMATS = frozenset({"PARQUET", "PUFFIN"})
_PYICEBERG_LACKS = ("variant",)
_NANOSECONDS = ("timestamp_ns", "timestamptz_ns")


def choose_reader(table: str, metadata: PointMetadata, storage: ObjectStorage | None = None) -> ReaderChoice:
    """The reader of one state of a table.

    :param table: its name, for errors.
    :param storage: the object storage that DuckDB can sign in to.
    :raises IcemigrateError: neither reader can read it.
    """
    against_duckdb = reason_against_duckdb(metadata, storage)
    if against_duckdb is None:
        return ReaderChoice(ReaderKind.DUCKDB, "it reads all files and types of this table")
    return reader_without_duckdb(table, metadata, against_duckdb)


def reason_against_duckdb(metadata: PointMetadata, storage: ObjectStorage | None = None) -> str | None:
    """Why DuckDB cannot read one state of a table, by its metadata; ``None`` where it can."""
    return next(_against_duckdb(metadata, storage), None)


def reason_against_formats(formats: Iterable[str]) -> str | None:
    """Why DuckDB cannot read files of some formats; ``None`` where it can.

    :param formats: of data files and delete files, as manifests name them.
    """
    others = {name.upper() for name in formats} - _DUCKDB_FORMATS
    names = sorted(name if name == "ORC" else name.title() for name in others)
    return f"its data files are in {' and '.join(names)}" if names else None


def reason_against_places(places: Iterable[str], storage: ObjectStorage | None) -> str | None:
    """Why DuckDB cannot read some files or folders, by where they are; ``None`` where it can.

    :param storage: that DuckDB can sign in to.
    """
    away = (place for place in places if local_path(place) is None)
    found = next((place for place in away if storage is None or not object_folders(place)), None)
    return None if found is None else f"its files are at {found}"


def reader_without_duckdb(table: str, metadata: PointMetadata, reason: str) -> ReaderChoice:
    """PyIceberg as the reader.

    :param reason: why DuckDB does not read the table.
    :raises IcemigrateError: PyIceberg does not read it either.
    """
    against = next(_against_pyiceberg(metadata), None)
    if against is None:
        return ReaderChoice(ReaderKind.PYICEBERG, f"DuckDB does not read it, because {reason}")
    if against == reason:
        raise unreadable(table, reason)
    raise unreadable(table, f"not by DuckDB, because {reason}; not by PyIceberg, because {against}")


def unreadable(table: str, reason: str) -> IcemigrateError:
    """The error of a table that Spark alone reads."""
    return IcemigrateError(
        f"table `{table}` cannot be read without Spark: {reason}",
        "run the query in `icemigrate shell`, which has Spark SQL",
    )


def _against_duckdb(metadata: PointMetadata, storage: ObjectStorage | None) -> Iterator[str]:
    if metadata.snapshot is not None and "manifest-list" not in metadata.snapshot:
        yield "the snapshot has no manifest list"
    if (reason := reason_against_places([metadata.json["location"]], storage)) is not None:
        yield reason
    if _is_encrypted(metadata.json):
        yield "it is encrypted"
    if metadata.lacks_fields:
        yield "a partition spec or a delete file needs a nested field that was dropped"
    yield from _typed(metadata.schema, _DUCKDB_LACKS)


def _against_pyiceberg(metadata: PointMetadata) -> Iterator[str]:
    if metadata.has_equality_deletes:
        yield "it has equality deletes"
    if _is_encrypted(metadata.json):
        yield "it is encrypted"
    yield from _typed(metadata.schema, _PYICEBERG_LACKS)
    for path, field in metadata.schema.walk():
        has_default = field.initial_default is not None
        if has_default and isinstance(field.type, Primitive) and field.type.name in _NANOSECONDS:
            yield f"column `{format_path(path)}` of type `{field.type.name}` has a default"


def _typed(schema: Schema, names: tuple[str, ...]) -> Iterator[str]:
    for path, field in schema.walk():
        shown = format_path(path)
        if isinstance(field.type, (Geometry, Geography)):
            yield f"column `{shown}` has the type `{type(field.type).__name__.lower()}`"
        elif isinstance(field.type, Primitive) and field.type.name in names:
            yield f"column `{shown}` has the type `{field.type.name}`"


def _is_encrypted(metadata: Mapping[str, Any]) -> bool:
    return "encryption.key-id" in metadata["properties"]
