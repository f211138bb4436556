"""Plans all files one after another on an empty catalog, without any access to a catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.planner import plan_each
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.replay import ReplayedFile, sorted_diagnostics
from icemigrate.project.project_values import Project
from icemigrate.project.reserved_tables import reserved_names
from icemigrate.system.process import pause_garbage_collection

_CATALOG_NAME = "catalog"
"""The catalog's name in statements that are not run."""


class OfflinePlan(Frozen):
    """All files planned one after another on an empty catalog.

    :param sources: inputs of each plan.
    """

    plans: tuple[MigrationPlan, ...]
    state: DeclaredState
    diagnostics: tuple[Diagnostic, ...]
    sources: tuple[ReplayedFile, ...]


def plan_from_empty(
    project: Project,
    files: Sequence[MigrationFile],
    *,
    are_statements_read: bool = False,
    look: Callable[[ReplayedFile, MigrationPlan], None] = lambda _source, _plan: None,
    are_tables_stored: bool = True,
    is_work_limited: bool = True,
    base: DeclaredState = EMPTY_STATE,
) -> OfflinePlan:
    """Plan files one after another on an empty catalog.

    :param base: the declared state before the files; the catalog has its tables.
    :param look: called with each plan before the next one is made.
    :param are_tables_stored: whether the plans keep their tables.  For thousands of migrations of one table
        they take memory that grows with the square of their number.
    :param is_work_limited: see :func:`~icemigrate.planning.planner.plan_each`.
    :param are_statements_read: whether the plans need their statements and checksums, which take time.
    """
    context = PlanningContext(
        project.name,
        _CATALOG_NAME,
        is_catalog_known=False,
        are_statements_read=are_statements_read,
        reserved=reserved_names(project),
    )
    plans, sources = list[MigrationPlan](), list[ReplayedFile]()
    of_plans, state = list[Diagnostic](), base
    with pause_garbage_collection():
        for planned in plan_each(files, base, base.tables, context, is_work_limited=is_work_limited):
            plan, source, state = planned.plan, planned.source, planned.state
            of_plans.extend(source.plan_diagnostics(plan))
            look(source, plan)
            plans.append(plan if are_tables_stored else replace(plan, tables=()))
            sources.append(source if are_tables_stored else replace(source, targets=(), before={}))
    found = (*(d for source in sources for d in source.diagnostics), *of_plans)
    return OfflinePlan(tuple(plans), state, sorted_diagnostics(found), tuple(sources))
