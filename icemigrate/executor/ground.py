"""Whether a table is still what a plan was made for, when its turn comes.

Between the look under the lock and a table's turn lie all the tables before it, and whoever does not ask for
the lock can change it meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.changes.create_table import CreateTable
from icemigrate.engine.rebase import PLAN_AGAIN, facts, require_met, require_untouched
from icemigrate.errors import ConflictError
from icemigrate.merge import merge
from icemigrate.model.names import TableName
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
