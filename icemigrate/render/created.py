"""What a table is made with, where no ``CREATE TABLE`` shows it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from icemigrate.changes.base import Change
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.fields import default_text
from icemigrate.model.names import quote_name
from icemigrate.model.retention import property_text
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field
from icemigrate.render.words import one_line

_WIDEST = 100


def created_lines(change: Change, width: int | None = _WIDEST) -> Iterator[str]:
    """The table that a metadata commit makes, compactly; nothing for other changes.

    :param width: of a line; ``None`` for one line each.
    """
    if not isinstance(change, CreateTable) or not change.by_commit:
        return
    for label, parts in _parts(change):
        text = f"{label}: {', '.join(map(one_line, parts))}"
        if not parts:
            continue
        if width is None:
            yield text
        else:
            yield from textwrap.wrap(
                text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )


def _parts(change: CreateTable) -> Iterator[tuple[str, list[str]]]:
    from icemigrate.declare.author import document

    made = change.made
    declared = document(made)
    yield "columns", [_column(f) for f in made.schema.fields]
    yield "identifier", declared.get("identifier", [])
    yield "partitioned by", declared.get("partition_by", [])
    yield "sorted by", declared.get("sort_by", [])
    yield "location", [] if made.location is None else [made.location]
    yield (
        "properties",
        [f"{key} = {property_text(key, value)}" for key, value in sorted(made.properties.items())],
    )


def _column(field: Field) -> str:
    default = field.initial_default if field.initial_default is not None else field.write_default
    said = "" if default is None else f" default {default_text(default)}"
    return f"{quote_name(field.name)} {format_type(field.type)}{' required' if field.required else ''}{said}"
