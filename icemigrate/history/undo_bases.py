"""Tables that undo records of many versions share, so that a record stores only what differs from them.

Consecutive versions of a table have nearly equal definitions, and an undo record has four of them.  A *base*
is a text with complete tables.  It never changes, and its id has its digest: a record depends on no other
record, so a squash, a repair or a rollback of one version changes no other one.  A table gets a new base once
its differences from the old one are large.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

from icemigrate.iceberg.json_difference import json_difference, with_difference
from icemigrate.iceberg.json_text import (
    Json,
    Raw,
    compress,
    decompress,
    read_json,
    write_json,
    write_json_bytes,
)

Bases: TypeAlias = Mapping[str, str]
"""Bases by id.  An id has a number, which is higher for a later base, and the digest of the base."""

BASE_KEY = "base"
"""The key of a table that is stored as differences."""
_UUIDS_KEY = "uuids"
_STATES: Mapping[str, tuple[str, ...]] = {
    "actual-before": (),
    "actual-after": ("actual-before",),
    "before": ("actual-before",),
    "after": ("before", "actual-after"),
}
"""The definitions of a table, each with those before it that it is stored as a difference from: the first
that there is, else the base."""
_UUID_STATES = ("before", "after", "actual-after")
_END = ";"
_NEWEST = 16
"""How many bases are searched for a table; one that is in none of them gets a new base."""
_SMALL_BYTES = 4096
_LARGEST_PART = 6
"""Differences of more than this part of their base, and of more bytes than a small number, make a new base.
Bases and differences take about the same space then."""
_DIGITS = 16


def with_bases(tables: Iterable[dict[str, Any]], bases: Bases) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Store the tables of an undo record as differences.

    :param tables: as JSON values, complete.
    :param bases: that exist.
    :returns: the tables, and the new bases.
    :raises ValueError: a base is damaged.
    """
    newest = sorted(bases, key=_number, reverse=True)
    known = [(one, _tables_of(one, bases[one])) for one in islice(newest, _NEWEST)]
    stored: list[dict[str, Any]] = []
    started: dict[str, Any] = {}
    waiting: list[dict[str, Any]] = []
    for table in tables:
        name, complete = _name(table), _newest_state(table)
        if complete is None:
            stored.append(table)
            continue
        found = next(((one, texts[name]) for one, texts in known if name in texts), None)
        if found is not None and name not in started:
            differing = _differences(table, _read(found[1]), found[0])
            if _size(differing) <= max(_SMALL_BYTES, len(found[1]) // _LARGEST_PART):
                stored.append(differing)
                continue
        differing = _differences(table, started.setdefault(name, complete), "")
        stored.append(differing)
        waiting.append(differing)
    if not started:
        return stored, {}
    text = compress(write_json(started))
    new = f"{_number(newest[0]) + 1 if newest else 1}-{_digest(text)}"
    for differing in waiting:
        differing[BASE_KEY] = new
    return stored, {new: text}


def complete_table(table: Json, bases: Bases) -> Json:
    """A table of an undo record as it was before it was stored.

    :raises ValueError: its base is missing or damaged, or it does not fit the base.
    """
    if BASE_KEY not in table:
        return table
    one = table[BASE_KEY]
    text = bases.get(one)
    if text is None:
        raise ValueError(f"its base `{one}` is missing")
    base = _read(_table_in(one, text, _name(table)))
    found: dict[str, Any] = {}
    for state in _STATES:
        part = table[state]
        found[state] = None if part is None else with_difference(_reference(state, found, base), part)
    return {k: v for k, v in table.items() if k not in (BASE_KEY, _UUIDS_KEY)} | found


def stored_uuids(table: Json) -> tuple[str | None, str | None, str | None]:
    """The uuids of a table that is stored as differences: before, after, and as it was read back."""
    first, second, third = table[_UUIDS_KEY]
    return first, second, third


def with_header(body: str, tables: Iterable[Json]) -> str:
    """The text of a record that begins with the ids of its bases."""
    used = sorted({table[BASE_KEY] for table in tables if BASE_KEY in table}, key=_number)
    return ",".join(used) + _END + body if used else body


def without_header(text: str) -> str:
    """The text of a record without the ids of its bases."""
    return text.rpartition(_END)[2]


def used_bases(texts: Iterable[str], bases: Bases) -> dict[str, str]:
    """The bases that one of the records needs."""
    headers = {text[: text.find(_END) + 1] for text in texts}
    used = {one for header in headers for one in header.rstrip(_END).split(",")}
    return {one: text for one, text in bases.items() if one in used}


def _differences(table: dict[str, Any], base: Any, one: str) -> dict[str, Any]:
    states: dict[str, Any] = {}
    for state in _STATES:
        value = table[state]
        states[state] = None if value is None else json_difference(_reference(state, table, base), value)
    uuids = [None if table[state] is None else table[state]["uuid"] for state in _UUID_STATES]
    return {**table, **states, BASE_KEY: one, _UUIDS_KEY: uuids}


def _reference(state: str, states: Json, base: Any) -> Any:
    """The definition that a state is stored as a difference from."""
    return next((states[one] for one in _STATES[state] if states[one] is not None), base)


def _size(table: Json) -> int:
    return sum(len(write_json_bytes(table[state])) for state in _STATES)


def _newest_state(table: Json) -> Any:
    states: Iterator[Any] = (table[state] for state in ("actual-after", "actual-before", "after", "before"))
    return next((state for state in states if state is not None), None)


def _name(table: Json) -> str:
    name: str = table["declared-after"] or table["declared-before"]
    return name


def _number(one: str) -> int:
    digits = one.partition("-")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


@lru_cache(32)
def _tables_of(one: str, text: str) -> Mapping[str, bytes]:
    """The tables of a base by declared name.

    :raises ValueError: it is damaged.
    """
    if one.partition("-")[2] != _digest(text):
        raise ValueError(f"its base `{one}` was altered")
    found = read_json(decompress(text), dict[str, Raw])
    return {name: bytes(t) if isinstance(t, Raw) else write_json(t).encode() for name, t in found.items()}


@lru_cache(4)
def _read(table: bytes) -> Any:
    """A table of a base, not to be changed: consecutive versions of a table have one base."""
    return read_json(table)


def _table_in(one: str, text: str, name: str) -> bytes:
    found = _tables_of(one, text).get(name)
    if found is None:
        raise ValueError(f"its base `{one}` does not have table `{name}`")
    return found
