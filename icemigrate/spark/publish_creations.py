"""Publishes new tables of a migration in groups: no reader knows a table before it is created.

A migration for a list of a thousand values creates as many tables.  Alone, each of them waits for the disk or
the server several times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from icemigrate.changes.create_table import CreateTable
from icemigrate.diagnostics import format_count
from icemigrate.events import TableMarked, TablePublished
from icemigrate.frozen import Frozen
from icemigrate.planning.plan import TablePlan
from icemigrate.spark.commit_ports import CommittingEngine, TableCreation
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.publish import apply_step, empty_table, first_state
from icemigrate.spark.statement_events import Listener, statement_announcer
from icemigrate.system.activity import activity

NEW_TABLES_PER_GROUP = 256
"""The most tables of a group, whose metadata is in memory at once."""


class NewTable(Frozen):
    """One table of a group.

    :param on_event: called with the events of this table.
    """

    plan: TablePlan
    marker: Marker
    on_event: Listener


class CreationPublisher(Frozen):
    """Publishes plans that only create a table.

    :param tags: whether the marker and its tags are put on tables (``record: tags``).
    """

    engine: CommittingEngine
    tags: bool

    def takes(self, plan: TablePlan) -> bool:
        """Whether a plan can be published in a group."""
        return (
            len(plan.steps) == 1
            and isinstance(plan.steps[0].changes[0].change, CreateTable)
            and plan.temporary_name is None
            and not plan.rows
            and not plan.finish
            and self.engine.creations is not None
        )

    def publish(self, tables: Sequence[NewTable], on_send: Callable[[bool], None]) -> None:
        """Create tables and put the migration's marker on them.

        Their statements are announced after the commit: until then, none of them has changed anything.

        :param on_send: called with ``True`` before the first change, and with ``False`` if the catalog
            refused all of them.
        :raises EngineError: a table was not created; others of the group may be.
        """
        creations = self.engine.creations
        assert creations is not None, "only plans that can be published in a group are"
        made = [self._creation(table) for table in tables]
        on_send(True)
        began = time.monotonic()
        try:
            with convert_java_errors(), activity(f"Creating {format_count(len(tables), 'table')}"):
                creations.create_tables(made)
        except Exception as error:  # the engine identifies it
            if creations.is_refused(error):
                on_send(False)
            raise
        elapsed = time.monotonic() - began
        for table in tables:
            self._report(table, elapsed, len(tables))

    def _creation(self, table: NewTable) -> TableCreation:
        (step,) = table.plan.steps
        after = apply_step(step, empty_table(table.plan))
        return TableCreation(first_state(step, after), after, table.marker if self.tags else None)

    def _report(self, table: NewTable, elapsed: float, count: int) -> None:
        plan, version = table.plan, table.marker.version
        announcer = statement_announcer(plan, version, table.on_event)
        for statement in plan.steps[0].statements:
            with announcer.statement(plan.name, statement.text):
                pass
        table.on_event(TablePublished(version, plan.name, 1, elapsed, count))
        if self.tags:
            table.on_event(TableMarked(version, plan.name, table.marker.tag))
