"""The port to where rows of tenants go: tables, or loose Parquet files.

See :mod:`icemigrate.pipeline.iceberg_sink` and :mod:`icemigrate.pipeline.parquet_sink`.

A task writes files that no reader sees, and the driver publishes them.  A batch that was interrupted is
repeated under the same name, and published once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Protocol

from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.types import Field
from icemigrate.otlp.attribute_columns import AttributeSource
from icemigrate.pipeline.batch_commit import TableBatch, by_table
from icemigrate.pipeline.batch_result import PhaseClock
from icemigrate.pipeline.table_retries import TableKey
from icemigrate.pipeline.task_results import TableEntries

TABLES_PER_COMMIT = 128
"""The most tables that are published at once: their metadata is in memory."""


class RowColumns(Frozen):
    """The columns of rows.

    :param sources: the attributes that fill some of them, by column.
    """

    fields: tuple[Field, ...]
    sources: Mapping[str, AttributeSource] = field(default_factory=dict)


class SinkWriter(Protocol):
    """Writes the rows of one tenant and kind, in a task."""

    def columns(self) -> RowColumns:
        """The columns that rows must have.

        :raises NoTable: the tenant has no table for them.
        """
        ...

    def write(self, rows: Any) -> None:
        """Add rows to files, as a row group.

        :param rows: ``pyarrow.Table`` with the columns of the first sink.
        :raises UnsuitableTable: the table cannot have them.
        :raises EngineError: the storage refuses them.
        """
        ...

    def complete(self) -> None:
        """Complete the files, after the last rows.

        :raises EngineError: the storage refuses them.
        """
        ...

    def discard(self) -> None:
        """Delete the files."""
        ...

    def add_to(self, result: TableEntries) -> TableEntries:
        """The result of the task with these files."""
        ...


def publish_all(
    sinks: Sequence[Sink],
    batch: str,
    results: Iterable[TableEntries],
    paused: Container[TableKey],
    clock: PhaseClock,
) -> list[TableBatch]:
    """Publish the files of a batch: those of many tables at once, then what is left table by table.

    :param results: of all tasks.
    :param paused: tables that were not tried.
    :raises IcemigrateError: the catalog or the storage failed; the batch is repeated.
    """
    groups = by_table(results)
    tried = [group for group in groups if (group[0].tenant, group[0].kind) not in paused]
    for first in range(0, len(tried) if len(tried) > 1 else 0, TABLES_PER_COMMIT):
        with clock.phase("commit tables"):
            for sink in sinks:
                sink.publish_together(batch, tried[first : first + TABLES_PER_COMMIT])
    done = list[TableBatch]()
    for group in groups:
        is_paused = (group[0].tenant, group[0].kind) in paused
        with clock.phase("commit table", group[0].table):
            done.append(publish(sinks, batch, group, is_paused=is_paused))
    return done


def publish(
    sinks: Sequence[Sink], batch: str, results: Sequence[TableEntries], *, is_paused: bool
) -> TableBatch:
    """Publish the files of one tenant and kind in all sinks, the tables first.

    :raises IcemigrateError: the catalog or the storage failed; the batch is repeated.
    """
    outcome: TableBatch | None = None
    for sink in sinks:
        outcome = sink.publish(batch, results, outcome, is_paused=is_paused)
    assert outcome is not None, "there is a sink"
    return outcome


class Sink(Protocol):
    """Publishes the files of one tenant and kind, in the driver."""

    def publish_together(self, batch: str, groups: Sequence[Sequence[TableEntries]]) -> None:
        """Publish the files of many tenants and kinds at once, as far as that is faster.

        :meth:`publish` follows for each of them.

        :param groups: the results of all tasks for each tenant and kind, which is not paused.
        :raises IcemigrateError: the catalog or the storage failed; the batch is repeated.
        """
        ...

    def publish(
        self, batch: str, results: Sequence[TableEntries], before: TableBatch | None, *, is_paused: bool
    ) -> TableBatch:
        """Publish the files of all tasks, unless the sinks before this one have a problem.

        :param batch: its name; a repeated batch has the same one.
        :param results: of all tasks for the tenant and kind.
        :param before: the outcome of the sinks before this one.
        :param is_paused: whether the table was not tried.
        :raises IcemigrateError: the catalog or the storage failed; the batch is repeated.
        """
        ...
