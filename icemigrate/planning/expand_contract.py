"""Splits the changes of a table whose rows change too: before the data steps what the rows need, after them
the rest.

A column that the migration drops can still be read while rows are written, and is dropped when they are
published.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import PlanProblem
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.make_required import MakeRequired
from icemigrate.data_steps.data_step_kind import DataStepContext, DataStepStage, TableDataStep
from icemigrate.data_steps.fill_required import backfilled_columns, remaining_null_checks
from icemigrate.data_steps.retype import Retype
from icemigrate.data_steps.time_zone import DEFAULT_TIME_ZONE, depends_on_time_zone
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.kept_views import is_kept_view_key, without_kept_views
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partitioning import PartitionSpec
from icemigrate.iceberg.ref_names import branch_name
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, Struct, children, is_nested, map_fields, with_children
from icemigrate.planning.merge import rebind_by_path
from icemigrate.planning.plan import PlannedChange, PlannedDataStep, Step, TablePlan
from icemigrate.planning.table_difference import (
    DetectedChange,
    Difference,
    find_difference,
    remaining_differences,
)
from icemigrate.spark_sql.branch_statements import branch_sql
from icemigrate.spark_sql.identifiers import table_sql


class ExpandContract(Frozen):
    """The two parts of a table's difference.

    :param first: the changes before the data steps.
    :param last: the changes after them; none where no rows are written.
    """

    first: Difference
    last: Difference

    @property
    def target(self) -> Table:
        """The requested table, new fields under their final ids."""
        return self.last.target

    @property
    def left(self) -> tuple[str, ...]:
        """The differences that neither part resolves; see
        :func:`icemigrate.planning.table_difference.remaining_differences`.
        """
        first, last = self.first, self.last
        left = remaining_differences(first, CHANGE_KINDS)
        if (last.found, last.after, last.target) != ((), first.after, first.target):
            left = (*left, *remaining_differences(last, CHANGE_KINDS))
        return tuple(dict.fromkeys(left))


def split_difference(there: Table, target: Table, works: Sequence[TableDataStep]) -> ExpandContract:
    """The difference in two parts, or all of it in the first where no rows are written."""
    if not any(work.stage is DataStepStage.WRITE for work in works):
        whole = find_difference(there, target, CHANGE_KINDS)
        return ExpandContract(whole, Difference((), whole.after, whole.target))
    retypes = [work for work in works if isinstance(work, Retype)]
    named = _with_temporary(there, target, retypes)
    before = _without_new_branches(there, _to_be_filled(there, named, works))
    before = _without_new_views(there, before)
    first = find_difference(there, _expanded(there, before, retypes), CHANGE_KINDS)
    known = rebind_by_path(named, first.after, above=there.last_column_id if named is target else 0)
    last = find_difference(first.after, _swapped(known, target, retypes), CHANGE_KINDS)
    return ExpandContract(first, last)


def is_retype_pending(there: Table, target: Table, work: Retype) -> bool:
    """Whether the new column of a retype is not yet under its final name."""
    field = target.schema.find(work.path)
    return field is None or field.id not in schema_index(there.schema)


def with_former_requirement(
    found: Iterable[DetectedChange], works: Sequence[TableDataStep], *sides: Table | None
) -> tuple[DetectedChange, ...]:
    """The changes after the rows are written; a column that replaces a required one says so.

    :param sides: the current table, then the recorded one: an interrupted run may have dropped the column.
    """
    required = {work.path for work in works if isinstance(work, Retype) and _was_required(work, sides)}
    return tuple(
        replace(one, change=replace(one.change, was_required=True))
        if isinstance(one.change, MakeRequired) and one.change.path in required
        else one
        for one in found
    )


def _was_required(work: Retype, sides: Iterable[Table | None]) -> bool:
    """Whether the column that a retype replaces is required."""
    fields = (side.schema.by_id(work.field_id) for side in sides if side is not None)
    return next((field.required for field in fields if field is not None), False)


def carried_over(steps: Sequence[Step], works: Sequence[TableDataStep]) -> tuple[Step, ...]:
    """The steps with, for each retyped column, a note about its values."""
    retyped = {work.field_id for work in works if isinstance(work, Retype)}

    def with_note(planned: PlannedChange) -> PlannedChange:
        change = planned.change
        if not isinstance(change, DropColumn) or change.field_id not in retyped:
            return planned
        reason = (
            f"the values of `{format_path(change.path)}` are converted by `using`; as "
            f"{format_type(change.type)} they can be read again only after a rollback"
        )
        return replace(planned, hazards=tuple(replace(h, reason=reason) for h in planned.hazards))

    return tuple(replace(step, changes=tuple(map(with_note, step.changes))) for step in steps)


def _to_be_filled(there: Table, target: Table, works: Sequence[TableDataStep]) -> Table:
    """The target with filled columns still optional.

    A file without a required field cannot be read, and a null in one is read as 0, so that `where: … is null`
    would find none.
    """
    known, fills = schema_index(there.schema), backfilled_columns(works)
    waiting = {
        field_id
        for field_id, entry in (schema_index(target.schema).items() if fills.whole else ())
        if entry.field.required
        and entry.field.initial_default is None
        and not (field_id in known and known[field_id].field.required)
        and fills.has(entry, known)
    }
    if not waiting:
        return target
    identifier = target.schema.identifier_ids
    # Iceberg accepts no identifier with an optional field, so the complete identifier waits.
    kept = there.schema.identifier_ids if waiting & identifier else identifier
    root = map_fields(
        target.schema.root, lambda f: replace(f, required=False) if f.id in waiting else f, waiting
    )
    return replace(target, schema=replace(target.schema, fields=children(root), identifier_ids=kept))


def _without_new_branches(there: Table, target: Table) -> Table:
    """The target without branches that the migration creates from the current snapshot.

    They are created after the rows are written: on the rows of before, nothing would be filled.
    """
    refs = {
        name: ref
        for name, ref in target.refs.items()
        if name in there.refs or ref.kind != "branch" or ref.snapshot_id != CURRENT_SNAPSHOT
    }
    return target if len(refs) == len(target.refs) else replace(target, refs=refs)


def _without_new_views(there: Table, target: Table) -> Table:
    """The target without views that the migration creates or replaces: they read the published table."""
    own = {k: v for k, v in there.properties.items() if is_kept_view_key(k) and k in target.properties}
    properties = {**without_kept_views(target.properties), **own}
    return target if properties == target.properties else replace(target, properties=properties)


def _in_structs(
    fields: tuple[Field, ...],
    change: Callable[[FieldPath, tuple[Field, ...]], Iterable[Field]],
    above: FieldPath = (),
) -> tuple[Field, ...]:
    """The table with the fields of each struct changed, and its columns; the innermost first.

    :param change: called with the path of the parent, and its fields.
    """
    return tuple(change(above, tuple(_with_structs(f, change, above) for f in fields)))


def _with_structs(
    field: Field, change: Callable[[FieldPath, tuple[Field, ...]], Iterable[Field]], above: FieldPath
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

    def named(above: FieldPath, fields: tuple[Field, ...]) -> Iterator[Field]:
        for field in fields:
            path = (*above, field.name)
            if path in names:
                new.add(field.id)
                yield replace(field, name=names[path][-1], required=False)
            elif path not in names.values():
                yield field

    fields = _in_structs(target.schema.fields, named)
    schema = replace(target.schema, fields=fields, identifier_ids=target.schema.identifier_ids - new)
    # Iceberg accepts no partition field with the name of a column that is not its source.
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
    """The final target: the new columns under their own names.

    :param known: the target with temporary names and the final ids of its fields.
    """
    if not retypes:
        return known
    own = {work.temporary: target.schema.find(work.path) for work in retypes}
    ids, new = set[int](), set[int]()

    def swapped(above: FieldPath, fields: tuple[Field, ...]) -> Iterator[Field]:
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
    """The target with the existing columns that will be dropped, each after its predecessor, also in structs.

    A column that is retyped may be renamed as well, and `using` has its new name.
    """
    renamed = {work.field_id: work.path[-1] for work in retypes}
    entries = schema_index(there.schema)

    def expanded(above: FieldPath, fields: tuple[Field, ...]) -> Iterable[Field]:
        parent = target.schema.find(above) if above else None
        if parent is not None and parent.id not in entries:
            return fields
        now = there.schema.fields if parent is None else children(entries[parent.id].field.type)
        return _with_old(fields, (replace(f, name=renamed.get(f.id, f.name)) for f in now))

    return replace(target, schema=replace(target.schema, fields=_in_structs(target.schema.fields, expanded)))


def _with_old(fields: tuple[Field, ...], there: Iterable[Field]) -> list[Field]:
    """Fields of one struct together with the existing ones that will be dropped.

    A field whose name another field gets, in any case, is dropped at once: statements could not distinguish
    them.
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


def with_data_steps(
    plan: TablePlan,
    works: Sequence[TableDataStep],
    context: DataStepContext,
    left: Table,
    catalog: str,
    project: str,
    version: str,
    is_resumed: bool,
    time_zone: str = DEFAULT_TIME_ZONE,
) -> TablePlan:
    """The plan with the data steps and their notes.

    :param left: the table after the migration.
    :param catalog: the catalog's name in Spark SQL.
    :param project: the migration's project.
    :param is_resumed: whether an earlier run of the migration was interrupted.
    :param time_zone: the zone in which they run.
    """
    before, after = table_sql(catalog, plan.name), table_sql(catalog, context.table.name)
    branch = branch_sql(catalog, context.table.name, branch_name(project, version))
    places = {
        DataStepStage.BEFORE: before,
        DataStepStage.WRITE: branch,
        DataStepStage.AFTER: branch if any(work.stage is DataStepStage.WRITE for work in works) else after,
        DataStepStage.AFTER_PUBLICATION: after,
    }
    questions = remaining_null_checks(works, context, left, branch)
    rows = tuple(
        PlannedDataStep(
            work,
            work.describe(),
            (*work.statements(places[work.stage]), *questions.get(at, ())),
            work.hazards(context),
            work.reversal(context),
            work.overwrites(context),
        )
        for at, work in enumerate(works)
    )
    note = "rows that an earlier run already published are not written again"
    notes = [note] if is_resumed and any(work.writes for work in works) else []
    texts = (statement.text for row in rows for statement in row.statements)
    if any(depends_on_time_zone(text, context.table.schema) for text in texts):
        notes.append(f"data steps run in the time zone {time_zone}; `time_zone` in the file sets another")
    return replace(plan, rows=rows, notes=(*plan.notes, *notes))


def data_step_problems(
    works: Sequence[TableDataStep], context: DataStepContext, has_branches: bool
) -> Iterator[PlanProblem]:
    """Why the data steps must not be done."""
    for work in works:
        if work.stage is DataStepStage.WRITE and not has_branches:
            yield PlanProblem(
                "no-branches",
                context.declared,
                work.subject,
                "rows are written to a branch and published when the checks pass, and this catalog has no "
                "branches that are safe to use",
                "change the rows with your own job, between two migrations",
            )
        yield from work.problems(context)
