"""Statements run on the table itself, one commit each, and the marker in one more."""

from __future__ import annotations

from typing import ClassVar

from icemigrate.engine.port import Engine, Marker
from icemigrate.engine.publish import OnCommit, no_commit, run_step
from icemigrate.engine.telling import Listener, telling
from icemigrate.events import TableMarked
from icemigrate.frozen import Frozen
from icemigrate.model.marks import refill_branch_name
from icemigrate.model.table import Table
from icemigrate.plan import TablePlan


class DirectPublisher(Frozen):
    """See :class:`~icemigrate.engine.publish.Publisher`.

    :param tags: whether the marker and its tags are put on tables (``record: tags``).
    """

    engine: Engine
    tags: bool = True
    lands_at_once: ClassVar[bool] = False

    tags_at_once: ClassVar[bool] = False

    def publish(
        self,
        plan: TablePlan,
        before: Table | None,
        marker: Marker,
        on_event: Listener,
        on_commit: OnCommit = no_commit,
    ) -> Table | None:
        """Run the steps one by one; what is done stays when a later one fails."""
        tell = telling(plan, marker.version, on_event, refill_branch_name(marker.project, marker.run))
        current = before
        for step in plan.steps:
            current = run_step(self.engine, plan, step, current, tell)
        if current is None:
            return None
        now = self.engine.table(current.name) if before is not None and plan.steps else None
        if before is not None and now is not None:
            on_commit(before.schema, now.schema)
        if self.tags and plan.wanted is not None and not (marker.is_begun and marker.before is None):
            self.engine.mark(current.name, marker)
        if self.tags and plan.wanted is not None and not marker.is_begun:
            on_event(TableMarked(marker.version, current.name, marker.tag))
        return self.engine.table(current.name)
