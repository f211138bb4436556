"""A table right before its first change, the table that is expected after it, and what is done then."""

from __future__ import annotations

from functools import reduce

from icemigrate.errors import EngineError
from icemigrate.execution.released_snapshots import released_snapshots
from icemigrate.execution.table_checks import VerificationResult, verify_table
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import Direction, TablePlan
from icemigrate.planning.stages import ChangeTable
from icemigrate.spark.engine_port import Engine, Marker
from icemigrate.spark.publish import apply_step, empty_table


class OpenedTable(Frozen):
    """A table before its first change.

    :param expected: the table after its changes; ``None`` where it is missing, and has none.
    :param marker: that the table gets.
    """

    stage: ChangeTable
    before: Table | None
    expected: Table | None
    marker: Marker

    @property
    def plan(self) -> TablePlan:
        """What the migration does to the table."""
        return self.stage.table


def opened_table(stage: ChangeTable, before: Table | None, marker: Marker) -> OpenedTable:
    """A table that was just read, with the marker for the rows that it has."""
    plan = stage.table
    rows = before.snapshot if plan.steps and before is not None and before.has_rows else None
    own = replace(marker, before=rows.id if rows else None, released=released_snapshots(plan, before))
    return OpenedTable(stage, before, expected_table(plan, before), own)


def expected_table(plan: TablePlan, before: Table | None) -> Table | None:
    """The table after the plan's steps; ``None`` where it does not exist."""
    if not plan.all_steps:
        return before
    return reduce(lambda table, step: apply_step(step, table), plan.all_steps, before or empty_table(plan))


def require_changed(
    engine: Engine,
    plan: TablePlan,
    before: Table | None,
    expected: Table,
    actual: Table | None,
    marker: Marker,
) -> VerificationResult:
    """Require that the catalog made the changes of a plan.

    :param actual: the table as it was read back.
    :param marker: whose tags are no changes by other clients.
    :raises EngineError: it did not make them.
    """
    if actual is None:
        raise EngineError(f"table `{expected.name}` is missing after the migration")
    old = None if expected.name == plan.name else engine.table(plan.name)
    # Another table of the migration may have got the name.
    if old is not None and old.uuid == actual.uuid:
        raise EngineError(f"table `{plan.name}` is still there under its old name")
    own = marker.own_tags(actual.refs)
    others = {name: ref for name, ref in actual.refs.items() if name not in own}
    verdict = verify_table(before, expected, replace(actual, refs=others))
    if verdict.ignored:
        raise EngineError(
            f"the catalog accepted the change but did not make it: {'; '.join(verdict.ignored)}",
            "check whether this catalog supports the change",
        )
    return verdict


def owner_change(
    plan: TablePlan, direction: Direction, actual: Table | None, project: str
) -> tuple[str, str | None] | None:
    """What to do about the owner of a table, and its new owner; ``None`` where the owner stays.

    :param actual: the table after its changes.
    """
    if actual is None:
        return None
    if direction is Direction.APPLY and plan.wanted is not None and actual.owner is None:
        return "claiming", project
    is_forgotten = direction is Direction.ROLLBACK and plan.wanted is None and not plan.all_steps
    return ("releasing", None) if is_forgotten and actual.owner == project else None
