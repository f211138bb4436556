"""All files planned one after another on a catalog that begins empty, without asking any."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.app.folding import Folding
from icemigrate.app.reserved import reserved_in
from icemigrate.changes.reference_sql import TAG_WITHOUT_SNAPSHOT
from icemigrate.declare.migration import MigrationFile
from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import Frozen, replace
from icemigrate.model.collecting import collector_at_rest
from icemigrate.model.sides import EMPTY_STATE, State
from icemigrate.plan import MigrationPlan
from icemigrate.plan_case import Surroundings
from icemigrate.planner import plan_migrations
from icemigrate.project.values import Project

_CATALOG_NAME = "catalog"
"""How the catalog is called in statements that nobody runs."""


class Rehearsed(Frozen):
    """All files planned one after another on an empty catalog."""

    plans: tuple[MigrationPlan, ...]
    state: State
    diagnostics: tuple[Diagnostic, ...]
    folding: Folding


def rehearse(
    project: Project, files: Sequence[MigrationFile], *, are_statements_read: bool = False
) -> Rehearsed:
    """Plan files one after another on an empty catalog.

    :param are_statements_read: whether the plans need their statements and checksums, which take time.
    """
    folding = Folding(are_checksums_read=are_statements_read, why_reserved=reserved_in(project))
    with collector_at_rest():
        planned = plan_migrations(
            folding.pending(files),
            EMPTY_STATE,
            {},
            Surroundings(
                project.name,
                _CATALOG_NAME,
                is_catalog_known=False,
                are_statements_read=are_statements_read,
            ),
        )
    plans = tuple(_as_if_written(plan) for plan in planned.migrations)
    return Rehearsed(plans, planned.state, folding.diagnostics(plans), folding)


def _as_if_written(plan: MigrationPlan) -> MigrationPlan:
    """A plan without what it has against a tag of a table that an earlier migration made.

    By the time that it is applied there may be rows, which only the catalog knows: `plan` tells it then.
    """
    if not plan.problems:
        return plan
    known = {table.declared for table in plan.tables if table.formerly is not None}
    problems = (p for p in plan.problems if p.rule != TAG_WITHOUT_SNAPSHOT or p.table not in known)
    return replace(plan, problems=tuple(problems))
