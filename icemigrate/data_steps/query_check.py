"""Data step that compares the result of a query with an expected one, before or after the migration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import Reversal, Reversibility, Subject
from icemigrate.data_steps.data_step_kind import (
    CHECK_HINT,
    TABLE_PLACEHOLDER,
    DataStatement,
    DataStepContext,
    DataStepStage,
    QueryExpectation,
    TableDataStep,
)


class QueryCheck(TableDataStep):
    """One query.

    :param query: with ``{table}`` for the rows, and ``{before}`` for those before the migration.
    :param gives: see :class:`~icemigrate.data_steps.data_step_kind.QueryExpectation`.
    :param is_after: whether it runs after the rows are written, rather than before any change.
    :param number: its index in the list of the file, from 0.
    """

    kind: ClassVar[str] = "check"

    query: str
    gives: str
    is_after: bool
    name: str | None = None
    number: int = 0

    @property
    def stage(self) -> DataStepStage:
        return DataStepStage.AFTER if self.is_after else DataStepStage.BEFORE

    @property
    def subject(self) -> Subject:
        return ("checks", str(self.number))

    def parts(self) -> Iterator[tuple[Subject, TableDataStep]]:
        """The query alone."""
        yield (*self.subject, "after" if self.is_after else "before"), self

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        # The message of a failure shows the query beside the name.
        name = self.name or f"check {self.number + 1}"
        return (QueryExpectation(self.query.replace(TABLE_PLACEHOLDER, rows), self.gives, name, CHECK_HINT),)

    def reversal(self, context: DataStepContext) -> Reversal:
        return Reversal(Reversibility.YES, "it changes nothing")

    def describe(self) -> str:
        """When and what it checks."""
        when = "after" if self.is_after else "before"
        return f"check {when}: {self.name or ' '.join(self.query.split())}"
