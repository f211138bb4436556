"""The tables of a migration that change together: all in one transaction, or new ones in groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from icemigrate.diagnostics import format_count
from icemigrate.iceberg.names import TableName
from icemigrate.planning.stages import ChangeTable
from icemigrate.spark.publish_creations import NEW_TABLES_PER_GROUP, CreationPublisher, NewTable

if TYPE_CHECKING:
    from icemigrate.execution.migration_run import MigrationRun
    from icemigrate.execution.opened_tables import OpenedTable


@dataclass(slots=True)
class TableGroups:
    """Changes tables of one migration together, where its publisher does.

    :param is_together: whether one transaction has changed all tables; ``None`` before the first one.
    :param created: declared names of tables that a group has created.
    """

    run: MigrationRun
    is_together: bool | None = None
    created: set[TableName] = field(default_factory=set)

    def change(self, stage: ChangeTable) -> bool:
        """Change the table of a stage together with others.

        :returns: ``False`` where it needs a commit of its own.
        """
        if self.is_together is None:
            self.is_together = self._change_together()
        return self.is_together or stage.table.declared in self.created or self._create_group(stage)

    def _change_together(self) -> bool:
        """Change all tables in one transaction; ``False`` where each needs a commit of its own."""
        run, publisher = self.run, self.run.publisher.together
        if publisher is None or not publisher.takes(run.migration):
            return False
        found = [run.opened(stage) for stage in run.stages if isinstance(stage, ChangeTable)]
        tables = [run.row_publisher.of_transaction(one) for one in found if one.before is not None]

        def on_send(is_sent: bool) -> None:
            if is_sent:
                run.log.start(f"the commit of {format_count(len(tables), 'table')}")
            # A refused commit has changed no table.
            run.started_tables = {table.plan.declared for table in tables} if is_sent else set()

        if not publisher.publish(tables, on_send):
            return False
        run.log.forget_copies()
        for one in found:
            run.check_changed(one, None if one.expected is None else run.engine.table(one.plan.name))
        return True

    def _create_group(self, stage: ChangeTable) -> bool:
        """Create the table of a stage, and those of the next stages that are new too."""
        run, publisher = self.run, self.run.publisher.creations
        if publisher is None or not publisher.takes(stage.table):
            return False
        stages = [*islice(self._new_tables(stage, publisher), NEW_TABLES_PER_GROUP)]
        if len(stages) < 2:
            return False
        self._create([run.opened(one) for one in stages], publisher)
        return True

    def _new_tables(self, first: ChangeTable, publisher: CreationPublisher) -> Iterator[ChangeTable]:
        """The stages from the first one on, until one does more than create a table."""
        stages = self.run.stages
        at = next(number for number, stage in enumerate(stages) if stage is first)
        for number in range(at, len(stages)):
            stage = stages[number]
            if not isinstance(stage, ChangeTable) or not publisher.takes(stage.table):
                return
            yield stage

    def _create(self, found: Sequence[OpenedTable], publisher: CreationPublisher) -> None:
        run, names = self.run, {one.plan.declared for one in found}

        def on_send(is_sent: bool) -> None:
            if is_sent:
                run.log.start(f"the creation of {format_count(len(found), 'table')}")
                run.started_tables |= names
            else:
                run.started_tables -= names

        listen = run.log.publisher_listener
        tables = [NewTable(one.plan, one.marker, listen(one.stage.first_of_steps)) for one in found]
        publisher.publish(tables, on_send)
        self.created |= names
        for one in found:
            run.check_changed(one, run.engine.table(one.plan.name))
