"""What one migration does to one table: create, adopt, rename, drop, or alter what is there."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.changes.base import Problem
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.positions import FieldInsertion
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data.base import Ground, fields_back, gone_before, old_fields
from icemigrate.data.every_value import every_value
from icemigrate.data.left_behind import rows_left
from icemigrate.data.not_loaded import not_loaded
from icemigrate.data.required import filled, left_in_files
from icemigrate.diff import Found
from icemigrate.frozen import replace
from icemigrate.merge import Conflict, merge
from icemigrate.model.makers import owner_of, trash_name, trash_names
from icemigrate.model.names import Path, TableName
from icemigrate.model.reserved import OWNER_PROPERTY
from icemigrate.model.schema import index
from icemigrate.model.sides import Wanted
from icemigrate.model.table import Table
from icemigrate.plan import PlannedChange
from icemigrate.plan_case import Case, Outcome, Surroundings, alter, judge
from icemigrate.plan_mention import first_mention
from icemigrate.staging import with_works, work_problems


def plan_table(
    wanted: Wanted,
    base: Table | None,
    actual: Mapping[TableName, Table | None],
    version: str,
    former: frozenset[TableName],
    surroundings: Surroundings,
) -> Outcome:
    """Plan one table.

    :param base: the table as the history has it, ``None`` at its first mention.
    :param actual: the catalog's tables by their name there.
    :param former: declared names that tables had once.
    """
    name = surroundings.physical(wanted.name)
    goal = None if wanted.table is None else surroundings.adjust(replace(wanted.table, name=name))
    case = Case(wanted, base, name, goal, version, surroundings)
    if goal is None:
        return _drop(case, actual)
    if base is None:
        trashed = next(
            (t for n in trash_names(name, surroundings.project, version) if (t := actual.get(n))), None
        )
        outcome = first_mention(case, goal, actual.get(name), wanted.name in former, trashed)
    else:
        outcome = _known(case, goal, base, actual)
    there = actual.get(outcome.plan.name)
    if there is not None and owner_of(there) not in (None, surroundings.project):
        return Outcome(
            case.plan(there.name), there, (owned_by_another(wanted.name, there, surroundings.project),)
        )
    return _with_rows(case, outcome, there)


def owned_by_another(declared: TableName, there: Table, project: str) -> Problem:
    """A table that another project owns."""
    owner = owner_of(there)
    return Problem(
        "table-owned",
        declared,
        ("name",),
        f"table `{there.name}` belongs to project `{owner}`, and this is project `{project}`",
        f"change it in project `{owner}`, or hand it over: "
        f"`ALTER TABLE … SET TBLPROPERTIES ('{OWNER_PROPERTY}'='{project}')`",
    )


def _with_rows(case: Case, outcome: Outcome, there: Table | None) -> Outcome:
    """The outcome with the data steps; without them where the table itself cannot be planned."""
    works = case.works if outcome.works is None else outcome.works
    if outcome.after is None or outcome.problems or outcome.plan.conflicts:
        return outcome
    requires = there is not None and there.has_rows and any(map(_requires, outcome.plan.changes()))
    if requires and there is not None and case.surroundings.is_catalog_known:
        works = (*every_value(works, there, outcome.after), *works)
    if not works and not requires:
        return outcome
    is_resumed = case.version in case.surroundings.begun
    between = outcome.between or outcome.after
    assert case.goal is not None, "rows are of a table that stays"
    sides = (case.base, there)
    earlier = case.surroundings.back.get(case.version, {}).get(case.wanted.name, frozenset())
    ground = Ground(
        case.wanted.name,
        between,
        old_fields(*sides, is_resumed),
        fields_back(*sides, case.goal, is_resumed) | earlier,
        gone_before(case.base, case.goal),
    )
    works = tuple(work.fitted(ground) for work in works)
    plan = with_works(
        outcome.plan,
        works,
        ground,
        outcome.after,
        case.surroundings.catalog_name,
        case.surroundings.project,
        case.version,
        is_resumed,
    )
    problems = (
        *work_problems(works, ground, case.surroundings.has_branches),
        *not_loaded(works, ground, there, outcome.after),
    )
    doubts = tuple(doubt for work in works for doubt in work.doubts(ground))
    if there is not None and (there.has_rows or not case.surroundings.is_catalog_known):
        doubts += tuple(left_in_files(works, ground, there, outcome.after))
    if case.surroundings.is_catalog_known:
        catalog = case.surroundings.catalog_name
        left = () if there is None else tuple(rows_left(works, ground, there, outcome.after, catalog))
        return replace(outcome, plan=plan, problems=(*problems, *doubts), warnings=(*outcome.warnings, *left))
    # There may be columns that no file declares, and nobody knows of rows.
    return replace(outcome, plan=plan, problems=problems, warnings=(*outcome.warnings, *doubts))


def _requires(planned: PlannedChange) -> bool:
    """Whether a file that is there may lack what a change requires."""
    change = planned.change
    return isinstance(change, MakeRequired) or (isinstance(change, FieldInsertion) and change.is_missed)


def _known(case: Case, goal: Table, base: Table, actual: Mapping[TableName, Table | None]) -> Outcome:
    assert case.wanted.formerly is not None
    old_name = case.surroundings.physical(case.wanted.formerly)
    there = actual.get(old_name)
    found: list[Found] = []
    notes: list[str] = []
    if old_name != case.name:
        target = actual.get(case.name)
        if target is not None and _is_renamed(base, there, target):
            there = target
            notes.append(f"renamed already: {old_name} → {case.name}")
            old_name = case.name
        elif there is not None:
            if target is not None:
                return _taken(case, there, old_name)
            rename = RenameTable(old_name, case.name)
            found.append(Found(rename, there))
            there = rename.apply(there)
    if there is None:
        return _vanished(case, old_name, goal)
    if not _same_table(base, there):
        return _stranger(case, base, there, old_name, f"table {base.uuid}")
    base = replace(base, name=case.name)
    begun = _begun(case, goal, base) if case.version in case.surroundings.begun else frozenset[Path]()
    merged = merge(base, goal, there, case.wanted.positions, case.overwrite, begun)
    return alter(case, there, merged, old_name, found, notes)


def _begun(case: Case, goal: Table, base: Table) -> frozenset[Path]:
    """What an earlier run may have left optional, since it is filled first."""
    fills, known = filled(case.works), index(base.schema)
    return frozenset(entry.path for entry in index(goal.schema).values() if fills.has(entry, known))


def _is_renamed(base: Table, there: Table | None, target: Table) -> bool:
    """Whether the table has its new name already; another one may stand under the old name by now."""
    if there is None:
        return _same_table(base, target)
    return base.uuid is not None and base.uuid == target.uuid != there.uuid


def _same_table(base: Table, there: Table) -> bool:
    """Whether it is the table that the history means; the uuid tells, where both are known."""
    return base.uuid is None or there.uuid is None or base.uuid == there.uuid


def _stranger(case: Case, base: Table, there: Table, name: TableName, wanted: str) -> Outcome:
    """A table that somebody dropped and made anew under the same name."""
    conflict = Conflict(f"{name}:name", f"table {base.uuid}", wanted, f"another table, {there.uuid}")
    return Outcome(replace(case.plan(name), conflicts=(conflict,)), there)


def _vanished(case: Case, name: TableName, goal: Table) -> Outcome:
    conflict = Conflict(f"{name}:name", f"table {name}", f"table {case.name}", "no such table in the catalog")
    return Outcome(replace(case.plan(name), conflicts=(conflict,)), goal)


def _taken(case: Case, there: Table, old_name: TableName) -> Outcome:
    problem = Problem(
        "table-exists",
        case.wanted.name,
        ("renamed_from",),
        f"`{old_name}` cannot be renamed: a table `{case.name}` exists already",
        "choose another name, or move the other table away first",
    )
    return Outcome(case.plan(old_name), there, (problem,))


def _drop(case: Case, actual: Mapping[TableName, Table | None]) -> Outcome:
    assert case.wanted.formerly is not None
    old_name = case.surroundings.physical(case.wanted.formerly)
    there = actual.get(old_name)
    if there is None:
        return Outcome(case.plan(old_name, notes=("dropped already",)), None)
    if case.base is not None and not _same_table(case.base, there):
        conflict = Conflict(
            f"{old_name}:name", f"table {case.base.uuid}", "dropped", f"another table, {there.uuid}"
        )
        return Outcome(replace(case.plan(old_name), conflicts=(conflict,)), there)
    trash = trash_name(old_name, case.surroundings.project, case.version)
    found = [Found(DropTable(old_name, trash), there)]
    return judge(case, case.plan(old_name, found), found, None, None)
