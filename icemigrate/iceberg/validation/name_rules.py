"""Rules about names of columns and fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.hidden_characters import HIDDEN, escape_hidden_characters
from icemigrate.iceberg.lookup import FieldLookup, nfc_form, unchanged_name
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import MAX_NAME_BYTES
from icemigrate.iceberg.types import Field, Struct
from icemigrate.iceberg.validation.violation import ValidationContext, Violation, column_subject

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
"""Metadata columns of every Iceberg table (``MetadataColumns`` of the Java library)."""


def no_duplicate_names(view: ValidationContext) -> Iterator[Violation]:
    """Fields of one parent have different names.

    Specification, "Schemas": names are unique in a struct.
    """
    for path, fields in view.siblings:
        if FieldLookup(fields).are_distinct(unchanged_name):
            continue
        seen: set[str] = set()
        for field in fields:
            if field.name in seen:
                yield Violation(
                    "duplicate-name",
                    column_subject((*path, field.name)),
                    f"two fields are named `{format_path((*path, field.name))}`",
                    "rename or drop one of them",
                )
            seen.add(field.name)


def _oldest_first(fields: Iterable[Field]) -> list[Field]:
    """Fields in the order of their ids, so that moving one changes no violation; new fields come last."""
    return sorted(fields, key=lambda field: (field.id < 0, field.id))


def no_names_that_differ_in_case(view: ValidationContext) -> Iterator[Violation]:
    """Names of one parent do not differ only in case.

    Iceberg accepts such names. Spark, Hive and Trino ignore case and fail on the table (public thread:
    apache/iceberg#13696).
    """
    for path, fields in view.siblings:
        if FieldLookup(fields).are_distinct(str.lower):
            continue
        seen: dict[str, str] = {}
        for field in _oldest_first(fields):
            other = seen.setdefault(field.name.lower(), field.name)
            if other != field.name:
                yield Violation(
                    "names-differ-by-case",
                    column_subject((*path, field.name)),
                    f"`{format_path((*path, field.name))}` and `{format_path((*path, other))}` differ only "
                    "in case, and most engines ignore case",
                    "rename one of them",
                )


def no_names_equal_in_nfc(view: ValidationContext) -> Iterator[Violation]:
    """Names of one parent do not differ only in Unicode normalization.

    An accented letter is one character or two. Both look the same, and some engines and file systems
    change one to the other (normal form NFC, UAX #15).
    """
    for path, fields in view.siblings:
        if FieldLookup(fields).are_distinct(nfc_form):
            continue
        seen: dict[str, str] = {}
        for field in _oldest_first(fields):
            other = seen.setdefault(nfc_form(field.name), field.name)
            if other != field.name:
                yield Violation(
                    "names-look-the-same",
                    column_subject((*path, field.name)),
                    f"two names written `{format_path((*path, field.name))}` differ only in Unicode "
                    f"normalization: {other!a} and {field.name!a}",
                    "rename one of them",
                )


def names_are_printable(view: ValidationContext) -> Iterator[Violation]:
    """Names have no hidden characters.

    Hidden characters are controls, line breaks, zero-width characters and bidirectional marks. Iceberg
    accepts every text as a name. A user cannot type such a name in a query, and where it is shown it
    breaks the line or looks like another name (Unicode TR 36, "Bidirectional text spoofing").
    """
    for place, name, what in _written(view):
        if HIDDEN.search(name):
            yield Violation(
                "unprintable-name",
                _subject(place),
                f"the name of {what} contains unprintable characters: {_escaped(name)}",
                "use letters, digits and underscores",
            )


def names_have_no_blank_edges(view: ValidationContext) -> Iterator[Violation]:
    """Names do not begin or end with a space and are not empty.

    Iceberg accepts such a name, and a query without the space does not find the column.
    """
    for place, name, what in _written(view):
        if name != name.strip() and not HIDDEN.search(name):
            yield Violation(
                "blank-edged-name",
                _subject(place),
                f"the name of {what} begins or ends with whitespace: {_escaped(name)}",
                "remove the leading and trailing whitespace",
            )


def names_of_tables_are_no_paths(view: ValidationContext) -> Iterator[Violation]:
    """No part of a table's name is a path.

    Each part becomes a folder in the warehouse, so a path would lead to another folder.
    """
    name = view.table.name
    for part in (*name.namespace, name.name):
        if part in (".", "..") or "/" in part or "\\" in part:
            yield Violation(
                "name-is-a-path",
                ("name",),
                f"{_escaped(part)} in the table's name is a path: catalogs name a table's folder after "
                "the table, so its files would be in another folder",
                "use letters, digits and underscores",
            )


def names_of_tables_fit(view: ValidationContext) -> Iterator[Violation]:
    """No part of a table's name has more than 255 bytes.

    Each part becomes a folder in the warehouse.
    """
    name = view.table.name
    for part in (*name.namespace, name.name):
        size = len(part.encode("utf-8", "surrogatepass"))
        if size > MAX_NAME_BYTES:
            yield Violation(
                "name-too-long",
                ("name",),
                f"`{part[:20]}…` in the table's name has {size} bytes; the limit is {MAX_NAME_BYTES}",
                "choose a shorter name",
            )


def _written(view: ValidationContext) -> Iterator[tuple[str | FieldPath, str, str]]:
    """Every declared name, with the key or column that contains it and its kind."""
    table = view.table.name
    for part in table.namespace:
        yield "name", part, "a namespace"
    yield "name", table.name, "a table"
    for path, field in view.walked:
        yield path, field.name, "a column" if len(path) == 1 else "a field"
    for partition in view.table.spec.live:
        yield "partition_by", partition.name, "a partition field"


def _subject(place: str | FieldPath) -> tuple[str, ...]:
    return (place,) if isinstance(place, str) else column_subject(place)


def _escaped(name: str) -> str:
    """A name in quotes, with escapes for hidden characters."""
    return escape_hidden_characters(f'"{name}"')


def no_metadata_names(view: ValidationContext) -> Iterator[Violation]:
    """No column has the name of one of Iceberg's metadata columns.

    Iceberg accepts the column, and reading the table fails later (``MetadataColumns`` of the Java
    library).
    """
    for path, field in view.walked:
        if len(path) == 1 and field.name.lower() in METADATA_COLUMNS:
            yield Violation(
                "metadata-column-name",
                column_subject((field.name,)),
                f"`{field.name}` is a metadata column of every Iceberg table",
                "choose another name",
            )


def no_empty_structs(view: ValidationContext) -> Iterator[Violation]:
    """Every struct has a field.

    Iceberg allows a struct to lose its last field, and then neither Parquet nor Spark can read the table.
    """
    for path, field in view.walked:
        if isinstance(field.type, Struct) and not field.type.fields:
            yield Violation(
                "empty-struct",
                column_subject(path),
                f"struct `{format_path(path)}` has no fields",
                f"drop `{format_path(path)}`, or keep one of its fields",
            )


def some_column(view: ValidationContext) -> Iterator[Violation]:
    """A table has at least one column.

    Iceberg allows a table to lose its last column, and then no engine can write to the table.
    """
    if not view.table.schema.fields:
        yield Violation(
            "no-columns",
            ("columns",),
            f"table `{view.table.name}` has no columns",
            "declare at least one column, or drop the table",
        )


def no_ambiguous_paths(view: ValidationContext) -> Iterator[Violation]:
    """No two fields have the same dotted name.

    A column ``a.b`` and a field ``b`` of struct ``a`` have one name in Iceberg's index of names
    (``TypeUtil.indexByName``: "multiple fields for name").
    """
    if not schema_index(view.table.schema).columns.is_dotted():
        return  # every path is written in one form
    seen: dict[str, FieldPath] = {}
    for path, _ in view.table.schema.walk():
        other = seen.setdefault(".".join(path), path)
        if other != path:
            yield Violation(
                "ambiguous-path",
                column_subject(path),
                f"`{'.'.join(path)}` names two fields, because a name contains a dot",
                "use a name without a dot for one of them",
            )
