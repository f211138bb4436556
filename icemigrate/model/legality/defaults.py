"""Rules about default values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from uuid import UUID

from icemigrate.model.json_form import primitive_text
from icemigrate.model.legality.breach import Breach, View, column
from icemigrate.model.names import format_path
from icemigrate.model.schema import index
from icemigrate.model.types import Decimal, Fixed, JsonValue, List, Map, Primitive, Struct, Type, is_nested

_FRACTION = {"timestamp": 6, "timestamptz": 6, "timestamp_ns": 9, "timestamptz_ns": 9, "time": 6}
_TIME = re.compile(r"(?P<whole>[^+.]*:\d\d)(?:\.(?P<fraction>\d+))?(?P<zone>\+00:00)?\Z")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*\Z")
_DECIMAL = re.compile(r"-?(\d+)(?:\.(\d+))?\Z")
_INTEGERS = {"int": 31, "long": 63}


def defaults_of_the_format(view: View) -> Iterator[Breach]:
    """Defaults need format version 3 (specification, "Default values")."""
    version = view.table.format_version
    if version >= 3:
        return
    for path, field in view.walked:
        if field.initial_default is not None or field.write_default is not None:
            yield Breach(
                "default-needs-newer-format",
                column(path, "default"),
                f"`{format_path(path)}` has a default, which format version {version} has not",
                "write `format_version: 3` for the table (there is no way back), or leave the default out",
            )


def defaults_of_the_type(view: View) -> Iterator[Breach]:
    """A default is a value of its field's type (specification, "Default values" and "Appendix D")."""
    for path, field in view.walked:
        if fits(field.initial_default, field.type) and fits(field.write_default, field.type):
            continue
        kind = type(field.type).__name__.lower() if is_nested(field.type) else primitive_text(field.type)
        yield Breach(
            "default-of-another-type",
            column(path, "default"),
            f"the default of `{format_path(path)}` is no value of type {kind}",
            _HINTS.get(kind, f"write a value of type {kind}, or leave the default out"),
        )


def defaults_of_rows_in_orc(view: View) -> Iterator[Breach]:
    """A new field with a default, where the rows that are there lie in ORC files.

    Iceberg's library fills a missing field in where it reads Parquet and Avro; of ORC it fails ("ORC cannot
    read default value for field …").
    """
    before = view.before
    if before is None or not before.has_rows or before.properties.get(_FILES, "").lower() != "orc":
        return
    old = index(before.schema)
    for path, field in view.walked:
        parent = view.fields[field.id].parent
        if field.initial_default is not None and field.id not in old and (parent is None or parent in old):
            yield Breach(
                "default-not-read-from-orc",
                column(path, "default"),
                f"`{format_path(path)}` is new and has a default, which Iceberg's library cannot fill in "
                "where rows lie in ORC files: reading the table fails",
                "leave the default out, or have the files rewritten as Parquet first",
                is_warning=True,
            )


_FILES = "write.format.default"
_HINTS = {
    "struct": "a struct's default is `{}` or null; give its fields defaults of their own",
    "list": "a list's default is `[]` or null",
    "map": "a map's default is `{}` or null",
    **dict.fromkeys(
        ("unknown", "variant", "geometry", "geography"), "this type can have no default; leave it out"
    ),
}


def fits(value: JsonValue, type_: Type) -> bool:
    """Whether a value in the specification's JSON form (Appendix D) may be a default of the type.

    ``None`` always may: it is no default.
    """
    if value is None:
        return True
    if isinstance(type_, Struct):
        return value == {}
    if isinstance(type_, List):
        return value == []
    if isinstance(type_, Map):
        return value in ({}, {"keys": [], "values": []})
    if isinstance(type_, Decimal):
        return isinstance(value, str) and _is_decimal(value, type_)
    if isinstance(type_, Fixed):
        return isinstance(value, str) and len(value) == 2 * type_.length and _HEX.match(value) is not None
    return isinstance(type_, Primitive) and _fits_primitive(value, type_.name)


def _fits_primitive(value: JsonValue, name: str) -> bool:
    if name == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if name in _INTEGERS:
        return isinstance(value, int) and -(2 ** _INTEGERS[name]) <= value < 2 ** _INTEGERS[name]
    if name in ("float", "double"):
        return isinstance(value, (int, float))
    if not isinstance(value, str):
        return False
    if name == "string":
        return True
    if name == "binary":
        return _HEX.match(value) is not None
    if name == "uuid":
        return _parses(UUID, value)
    if name == "date":
        return _parses(date.fromisoformat, value)
    return name in _FRACTION and _is_time(value, name)


def _is_decimal(text: str, type_: Decimal) -> bool:
    match = _DECIMAL.match(text)
    if match is None:
        return False
    whole, fraction = match[1].lstrip("0"), match[2] or ""
    return len(fraction) == type_.scale and len(whole) + len(fraction) <= type_.precision


def _is_time(text: str, name: str) -> bool:
    match = _TIME.match(text)
    if match is None or (match["zone"] is not None) != name.startswith("timestamptz"):
        return False
    if len(match["fraction"] or "") > _FRACTION[name]:
        return False
    return _parses(time.fromisoformat if name == "time" else datetime.fromisoformat, match["whole"])


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
