"""The port to Spark where Python commits metadata: it runs statements, in this or another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from icemigrate.iceberg.names import TableName
from icemigrate.spark.engine_port import OnProgress, no_progress

if TYPE_CHECKING:
    from icemigrate.spark.commit_fence import Fence
    from icemigrate.spark.spark_engine import SparkEngine


class StatementEngine(Protocol):
    """Runs what no commit of metadata can do; see :class:`~icemigrate.spark.engine_port.Engine`.

    :ivar guard: what every change has to pass.
    """

    guard: Fence | None

    @property
    def jvm_engine(self) -> SparkEngine | None:
        """The engine with a JVM in this process; ``None`` for Spark Connect."""
        ...

    def sql(self, text: str) -> None:
        """Run one statement."""
        ...

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows to a branch, and verify that they are there."""
        ...

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = no_progress
    ) -> int:
        """Rewrite files of older partition specs; returns how many remain."""
        ...

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        ...

    def in_time_zone(self, zone: str) -> AbstractContextManager[None]:
        """A block in which times without a zone are in this one."""
        ...

    def refresh(self, name: TableName) -> None:
        """Forget what Spark keeps of a table, because another client changed it."""
        ...

    def forget(self, name: TableName) -> None:
        """Forget what Spark keeps of a name that a table had."""
        ...


StartSpark: TypeAlias = Callable[[], StatementEngine]
"""What gives Spark, which may start then."""
