"""A table as the history keeps it: text that a plan reads no further than it has to.

Beside the table stands what is below each of its structs (ids, types, whether a name is dotted), by which the
rules pass over a column that nobody touches; without it, all of the text would have to be read for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from icemigrate.model.json_form import primitive_from_text, primitive_text
from icemigrate.model.json_text import object_form, read_json
from icemigrate.model.table import Table
from icemigrate.model.table_json import KEYS, table_from_json_form, table_to_json
from icemigrate.model.types import Below, Struct, Type, children
from icemigrate.model.unread import SCHEMA, unread_field

_NESTED = "nested"

_FORM = object_form(dict.fromkeys((*KEYS, _NESTED), Any) | {"schema": SCHEMA})


def table_to_text(table: Table) -> str:
    """The table as compact JSON."""
    nested = [_to_json(struct.below) for struct in _outermost(f.type for f in table.schema.fields)]
    values = table_to_json(table) | ({_NESTED: nested} if nested else {})
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def table_from_text(text: bytes) -> Table:
    """Read what :func:`table_to_text` wrote, which is known to be as it was written.

    :raises BadMetadata: it is not.
    :raises ValueError: it is no JSON.
    """
    values = read_json(text, _FORM)
    nested = values.get(_NESTED, ()) if isinstance(values, dict) else ()
    return table_from_json_form(values, partial(unread_field, nested=_from_json(nested)))


def _outermost(types: Iterable[Type]) -> Iterator[Struct]:
    """The structs that are in no other one, in order."""
    for type_ in types:
        if isinstance(type_, Struct):
            yield type_
        else:
            yield from _outermost(f.type for f in children(type_))


def _to_json(below: Below) -> dict[str, Any]:
    return {
        "ids": [[span.start, span.stop - 1] for span in _spans(sorted(below.ids))],
        "types": sorted(map(primitive_text, below.leaves)),
        "dotted": below.is_dotted,
    }


def _spans(numbers: Sequence[int]) -> Iterator[range]:
    """Numbers in order as ranges: Iceberg counts the fields of a struct one after another."""
    first = 0
    for at, number in enumerate(numbers, 1):
        if at == len(numbers) or numbers[at] != number + 1:
            yield range(numbers[first], number + 1)
            first = at


def _from_json(nested: Sequence[Any]) -> Iterator[Below]:
    for json_ in nested:
        spans = [range(first, last + 1) for first, last in json_["ids"]]
        yield Below(
            ids=frozenset(chain.from_iterable(spans)),
            lowest=min((span.start for span in spans), default=0),
            leaves=frozenset(map(primitive_from_text, json_["types"])),
            is_dotted=json_["dotted"],
        )
