"""Nodes of data steps, found to fit the schema → :mod:`icemigrate.declare.data_entries`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias

from icemigrate.declare.data_entries import BackfillEntry, CheckEntry, RetypeEntry
from icemigrate.declare.nodes import Mapping, Node, Sequence, to_data
from icemigrate.declare.values import entries, is_null, items, mapping, text
from icemigrate.diagnostics import Place

Placed: TypeAlias = tuple[tuple[str, ...], Place]
"""A subject, and where it stands."""


def backfills(node: Node | None) -> tuple[BackfillEntry, ...]:
    """The list under ``backfill``."""
    return tuple(
        BackfillEntry(
            tuple((column.text, text(value)) for column, value in entries(mapping(item).get("set"))),
            _optional(mapping(item).get("where")),
        )
        for item in items(node)
    )


def checks(node: Node | None) -> tuple[CheckEntry, ...]:
    """The list under ``checks``."""
    found = []
    for item in map(mapping, items(node)):
        after, gives = item.get("after"), item.get("gives")
        found.append(
            CheckEntry(
                query=text(after if after is not None else item.get("before")),
                is_after=after is not None,
                gives="[]" if gives is None else json.dumps(to_data(gives), ensure_ascii=False),
                name=_optional(item.get("name")),
            )
        )
    return tuple(found)


def retypes(node: Node | None) -> tuple[RetypeEntry, ...]:
    """The mapping under ``retype``."""
    return tuple(
        RetypeEntry(column.text, text(mapping(value).get("to")), text(mapping(value).get("using")))
        for column, value in entries(node)
    )


def places(key: str, node: Node | None) -> Iterator[Placed]:
    """Where the items of a list, or the keys of a mapping, and all that is in them stand."""
    if node is None:
        return
    if isinstance(node, Mapping):
        yield from _below((key,), node)
        return
    for number, item in enumerate(items(node)):
        yield from _below((key, str(number)), item)


def _below(subject: tuple[str, ...], node: Node) -> Iterator[Placed]:
    yield subject, node.place
    if isinstance(node, Mapping):
        for key, value in node.entries:
            inner = (*subject, key.text)
            yield inner, key.place
            if isinstance(value, (Mapping, Sequence)):
                yield from _below(inner, value)


def _optional(node: Node | None) -> str | None:
    return None if node is None or is_null(node) else text(node)
