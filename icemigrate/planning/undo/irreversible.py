"""Facts of a migration that cannot be undone, with reasons; found before anything changes.

A wider type can be narrowed only while no file was added under the wider type: Spark cannot read such a file
even if all its values fit, nor can PyIceberg for decimals.  The snapshot that added a file has its type.  A
field that was made optional can be required again only while no null was written: Spark reads it as 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import PartitionField, SortField, Transform, accepts_source_type
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import MAIN_BRANCH, Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Type
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.undo.retained_facts import (
    dropped_fields,
    fields_made_optional,
    fields_with_changed_type,
    is_required_in_files,
)
from icemigrate.planning.undo.run_commits import unproven_fields
from icemigrate.planning.undo.undo_inputs import (
    FactKey,
    IrreversibleFact,
    MissingEvidence,
    both_declared_states,
    moved_references,
)


def find_irreversible_facts(
    undo: TableUndo, current: Table, evidence: Evidence | None
) -> Iterator[IrreversibleFact]:
    """Everything of an altered table that has to stay as it is."""
    before, after = both_declared_states(undo)
    yield from _format(before, after, current)
    yield from _types(before, after, current, evidence)
    yield from _nullability(before, after, current, evidence)
    yield from _names(before, after, current)
    yield from _references(undo, before, after, current, evidence)
    yield from _unproved(undo, current)


def _unproved(undo: TableUndo, current: Table) -> Iterator[IrreversibleFact]:
    """Fields that the migration or another client may have added."""
    if not undo.is_unproved:
        return
    entries = schema_index(current.schema)
    for field_id in unproven_fields(undo, current.schema):
        name = format_path(entries[field_id].path)
        yield IrreversibleFact(
            ("added", str(field_id)),
            "unproved-field",
            ("columns", name),
            f"`{name}` (field id {field_id})",
            "cannot be dropped",
            "either the interrupted run or another client added it, and the older metadata files that would "
            "show which are gone",
            f"{name} (field id {field_id})",
        )


def _format(before: Table, after: Table, current: Table) -> Iterator[IrreversibleFact]:
    if before.format_version < after.format_version <= current.format_version:
        yield IrreversibleFact(
            ("format_version",),
            "format-downgrade",
            ("format_version",),
            f"`{current.name}`",
            f"cannot go back to format version {before.format_version}",
            f"it has format version {current.format_version}, and Iceberg cannot downgrade it",
            f"format version {current.format_version}",
        )


def _types(
    before: Table, after: Table, current: Table, evidence: Evidence | None
) -> Iterator[IrreversibleFact]:
    old, new, now = schema_index(before.schema), schema_index(after.schema), schema_index(current.schema)
    for field_id in fields_with_changed_type(before, after):
        if field_id not in now or now[field_id].field.type != new[field_id].field.type:
            continue  # dropped or changed by another client since: the merge reports which
        narrow, name = old[field_id].field.type, format_path(now[field_id].path)
        found = _answered(evidence)
        files = found.wide.get(field_id, found.files)
        if (transform := _unknown_to(narrow, field_id, current)) is not None:
            why = f"the table was laid out by its {transform} once, and no client could load it then"
        elif files > 0:
            added = "1 data file was" if files == 1 else f"{files} data files were"
            why = (
                f"{added} added since with the wider type, and cannot be read as the narrower one, whatever "
                f"their values"
            )
        else:
            continue
        yield IrreversibleFact(
            ("type", str(field_id)),
            "narrow-type",
            ("columns", name, "type"),
            f"`{name}`",
            f"cannot be `{format_type(narrow)}` again",
            why,
            f"the type of {name}",
        )


def _unknown_to(type_: Type, field_id: int, current: Table) -> Transform | None:
    """Why a type is not accepted by a partition spec or a sort order of the table, an earlier one included.

    Iceberg's library reads all of them with the current types, and refuses the whole table for one that it
    cannot build ("Unsupported type: date" of ``hour``).
    """
    terms: list[PartitionField | SortField] = [
        *(f for spec in (current.spec, *current.older_specs) for f in spec.fields),
        *(f for order in (current.sort_order, *current.older_orders) for f in order.fields),
    ]
    unknown = (
        t.transform for t in terms if field_id in t.source_ids and not accepts_source_type(t.transform, type_)
    )
    return next(unknown, None)


def _nullability(
    before: Table, after: Table, current: Table, evidence: Evidence | None
) -> Iterator[IrreversibleFact]:
    now = schema_index(current.schema)
    for field_id in fields_made_optional(before, after):
        if field_id not in now or now[field_id].field.required:
            continue
        name, found = format_path(now[field_id].path), _answered(evidence)
        nulls = 0 if found.files == 0 else found.nulls.get(field_id)
        if nulls == 0:
            continue
        said = "it is unknown whether nulls were" if nulls is None else "nulls were"
        count = "" if nulls is None else " (1 null)" if nulls == 1 else f" ({nulls} nulls)"
        yield IrreversibleFact(
            ("required", str(field_id)),
            "required-again",
            ("columns", name, "required"),
            f"`{name}`{count}",
            "cannot be required again",
            f"{said} written since, and Spark would read them as 0",
            f"{name} being optional",
        )


def _names(before: Table, after: Table, current: Table) -> Iterator[IrreversibleFact]:
    """Dropped fields whose name another field has now."""
    old, now = schema_index(before.schema), schema_index(current.schema)
    for field_id in dropped_fields(before, after):
        entry = old[field_id]
        if field_id in now:
            continue
        leaving = {i for i in schema_index(after.schema) if i not in old}
        for other in now.values():
            same_place = other.parent == entry.parent and other.field.name.lower() == entry.field.name.lower()
            if (
                same_place
                and other.field.id not in leaving
                and not _renamed_back(before, other.field.id, entry.field.name)
            ):
                name = format_path(entry.path)
                yield IrreversibleFact(
                    ("column", str(field_id)),
                    "name-taken",
                    ("columns", name),
                    f"`{name}`",
                    "cannot come back",
                    f"another column has the name now (field id {other.field.id})",
                    f"{name} being dropped",
                )


def _renamed_back(before: Table, field_id: int, name: str) -> bool:
    """Whether the other field gives the name back in the same undo."""
    was = before.schema.by_id(field_id)
    return was is not None and was.name != name


def _references(
    undo: TableUndo, before: Table, after: Table, current: Table, evidence: Evidence | None
) -> Iterator[IrreversibleFact]:
    moved = set(moved_references(before, after))
    for name in sorted((before.refs.keys() - after.refs.keys() - current.refs.keys()) | moved):
        kind = before.refs[name].kind
        was = undo.actual_before.refs.get(name) if undo.actual_before is not None else None
        if was is None or was.snapshot_id not in _answered(evidence).existing_snapshots:
            yield IrreversibleFact(
                ("reference", name),
                "snapshot-expired",
                ("tags" if kind == "tag" else "branches", name),
                f"{kind} `{name}`",
                "cannot move back" if name in moved else "cannot come back",
                "its snapshot has expired",
                f"{kind} {name} being {'moved' if name in moved else 'dropped'}",
            )
    yield from _written(undo, before, after, current)


def _written(undo: TableUndo, before: Table, after: Table, current: Table) -> Iterator[IrreversibleFact]:
    """Branches that the migration created or moved, with rows of others that an undo would lose."""
    if undo.actual_after is None:
        return  # interrupted, so the snapshot that they were created on is unknown
    made = undo.actual_after.refs
    moved = set(moved_references(before, after))
    new = (after.refs.keys() - before.refs.keys() - {MAIN_BRANCH}) | moved
    for name in sorted(new & made.keys() & current.refs.keys()):
        if current.refs[name].kind == "branch" and current.refs[name].snapshot_id != made[name].snapshot_id:
            yield IrreversibleFact(
                ("reference", name),
                "branch-written",
                ("branches", name),
                f"branch `{name}`",
                "cannot move back" if name in moved else "cannot be dropped",
                "it was written to since, and its rows would be lost",
                f"branch {name}",
            )


def fields_restored_as_optional(undo: TableUndo, current: Table, evidence: Evidence | None) -> Iterator[int]:
    """Dropped required fields that rows were written without, so that they are restored as optional.

    Files that a ``retype`` wrote contain the old field too, and show that it has no null.
    """
    before, after = both_declared_states(undo)
    for field_id in dropped_fields(before, after):
        if current.schema.by_id(field_id) is not None or not is_required_in_files(before, field_id):
            continue
        found = _answered(evidence)
        if found.files > 0 and found.nulls.get(field_id) != 0:
            yield field_id


def has_file_conditions(undo: TableUndo, kept: Collection[FactKey]) -> bool:
    """Whether answers about the files must still hold when the undo is committed.

    :param kept: facts that stay, see :mod:`icemigrate.planning.undo.retained_facts`.
    """
    before, after = both_declared_states(undo)
    conditions: list[FactKey] = [("type", str(i)) for i in fields_with_changed_type(before, after)]
    conditions += [("required", str(i)) for i in fields_made_optional(before, after)]
    for field_id in dropped_fields(before, after):
        if is_required_in_files(before, field_id):
            conditions.append(("optional", str(field_id)))
    return any(condition not in kept for condition in conditions)


def _answered(evidence: Evidence | None) -> Evidence:
    if evidence is None:
        raise MissingEvidence("the undo needs evidence about the table's files, and has none")
    return evidence
