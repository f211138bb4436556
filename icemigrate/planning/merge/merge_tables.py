"""Merges three states of a table to one target, as ``git merge`` does.

For each *fact* (one aspect of one field, the spec, the order, the identifier, one property, …)
where wanted differs from base:

=================  ==================================================
actual is          then
=================  ==================================================
as in base         the target takes the wanted value
as wanted          done already; a note says so
something else     a conflict with the three values
=================  ==================================================

Intermediate values of our own statements (a third name in a swap, half of a spec) count as base.

Other facts stay as they are, whatever their value in base.  Field ids and definitions are compared; schema,
spec and order ids are not, because the server chooses them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from icemigrate.changes.change import Subject
from icemigrate.changes.reference_sql import reference_text
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import FieldPosition
from icemigrate.iceberg.kept_views import is_kept_view_key, kept_view
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partitioning import SortOrder
from icemigrate.iceberg.retention import property_text
from icemigrate.iceberg.schema import Schema, differing_fields, schema_index
from icemigrate.iceberg.table import (
    CURRENT_SNAPSHOT,
    DEFAULT_MAIN_BRANCH,
    MAIN_BRANCH,
    Ref,
    Table,
    differing_keys,
)
from icemigrate.iceberg.table_properties import (
    column_properties_after_drop,
    column_properties_after_rename,
)
from icemigrate.planning.merge.field_ids import rebind_field_ids
from icemigrate.planning.merge.merge_fields import (
    FIELD_ASPECTS,
    assert_position,
    match_new_fields,
    merge_schema,
)
from icemigrate.planning.merge.merge_outcome import (
    ABSENT,
    Conflict,
    Fact,
    MergeOutcome,
    ShownValue,
    fact_value_text,
)


def done_notes(facts: Iterable[Fact]) -> tuple[str, ...]:
    """One note for each column or other fact, e.g. ``done already: db.t:columns.c3 (type, required)``."""
    return tuple(f"done already: {fact}" for fact in group_facts_by_column(facts))


_MOST_NAMED = 5
"""Facts that one note names."""


def undone_notes(facts: Sequence[Fact]) -> tuple[str, ...]:
    """A note for all facts of a table that an undo finds as they were before its migration.

    That is usually because the run was killed before it changed them.
    """
    if not facts:
        return ()
    grouped = group_facts_by_column(facts)
    named = [_in_words(text.removeprefix(f"{facts[0].table}:")) for text in grouped[:_MOST_NAMED]]
    more = [f"{len(grouped) - _MOST_NAMED} more"] if len(grouped) > _MOST_NAMED else []
    return (f"nothing to undo, because it is as before the migration: {', '.join([*named, *more])}",)


def _in_words(fact: str) -> str:
    """``column c``, ``column c (type)`` or ``property k`` of the text of a fact."""
    for prefix, noun in (("columns.", "column"), ("properties.", "property")):
        if fact.startswith(prefix):
            name, aspects, _ = f"{noun} {fact.removeprefix(prefix)}".partition(" (name, type, ")
            return name if aspects else f"{noun} {fact.removeprefix(prefix)}"
    return fact


def group_facts_by_column(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Facts with the aspects of a column together.

    :returns: ``db.t:columns.c3 (type, required)``, in the order of first mention; a single fact keeps its
        name.
    """
    groups: dict[str, list[str]] = {}
    for fact in map(str, facts):
        head, _, aspect = fact.rpartition(".")
        # `t:columns.name` is a whole column called `name`.
        is_aspect = aspect in FIELD_ASPECTS and not head.endswith(":columns") and ":columns." in head
        groups.setdefault(head if is_aspect else fact, []).extend([aspect] if is_aspect else [])
    return tuple(_named(head, found) for head, found in groups.items())


def _named(head: str, found: list[str]) -> str:
    if len(found) < 2:
        return ".".join([head, *found])
    return f"{head} ({', '.join(found)})"


class MergedTable(Frozen):
    """The outcome of a merge.

    :param target: the table to produce; new fields keep the negative ids of ``wanted``.
    :param done: facts that already have their wanted value.
    :param open: facts that the target changes.
    :param opened: the same with their values.
    """

    target: Table
    done: tuple[Fact, ...] = ()
    open: tuple[str, ...] = ()
    opened: tuple[Conflict, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def merge_tables(
    base: Table | None,
    wanted: Table,
    actual: Table,
    positions: Iterable[FieldPosition] = (),
    overwrite: frozenset[str] = frozenset(),
    begun: Collection[FieldPath] = (),
    keep: frozenset[str] = frozenset(),
) -> MergedTable:
    """Merge the three sides of an existing table.

    :param base: the recorded table; ``None`` where the history does not have it.
    :param wanted: the declared table, new fields with negative ids.
    :param positions: positions that the files assert, by field ids of ``wanted``.
    :param overwrite: facts (as text) that take the wanted value whatever their current one is.
    :param begun: fields that an interrupted run of the same migration may have added, and left optional
        before it filled them.
    :param keep: facts (as text) that keep their current value, as if the files declared it.
    """
    verdicts = MergeOutcome(actual.name, overwrite, keep)
    known = base.schema if base else Schema()
    ids = match_new_fields(known, wanted.schema, actual.schema)
    wanted = rebind_field_ids(wanted, ids)
    schema = merge_schema(verdicts, known, wanted.schema, actual.schema, begun)
    for position in positions:
        placed, behind = (i if i is None else ids.get(i, i) for i in (position.field_id, position.after))
        assert placed is not None
        schema = assert_position(verdicts, schema_index(known), wanted.schema, schema, placed, behind)
    target = replace(actual, schema=schema)
    target = replace(target, properties=_moved(actual.properties, actual, target))
    for merge_fact in (_identifier, _spec, _order, _properties, _format, _refs):
        target = merge_fact(verdicts, base, wanted, target)
    return MergedTable(
        target,
        tuple(verdicts.done),
        tuple(verdicts.open),
        tuple(verdicts.opened),
        tuple(verdicts.conflicts),
    )


def _names(table: Table, ids: Iterable[int]) -> str:
    """The paths of the fields with these ids; a removed field is shown by its id."""
    fields = schema_index(table.schema)
    return ", ".join(format_path(fields[i].path) if i in fields else f"field {i}" for i in ids)


def _shown_identifier(table: Table) -> ShownValue:
    ids = table.schema.identifier_ids
    return ShownValue(ids, _names(table, sorted(ids)) or "none")


def _shown_spec(table: Table) -> ShownValue:
    terms = [f"{f.transform}({_names(table, f.source_ids)}) as {f.name}" for f in table.spec.live]
    return ShownValue(table.spec.definitions, ", ".join(terms) or "unpartitioned")


def _shown_order(table: Table) -> ShownValue:
    order: SortOrder = table.sort_order
    terms = [
        f"{f.transform}({_names(table, f.source_ids)}) {f.direction} {f.null_order}" for f in order.fields
    ]
    return ShownValue(order.fields, ", ".join(terms) or "unsorted")


def _decide(
    verdicts: MergeOutcome,
    subject: Subject,
    shown: tuple[Any, Any, Any],
    sources: Iterable[int],
    wanted: Table,
    target: Table,
    halfway: bool,
) -> bool:
    """The decision on a fact that depends on fields.

    Without a field that another client dropped, the wanted value is impossible, unless the table already has
    it.

    :param shown: the fact in base, as wanted, and as it is.
    :param sources: the fields that the wanted value needs.
    """
    before, want, there = shown
    if want not in (before, there):
        fields = schema_index(target.schema)
        gone = [i for i in sources if i not in fields]
        if gone:
            now = f"{fact_value_text(there)}, and there is no {_names(wanted, gone)}"
            verdicts.refuse(subject, before, want, now)
            return False
    return verdicts.decide(subject, before, want, there, halfway)


def _identifier(verdicts: MergeOutcome, base: Table | None, wanted: Table, target: Table) -> Table:
    known = base.schema.identifier_ids if base else frozenset[int]()
    halfway = base is not None and _is_freed(base, wanted, target)
    if wanted.schema.identifier_ids == known and not halfway:
        return target
    before = _shown_identifier(base) if base else ShownValue(frozenset(), "none")
    shown = (before, _shown_identifier(wanted), _shown_identifier(target))
    if halfway and before == shown[1]:
        # Taken off for a rename inside a struct, to be put on again: a run died in between.
        verdicts.open.append(str(Fact(verdicts.table, ("identifier",))))
    elif not _decide(verdicts, ("identifier",), shown, wanted.schema.identifier_ids, wanted, target, halfway):
        return target
    return replace(target, schema=replace(target.schema, identifier_ids=wanted.schema.identifier_ids))


def _is_freed(base: Table, wanted: Table, actual: Table) -> bool:
    """Whether the identifier lacks exactly the fields that other changes require it to lack."""
    before, after, there = (t.schema.identifier_ids for t in (base, wanted, actual))
    if not there < before:
        return False
    old, new = schema_index(base.schema), schema_index(wanted.schema)
    both = before & after & old.keys() & new.keys()
    renamed = {i for i in both if len(old[i].path) > 1 and old[i].path != new[i].path}
    return before - there <= (before - after) | renamed


def _spec(verdicts: MergeOutcome, base: Table | None, wanted: Table, target: Table) -> Table:
    if base is not None and base.spec.definitions == wanted.spec.definitions:
        return target
    before = _shown_spec(base) if base else ABSENT
    halfway = base is not None and _is_between(*(t.spec.definitions for t in (base, target, wanted)))
    shown = (before, _shown_spec(wanted), _shown_spec(target))
    sources = [f.source_ids[0] for f in wanted.spec.live]
    if not _decide(verdicts, ("partition_by",), shown, sources, wanted, target, halfway):
        return target
    keep = wanted.spec.definitions
    kept = tuple(f for f in target.spec.live if f.definition in keep)
    there = {f.definition for f in kept}
    new = tuple(f for f in wanted.spec.live if f.definition not in there)
    return replace(target, spec=replace(target.spec, fields=(*kept, *new)))


def _is_between(before: frozenset[Any], there: frozenset[Any], after: frozenset[Any]) -> bool:
    """Whether the spec is between two others: fields are dropped and added one by one."""
    return before & after <= there <= before | after


def _order(verdicts: MergeOutcome, base: Table | None, wanted: Table, target: Table) -> Table:
    if base is not None and base.sort_order.fields == wanted.sort_order.fields:
        return target
    before = _shown_order(base) if base else ABSENT
    # An order whose column is dropped is removed first; so is one whose new columns do not exist yet.
    fields = schema_index(wanted.schema)
    freed = base is not None and any(f.source_ids[0] not in fields for f in base.sort_order.fields)
    halfway = freed and not target.sort_order.fields
    shown = (before, _shown_order(wanted), _shown_order(target))
    sources = [f.source_ids[0] for f in wanted.sort_order.fields]
    if not _decide(verdicts, ("sort_by",), shown, sources, wanted, target, halfway):
        return target
    return replace(target, sort_order=replace(target.sort_order, fields=wanted.sort_order.fields))


def _moved(properties: Mapping[str, str], before: Table, after: Table) -> Mapping[str, str]:
    """Properties that name a column, after it was renamed or dropped: Iceberg changes them with it."""
    if after.schema.fields == before.schema.fields:
        return properties
    new = schema_index(after.schema)
    old = dict(differing_fields(before.schema, after.schema))
    kept = {i: (entry.path, new[i].path) for i, entry in old.items() if i in new}
    renamed = {was: now for was, now in kept.values() if was[-1] != now[-1]}
    dropped = [entry.path for i, entry in old.items() if i not in new]
    return column_properties_after_rename(column_properties_after_drop(properties, dropped), renamed)


def _properties(verdicts: MergeOutcome, base: Table | None, wanted: Table, target: Table) -> Table:
    before = _moved(base.properties, base, wanted) if base else {}
    if before == wanted.properties:
        return target
    properties = dict(target.properties)
    for key in sorted(differing_keys(before, wanted.properties)):
        if is_kept_view_key(key) and key in before and key not in properties:
            continue  # its view was dropped after its time, and does not come back
        is_dropped = is_kept_view_key(key) and key not in wanted.properties
        was = target.properties if is_dropped and _is_same_view(key, before, target.properties) else before
        values = (_shown_property(t, key) for t in (was, wanted.properties, target.properties))
        if verdicts.decide(("properties", key), *values):
            properties.pop(key, None)
            if key in wanted.properties:
                properties[key] = wanted.properties[key]
    return replace(target, properties=properties)


def _is_same_view(key: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a view is still that of one migration; the undo of another one may have replaced it."""
    old, new = (kept_view(key, properties.get(key, "")) for properties in (before, now))
    return old is not None and new is not None and old.version == new.version


def _shown_property(properties: Mapping[str, str], key: str) -> Any:
    if key not in properties:
        return ABSENT
    return ShownValue(properties[key], property_text(key, properties[key]))


def _format(verdicts: MergeOutcome, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.format_version if base else ABSENT
    if verdicts.decide(("format_version",), before, wanted.format_version, target.format_version):
        return replace(target, format_version=wanted.format_version)
    return target


def _refs(verdicts: MergeOutcome, base: Table | None, wanted: Table, target: Table) -> Table:
    if base is not None and (base.refs, base.pins) == (wanted.refs, wanted.pins):
        return target
    before = base.refs if base else {}
    refs = dict(target.refs)
    pins = base.pins if base else {}
    pinned = {n for n in differing_keys(pins, wanted.pins) if n in wanted.pins and wanted.pins[n].snapshot_id}
    for name in sorted({*differing_keys(before, wanted.refs), *pinned}):
        was, want, there = (_ref_of(side, name) for side in (before, wanted.refs, target.refs))
        known = want or was
        assert known is not None, "one of the two names it"
        key = "tags" if known.kind == "tag" else "branches"
        moves = name in pinned or _moves(was, want)
        if name in pinned and was and there and (name not in pins or was.kind == "branch"):
            # Without a pin it may be anywhere: that is no conflict.
            was = replace(was, snapshot_id=there.snapshot_id)
        values = (_ref_key(r, moves) for r in (was, want, there))
        if verdicts.decide((key, name), *values):
            old = refs.pop(name, None)
            if want is not None:
                refs[name] = replace(want, snapshot_id=old.snapshot_id) if old and not moves else want
    return replace(target, refs=refs)


def _ref_of(refs: Mapping[str, Ref], name: str) -> Ref | None:
    """A reference of one side. The main branch exists without being declared, and before its first row."""
    return refs.get(name, DEFAULT_MAIN_BRANCH if name == MAIN_BRANCH else None)


def _moves(before: Ref | None, want: Ref | None) -> bool:
    """Whether a reference moves to another snapshot without a pin, as in an undo or a reconcile."""
    both = [r.snapshot_id for r in (before, want) if r is not None]
    return len(both) == 2 and CURRENT_SNAPSHOT not in both and both[0] != both[1]


def _ref_key(ref: Ref | None, moves: bool = False) -> Any:
    """The declared part of a reference: its retention, without its snapshot."""
    if ref is None:
        return ABSENT
    text = reference_text(ref)
    if moves:
        return ShownValue(ref, f"{text}, at snapshot {ref.snapshot_id}")
    return ShownValue(replace(ref, snapshot_id=CURRENT_SNAPSHOT), text)
