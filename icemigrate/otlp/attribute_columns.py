"""Columns that attributes fill: the property that names the attribute, the name and type of a new column, and
the values.

Maps of a table have each attribute as text.  A column has the same text, or the value that the text is the
only notation of; where the text is none of the column's type, the column is null, and the map has the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import HIDDEN
from icemigrate.iceberg.table_properties import ATTRIBUTE_PREFIX
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.wal.entries import EntryKind

ATTRIBUTE_MAPS = ("attributes", "resource_attributes", "scope_attributes")
"""The columns of telemetry that are maps of attributes."""
_NAME_PREFIXES = {"attributes": "", "resource_attributes": "resource_", "scope_attributes": "scope_"}
_RESERVED_PREFIX = "attribute_"
_LONGEST_NAME = 128
"""Of an attribute that gets a column, in characters."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD = re.compile(r"[^A-Za-z0-9_]")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NAMED_DECIMALS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_LONGEST_DECIMAL = 400
"""In characters: a double has at most 309 digits before its point, and Python refuses very long numbers."""


class AttributeSource(Frozen):
    """An attribute that fills a column.

    :param map: one of :data:`ATTRIBUTE_MAPS`.
    """

    map: str
    name: str

    def __str__(self) -> str:
        return f"{self.map}.{self.name}"


def parse_source(text: str) -> AttributeSource | None:
    """The attribute that a property names, such as ``attributes.http.route``; ``None`` for other texts."""
    map_, _, name = text.partition(".")
    return AttributeSource(map_, name) if map_ in ATTRIBUTE_MAPS and name else None


def attribute_sources(properties: Mapping[str, str]) -> dict[str, AttributeSource]:
    """The attributes that fill columns of a table, by column; properties that name none are left out."""
    found = {
        key.removeprefix(ATTRIBUTE_PREFIX): parse_source(text)
        for key, text in properties.items()
        if key.startswith(ATTRIBUTE_PREFIX)
    }
    return {column: source for column, source in found.items() if source is not None}


def is_column_candidate(name: str) -> bool:
    """Whether an attribute can get a generated column: its name can be shown, and is not too long."""
    return 0 < len(name) <= _LONGEST_NAME and HIDDEN.search(name) is None and "${" not in name


def column_name(source: AttributeSource, kind: EntryKind) -> str:
    """The name of a generated column.

    ``http.request.method`` gives ``http_request_method``, and ``userId`` gives ``user_id``.  Columns of a
    resource begin with ``resource_``, and those of a scope with ``scope_``.  A name that is a column of the
    kind already, or does not begin with a letter, gets ``attribute_`` before it.
    """
    words = _NO_WORD.sub("_", _CAMEL.sub("_", source.name)).lower()
    name = f"{_NAME_PREFIXES[source.map]}{words}"
    if name in TELEMETRY_TYPES[kind] or not name[0].isalpha():
        name = f"{_RESERVED_PREFIX}{name}"
    return name


def column_type(found: Collection[str]) -> str | None:
    """The type of a column for values of some types; ``None`` where the values stay in the map.

    :param found: types of values, see :meth:`~icemigrate.otlp.request_forms.RequestForm.type_of`.
    """
    types = frozenset(found) - {"empty"}
    if not types or types & {"bytes", "list", "map"}:
        return None
    if len(types) == 1:
        return next(iter(types))
    return "double" if types == {"long", "double"} else "string"


def column_values(texts: Sequence[str | None], type_: str) -> list[Any]:
    """Values of a column from the texts of a map; ``None`` where a text is no value of the type.

    :param type_: one of :data:`COLUMN_TYPES`.
    """
    read = COLUMN_TYPES[type_]
    if read is str:
        return list(texts)
    known = dict[str | None, Any]({None: None})
    for text in set(texts) - known.keys():
        known[text] = read(text or "")
    return [known[text] for text in texts]


def _whole(bits: int) -> Callable[[str], int | None]:
    limit = 2 ** (bits - 1)

    def read(text: str) -> int | None:
        if _WHOLE.fullmatch(text) is None:
            return None
        return number if -limit <= (number := int(text)) < limit else None

    return read


def _decimal(text: str) -> float | None:
    if text in _NAMED_DECIMALS:
        return _NAMED_DECIMALS[text]
    if len(text) > _LONGEST_DECIMAL or _DECIMAL.fullmatch(text) is None:
        return None
    number = float(text)
    if number in (float("inf"), float("-inf")):
        return None
    # A whole number of more than 53 bits can be between two doubles.
    is_exact = not text.removeprefix("-").isdigit() or int(number) == int(text)
    return number if is_exact else None


COLUMN_TYPES: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "long": _whole(64),
    "int": _whole(32),
    "double": _decimal,
    "boolean": {"true": True, "false": False}.get,
}
"""The types of columns that attributes fill, in Iceberg's notation, and how a text is read."""
