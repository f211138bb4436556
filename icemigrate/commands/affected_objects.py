"""Collects the columns and tables that plans change for their users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeGuard

from icemigrate.changes.change import Change
from icemigrate.changes.column_positions import FieldInsertion
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.move_column import MoveColumn
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.widen_type import WidenType
from icemigrate.data_steps.retype import Retype
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import FieldPath, TableName, parse_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import List, Struct, Type, children
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.project.project_values import Project
from icemigrate.sql_impact.affected import AffectedObject, ChangeKind, DeclaredTables


def collect_declared_tables(
    project: Project,
    state: DeclaredState,
    plans: Iterable[tuple[MigrationPlan, str, bool]],
    before: Callable[[MigrationPlan], Mapping[TableName, Table]],
    *,
    is_review: bool,
) -> DeclaredTables:
    """The declared tables with the objects that migrations change in them.

    :param state: the tables after all migrations.
    :param plans: each with the name of its file, and whether that is under review.
    :param before: the declared tables before a migration, by the names that they have after it.
    :param is_review: whether a change is reviewed.  Then all its effects count; otherwise only removed names,
        because a type that was widened long ago concerns no query.
    """
    affected_objects: list[AffectedObject] = []
    for plan, file, is_asked in plans:
        for table in plan.tables:
            if table.formerly is None:
                continue
            if table.wanted is None:
                affected_objects = [s for s in affected_objects if s.table != table.formerly]
            elif table.formerly != table.declared:
                # The columns are known by the table's final name.
                affected_objects = [_moved(s, table.formerly, table.declared) for s in affected_objects]
            if is_asked:
                affected_objects += _of_table(table, before(plan).get(table.declared), file)
    columns = {name: tuple(f.name for f in table.schema.fields) for name, table in state.tables.items()}
    kept = tuple(s for s in affected_objects if _counts(s, state, is_review=is_review))
    return DeclaredTables(columns, kept, _aliases(project))


def _moved(affected: AffectedObject, old: TableName, new: TableName) -> AffectedObject:
    return replace(affected, table=new) if affected.path and affected.table == old else affected


def _of_table(table: TablePlan, before: Table | None, file: str) -> Iterator[AffectedObject]:
    name = table.declared
    for planned in table.changes():
        change = planned.change
        if isinstance(change, RenameTable) and table.formerly is not None:
            yield AffectedObject(table.formerly, (), ChangeKind.RENAMED, str(name), file)
        elif isinstance(change, DropTable):
            yield AffectedObject(name, (), ChangeKind.DROPPED, "", file)
        elif isinstance(change, RenameColumn):
            yield AffectedObject(name, _sql_path(change.path, before), ChangeKind.RENAMED, change.to, file)
        elif isinstance(change, DropColumn):
            yield AffectedObject(name, _sql_path(change.path, before), ChangeKind.DROPPED, "", file)
        elif _shifts_columns(change):
            yield AffectedObject(name, change.path, ChangeKind.MOVED, "", file)
        elif isinstance(change, WidenType):
            path = _sql_path(change.path, table.wanted)
            yield AffectedObject(name, path, ChangeKind.RETYPED, format_type(change.new), file)
    for work in (planned.work for planned in table.rows):
        if isinstance(work, Retype):
            yield AffectedObject(name, work.path, ChangeKind.RETYPED, work.to, file)


def _shifts_columns(change: Change) -> TypeGuard[MoveColumn | FieldInsertion]:
    """Whether columns get other positions, which changes what `*` by position means."""
    if isinstance(change, FieldInsertion):
        return change.parent_id is None and (change.first or change.after is not None)
    return isinstance(change, MoveColumn) and len(change.path) == 1


def _sql_path(path: FieldPath, table: Table | None) -> FieldPath:
    """A path as in SQL, without the elements of lists: `items.sku`."""
    if table is None:
        return path
    type_: Type = Struct(table.schema.fields)
    said: list[str] = []
    for name in path:
        if not isinstance(type_, List):
            said.append(name)
        type_ = next((f.type for f in children(type_) if f.name == name), Struct(()))
    return tuple(said)


def _counts(affected: AffectedObject, state: DeclaredState, *, is_review: bool) -> bool:
    """Whether users of the object need to know."""
    table = state.tables.get(affected.table)
    if not affected.path:
        return table is None
    if affected.change in (ChangeKind.RETYPED, ChangeKind.MOVED):
        return is_review
    if affected.change is ChangeKind.RENAMED and affected.path[-1].lower() == affected.to.lower():
        return False
    is_there = table is not None and _has(table, affected.path)
    # A new column with the old name stays readable; one that another column's name moved to has other values.
    return not is_there or (is_review and affected.change is ChangeKind.RENAMED)


def _has(table: Table, path: FieldPath) -> bool:
    """Whether a table has a field with this path, in any case."""
    type_: Type = Struct(table.schema.fields)
    for name in path:
        while isinstance(type_, List):
            type_ = type_.element.type
        found = next((f for f in children(type_) if f.name.lower() == name.lower()), None)
        if found is None:
            return False
        type_ = found.type
    return True


def _aliases(project: Project) -> dict[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """How namespaces are called in the project's environments."""
    found: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for environment in project.environments.values():
        for declared, there in environment.namespaces.items():
            if "${" not in there:
                found.setdefault(parse_path(declared), {})[parse_path(there)] = None
    return {declared: tuple(names) for declared, names in found.items()}
