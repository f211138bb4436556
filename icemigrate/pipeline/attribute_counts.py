"""Counts of attributes that no column of their table has, bounded in number and in size.

Senders choose the names.  Of more names than a limit, those of most tables and rows are kept, and the counts
say that there were more; names that no generated column can have are only counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import escape_hidden_characters
from icemigrate.otlp.attribute_columns import AttributeSource, is_column_candidate

NAMES_PER_TABLE = 500
"""Attributes of a table that a task counts in a batch."""
NAMES_PER_KIND = 1000
"""Attributes of a kind whose counts the checkpoint keeps."""
COUNTED_TENANTS = 20
"""Tenants of an attribute that are distinguished."""
_SAMPLE_LENGTH = 60


class AttributeCount(Frozen):
    """How often an attribute was in rows of tables that have no column for it.

    :param types: rows by the type of the value.
    :param tenants: those whose rows have it, at most :data:`COUNTED_TENANTS`.
    :param first_seen_s: when the first batch with it began, in seconds since 1970.
    """

    source: AttributeSource
    types: Mapping[str, int]
    tenants: tuple[str, ...] = ()
    first_seen_s: float = 0.0

    @property
    def rows(self) -> int:
        """The rows that have the attribute."""
        return sum(self.types.values())


class KindAttributes(Frozen):
    """The attributes of one kind, or of one table in one batch.

    :param unusable_rows: how often an attribute was in a row whose name is empty, too long, or has hidden
        characters.
    :param unusable_sample: the beginning of such a name, with escapes.
    :param has_more: whether there were more names than are kept.
    """

    attributes: tuple[AttributeCount, ...] = ()
    unusable_rows: int = 0
    unusable_sample: str | None = None
    has_more: bool = False


class AttributeCounter:
    """Counts the attributes of one tenant and kind, in a task."""

    def __init__(self) -> None:
        self._found = dict[tuple[str, str], dict[str, int]]()
        self._unusable = dict[str, None]()
        self._unusable_rows = 0
        self._has_more = False

    def observe(self, map_: str, name: str, type_: str, rows: int) -> None:
        """Count an attribute, see :data:`~icemigrate.otlp.observed_attributes.ObserveAttribute`."""
        types = self._found.get((map_, name))
        if types is None:
            if not is_column_candidate(name):
                self._unusable_rows += rows
                self._unusable = self._unusable or {_sample(name): None}
                return
            if len(self._found) >= 2 * NAMES_PER_TABLE:
                self._prune()
            types = self._found[map_, name] = {}
        types[type_] = types.get(type_, 0) + rows

    def _prune(self) -> None:
        kept = sorted(self._found.items(), key=lambda one: -sum(one[1].values()))[:NAMES_PER_TABLE]
        self._has_more |= len(kept) < len(self._found)
        self._found = dict(kept)

    def result(self, known: Collection[AttributeSource]) -> KindAttributes:
        """The counts.

        :param known: attributes that the table has a column for.
        """
        for source in known:
            self._found.pop((source.map, source.name), None)
        self._prune()
        return KindAttributes(
            tuple(AttributeCount(AttributeSource(*key), types) for key, types in self._found.items()),
            self._unusable_rows,
            next(iter(self._unusable), None),
            self._has_more,
        )


def _sample(name: str) -> str:
    return escape_hidden_characters(name[:_SAMPLE_LENGTH])


def pack_counts(found: KindAttributes) -> bytes:
    """The form in a row of Spark; empty without counts."""
    return msgspec.msgpack.encode(found) if found.attributes or found.unusable_rows else b""


def unpack_counts(packed: bytes) -> KindAttributes:
    """The inverse of :func:`pack_counts`."""
    return msgspec.msgpack.decode(packed, type=KindAttributes) if packed else KindAttributes()


def add_counts(before: KindAttributes, packed: Iterable[tuple[str, bytes]], began_s: float) -> KindAttributes:
    """The counts of a kind with those of a batch.

    :param packed: tenants and their counts.
    :param began_s: when the batch began, in seconds since 1970.
    """
    found = {one.source: one for one in before.attributes}
    unusable, sample, has_more = before.unusable_rows, before.unusable_sample, before.has_more
    for tenant, counts in packed:
        new = unpack_counts(counts)
        unusable, sample = unusable + new.unusable_rows, sample or new.unusable_sample
        has_more |= new.has_more
        for one in new.attributes:
            known = found.get(one.source) or AttributeCount(one.source, {}, (), began_s)
            found[one.source] = _added(known, one, tenant)
        if len(found) > 2 * NAMES_PER_KIND:
            found, has_more = _most_frequent(found), True
    kept = _most_frequent(found)
    return KindAttributes(tuple(kept.values()), unusable, sample, has_more or len(kept) < len(found))


def _added(before: AttributeCount, new: AttributeCount, tenant: str) -> AttributeCount:
    types = dict(before.types)
    for type_, rows in new.types.items():
        types[type_] = types.get(type_, 0) + rows
    tenants = before.tenants
    if tenant not in tenants and len(tenants) < COUNTED_TENANTS:
        tenants = (*tenants, tenant)
    return AttributeCount(before.source, types, tenants, before.first_seen_s)


def _most_frequent(found: Mapping[AttributeSource, AttributeCount]) -> dict[AttributeSource, AttributeCount]:
    """Those of most tenants, and among them those of most rows."""
    listed = sorted(found.items(), key=lambda one: (-len(one[1].tenants), -one[1].rows, str(one[0])))
    return dict(listed[:NAMES_PER_KIND])
