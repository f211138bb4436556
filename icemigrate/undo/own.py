"""What a migration itself made of a table: its difference, from the table as it really was before it.

What the files declare may not be what was there.  A fact that was set over somebody else's change goes back
to what that was; one that was found done already was not the migration's doing, so it stays; a dropped column
comes back as it was, not as it was declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from icemigrate.frozen import Frozen, replace
from icemigrate.merge import grouped, merge, ordered_like, spec_key
from icemigrate.merge.fields import ASPECTS, aspects, with_aspects
from icemigrate.model.column_properties import after_drop
from icemigrate.model.names import format_path
from icemigrate.model.schema import Entry, Schema, index
from icemigrate.model.table import Table
from icemigrate.model.types import Field, children, is_nested, with_children
from icemigrate.model.undo_record import TableUndo
from icemigrate.undo.committed import others_fields
from icemigrate.undo.values import both_sides

_V = TypeVar("_V")


def own(undo: TableUndo) -> TableUndo:
    """The record with the migration's own difference as its two sides, restricted to what is declared."""
    before, after = both_sides(undo)
    was, now = undo.actual_before, undo.actual_after
    if was is None:
        return undo
    old, there = index(before.schema), index(was.schema)
    fields = _Fields(old, there, index(after.schema), undo.created).of(after.schema.fields, None)
    # Somebody may have made a column the identifier that no file declares.
    ids = was.schema.identifier_ids if _identifier_differs(before, after) else after.schema.identifier_ids
    own_before = replace(
        after,
        schema=Schema(fields, ids),
        spec=was.spec if spec_key(before.spec) != spec_key(after.spec) else after.spec,
        sort_order=was.sort_order
        if before.sort_order.fields != after.sort_order.fields
        else after.sort_order,
        properties=_properties(before, after, was),
        format_version=was.format_version
        if before.format_version != after.format_version
        else after.format_version,
        refs=_changed(before.refs, after.refs, was.refs),
    )
    return replace(undo, before=own_before, after=after if now is None else ordered_like(after, now))


def own_notes(undo: TableUndo, there: Table) -> Iterator[str]:
    """Where the table was not as declared before the migration, so that going back does not lead there; and
    what others added that looks like a field of the migration.

    :param there: the table as it is now.
    """
    before, after = both_sides(undo)
    if undo.actual_before is None:
        return
    if not undo.is_unproved:
        entries = index(there.schema)
        for field_id in others_fields(undo, there.schema):
            name = format_path(entries[field_id].path)
            yield f"stays: {name} (field id {field_id}); this migration did not add it"
    merged = merge(before, after, replace(undo.actual_before, name=undo.declared))
    for fact in grouped(merged.done):
        yield f"stays: {fact}; it was so before the migration"
    for c in merged.conflicts:
        yield f"{c.fact} goes back to {c.actual}, as it was before the migration, and not to {c.base}"


def is_moved(undo: TableUndo) -> bool:
    """Whether the migration itself gave the table another name."""
    if undo.actual_before is None or undo.actual_after is None:
        return undo.declared_before != undo.declared_after
    return undo.actual_before.name != undo.actual_after.name


def _identifier_differs(before: Table, after: Table) -> bool:
    return before.schema.identifier_ids != after.schema.identifier_ids


class _Fields(Frozen):
    """The fields before the migration.

    :param old: as declared before it.
    :param there: as they really were before it.
    :param new: as declared after it.
    :param created: ids of those that the migration's own commits added; ``None`` where no commit is recorded.
    """

    old: Mapping[int, Entry]
    there: Mapping[int, Entry]
    new: Mapping[int, Entry]
    created: frozenset[int] | None = None

    def of(self, fields: tuple[Field, ...], parent: int | None) -> tuple[Field, ...]:
        """The fields right below a field, or the columns; in the order in which they stood.

        :param fields: those that are declared after the migration.
        """
        stayed = [self._field(f) for f in fields if not self._is_own(f)]
        dropped = [
            self.there[i].field
            for i, entry in self.old.items()
            if entry.parent == parent and i not in self.new and i in self.there
        ]
        return _in_order(self.there, (*stayed, *dropped))

    def _is_own(self, field: Field) -> bool:
        """Whether the migration added the field, so that its undo may drop it."""
        if field.id in self.old or field.id in self.there:
            return False
        return self.created is None or field.id in self.created

    def _field(self, now: Field) -> Field:
        there, was = self.there.get(now.id), self.old.get(now.id)
        if there is None:
            return now  # somebody had dropped it, so nothing of it was changed
        since = aspects(now)
        then = {} if was is None else aspects(was.field)
        changed = {a for a in ASPECTS if a not in then or then[a] != since[a]}
        field = with_aspects(now, there.field, changed)
        if is_nested(now.type) and type(now.type) is type(there.field.type):
            below = self.of(children(now.type), now.id)
            return replace(field, type=with_children(now.type, below))
        return field


def _in_order(entries: Mapping[int, Entry], fields: tuple[Field, ...]) -> tuple[Field, ...]:
    rank = {field_id: at for at, field_id in enumerate(entries)}
    return tuple(sorted(fields, key=lambda f: rank.get(f.id, len(rank))))


def _properties(before: Table, after: Table, was: Table) -> dict[str, str]:
    """With those that Iceberg removes of itself together with a column that is dropped."""
    properties = _changed(before.properties, after.properties, was.properties)
    old, new, there = index(before.schema), index(after.schema), index(was.schema)
    dropped = [there[i].path for i in old if i not in new and i in there]
    left = after_drop(was.properties, dropped)
    return properties | {key: value for key, value in was.properties.items() if key not in left}


def _changed(before: Mapping[str, _V], after: Mapping[str, _V], was: Mapping[str, _V]) -> dict[str, _V]:
    """What is declared after the migration, but what it changed as it really was before."""
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    kept = {key: value for key, value in after.items() if key not in changed}
    return kept | {key: was[key] for key in changed if key in was}
