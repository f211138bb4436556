"""A table that the history does not know: made, taken in, gone on with, or brought back out of the trash."""

from __future__ import annotations

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.base import Problem
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.diff import Found
from icemigrate.frozen import replace
from icemigrate.merge import UNKNOWN_BASE, adopted, merge
from icemigrate.model.makers import CREATED_BY_PROPERTY, made_by, maker_of, project_of
from icemigrate.model.schema import Schema
from icemigrate.model.table import Table
from icemigrate.plan_case import Case, Outcome, Surroundings, alter, judge


def first_mention(
    case: Case, goal: Table, there: Table | None, reused: bool, trashed: Table | None
) -> Outcome:
    """Plan a table that the history does not know.

    :param there: what has its name in the catalog.
    :param reused: whether another table had the name once.
    :param trashed: what waits in the trash as made by this very migration.
    """
    owner = made_by(case.surroundings.project, case.version)
    if there is None and trashed is not None and maker_of(trashed) == owner:
        return _out_of_the_trash(case, goal, trashed)
    if there is None:
        made = replace(goal, properties={**goal.properties, CREATED_BY_PROPERTY: owner})
        if reused and made.location is None:
            made = replace(made, location=_own_location(case))
        blank = Table(case.name, Schema(), format_version=goal.format_version)
        change = CreateTable(case.name, made, _partition_afterwards(made, case.surroundings))
        after = change.apply(blank)
        plan = case.plan(case.name, [Found(change, blank)])
        if case.wanted.adopt and not case.surroundings.is_catalog_known:
            return Outcome(plan, after)
        return judge(case, plan, [Found(change, blank)], after, None)
    if maker_of(there) == owner and case.version in case.surroundings.begun:
        # Tags and branches that nobody declared, such as the mark of that run, are none of this.
        refs = {name: ref for name, ref in there.refs.items() if name in goal.refs}
        nothing = replace(there, schema=Schema(), properties={}, refs=refs)
        merged = merge(nothing, goal, there, case.wanted.positions, case.overwrite)
        return alter(case, there, merged, there.name, [], ["created by an earlier run that was cut short"])
    if case.wanted.adopt:
        return _adopt(case, goal, there)
    return Outcome(case.plan(case.name), there, (_in_the_way(case, there),))


def _in_the_way(case: Case, there: Table) -> Problem:
    """A table that exists, and that nothing in the history accounts for."""
    maker = maker_of(there)
    if project_of(there) == case.surroundings.project:
        # To plan it as a run that was cut short would play migrations over rows that have seen them.
        return Problem(
            "history-lost",
            case.wanted.name,
            ("name",),
            f"table `{case.name}` was made by `{maker}` of this project, and the history knows nothing of it",
            "bring the project's history table back (`history:` in the project file names it), or take the "
            "table in as it is with `adopt: true`",
        )
    return Problem(
        "table-exists",
        case.wanted.name,
        ("name",),
        f"table `{case.name}` exists already, and no migration made it",
        "write `adopt: true` to take it in as it is, or choose another name",
    )


def _partition_afterwards(made: Table, surroundings: Surroundings) -> bool:
    first = made.schema.fields[0].id if made.schema.fields else None
    by_first = any(first in f.source_ids for f in made.spec.live)
    return by_first and not surroundings.partitions_by_first_column


def _out_of_the_trash(case: Case, goal: Table, trashed: Table) -> Outcome:
    """The table that this very migration made before it was rolled back, rows and all."""
    rename = RenameTable(trashed.name, case.name)
    there = rename.apply(trashed)
    # What others made of its partitioning and order since is no part of what the migration changes.
    made = case.wanted.made or there
    nothing = replace(
        there, schema=Schema(), properties={}, refs={}, spec=made.spec, sort_order=made.sort_order
    )
    merged = merge(nothing, goal, there, case.wanted.positions, case.overwrite)
    return alter(case, there, merged, trashed.name, [Found(rename, trashed)], ["comes back out of the trash"])


def _adopt(case: Case, goal: Table, there: Table) -> Outcome:
    goal = adopted(goal, there, case.wanted.unsaid)
    case = replace(case, goal=goal)
    merged = merge(None, goal, there, (), case.overwrite)
    # To adopt is to record what is there, so what would have to be changed is a conflict too.
    conflicts = tuple(replace(c, base=UNKNOWN_BASE) for c in (*merged.conflicts, *merged.opened))
    change = AdoptTable(case.name)
    plan = case.plan(case.name, [] if conflicts else [Found(change, there)])
    return Outcome(replace(plan, conflicts=conflicts), there)


def _own_location(case: Case) -> str | None:
    """A location that no earlier table of this name has used.

    A renamed or trashed table keeps its files where they were; sharing the folder with it would let
    ``remove_orphan_files`` on the one delete the other's.
    """
    default = case.surroundings.default_location(case.name)
    return None if default is None else f"{default}__{case.version}"
