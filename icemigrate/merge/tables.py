"""The three sides of a table made into one target, as ``git merge`` does it.

For each *fact* (one aspect of one field, the spec, the order, the identifier, one property, …)
where wanted differs from base:

=================  ==================================================
actual is          then
=================  ==================================================
as in base         the target takes what is wanted
as wanted          done already; a note says so
something else     a conflict with the three values
=================  ==================================================

What our own statements pass through on the way (a third name in a swap, half of a spec) counts as base.

Facts outside that difference stay as they are, whatever base says of them.  What is compared are
field ids and definitions, never schema, spec or order ids: those belong to the server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from icemigrate.changes.base import Subject
from icemigrate.changes.reference_sql import reference_text
from icemigrate.frozen import Frozen, replace
from icemigrate.merge.facts import ABSENT, Conflict, Fact, Shown, Verdicts, show
from icemigrate.merge.fields import align, assert_position, merge_schema
from icemigrate.merge.rebind import rebind
from icemigrate.model.column_properties import after_drop, after_rename, name_columns
from icemigrate.model.names import Path, format_path
from icemigrate.model.partitioning import Definition, PartitionSpec
from icemigrate.model.retention import property_text
from icemigrate.model.schema import Schema, apart, index
from icemigrate.model.sides import Position
from icemigrate.model.sorting import SortOrder
from icemigrate.model.table import CURRENT_SNAPSHOT, MAIN_BRANCH, UNSAID_MAIN, Ref, Table


class Merged(Frozen):
    """The outcome of a merge.

    :param target: what the table shall become; new fields keep the negative ids of ``wanted``.
    :param done: facts that were found as wanted already.
    :param open: facts that the target changes.
    :param opened: the same with their values.
    """

    target: Table
    done: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    opened: tuple[Conflict, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def merge(
    base: Table | None,
    wanted: Table,
    actual: Table,
    positions: Iterable[Position] = (),
    overwrite: frozenset[str] = frozenset(),
    begun: Collection[Path] = (),
) -> Merged:
    """Merge the three sides of a table that exists.

    :param base: what the history recorded; ``None`` where it does not know the table.
    :param wanted: what the files say, new fields with negative ids.
    :param positions: positions that the files assert, by field ids of ``wanted``.
    :param overwrite: facts (as text) that are set to what is wanted whatever they are now.
    :param begun: fields that an earlier run of the same migration may have added, and left optional since it
        died before it had filled them.
    """
    verdicts = Verdicts(actual.name, overwrite)
    known = base.schema if base else Schema()
    ids = align(known, wanted.schema, actual.schema)
    wanted = rebind(wanted, ids)
    schema = merge_schema(verdicts, known, wanted.schema, actual.schema, begun)
    for position in positions:
        placed, behind = (i if i is None else ids.get(i, i) for i in (position.field_id, position.after))
        assert placed is not None
        schema = assert_position(verdicts, index(known), wanted.schema, schema, placed, behind)
    target = replace(actual, schema=schema)
    target = replace(target, properties=_moved(actual.properties, actual, target))
    for merge_fact in (_identifier, _spec, _order, _properties, _format, _refs):
        target = merge_fact(verdicts, base, wanted, target)
    return Merged(
        target,
        tuple(verdicts.done),
        tuple(verdicts.open),
        tuple(verdicts.opened),
        tuple(verdicts.conflicts),
    )


def _names(table: Table, ids: Iterable[int]) -> str:
    """The fields of these ids as paths; an id that is no field any more is shown as such."""
    fields = index(table.schema)
    return ", ".join(format_path(fields[i].path) if i in fields else f"field {i}" for i in ids)


def _shown_identifier(table: Table) -> Shown:
    ids = table.schema.identifier_ids
    return Shown(ids, _names(table, sorted(ids)) or "none")


def _shown_spec(table: Table) -> Shown:
    terms = [f"{f.transform}({_names(table, f.source_ids)}) as {f.name}" for f in table.spec.live]
    return Shown(spec_key(table.spec), ", ".join(terms) or "unpartitioned")


def _shown_order(table: Table) -> Shown:
    order: SortOrder = table.sort_order
    terms = [
        f"{f.transform}({_names(table, f.source_ids)}) {f.direction} {f.null_order}" for f in order.fields
    ]
    return Shown(order.fields, ", ".join(terms) or "unsorted")


def _decide(
    verdicts: Verdicts,
    subject: Subject,
    shown: tuple[Any, Any, Any],
    sources: Iterable[int],
    wanted: Table,
    target: Table,
    halfway: bool,
) -> bool:
    """The verdict on a fact that rests on fields: without one that somebody dropped there is no way to it
    (which a table that is there may have behind it already).

    :param shown: the fact in base, as wanted, and as it is.
    :param sources: the fields that the wanted value needs.
    """
    before, want, there = shown
    if want not in (before, there):
        fields = index(target.schema)
        gone = [i for i in sources if i not in fields]
        if gone:
            now = f"{show(there)}, and there is no {_names(wanted, gone)}"
            verdicts.refuse(subject, before, want, now)
            return False
    return verdicts.decide(subject, before, want, there, halfway)


def _identifier(verdicts: Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = _shown_identifier(base) if base else Shown(frozenset(), "none")
    halfway = base is not None and _is_freed(base, wanted, target)
    shown = (before, _shown_identifier(wanted), _shown_identifier(target))
    if halfway and before == shown[1]:
        # Taken off for a rename inside a struct, to be put on again: a run died in between.
        verdicts.open.append(str(Fact(verdicts.table, ("identifier",))))
    elif not _decide(verdicts, ("identifier",), shown, wanted.schema.identifier_ids, wanted, target, halfway):
        return target
    return replace(target, schema=replace(target.schema, identifier_ids=wanted.schema.identifier_ids))


def _is_freed(base: Table, wanted: Table, actual: Table) -> bool:
    """Whether the identifier lacks what had to make way for other changes, and nothing else."""
    old, new = index(base.schema), index(wanted.schema)
    before, after, there = (t.schema.identifier_ids for t in (base, wanted, actual))
    both = before & after & old.keys() & new.keys()
    renamed = {i for i in both if len(old[i].path) > 1 and old[i].path != new[i].path}
    return there < before and before - there <= (before - after) | renamed


def spec_key(spec: PartitionSpec) -> frozenset[Definition]:
    """What a spec says, without its ids and its order (kept fields stay in place, new ones go last)."""
    return frozenset(f.definition for f in spec.live)


def _spec(verdicts: Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = _shown_spec(base) if base else ABSENT
    halfway = base is not None and _is_between(*(spec_key(t.spec) for t in (base, target, wanted)))
    shown = (before, _shown_spec(wanted), _shown_spec(target))
    sources = [f.source_ids[0] for f in wanted.spec.live]
    if not _decide(verdicts, ("partition_by",), shown, sources, wanted, target, halfway):
        return target
    keep = spec_key(wanted.spec)
    kept = tuple(f for f in target.spec.live if f.definition in keep)
    there = {f.definition for f in kept}
    new = tuple(f for f in wanted.spec.live if f.definition not in there)
    return replace(target, spec=replace(target.spec, fields=(*kept, *new)))


def _is_between(before: frozenset[Any], there: frozenset[Any], after: frozenset[Any]) -> bool:
    """Whether some of what goes is gone and some of what comes is there: fields go and come one by one."""
    return before & after <= there <= before | after


def _order(verdicts: Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = _shown_order(base) if base else ABSENT
    # An order whose column goes makes way first; where its columns are not there yet, so does the new one.
    fields = index(wanted.schema)
    freed = base is not None and any(f.source_ids[0] not in fields for f in base.sort_order.fields)
    halfway = freed and not target.sort_order.fields
    shown = (before, _shown_order(wanted), _shown_order(target))
    sources = [f.source_ids[0] for f in wanted.sort_order.fields]
    if not _decide(verdicts, ("sort_by",), shown, sources, wanted, target, halfway):
        return target
    return replace(target, sort_order=replace(target.sort_order, fields=wanted.sort_order.fields))


def _moved(properties: Mapping[str, str], before: Table, after: Table) -> Mapping[str, str]:
    """Properties that name a column, after it was renamed or dropped: they go with it by themselves."""
    if not name_columns(properties):
        return properties
    new = index(after.schema)
    old = dict(apart(before.schema, after.schema))
    kept = {i: (entry.path, new[i].path) for i, entry in old.items() if i in new}
    renamed = {was: now for was, now in kept.values() if was[-1] != now[-1]}
    dropped = [entry.path for i, entry in old.items() if i not in new]
    return after_rename(after_drop(properties, dropped), renamed)


def _properties(verdicts: Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.properties if base else {}
    properties = dict(target.properties)
    before = _moved(before, base, wanted) if base else before
    for key in sorted({key for key, _ in before.items() ^ wanted.properties.items()}):
        values = (_shown_property(t, key) for t in (before, wanted.properties, target.properties))
        if verdicts.decide(("properties", key), *values):
            properties.pop(key, None)
            if key in wanted.properties:
                properties[key] = wanted.properties[key]
    return replace(target, properties=properties)


def _shown_property(properties: Mapping[str, str], key: str) -> Any:
    if key not in properties:
        return ABSENT
    return Shown(properties[key], property_text(key, properties[key]))


def _format(verdicts: Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.format_version if base else ABSENT
    if verdicts.decide(("format_version",), before, wanted.format_version, target.format_version):
        return replace(target, format_version=wanted.format_version)
    return target


def _refs(verdicts: Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.refs if base else {}
    refs = dict(target.refs)
    for name in sorted({*before, *wanted.refs}):
        was, want, there = (_ref_of(side, name) for side in (before, wanted.refs, target.refs))
        known = want or was
        assert known is not None, "one of the two names it"
        key = "tags" if known.kind == "tag" else "branches"
        moves = _moves(was, want)
        values = (_ref_key(r, moves) for r in (was, want, there))
        if verdicts.decide((key, name), *values):
            old = refs.pop(name, None)
            if want is not None:
                refs[name] = replace(want, snapshot_id=old.snapshot_id) if old and not moves else want
    return replace(target, refs=refs)


def _ref_of(refs: Mapping[str, Ref], name: str) -> Ref | None:
    """A reference of one side.  The main branch is there without being declared, and before its first row."""
    return refs.get(name, UNSAID_MAIN if name == MAIN_BRANCH else None)


def _moves(before: Ref | None, want: Ref | None) -> bool:
    """Whether a tag shall point at another snapshot: no file can say so, only whoever leads it back."""
    both = [r.snapshot_id for r in (before, want) if r is not None and r.kind == "tag"]
    return len(both) == 2 and CURRENT_SNAPSHOT not in both and both[0] != both[1]


def _ref_key(ref: Ref | None, moves: bool = False) -> Any:
    """What is declared of a reference: its retention, and not the snapshot that it points at."""
    if ref is None:
        return ABSENT
    text = reference_text(ref)
    if moves:
        return Shown(ref, f"{text}, at snapshot {ref.snapshot_id}")
    return Shown(replace(ref, snapshot_id=CURRENT_SNAPSHOT), text)
