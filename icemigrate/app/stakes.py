"""What the plans of migrations put at stake for those who use the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.widen_type import WidenType
from icemigrate.data.retype import Retype
from icemigrate.frozen import replace
from icemigrate.impact.stakes import Fate, Lake, Stake
from icemigrate.model.names import Path, TableName, parse_path
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import List, Struct, Type, children
from icemigrate.plan import MigrationPlan, TablePlan
from icemigrate.project.values import Project


def lake_of(
    project: Project,
    state: State,
    plans: Iterable[tuple[MigrationPlan, str, bool]],
    before: Callable[[MigrationPlan], Mapping[TableName, Table]],
    *,
    is_review: bool,
) -> Lake:
    """The declared tables with what is at stake in them.

    :param state: the tables once all migrations are applied.
    :param plans: each with the name of its file, and whether that is under review.
    :param before: the tables as declared before a migration, by the names that they have after it.
    :param is_review: whether a change is reviewed.  Then all that it does counts; else only what leaves a
        name that nothing has any more, since nobody cares for a type that was widened years ago.
    """
    stakes: list[Stake] = []
    for plan, file, is_asked in plans:
        for table in plan.tables:
            if table.formerly is None:
                continue
            if table.wanted is None:
                stakes = [s for s in stakes if s.table != table.formerly]
            elif table.formerly != table.declared:
                # The columns are known by the name that the table has at the end.
                stakes = [_moved(s, table.formerly, table.declared) for s in stakes]
            if is_asked:
                stakes += _of_table(table, before(plan).get(table.declared), file)
    columns = {name: tuple(f.name for f in table.schema.fields) for name, table in state.tables.items()}
    kept = tuple(s for s in stakes if _counts(s, state, is_review=is_review))
    return Lake(columns, kept, _aliases(project))


def _moved(stake: Stake, old: TableName, new: TableName) -> Stake:
    return replace(stake, table=new) if stake.path and stake.table == old else stake


def _of_table(table: TablePlan, before: Table | None, file: str) -> Iterator[Stake]:
    name = table.declared
    for planned in table.changes():
        change = planned.change
        if isinstance(change, RenameTable) and table.formerly is not None:
            yield Stake(table.formerly, (), Fate.RENAMED, str(name), file)
        elif isinstance(change, DropTable):
            yield Stake(name, (), Fate.DROPPED, "", file)
        elif isinstance(change, RenameColumn):
            yield Stake(name, _said(change.path, before), Fate.RENAMED, change.to, file)
        elif isinstance(change, DropColumn):
            yield Stake(name, _said(change.path, before), Fate.DROPPED, "", file)
        elif isinstance(change, WidenType):
            path = _said(change.path, table.wanted)
            yield Stake(name, path, Fate.RETYPED, format_type(change.new), file)
    for work in (planned.work for planned in table.rows):
        if isinstance(work, Retype):
            yield Stake(name, work.path, Fate.RETYPED, work.to, file)


def _said(path: Path, table: Table | None) -> Path:
    """A path as SQL says it, which passes over the elements of lists: `items.sku`."""
    if table is None:
        return path
    type_: Type = Struct(table.schema.fields)
    said: list[str] = []
    for name in path:
        if not isinstance(type_, List):
            said.append(name)
        type_ = next((f.type for f in children(type_) if f.name == name), Struct(()))
    return tuple(said)


def _counts(stake: Stake, state: State, *, is_review: bool) -> bool:
    """Whether those who use it need to know."""
    table = state.tables.get(stake.table)
    if not stake.path:
        return table is None
    if stake.fate is Fate.RETYPED:
        return is_review
    if stake.fate is Fate.RENAMED and stake.path[-1].lower() == stake.to.lower():
        return False
    is_there = table is not None and _has(table, stake.path)
    # What is made anew under its name stays readable; one that another column took over has other values.
    return not is_there or (is_review and stake.fate is Fate.RENAMED)


def _has(table: Table, path: Path) -> bool:
    """Whether a table has a field of this path, whatever the case of its names."""
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
