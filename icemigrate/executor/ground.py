"""Whether a table is still what a plan was made for, when its turn comes.

Between the look under the lock and a table's turn lie all the tables before it, and whoever does not ask for
the lock can change it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from icemigrate.changes.create_table import CreateTable
from icemigrate.engine.publish import fold
from icemigrate.engine.rebase import PLAN_AGAIN, facts, require_met, require_untouched
from icemigrate.errors import ConflictError, StalePlan
from icemigrate.merge import merge
from icemigrate.model.names import Path, TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.plan import TablePlan


def changed_beside(
    plan: TablePlan, known: Mapping[TableName, Table | None], now: Table | None
) -> tuple[str, ...]:
    """What others changed of a table since, where the plan does not change the same.

    :param known: the tables as the plan found them; of one that is not in it nothing is said.
    :param now: the table as it is.
    :raises ConflictError: it is another table or none, or the plan does not fit it any more.
    :raises StalePlan: a part of the plan is done already.
    """
    if not plan.all_steps:
        return ()
    if isinstance(plan.all_steps[0].changes[0].change, CreateTable):
        # Whoever had the name when the plan was made has left it by now.
        if now is not None:
            raise ConflictError(f"somebody else made table `{plan.name}` meanwhile", PLAN_AGAIN)
        return ()
    before = known.get(plan.name)
    if before is None:
        return ()
    if now is None:
        raise ConflictError(f"somebody else dropped or renamed table `{plan.name}` meanwhile", PLAN_AGAIN)
    is_changed = facts(before) != facts(now)
    if is_changed:
        require_untouched(before, plan.all_steps, now)
    require_met(before, plan.all_steps, now)
    if not is_changed:
        return ()
    return merge(before, now, before).open


def require_planned_ids(plan: TablePlan, known: Mapping[TableName, Table | None], now: Table | None) -> None:
    """Refuse a table on which new fields would get other ids than planned, where later steps name their ids.

    :param known: the tables as the plan found them; ``now``, the table as it is.
    :raises StalePlan: another client added fields to the table since the plan was made.
    """
    before = known.get(plan.name)
    if not plan.finish or before is None or now is None or before.last_column_id == now.last_column_id:
        return
    added = new_fields(plan, before)
    if added:
        raise renumbered(plan, added)


def new_fields(plan: TablePlan, before: Table) -> dict[Path, int]:
    """The ids that the first steps of a plan give to new fields.

    :param before: the table that the steps are carried out on.
    """
    after, known = reduce(lambda table, step: fold(step, table), plan.steps, before), index(before.schema)
    return {path: f.id for path, f in after.schema.walk() if f.id not in known}


def renumbered(plan: TablePlan, paths: Iterable[Path]) -> StalePlan:
    """What is raised where new fields do not have the ids that the plan foresaw."""
    names = ", ".join(f"`{format_path(path)}`" for path in paths)
    return StalePlan(
        f"another client added a column to `{plan.name}` meanwhile, so {names} did not get the field "
        "id that the rest of the migration was planned for",
        "run `icemigrate apply` again: it plans anew",
    )
