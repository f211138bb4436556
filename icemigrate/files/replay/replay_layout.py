"""Replays the identifier, partitioning and sort order of a table entry; each replaces the declared one."""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.files.read.migration_file import KeyPath
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.schema_draft import SchemaDraft
from icemigrate.frozen import replace
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partitioning import (
    UNSORTED,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
    default_name,
)
from icemigrate.iceberg.schema import Schema

_Source = Callable[[FieldPath, KeyPath], "int | None"]


def source_finder(
    schema: Schema, renamed: dict[FieldPath, FieldPath], diagnostics: EntryDiagnostics
) -> _Source:
    """A function from a path to the field's id; a path that leads nowhere is complained about."""

    def find(path: FieldPath, subject: KeyPath) -> int | None:
        field = schema.find(path)
        if field is not None:
            return field.id
        if path in renamed:
            hint: str | None = f"this migration renames it: write `{format_path(renamed[path])}`"
        else:
            hint = SchemaDraft(schema, ()).nearest(path)
        diagnostics.error("unknown-column", subject, f"there is no column `{format_path(path)}`", hint)
        return None

    return find


def replay_identifier(
    names: tuple[str, ...], source: _Source, diagnostics: EntryDiagnostics
) -> frozenset[int]:
    """The ids of the identifier fields."""
    ids: set[int] = set()
    for name in names:
        subject = ("identifier", name)
        path = diagnostics.path(name, subject)
        found = None if path is None else source(path, subject)
        if found is not None:
            ids.add(found)
    return frozenset(ids)


def replay_partition_spec(
    terms: tuple[str, ...], before: PartitionSpec, source: _Source, diagnostics: EntryDiagnostics
) -> PartitionSpec:
    """The partition spec of the terms, in their order.

    A term that the table already has keeps its field id, and its name unless another is given.
    """
    known = {(f.source_ids, f.transform): f for f in before.live}
    lowest = min([0, *(f.id for f in before.fields)])
    fields: list[PartitionField] = []
    used: set[tuple[tuple[int, ...], Transform]] = set()
    for at, text in enumerate(terms):
        subject = ("partition_by", str(at))
        term = diagnostics.partition(text, subject)
        if term is None:
            continue
        found = source(term.source, subject)
        if found is None:
            continue
        key = ((found,), term.transform)
        if key in used:
            diagnostics.error("listed-twice", subject, f"`{text}` is equivalent to an earlier partition term")
            continue
        used.add(key)
        if (old := known.get(key)) is not None:
            field = replace(old, name=term.name or old.name)
        else:
            lowest -= 1
            field = PartitionField(*key, term.name or default_name(term.source, term.transform), lowest)
        if any(other.name == field.name for other in fields):
            diagnostics.error(
                "name-in-use",
                subject,
                f"two partition fields would have the name `{field.name}`",
                f"give this one another name: `{text.strip()} as …`" if term.name is None else None,
            )
            continue
        fields.append(field)
    return before if tuple(fields) == before.live else replace(before, fields=tuple(fields))


def replay_sort_order(
    terms: tuple[str, ...], before: SortOrder, source: _Source, diagnostics: EntryDiagnostics
) -> SortOrder:
    """The sort order of the terms."""
    fields: dict[tuple[tuple[int, ...], Transform], SortField] = {}
    for at, text in enumerate(terms):
        subject = ("sort_by", str(at))
        term = diagnostics.sort(text, subject)
        if term is None:
            continue
        found = source(term.source, subject)
        if found is None:
            continue
        field = SortField((found,), term.transform, term.direction, term.null_order)
        if fields.setdefault((field.source_ids, field.transform), field) is not field:
            diagnostics.error("listed-twice", subject, f"`{text}` is equivalent to an earlier sort term")
    ordered = tuple(fields.values())
    if not ordered:
        return UNSORTED
    return before if ordered == before.fields else replace(before, fields=ordered)
