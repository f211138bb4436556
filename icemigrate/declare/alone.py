"""What can be said of a table's entry by itself: asked where a file has mistakes, and so is not folded.

One slip must not hide the others: what a broken entry says besides is read, and its types, terms and names
are judged as the fold would judge them.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.declare.complaints import Complaints
from icemigrate.declare.defaults import BadDefault, default_value
from icemigrate.declare.migration import UNSET, ColumnEntry, TableEntry, Unset
from icemigrate.declare.nodes import Mapping, Node, Scalar, Sequence
from icemigrate.declare.schema import Rule, Schema
from icemigrate.declare.validate import wrong_nodes
from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import replace

_NAMELESS = "unknown.table"
"""Stands for the name of a table that has none, or none that can be read."""


def sound_part(node: Mapping, schema: Schema, rule: Rule) -> Mapping | None:
    """A table's node without what is wrong in it; ``None`` where nothing is left to read."""
    rest: Node | None = _without(node, wrong_nodes(node, schema, rule) - {id(node)})
    while isinstance(rest, Mapping):
        if rest.get("name") is None and rest.get("match") is None:
            name = (Scalar("name", "name", node.place), Scalar(_NAMELESS, _NAMELESS, node.place))
            rest = replace(rest, entries=(name, *rest.entries))
        # What is left may lack what was wrong: a column its name, a step what it sets.
        wrong = wrong_nodes(rest, schema, rule)
        if not wrong:
            return rest
        rest = _without(rest, wrong)
    return None


def _without(node: Node, wrong: frozenset[int]) -> Node | None:
    if id(node) in wrong:
        return None
    if isinstance(node, Mapping):
        pairs = ((key, _without(value, wrong)) for key, value in node.entries if id(key) not in wrong)
        return replace(node, entries=tuple((key, value) for key, value in pairs if value is not None))
    if isinstance(node, Sequence):
        items = (_without(item, wrong) for item in node.items)
        return replace(node, items=tuple(item for item in items if item is not None))
    return node


def judged_alone(entry: TableEntry) -> tuple[Diagnostic, ...]:
    """What is wrong with an entry's names, types, defaults and terms, whatever was declared before."""
    complaints = Complaints(replace(entry, match=None), entry.name or "")
    if entry.name is not None:
        complaints.name(entry.name, ("name",))
    if entry.renamed_from is not UNSET:
        complaints.name(entry.renamed_from, ("renamed_from",))
    for old, new in entry.renames:
        complaints.path(old, ("renames", old))
        complaints.path(new, ("renames", old, "to"))
    for column in _all_columns(entry.columns):
        _judge_column(column, complaints)
    for one in entry.retype:
        complaints.path(one.column, ("retype", one.column))
        complaints.type(one.to, one.column, ("retype", one.column, "to"))
    for key, names in _named(entry):
        for name in names:
            complaints.path(name, (key, name))
    for at, text in _whole(entry.partition_by):
        complaints.partition(text, ("partition_by", at))
    for at, text in _whole(entry.sort_by):
        complaints.sort(text, ("sort_by", at))
    return tuple(complaints.found)


def _whole(terms: tuple[str, ...] | Unset) -> Iterator[tuple[str, str]]:
    """The terms and where they stand, without the halves that a comma made of one, which are told of."""
    for at, text in enumerate(() if terms is UNSET else terms):
        if text.count("(") == text.count(")"):
            yield str(at), text


def _named(entry: TableEntry) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "drop_columns", tuple(drop.name for drop in entry.drop_columns)
    yield "restore_columns", entry.restore_columns
    yield "identifier", () if entry.identifier is UNSET else entry.identifier


def _all_columns(columns: tuple[ColumnEntry, ...]) -> Iterator[ColumnEntry]:
    for column in columns:
        yield column
        below = (column.element, column.key, column.value)
        yield from _all_columns(() if column.fields is UNSET else column.fields)
        yield from _all_columns(tuple(part for part in below if part is not UNSET))


def _judge_column(column: ColumnEntry, complaints: Complaints) -> None:
    subject = ("columns", column.path)
    complaints.path(column.name, subject)
    if column.type is UNSET:
        return
    type_ = complaints.type(column.type, column.path, (*subject, "type"))
    if type_ is None or column.default is UNSET:
        return
    try:
        default_value(column.default, type_)
    except BadDefault as e:
        complaints.error("bad-default", (*subject, "default"), f"`{column.path}`: {e}", e.hint)
