"""What of a migration cannot go back, and why: found before anything is touched.

A field that became wider goes back only while no file was added under the wider type: one whose values would
all fit is unreadable all the same, to Spark or, where it is a decimal, to PyIceberg.  Under which type a file
was added tells the snapshot that did it.  A field that was made optional is required again only while no null
was written: Spark reads it as 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from icemigrate.model.evidence import Evidence
from icemigrate.model.names import format_path
from icemigrate.model.partitioning import PartitionField, Transform, accepts
from icemigrate.model.schema import index
from icemigrate.model.sorting import SortField
from icemigrate.model.table import MAIN_BRANCH, Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Type
from icemigrate.model.undo_record import TableUndo
from icemigrate.undo.committed import others_fields
from icemigrate.undo.keeping import dropped, is_required, made_optional, narrowed
from icemigrate.undo.values import Key, Refusal, Unanswered, both_sides


def refusals(undo: TableUndo, there: Table, evidence: Evidence | None) -> Iterator[Refusal]:
    """Everything of an altered table that has to stay as it is."""
    before, after = both_sides(undo)
    yield from _format(before, after, there)
    yield from _types(before, after, there, evidence)
    yield from _nullability(before, after, there, evidence)
    yield from _names(before, after, there)
    yield from _references(undo, before, after, there, evidence)
    yield from _unproved(undo, there)


def _unproved(undo: TableUndo, there: Table) -> Iterator[Refusal]:
    """Fields that the migration or another client may have added."""
    if not undo.is_unproved:
        return
    entries = index(there.schema)
    for field_id in others_fields(undo, there.schema):
        name = format_path(entries[field_id].path)
        yield Refusal(
            ("added", str(field_id)),
            "unproved-field",
            ("columns", name),
            f"`{name}` (field id {field_id})",
            "cannot be dropped",
            "either the interrupted run or another client added it, and the table's older metadata files, "
            "which would tell, are gone",
            f"{name} (field id {field_id})",
        )


def _format(before: Table, after: Table, there: Table) -> Iterator[Refusal]:
    if before.format_version < after.format_version <= there.format_version:
        yield Refusal(
            ("format_version",),
            "format-downgrade",
            ("format_version",),
            f"`{there.name}`",
            f"cannot go back to format version {before.format_version}",
            f"it has format version {there.format_version}, and Iceberg refuses to go back",
            f"format version {there.format_version}",
        )


def _types(before: Table, after: Table, there: Table, evidence: Evidence | None) -> Iterator[Refusal]:
    old, new, now = index(before.schema), index(after.schema), index(there.schema)
    for field_id in narrowed(before, after):
        if field_id not in now or now[field_id].field.type != new[field_id].field.type:
            continue  # dropped or changed by somebody since: the merge says which
        narrow, name = old[field_id].field.type, format_path(now[field_id].path)
        found = _answered(evidence)
        files = found.wide.get(field_id, found.files)
        if (transform := _unknown_to(narrow, field_id, there)) is not None:
            why = f"the table was laid out by its {transform} once, and nobody could load it then"
        elif files > 0:
            added = "1 data file was" if files == 1 else f"{files} data files were"
            why = (
                f"{added} added since under the wider type, and cannot be read under the narrower one, "
                "whatever the values"
            )
        else:
            continue
        yield Refusal(
            ("type", str(field_id)),
            "narrow-type",
            ("columns", name, "type"),
            f"`{name}`",
            f"cannot be `{format_type(narrow)}` again",
            why,
            f"the type of {name}",
        )


def _unknown_to(type_: Type, field_id: int, there: Table) -> Transform | None:
    """What a partition spec or a sort order, earlier ones too, makes of a field, and cannot make of a type.

    Iceberg's library reads all of them with the types of now, and refuses the whole table over one that it
    cannot make ("Unsupported type: date" of ``hour``).
    """
    terms: list[PartitionField | SortField] = [
        *(f for spec in (there.spec, *there.older_specs) for f in spec.fields),
        *(f for order in (there.sort_order, *there.older_orders) for f in order.fields),
    ]
    unknown = (t.transform for t in terms if field_id in t.source_ids and not accepts(t.transform, type_))
    return next(unknown, None)


def _nullability(before: Table, after: Table, there: Table, evidence: Evidence | None) -> Iterator[Refusal]:
    now = index(there.schema)
    for field_id in made_optional(before, after):
        if field_id not in now or now[field_id].field.required:
            continue
        name, found = format_path(now[field_id].path), _answered(evidence)
        nulls = 0 if found.files == 0 else found.nulls.get(field_id)
        if nulls == 0:
            continue
        said = "nobody can tell whether nulls were" if nulls is None else "nulls were"
        count = "" if nulls is None else " (1 null)" if nulls == 1 else f" ({nulls} nulls)"
        yield Refusal(
            ("required", str(field_id)),
            "required-again",
            ("columns", name, "required"),
            f"`{name}`{count}",
            "cannot be required again",
            f"{said} written since, and Spark would read them as 0",
            f"{name} being optional",
        )


def _names(before: Table, after: Table, there: Table) -> Iterator[Refusal]:
    """Dropped fields whose name another field has now."""
    old, now = index(before.schema), index(there.schema)
    for field_id in dropped(before, after):
        entry = old[field_id]
        if field_id in now:
            continue
        leaving = {i for i in index(after.schema) if i not in old}
        for other in now.values():
            same_place = other.parent == entry.parent and other.field.name.lower() == entry.field.name.lower()
            if (
                same_place
                and other.field.id not in leaving
                and not _renamed_back(before, other.field.id, entry.field.name)
            ):
                name = format_path(entry.path)
                yield Refusal(
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
    undo: TableUndo, before: Table, after: Table, there: Table, evidence: Evidence | None
) -> Iterator[Refusal]:
    for name in sorted(before.refs.keys() - after.refs.keys() - there.refs.keys()):
        kind = before.refs[name].kind
        was = undo.actual_before.refs.get(name) if undo.actual_before is not None else None
        if was is None or was.snapshot_id not in _answered(evidence).there:
            yield Refusal(
                ("reference", name),
                "snapshot-expired",
                ("tags" if kind == "tag" else "branches", name),
                f"{kind} `{name}`",
                "cannot come back",
                "its snapshot has expired",
                f"{kind} {name} being dropped",
            )
    yield from _written(undo, before, after, there)


def _written(undo: TableUndo, before: Table, after: Table, there: Table) -> Iterator[Refusal]:
    """Branches that the migration made and somebody has written to: their rows would go with them."""
    if undo.actual_after is None:
        return  # cut short, so that nobody knows what they were made on
    made = undo.actual_after.refs
    new = after.refs.keys() - before.refs.keys() - {MAIN_BRANCH}
    for name in sorted(new & made.keys() & there.refs.keys()):
        if there.refs[name].kind == "branch" and there.refs[name].snapshot_id != made[name].snapshot_id:
            yield Refusal(
                ("reference", name),
                "branch-written",
                ("branches", name),
                f"branch `{name}`",
                "cannot be dropped",
                "it was written to since, and its rows would be lost",
                f"branch {name}",
            )


def come_back_optional(undo: TableUndo, there: Table, evidence: Evidence | None) -> Iterator[int]:
    """The dropped required fields that rows were written without, so that they come back as optional.

    Files that a ``retype`` wrote hold the old field too, and say that there is no null in it.
    """
    before, after = both_sides(undo)
    for field_id in dropped(before, after):
        if there.schema.by_id(field_id) is not None or not is_required(before, field_id):
            continue
        found = _answered(evidence)
        if found.files > 0 and found.nulls.get(field_id) != 0:
            yield field_id


def relies_on_files(undo: TableUndo, kept: Collection[Key]) -> bool:
    """Whether what is said of the files must still hold when the undo is committed.

    :param kept: what stays, see :mod:`icemigrate.undo.keeping`.
    """
    before, after = both_sides(undo)
    conditions: list[Key] = [("type", str(i)) for i in narrowed(before, after)]
    conditions += [("required", str(i)) for i in made_optional(before, after)]
    for field_id in dropped(before, after):
        if is_required(before, field_id):
            conditions.append(("optional", str(field_id)))
    return any(condition not in kept for condition in conditions)


def _answered(evidence: Evidence | None) -> Evidence:
    if evidence is None:
        raise Unanswered("the undo needs to know of the table's files, and nobody looked")
    return evidence
