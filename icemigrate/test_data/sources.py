"""Where a column's values come from: from its index, from a map's key, or from draws of its meaning."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Field
from icemigrate.test_data.vocabulary import vocabulary


class Ordinal(Enum):
    """Sources that are not random."""

    INDEX = "index"
    """The index itself, so that values are unique."""
    MAP_KEY = "map key"
    """The ordinal of a map's key, so that keys differ within a map."""


class Meaning(Frozen):
    """What a column's name suggests; ``None`` for nothing."""

    name: str | None


Source: TypeAlias = Ordinal | Meaning


def source_of(field: Field, *, is_identifier: bool, is_map_key: bool) -> Source:
    """The source of a column's values.

    An identifier field is unique; a field with the name ``id`` is too.
    """
    if is_map_key:
        return Ordinal.MAP_KEY
    if is_identifier or field.name == "id":
        return Ordinal.INDEX
    return Meaning(vocabulary().meaning_of(field.name))
