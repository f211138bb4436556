"""Rules about names of columns and fields."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.hidden_characters import HIDDEN, escaped
from icemigrate.model.legality.breach import Breach, View, column
from icemigrate.model.lookup import Lookup, composed, same
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import index
from icemigrate.model.types import Struct

METADATA_COLUMNS = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    }
)
"""Columns that every Iceberg table has beside its own (``MetadataColumns`` of the Java library)."""


MAX_BYTES = 255
"""How long a part of a table's name may be, in UTF-8: it becomes a folder, and file systems end there."""


def no_duplicate_names(view: View) -> Iterator[Breach]:
    """Fields of one parent have different names (specification, "Schemas": names are unique in a struct)."""
    for path, fields in view.siblings:
        if Lookup(fields).are_distinct(same):
            continue
        seen: set[str] = set()
        for field in fields:
            if field.name in seen:
                yield Breach(
                    "duplicate-name",
                    column((*path, field.name)),
                    f"there are two fields named `{format_path((*path, field.name))}`",
                    "give one of them another name, or drop the other one",
                )
            seen.add(field.name)


def no_names_that_differ_in_case(view: View) -> Iterator[Breach]:
    """Names of one parent differ in more than case.

    Iceberg commits them; Spark, Hive and Trino read names without regard to case and fail on the table
    then (public thread: apache/iceberg#13696).
    """
    for path, fields in view.siblings:
        if Lookup(fields).are_distinct(str.lower):
            continue
        seen: dict[str, str] = {}
        for field in fields:
            other = seen.setdefault(field.name.lower(), field.name)
            if other != field.name:
                yield Breach(
                    "names-differ-by-case",
                    column((*path, field.name)),
                    f"`{format_path((*path, field.name))}` and `{format_path((*path, other))}` differ only "
                    "in case, which most engines do not tell apart",
                    "give one of them another name",
                )


def no_names_that_look_the_same(view: View) -> Iterator[Breach]:
    """Names of one parent differ in more than how Unicode writes their letters (normal form NFC, UAX #15).

    An accented letter is one character or two; nobody sees the difference, and some engines and file systems
    do not keep it.
    """
    for path, fields in view.siblings:
        if Lookup(fields).are_distinct(composed):
            continue
        seen: dict[str, str] = {}
        for field in fields:
            other = seen.setdefault(composed(field.name), field.name)
            if other != field.name:
                yield Breach(
                    "names-look-the-same",
                    column((*path, field.name)),
                    f"`{format_path((*path, field.name))}` is there twice, its letters written in different "
                    f"ways of Unicode: {other!a} and {field.name!a}",
                    "give one of them another name",
                )


def names_are_printable(view: View) -> Iterator[Breach]:
    """No name has hidden characters: controls, line breaks, zero-width characters, bidirectional marks.

    Iceberg takes every text for a name.  Nobody can type such a one in a query, and where it is shown it
    breaks the line or passes itself off as another (Unicode TR 36, "Bidirectional text spoofing").
    """
    for place, name, what in _written(view):
        if HIDDEN.search(name):
            yield Breach(
                "unprintable-name",
                _subject(place),
                f"the name of {what} has characters that cannot be printed: {_escaped(name)}",
                "write it with letters, digits and underscores",
            )


def names_have_no_blank_edges(view: View) -> Iterator[Breach]:
    """No name begins or ends with a blank, or is nothing else.

    Iceberg takes it, and nobody sees why a query does not find the column.
    """
    for place, name, what in _written(view):
        if name != name.strip() and not HIDDEN.search(name):
            yield Breach(
                "blank-edged-name",
                _subject(place),
                f"the name of {what} begins or ends with a blank: {_escaped(name)}",
                "write it without blanks at its edges",
            )


def names_of_tables_are_no_paths(view: View) -> Iterator[Breach]:
    """No part of a table's name leads to another folder: each becomes one in the warehouse."""
    name = view.table.name
    for part in (*name.namespace, name.name):
        if part in (".", "..") or "/" in part or "\\" in part:
            yield Breach(
                "name-is-a-path",
                ("name",),
                f"{_escaped(part)} in the table's name leads to a folder that is another one's: "
                "catalogs put a table's files where its name says",
                "write it with letters, digits and underscores",
            )


def names_of_tables_fit(view: View) -> Iterator[Breach]:
    """No part of a table's name has more than 255 bytes: each becomes a folder in the warehouse."""
    name = view.table.name
    for part in (*name.namespace, name.name):
        size = len(part.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            yield Breach(
                "name-too-long",
                ("name",),
                f"`{part[:20]}…` in the table's name has {size} bytes, more than {MAX_BYTES}",
                "choose a shorter name",
            )


def _written(view: View) -> Iterator[tuple[str | Path, str, str]]:
    """Every name that somebody wrote, with the key or the column it stands in and what it is the name of."""
    table = view.table.name
    for part in table.namespace:
        yield "name", part, "a namespace"
    yield "name", table.name, "a table"
    for path, field in view.walked:
        yield path, field.name, "a column" if len(path) == 1 else "a field"
    for partition in view.table.spec.live:
        yield "partition_by", partition.name, "a partition field"


def _subject(place: str | Path) -> tuple[str, ...]:
    """Made for what is told alone, since most names are fine."""
    return (place,) if isinstance(place, str) else column(place)


def _escaped(name: str) -> str:
    """A name in quotes, with escapes for whatever cannot be seen."""
    return escaped(f'"{name}"')


def no_metadata_names(view: View) -> Iterator[Breach]:
    """No column is called as one of Iceberg's metadata columns.

    Adding one passes, and reading the table fails later (``MetadataColumns`` of the Java library).
    """
    for path, field in view.walked:
        if len(path) == 1 and field.name.lower() in METADATA_COLUMNS:
            yield Breach(
                "metadata-column-name",
                column((field.name,)),
                f"`{field.name}` is a metadata column of every Iceberg table",
                "choose another name",
            )


def no_empty_structs(view: View) -> Iterator[Breach]:
    """Every struct has a field.

    Dropping the last one passes, and neither Parquet nor Spark can read the table afterwards.
    """
    for path, field in view.walked:
        if isinstance(field.type, Struct) and not field.type.fields:
            yield Breach(
                "empty-struct",
                column(path),
                f"struct `{format_path(path)}` has no field left",
                f"drop `{format_path(path)}` itself, or keep one of its fields",
            )


def some_column(view: View) -> Iterator[Breach]:
    """A table has a column; Iceberg lets the last one go, and no engine can write the table then."""
    if not view.table.schema.fields:
        yield Breach(
            "no-columns",
            ("columns",),
            f"table `{view.table.name}` has no column",
            "declare at least one column, or drop the table",
        )


def no_ambiguous_paths(view: View) -> Iterator[Breach]:
    """No two fields have the same dotted name.

    A column ``a.b`` and a field ``b`` of struct ``a`` are one name in Iceberg's index of names
    (``TypeUtil.indexByName``: "multiple fields for name").
    """
    if not index(view.table.schema).columns.is_dotted():
        return  # every path is written in one way
    seen: dict[str, Path] = {}
    for path, _ in view.table.schema.walk():
        other = seen.setdefault(".".join(path), path)
        if other != path:
            yield Breach(
                "ambiguous-path",
                column(path),
                f"`{'.'.join(path)}` is there twice, cut into names at different dots: one name to Iceberg",
                "give one of them a name without a dot",
            )
