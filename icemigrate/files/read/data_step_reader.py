"""Reads valid nodes of data steps as :mod:`icemigrate.files.read.data_step_entries`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias

from icemigrate.diagnostics import FilePosition
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlSequence, to_data
from icemigrate.files.read.data_step_entries import BackfillEntry, CheckEntry, RetypeEntry
from icemigrate.files.read.node_values import as_mapping, is_null, list_items, mapping_entries, scalar_text

SubjectPosition: TypeAlias = tuple[tuple[str, ...], FilePosition]
"""A subject and its position."""


def read_backfills(node: YamlNode | None) -> tuple[BackfillEntry, ...]:
    """The list under ``backfill``."""
    return tuple(
        BackfillEntry(
            tuple(
                (column.text, scalar_text(value))
                for column, value in mapping_entries(as_mapping(item).get("set"))
            ),
            _optional(as_mapping(item).get("where")),
        )
        for item in list_items(node)
    )


def read_checks(node: YamlNode | None) -> tuple[CheckEntry, ...]:
    """The list under ``checks``."""
    found = []
    for item in map(as_mapping, list_items(node)):
        after, gives = item.get("after"), item.get("gives")
        found.append(
            CheckEntry(
                query=scalar_text(after if after is not None else item.get("before")),
                is_after=after is not None,
                gives="[]" if gives is None else json.dumps(to_data(gives), ensure_ascii=False),
                name=_optional(item.get("name")),
            )
        )
    return tuple(found)


def read_retypes(node: YamlNode | None) -> tuple[RetypeEntry, ...]:
    """The mapping under ``retype``."""
    return tuple(
        RetypeEntry(
            column.text, scalar_text(as_mapping(value).get("to")), scalar_text(as_mapping(value).get("using"))
        )
        for column, value in mapping_entries(node)
    )


def item_positions(key: str, node: YamlNode | None) -> Iterator[SubjectPosition]:
    """Positions of the items of a list, or of the keys of a mapping, and of everything inside them."""
    if node is None:
        return
    if isinstance(node, YamlMapping):
        yield from _below((key,), node)
        return
    for number, item in enumerate(list_items(node)):
        yield from _below((key, str(number)), item)


def _below(subject: tuple[str, ...], node: YamlNode) -> Iterator[SubjectPosition]:
    yield subject, node.place
    if isinstance(node, YamlMapping):
        for key, value in node.entries:
            inner = (*subject, key.text)
            yield inner, key.place
            if isinstance(value, (YamlMapping, YamlSequence)):
                yield from _below(inner, value)


def _optional(node: YamlNode | None) -> str | None:
    return None if node is None or is_null(node) else scalar_text(node)
