"""A query about the rows that must give what the file says, before the migration or after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Reversal, Reversible, Subject
from icemigrate.data.base import TABLE_MARK, Ask, DataStatement, Ground, RowWork, Stage


class Check(RowWork):
    """One query.

    :param query: with ``{table}`` for the rows, and ``{before}`` for those from before the migration.
    :param gives: see :class:`~icemigrate.data.base.Ask`.
    :param is_after: whether it is asked when the rows are written, rather than before anything is done.
    :param number: its place in the list of the file, from 0.
    """

    kind: ClassVar[str] = "check"

    query: str
    gives: str
    is_after: bool
    name: str | None = None
    number: int = 0

    @property
    def stage(self) -> Stage:
        """Before or after."""
        return Stage.AFTER if self.is_after else Stage.BEFORE

    @property
    def subject(self) -> Subject:
        """Its item of the list."""
        return ("checks", str(self.number))

    def parts(self) -> Iterator[tuple[Subject, RowWork]]:
        """The query."""
        yield (*self.subject, "after" if self.is_after else "before"), self

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """The query."""
        # Who is told that it does not hold is told the query beside it.
        name = self.name or f"check {self.number + 1}"
        return (Ask(self.query.replace(TABLE_MARK, rows), self.gives, name),)

    def reversal(self, ground: Ground) -> Reversal:
        """It changes nothing."""
        return Reversal(Reversible.YES, "it changes nothing")

    def describe(self) -> str:
        """What is checked, and when."""
        when = "after" if self.is_after else "before"
        return f"check {when}: {self.name or ' '.join(self.query.split())}"
