"""Which columns of a foreign Parquet file have the values of which fields of a table.

Readers find a column by its field id, or in a file without ids by its name, which the table's name mapping
gives an id (specification, "Column Projection").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from icemigrate.desired_state.arrow_schema import new_columns
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import Mistakes
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.type_promotions import is_read_back, promotion_since
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, Fixed, List, Map, Primitive, Struct, Type, children, is_nested
from icemigrate.metadata_engine.parquet_metrics import MetricColumn

_ID = b"PARQUET:field_id"
_INT96 = "INT96"
_TIMES = (Primitive("timestamp"), Primitive("timestamptz"))
_UNITS = {"milliseconds": 1000}
"""What one number of a file is in microseconds, which tables count; files of nanoseconds have other types."""


class FileColumns(Frozen):
    """The columns of a file.

    :param leaves: those with values, each with its number in the file.
    :param missing: top-level fields of the table that the file lacks.
    :param loose: paths of fields that the table requires and the file lets be null.
    :param has_ids: whether readers find the columns by field ids.
    """

    leaves: tuple[tuple[int, MetricColumn], ...]
    missing: tuple[Field, ...]
    loose: tuple[FieldPath, ...]
    has_ids: bool


class ColumnMismatch(Frozen):
    """Why a column of a file is not one of the table.

    :param message: a sentence without a subject.
    """

    message: str
    hint: str | None = None


def match_columns(footer: Any, columns: Sequence[Field]) -> tuple[FileColumns, tuple[ColumnMismatch, ...]]:
    """Find the table's fields in a file.

    :param footer: ``pyarrow.parquet.FileMetaData``.
    :param columns: the fields of the table.
    """
    schema = footer.schema.to_arrow_schema()
    matcher = _Matcher(footer.schema, has_ids=any(map(_has_ids, schema)))
    matcher.fields(schema, columns, (), is_repeated=False)
    found = FileColumns(tuple(matcher.leaves), tuple(matcher.missing), tuple(matcher.loose), matcher.by_id)
    return found, tuple(matcher.mismatches)


def name_mapping(columns: Sequence[Field]) -> str:
    """The value of ``schema.name-mapping.default`` with the names that the fields have now."""
    return json.dumps([_mapped(field) for field in columns], separators=(",", ":"), ensure_ascii=False)


def mapped_ids(text: str) -> dict[str, int | None]:
    """The field ids of top-level names in a name mapping; empty where the text is none."""
    try:
        return {name: entry.get("field-id") for entry in json.loads(text) for name in entry["names"]}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def _mapped(field: Field) -> dict[str, Any]:
    inner = children(field.type) if is_nested(field.type) else ()
    own: dict[str, Any] = {"field-id": field.id, "names": [field.name]}
    return {**own, "fields": [_mapped(one) for one in inner]} if inner else own


class _Matcher:
    """Walks through the columns of a file in order, which is the order of its leaves."""

    def __init__(self, parquet: Any, *, has_ids: bool) -> None:
        self._parquet, self.by_id, self._next = parquet, has_ids, 0
        self.leaves = list[tuple[int, MetricColumn]]()
        self.mismatches = list[ColumnMismatch]()
        self.missing, self.loose = list[Field](), list[FieldPath]()

    def fields(
        self, given: Sequence[Any], wanted: Sequence[Field], path: FieldPath, *, is_repeated: bool
    ) -> None:
        """Match the fields of the file or of a struct."""
        left = {field.id: field for field in wanted}
        for arrow in given:
            field = self._find(arrow, wanted, path)
            if field is None:
                self._next += _leaf_count(arrow.type)
            elif left.pop(field.id, None) is None:
                self._next += _leaf_count(arrow.type)
                self._refuse((*path, arrow.name), "is there twice", "remove one of the two")
            else:
                self._one(arrow, field, (*path, field.name), is_repeated=is_repeated)
        for field in left.values():
            if field.required and field.initial_default is None:
                name = format_path((*path, field.name))
                self.mismatches.append(ColumnMismatch(f"it lacks column `{name}`, which the table requires"))
            elif not path:
                self.missing.append(field)

    def _find(self, arrow: Any, wanted: Sequence[Field], path: FieldPath) -> Field | None:
        """The field of a column; a problem where it is not clear."""
        number = _field_id(arrow)
        same = next((field for field in wanted if field.name == arrow.name), None)
        other = next((field for field in wanted if field.id == number), None) if self.by_id else None
        hint: str | None = _NO_IDS
        if same is not None and (not self.by_id or same.id == number):
            return same
        if self.by_id and number is None:
            reason = "has no field id, and other columns of the file have one"
        elif self.by_id and same is not None:
            reason = f"has field id {number}, and in the table {same.id}"
        elif other is not None:
            reason = f"has field id {number}, which is `{other.name}` in the table"
        else:
            reason = "is not in the table"
            hint = did_you_mean(arrow.name, [field.name for field in wanted])
            hint = hint or "add the column to the table, or write the file without it"
        self._refuse((*path, arrow.name), reason, hint)
        return None

    def _refuse(self, path: FieldPath, reason: str, hint: str | None = None) -> None:
        self.mismatches.append(ColumnMismatch(f"column `{format_path(path)}` {reason}", hint))

    def _one(self, arrow: Any, field: Field, path: FieldPath, *, is_repeated: bool) -> None:
        if field.required and arrow.nullable:
            self.loose.append(path)
        type_, given = field.type, arrow.type
        while str(given).startswith("dictionary<"):
            given = given.value_type
        inner = _inner(given)
        if inner is None or not is_nested(type_) or _shape(given) is not type(type_):
            self._leaf(given, field, path, is_repeated=is_repeated)
        elif isinstance(type_, Struct):
            self.fields(inner, type_.fields, path, is_repeated=is_repeated)
        else:
            for one, part in zip(inner, children(type_), strict=True):
                self._one(one, part, (*path, part.name), is_repeated=True)

    def _leaf(self, arrow: Any, field: Field, path: FieldPath, *, is_repeated: bool) -> None:
        first = self._next
        self._next += _leaf_count(arrow)
        leaf = None if _inner(arrow) is not None else self._parquet.column(first)
        is_int96 = leaf is not None and leaf.physical_type == _INT96
        given = None if is_int96 else _iceberg_type(arrow)
        if not (is_int96 and field.type in _TIMES) and not _is_read_as(given, field.type):
            shown = str(arrow) if given is None else format_type(given)
            self._refuse(
                path,
                f"has the type `{shown}`, and in the table `{format_type(field.type)}`",
                "change the type in the table, or write the file again",
            )
            return
        column = MetricColumn(
            field,
            path,
            is_repeated,
            unit=_unit(leaf),
            has_bounds=not is_int96 and not str(arrow).startswith("uint"),
        )
        self.leaves.append((first, column))


_NO_IDS = "write the file without field ids, so that its columns are found by name"


def _is_read_as(given: Type | None, wanted: Type) -> bool:
    """Whether a column of one type is read as another one."""
    if given is None or is_nested(wanted):
        return False
    if given == wanted or (given == Fixed(16) and wanted == Primitive("uuid")):
        return True
    return promotion_since(given, wanted) is not None and is_read_back(given, wanted)


def _iceberg_type(arrow: Any) -> Type | None:
    """The type of an Arrow type; ``None`` where Iceberg has none, or where it has no values."""
    import pyarrow as pa

    if arrow == pa.null():
        return None
    try:
        (column,) = new_columns(pa.schema([pa.field("column", arrow)]))
    except Mistakes:
        return None
    return column.type


def _unit(leaf: Any) -> int:
    """What a number of a time is in microseconds."""
    if leaf is None:
        return 1
    try:
        return _UNITS.get(json.loads(leaf.logical_type.to_json()).get("timeUnit"), 1)
    except ValueError:
        return 1


def _inner(arrow: Any) -> list[Any] | None:
    """The fields inside a type; ``None`` for a plain one."""
    shape = _shape(arrow)
    if shape is Struct:
        return [arrow.field(number) for number in range(arrow.num_fields)]
    if shape is List:
        return [arrow.value_field]
    return [arrow.key_field, arrow.item_field] if shape is Map else None


def _shape(arrow: Any) -> type[Struct] | type[List] | type[Map] | None:
    import pyarrow.types as kinds

    if kinds.is_struct(arrow):
        return Struct
    if kinds.is_map(arrow):
        return Map
    return List if kinds.is_list(arrow) or kinds.is_large_list(arrow) else None


def _leaf_count(arrow: Any) -> int:
    inner = _inner(arrow)
    return 1 if inner is None else sum(_leaf_count(field.type) for field in inner)


def _field_id(arrow: Any) -> int | None:
    text = (arrow.metadata or {}).get(_ID)
    return None if text is None or int(text) < 0 else int(text)


def _has_ids(arrow: Any) -> bool:
    return _field_id(arrow) is not None or any(map(_has_ids, _inner(arrow.type) or ()))


def iter_plain(columns: FileColumns) -> Iterator[tuple[int, MetricColumn]]:
    """The leaves that are whole columns of the table."""
    for number, column in columns.leaves:
        if len(column.path) == 1 and not column.is_repeated:
            yield number, column
