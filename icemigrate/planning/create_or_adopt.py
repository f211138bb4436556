"""Plans of tables that the history does not have: created, adopted, continued, or restored from the trash."""

from __future__ import annotations

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.change import PlanProblem, Subject
from icemigrate.changes.create_reference import CreateReference
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.reference_sql import TAG
from icemigrate.changes.rename_table import RenameTable
from icemigrate.frozen import replace
from icemigrate.iceberg import validation
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import (
    CREATED_BY_PROPERTY,
    MAX_NAME_BYTES,
    Table,
    creator_of,
    made_by,
    project_of,
    shortened,
)
from icemigrate.planning.merge import UNKNOWN_BASE, MergedTable, complete_adopted_table, merge_tables
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.planning.table_input import (
    TableInput,
    TableResult,
    plan_altered_table,
    validate_table_plan,
)


def plan_new_table(
    inputs: TableInput, goal: Table, current: Table | None, reused: bool, trashed: Table | None
) -> TableResult:
    """Plan a table that the history does not have.

    :param current: the table with its name in the catalog.
    :param reused: whether another table had the name earlier.
    :param trashed: the table in the trash that this migration created.
    """
    if current is None and inputs.name in inputs.context.views:
        return TableResult(inputs.plan(inputs.name), None, (view_exists_problem(inputs, ("name",)),))
    owner = made_by(inputs.context.project, inputs.version)
    if current is None and trashed is not None and creator_of(trashed) == owner:
        return _restore_from_trash(inputs, goal, trashed)
    if current is None:
        made = replace(goal, properties={**goal.properties, CREATED_BY_PROPERTY: owner})
        if reused and made.location is None:
            made = replace(made, location=_unused_location(inputs))
        blank = Table(inputs.name, Schema(), format_version=goal.format_version)
        found, after = _creation(inputs, made, blank)
        plan = inputs.plan(inputs.name, found)
        if inputs.wanted.adopt and not inputs.context.is_catalog_known:
            return TableResult(plan, after, warnings=adoption_warnings(inputs.wanted.name, after))
        return validate_table_plan(inputs, plan, found, after, None)
    if creator_of(current) == owner and inputs.version in inputs.context.begun:
        # Undeclared tags and branches, such as the marker of that run, are not compared.
        refs = {name: ref for name, ref in current.refs.items() if name in goal.refs}
        nothing = replace(current, schema=Schema(), properties={}, refs=refs)
        merged = _merged(inputs, nothing, goal, current)
        return plan_altered_table(
            inputs, current, merged, current.name, [], ["created by an interrupted run"]
        )
    if inputs.wanted.adopt:
        return _adopt(inputs, goal, current)
    return TableResult(inputs.plan(inputs.name), current, (_table_exists_problem(inputs, current),))


def _creation(inputs: TableInput, made: Table, blank: Table) -> tuple[list[DetectedChange], Table]:
    """The changes that create a table, and the table after them; tags follow in separate changes."""
    tags = {name: ref for name, ref in sorted(made.refs.items()) if ref.kind == TAG}
    untagged = replace(made, refs={name: ref for name, ref in made.refs.items() if name not in tags})
    create = CreateTable(inputs.name, untagged, _partition_afterwards(made, inputs.context))
    found, after = [DetectedChange(create, blank)], create.apply(blank)
    for name, ref in tags.items():
        change = CreateReference(inputs.name, name, ref)
        found.append(DetectedChange(change, after))
        after = change.apply(after)
    return found, after


def _merged(inputs: TableInput, base: Table, goal: Table, current: Table) -> MergedTable:
    positions, keep = inputs.wanted.positions, inputs.context.keep
    return merge_tables(base, goal, current, positions, inputs.overwrite, keep=keep)


def _table_exists_problem(inputs: TableInput, current: Table) -> PlanProblem:
    """The problem of a table that exists and is not recorded."""
    creator = creator_of(current)
    if project_of(current) == inputs.context.project:
        # Planned as an interrupted run, migrations would change rows that they have changed before.
        return PlanProblem(
            "history-lost",
            inputs.wanted.name,
            ("name",),
            f"`{creator}` of this project created table `{inputs.name}`, and the history does not record it",
            "restore the project's history table (`history:` in the project file names it), or adopt the "
            "table as it is with `adopt: true`",
        )
    return PlanProblem(
        "table-exists",
        inputs.wanted.name,
        ("name",),
        f"table `{inputs.name}` already exists, and no migration created it",
        "write `adopt: true` to adopt it as it is, or choose another name",
    )


def view_exists_problem(inputs: TableInput, subject: Subject) -> PlanProblem:
    """The problem of a table whose name a view has."""
    return PlanProblem(
        "view-exists",
        inputs.wanted.name,
        subject,
        f"table `{inputs.name}` cannot get this name: the catalog has a view of this name",
        "choose another name, or drop or rename the view first",
    )


def _partition_afterwards(made: Table, context: PlanningContext) -> bool:
    first = made.schema.fields[0].id if made.schema.fields else None
    by_first = any(first in f.source_ids for f in made.spec.live)
    return by_first and not context.partitions_by_first_column


def _restore_from_trash(inputs: TableInput, goal: Table, trashed: Table) -> TableResult:
    """Restore the table that this migration created before its rollback, with its rows."""
    rename = RenameTable(trashed.name, inputs.name)
    current = rename.apply(trashed)
    # Changes of its partitioning and order by others are not part of the migration.
    made = inputs.wanted.made or current
    nothing = replace(
        current, schema=Schema(), properties={}, refs={}, spec=made.spec, sort_order=made.sort_order
    )
    merged = _merged(inputs, nothing, goal, current)
    return plan_altered_table(
        inputs, current, merged, trashed.name, [DetectedChange(rename, trashed)], ["restored from the trash"]
    )


def _adopt(inputs: TableInput, goal: Table, current: Table) -> TableResult:
    goal = complete_adopted_table(goal, current, inputs.wanted.unsaid)
    inputs = replace(inputs, goal=goal)
    merged = merge_tables(None, goal, current, (), inputs.overwrite)
    # Adoption records the current table, so a fact that would have to change is a conflict too.
    conflicts = tuple(
        replace(c, base=UNKNOWN_BASE)
        for c in (*merged.conflicts, *merged.opened)
        if c.fact not in inputs.context.keep
    )
    change = AdoptTable(inputs.name)
    plan = inputs.plan(inputs.name, [] if conflicts else [DetectedChange(change, current)])
    warnings = adoption_warnings(inputs.wanted.name, current)
    return TableResult(replace(plan, conflicts=conflicts), current, warnings=warnings)


def adoption_warnings(declared: TableName, table: Table) -> tuple[PlanProblem, ...]:
    """What engines cannot read of a table that is adopted as it is: names that they take for one."""
    found = validation.find_violations(table, None)
    return tuple(
        PlanProblem(v.rule, declared, v.subject, v.message, "rename one of them in a later migration")
        for v in found
        if v.rule in _AMBIGUOUS_NAMES
    )


_AMBIGUOUS_NAMES = frozenset({"names-differ-by-case", "names-look-the-same"})


def _unused_location(inputs: TableInput) -> str | None:
    """A location that no earlier table of this name has used.

    A renamed or trashed table keeps its files in its folder; with a shared folder, ``remove_orphan_files`` on
    one table would delete the files of the other.
    """
    default = inputs.context.default_locations.get(inputs.name)
    if default is None:
        return None
    folder, separator, name = default.rpartition("/")
    return f"{folder}{separator}{shortened(name, MAX_NAME_BYTES - 2 - len(inputs.version))}__{inputs.version}"
