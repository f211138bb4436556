"""The changes of a table that has its rows changed too: what the rows need goes before them, the rest behind.

A column that the migration drops can still be read while rows are written, and goes when they are published.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from icemigrate.changes import KINDS
from icemigrate.changes.base import Problem
from icemigrate.changes.drop_column import DropColumn
from icemigrate.data.base import Ground, RowWork, Stage
from icemigrate.data.required import asked_of, filled
from icemigrate.data.retype import Retype
from icemigrate.diff import Difference, difference, unproved
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import rebind_by_path
from icemigrate.model.marks import branch_name
from icemigrate.model.names import Path, format_path
from icemigrate.model.partitioning import PartitionSpec
from icemigrate.model.schema import index
from icemigrate.model.table import CURRENT_SNAPSHOT, Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field, Struct, children, is_nested, map_fields, with_children
from icemigrate.plan import PlannedChange, PlannedWork, Step, TablePlan
from icemigrate.sql.branches import branch_sql
from icemigrate.sql.names import table_sql


class Staged(Frozen):
    """A table's difference in two parts.

    :param first: what comes before the rows.
    :param last: what comes behind them; nothing where no rows are written.
    """

    first: Difference
    last: Difference

    @property
    def target(self) -> Table:
        """What was asked for, new fields under the ids they got."""
        return self.last.target

    @property
    def left(self) -> tuple[str, ...]:
        """What the two do not lead to; see :func:`icemigrate.diff.unproved`."""
        return tuple(dict.fromkeys((*unproved(self.first, KINDS), *unproved(self.last, KINDS))))


def staged(there: Table, target: Table, works: Sequence[RowWork]) -> Staged:
    """The difference in two parts, or all of it in the first where no rows are written."""
    if not any(work.stage is Stage.WRITE for work in works):
        whole = difference(there, target, KINDS)
        return Staged(whole, Difference((), whole.after, whole.target))
    retypes = [work for work in works if isinstance(work, Retype)]
    named = _with_temporary(there, target, retypes)
    before = _without_new_branches(there, _to_be_filled(there, named, works))
    first = difference(there, _expanded(there, before, retypes), KINDS)
    known = rebind_by_path(named, first.after, above=there.last_column_id if named is target else 0)
    last = difference(first.after, _swapped(known, target, retypes), KINDS)
    return Staged(first, last)


def left_to_retype(there: Table, target: Table, work: Retype) -> bool:
    """Whether the new column is not the table's own yet."""
    field = target.schema.find(work.path)
    return field is None or field.id not in index(there.schema)


def carried_over(steps: Sequence[Step], works: Sequence[RowWork]) -> tuple[Step, ...]:
    """The steps, and of each column that is retyped in them what becomes of its values."""
    retyped = {work.field_id for work in works if isinstance(work, Retype)}

    def told(planned: PlannedChange) -> PlannedChange:
        change = planned.change
        if not isinstance(change, DropColumn) or change.field_id not in retyped:
            return planned
        reason = (
            f"the values of `{format_path(change.path)}` are carried over by `using`; "
            f"as {format_type(change.type)} they can be read again only after a rollback"
        )
        return replace(planned, hazards=tuple(replace(h, reason=reason) for h in planned.hazards))

    return tuple(replace(step, changes=tuple(map(told, step.changes))) for step in steps)


def _to_be_filled(there: Table, target: Table, works: Sequence[RowWork]) -> Table:
    """The target with what is filled optional still: nobody can read a file that lacks a required field, and
    a null in one is read as 0, so that `where: … is null` would find none."""
    known, fills = index(there.schema), filled(works)
    waiting = {
        field_id
        for field_id, entry in (index(target.schema).items() if fills.whole else ())
        if entry.field.required
        and entry.field.initial_default is None
        and not (field_id in known and known[field_id].field.required)
        and fills.has(entry, known)
    }
    if not waiting:
        return target
    identifier = target.schema.identifier_ids
    # Iceberg takes no identifier of which a field is optional; the whole of it waits.
    kept = there.schema.identifier_ids if waiting & identifier else identifier
    root = map_fields(
        target.schema.root, lambda f: replace(f, required=False) if f.id in waiting else f, waiting
    )
    return replace(target, schema=replace(target.schema, fields=children(root), identifier_ids=kept))


def _without_new_branches(there: Table, target: Table) -> Table:
    """The target without the branches that the migration makes of what is current: of the rows as it leaves
    them, since on those before it nothing would be filled."""
    refs = {
        name: ref
        for name, ref in target.refs.items()
        if name in there.refs or ref.kind != "branch" or ref.snapshot_id != CURRENT_SNAPSHOT
    }
    return target if len(refs) == len(target.refs) else replace(target, refs=refs)


def _in_structs(
    fields: tuple[Field, ...], change: Callable[[Path, tuple[Field, ...]], Iterable[Field]], above: Path = ()
) -> tuple[Field, ...]:
    """Fields that stand together in the table, or in a struct at any depth, changed; the innermost first.

    :param change: given where fields stand, and the fields.
    """
    return tuple(change(above, tuple(_with_structs(f, change, above) for f in fields)))


def _with_structs(
    field: Field, change: Callable[[Path, tuple[Field, ...]], Iterable[Field]], above: Path
) -> Field:
    """A field with the structs in its type changed, as :func:`_in_structs` has it."""
    if not is_nested(field.type):
        return field
    inside, here = children(field.type), (*above, field.name)
    if isinstance(field.type, Struct):
        changed = _in_structs(inside, change, here)
    else:
        changed = tuple(_with_structs(part, change, here) for part in inside)
    return replace(field, type=with_children(field.type, changed))


def _with_temporary(there: Table, target: Table, retypes: Sequence[Retype]) -> Table:
    """The target with new columns under temporary names; those of an earlier run keep their ids."""
    names = {work.path: work.temporary for work in retypes}
    if not names:
        return target
    new = set[int]()

    def named(above: Path, fields: tuple[Field, ...]) -> Iterator[Field]:
        for field in fields:
            path = (*above, field.name)
            if path in names:
                new.add(field.id)
                yield replace(field, name=names[path][-1], required=False)
            elif path not in names.values():
                yield field

    fields = _in_structs(target.schema.fields, named)
    schema = replace(target.schema, fields=fields, identifier_ids=target.schema.identifier_ids - new)
    # Iceberg lets no partition field have the name of a column that it is not made of.
    to_temporary = {".".join(work.path): ".".join(work.temporary) for work in retypes}
    spec = _renamed(target.spec, to_temporary, new)
    return rebind_by_path(replace(target, schema=schema, spec=spec), there)


def _renamed(spec: PartitionSpec, names: Mapping[str, str], sources: Collection[int]) -> PartitionSpec:
    """The spec with other names for partition fields of these sources."""
    return replace(
        spec,
        fields=tuple(
            replace(f, name=names.get(f.name, f.name)) if f.source_ids[0] in sources else f
            for f in spec.fields
        ),
    )


def _swapped(known: Table, target: Table, retypes: Sequence[Retype]) -> Table:
    """The target in the end: the new columns under their own names.

    :param known: the target with temporary names and the ids that its fields have got.
    """
    if not retypes:
        return known
    own = {work.temporary: target.schema.find(work.path) for work in retypes}
    ids, new = set[int](), set[int]()

    def swapped(above: Path, fields: tuple[Field, ...]) -> Iterator[Field]:
        for field in fields:
            wanted = own.get((*above, field.name))
            if wanted is None:
                yield field
                continue
            new.add(field.id)
            if wanted.id in target.schema.identifier_ids:
                ids.add(field.id)
            yield replace(field, name=wanted.name, required=wanted.required)

    fields = _in_structs(known.schema.fields, swapped)
    schema = replace(known.schema, fields=fields, identifier_ids=known.schema.identifier_ids | ids)
    names = {".".join(work.temporary): ".".join(work.path) for work in retypes}
    return replace(known, schema=schema, spec=_renamed(known.spec, names, new))


def _expanded(there: Table, target: Table, retypes: Sequence[Retype]) -> Table:
    """The target with the columns that are there and shall go, each behind the one that it stands behind; and
    likewise in the structs that are there.

    A column that is retyped may be renamed as well, and `using` calls it by its new name.
    """
    renamed = {work.field_id: work.path[-1] for work in retypes}
    entries = index(there.schema)

    def expanded(above: Path, fields: tuple[Field, ...]) -> Iterable[Field]:
        parent = target.schema.find(above) if above else None
        if parent is not None and parent.id not in entries:
            return fields
        now = there.schema.fields if parent is None else children(entries[parent.id].field.type)
        return _with_old(fields, (replace(f, name=renamed.get(f.id, f.name)) for f in now))

    return replace(target, schema=replace(target.schema, fields=_in_structs(target.schema.fields, expanded)))


def _with_old(fields: tuple[Field, ...], there: Iterable[Field]) -> list[Field]:
    """Fields that stand together, with those among them that are there and shall go.

    One whose name another has then, in whichever case, goes at once: statements could not tell them apart.
    """
    ids, names = {f.id for f in fields}, {f.name.lower() for f in fields}
    together = list(fields)
    at = 0
    for field in there:
        where = next((i for i, f in enumerate(together) if f.id == field.id), None)
        if where is not None:
            at = where + 1
        elif field.id not in ids and field.name.lower() not in names:
            together.insert(at, field)
            at += 1
    return together


def with_works(
    plan: TablePlan,
    works: Sequence[RowWork],
    ground: Ground,
    left: Table,
    catalog: str,
    project: str,
    version: str,
    is_resumed: bool,
) -> TablePlan:
    """The plan with the data steps, and what is to be known of them.

    :param left: the table as the migration leaves it.
    :param catalog: the catalog's name in Spark SQL.
    :param project: whose migration it is.
    :param is_resumed: an earlier run of the migration was cut short.
    """
    before, after = table_sql(catalog, plan.name), table_sql(catalog, ground.table.name)
    branch = branch_sql(catalog, ground.table.name, branch_name(project, version))
    places = {
        Stage.BEFORE: before,
        Stage.WRITE: branch,
        Stage.AFTER: branch if any(work.stage is Stage.WRITE for work in works) else after,
        Stage.SETTLED: after,
    }
    questions = asked_of(works, ground, left, branch)
    rows = tuple(
        PlannedWork(
            work,
            work.describe(),
            (*work.statements(places[work.stage]), *questions.get(at, ())),
            work.hazards(ground),
            work.reversal(ground),
            work.overwrites(ground),
        )
        for at, work in enumerate(works)
    )
    note = "rows that an earlier run has published already are not written again"
    notes = [note] if is_resumed and any(work.writes for work in works) else []
    return replace(plan, rows=rows, notes=(*plan.notes, *notes))


def work_problems(works: Sequence[RowWork], ground: Ground, has_branches: bool) -> Iterator[Problem]:
    """Why the data steps must not be done."""
    for work in works:
        if work.stage is Stage.WRITE and not has_branches:
            yield Problem(
                "no-branches",
                ground.declared,
                work.subject,
                "rows are written on a branch and published when the checks hold, and this catalog has no "
                "branches, or is harmed by them",
                "change the rows by a job of your own, between two migrations",
            )
        yield from work.problems(ground)
