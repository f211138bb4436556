"""Looks up the fields of one struct by id and by name; nearly equal structs share dictionaries.

A history of thousands of migrations gives a table as many schemas, and each differs from the one before in a
field or two.  A dictionary for each of them would cost time and memory that grow with the square of their
number. So a :class:`FieldLookup` refers to the dictionaries of a struct that was looked up recently, and
reads only the span in which the two differ.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from icemigrate.frozen import cached_property
from icemigrate.iceberg.types import Field, descendants, is_nested

_FEW = 32
"""Structs of up to this many fields share nothing; wider ones may differ in a span of up to this length."""


def shared_ends(old: tuple[Field, ...], new: tuple[Field, ...]) -> tuple[int, int]:
    """The number of equal fields at the beginning of both tuples, and of the others at their end.

    Slices are compared, so identical objects take some nanoseconds each.
    """
    if old is new:
        return len(old), 0
    if len(old) <= _FEW or len(new) <= _FEW:
        return equal_ends(old, new)
    known = _compared.get((id(old), id(new)))
    if known is None:
        if len(_compared) > _REMEMBERED:
            _compared.clear()
        # The tuples are stored too, so that no other object gets their ids.
        known = _compared[id(old), id(new)] = (old, new, equal_ends(old, new))
    return known[2]


_REMEMBERED = 32
_Fields: TypeAlias = "tuple[Field, ...]"
_compared: dict[tuple[int, int], tuple[_Fields, _Fields, tuple[int, int]]] = {}
"""The results of recent comparisons of wide structs: one migration compares the same two several times."""


def equal_ends(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[int, int]:
    """As :func:`shared_ends`, for any values; the result is not remembered."""
    start = _equal_start(old, new)
    old, new = old[start:], new[start:]
    return start, _equal_start(old[::-1], new[::-1]) if old and new else 0


def _equal_start(old: tuple[Any, ...], new: tuple[Any, ...]) -> int:
    size = min(len(old), len(new))
    if not size or old[0] != new[0]:
        return 0
    if old[:size] == new[:size]:
        return size
    low, high = 1, size
    while high - low > 1:
        middle = (low + high) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle
    return low


class _Whole:
    """The dictionaries of one struct; each is made when it is first needed."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self._keys: dict[Callable[[str], str], dict[str, int] | None] = {}

    @cached_property
    def at(self) -> dict[int, int]:
        """Positions by field id."""
        return {field.id: at for at, field in enumerate(self.fields)}

    @cached_property
    def names(self) -> dict[str, int]:
        """Positions by name."""
        return {field.name: at for at, field in enumerate(self.fields)}

    @cached_property
    def unnumbered(self) -> tuple[int, ...]:
        """Positions of the fields that have a negative id, or contain one."""
        return tuple(at for at, field in enumerate(self.fields) if lowest_id(field) < 0)

    @cached_property
    def dotted(self) -> tuple[int, ...]:
        """Positions of the fields that have a dot in their name, or contain such a field."""
        return tuple(at for at, field in enumerate(self.fields) if _is_dotted(field))

    @cached_property
    def owners(self) -> dict[int, int]:
        """The position of the field that contains a nested field, by the nested field's id."""
        nested = ((at, field) for at, field in enumerate(self.fields) if is_nested(field.type))
        return {field_id: at for at, field in nested for field_id in descendants(field.type).ids}

    def keys(self, key: Callable[[str], str]) -> dict[str, int] | None:
        """Positions by a key of the name; ``None`` where two fields have the same key."""
        if key not in self._keys:
            found = {key(field.name): at for at, field in enumerate(self.fields)}
            self._keys[key] = found if len(found) == len(self.fields) else None
        return self._keys[key]


_recent: deque[_Whole] = deque(maxlen=8)


class FieldLookup:
    """The fields of one struct, by id and by name.

    Of two fields with one id or one name, the last is found.
    """

    __slots__ = ("_end", "_names", "_span", "_start", "_whole", "fields")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self._whole, self._start, end = _like(fields)
        self._end = len(fields) - end  # the span in ``fields``; the rest is as in the whole
        self._span: dict[int, int] | None = None
        self._names: dict[str, int] | None = None

    def position(self, field_id: int) -> int | None:
        """Where the field with this id is among its siblings."""
        if self._span is None:
            self._span = {self.fields[at].id: at for at in range(self._start, self._end)}
        found = self._span.get(field_id)
        return self._moved(self._whole.at.get(field_id)) if found is None else found

    def position_of_name(self, name: str) -> int | None:
        """Where the field of this name is among its siblings."""
        if self._names is None:
            self._names = {self.fields[at].name: at for at in range(self._start, self._end)}
        found = self._names.get(name)
        return self._moved(self._whole.names.get(name)) if found is None else found

    def owner(self, field_id: int) -> Field | None:
        """The field that contains a nested field with this id."""
        for field in self.fields[self._start : self._end]:
            if is_nested(field.type) and field_id in descendants(field.type).ids:
                return field
        at = self._moved(self._whole.owners.get(field_id))
        return None if at is None else self.fields[at]

    def unnumbered(self) -> Iterator[Field]:
        """The fields that have a negative id, or contain one, in order."""
        for at in self._marked(self._whole.unnumbered, lambda field: lowest_id(field) < 0):
            yield self.fields[at]

    def lowest(self) -> int:
        """The lowest id at any depth, or 0 where none is negative."""
        return min(map(lowest_id, self.unnumbered()), default=0)

    def is_dotted(self) -> bool:
        """Whether a name at any depth has a dot in it."""
        return next(self._marked(self._whole.dotted, _is_dotted), None) is not None

    def are_distinct(self, key: Callable[[str], str]) -> bool:
        """Whether no two fields have the same key of their names.

        :param key: one function for one question: its results are stored.
        """
        keys = self._whole.keys(key)
        if keys is None:
            return len({key(field.name) for field in self.fields}) == len(self.fields)
        span = [key(field.name) for field in self.fields[self._start : self._end]]
        return len(set(span)) == len(span) and all(self._moved(keys.get(one)) is None for one in span)

    def _moved(self, at: int | None) -> int | None:
        """The position here of a field at a position of the whole; ``None`` where it is in the span."""
        if at is None or at < self._start:
            return at
        at += len(self.fields) - len(self._whole.fields)
        return at if at >= self._end else None

    def _marked(self, marked: tuple[int, ...], is_marked: Callable[[Field], bool]) -> Iterator[int]:
        outside = [here for at in marked if (here := self._moved(at)) is not None]
        yield from (at for at in outside if at < self._start)
        yield from (at for at in range(self._start, self._end) if is_marked(self.fields[at]))
        yield from (at for at in outside if at >= self._end)


def _like(fields: tuple[Field, ...]) -> tuple[_Whole, int, int]:
    """A struct whose dictionaries can be used for this one, and the numbers of equal fields at both ends."""
    if len(fields) <= _FEW:
        return _small(fields), len(fields), 0
    for whole in _recent:
        start, end = shared_ends(whole.fields, fields)
        if max(len(fields), len(whole.fields)) - start - end <= _FEW:
            return whole, start, end
    whole = _Whole(fields)
    _recent.appendleft(whole)
    return whole, len(fields), 0


_small_structs: dict[int, _Whole] = {}
"""Recent structs of few fields, by the identity of their fields: one migration uses one several times."""


def _small(fields: tuple[Field, ...]) -> _Whole:
    whole = _small_structs.get(id(fields))
    if whole is None:
        if len(_small_structs) > _REMEMBERED:
            _small_structs.clear()
        # It contains the fields, so no other object gets their id.
        whole = _small_structs[id(fields)] = _Whole(fields)
    return whole


def lowest_id(field: Field) -> int:
    """The lowest id of a field and of its descendants."""
    return min(field.id, descendants(field.type).lowest) if is_nested(field.type) else field.id


def _is_dotted(field: Field) -> bool:
    return "." in field.name or (is_nested(field.type) and descendants(field.type).is_dotted)


def unchanged_name(name: str) -> str:
    """The name itself, for :meth:`FieldLookup.are_distinct`."""
    return name


_LONGEST_COMPOSED = 1_000
"""Characters. The time to compose a name grows with the square of the number of marks in a row."""


def nfc_form(name: str) -> str:
    """The name in Unicode's normal form C, for :meth:`FieldLookup.are_distinct`; a very long one as it is."""
    return unicodedata.normalize("NFC", name) if len(name) <= _LONGEST_COMPOSED else name
