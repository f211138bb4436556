"""Identifier, partitioning and sort order of a table entry; each replaces the declared one.

The fold, rule 4.
"""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.declare.complaints import Complaints
from icemigrate.declare.draft import Draft
from icemigrate.declare.migration import Subject
from icemigrate.frozen import replace
from icemigrate.model.names import Path, format_path
from icemigrate.model.partitioning import PartitionField, PartitionSpec, Transform, default_name
from icemigrate.model.schema import Schema
from icemigrate.model.sorting import UNSORTED, SortField, SortOrder

_Source = Callable[[Path, Subject], "int | None"]


def source_finder(schema: Schema, renamed: dict[Path, Path], complaints: Complaints) -> _Source:
    """A function from a path to the field's id; a path that leads nowhere is complained about."""

    def find(path: Path, subject: Subject) -> int | None:
        field = schema.find(path)
        if field is not None:
            return field.id
        if path in renamed:
            hint: str | None = f"this migration renames it: write `{format_path(renamed[path])}`"
        else:
            hint = Draft(schema, ()).nearest(path)
        complaints.error("unknown-column", subject, f"there is no column `{format_path(path)}`", hint)
        return None

    return find


def fold_identifier(names: tuple[str, ...], source: _Source, complaints: Complaints) -> frozenset[int]:
    """The ids of the identifier fields."""
    ids: set[int] = set()
    for name in names:
        subject = ("identifier", name)
        path = complaints.path(name, subject)
        found = None if path is None else source(path, subject)
        if found is not None:
            ids.add(found)
    return frozenset(ids)


def fold_partition(
    terms: tuple[str, ...], before: PartitionSpec, source: _Source, complaints: Complaints
) -> PartitionSpec:
    """The spec of the terms, in their order.

    A term that partitions already keeps its field id, and its name where no other is said.
    """
    known = {(f.source_ids, f.transform): f for f in before.live}
    lowest = min([0, *(f.id for f in before.fields)])
    fields: list[PartitionField] = []
    used: set[tuple[tuple[int, ...], Transform]] = set()
    for at, text in enumerate(terms):
        subject = ("partition_by", str(at))
        term = complaints.partition(text, subject)
        if term is None:
            continue
        found = source(term.source, subject)
        if found is None:
            continue
        key = ((found,), term.transform)
        if key in used:
            complaints.error(
                "listed-twice", subject, f"`{text}` partitions by the same thing as a term before it"
            )
            continue
        used.add(key)
        if (old := known.get(key)) is not None:
            field = replace(old, name=term.name or old.name)
        else:
            lowest -= 1
            field = PartitionField(*key, term.name or default_name(term.source, term.transform), lowest)
        if any(other.name == field.name for other in fields):
            complaints.error(
                "name-in-use",
                subject,
                f"two partition fields would be called `{field.name}`",
                f"give this one another name: `{text.strip()} as …`" if term.name is None else None,
            )
            continue
        fields.append(field)
    return before if tuple(fields) == before.live else replace(before, fields=tuple(fields))


def fold_order(
    terms: tuple[str, ...], before: SortOrder, source: _Source, complaints: Complaints
) -> SortOrder:
    """The sort order of the terms."""
    fields: list[SortField] = []
    for at, text in enumerate(terms):
        subject = ("sort_by", str(at))
        term = complaints.sort(text, subject)
        if term is None:
            continue
        found = source(term.source, subject)
        if found is None:
            continue
        field = SortField((found,), term.transform, term.direction, term.null_order)
        if any((f.source_ids, f.transform) == (field.source_ids, field.transform) for f in fields):
            complaints.error("listed-twice", subject, f"`{text}` sorts by the same thing as a term before it")
            continue
        fields.append(field)
    if not fields:
        return UNSORTED
    return before if tuple(fields) == before.fields else replace(before, fields=tuple(fields))
