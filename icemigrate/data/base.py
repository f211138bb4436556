"""What every kind of data step answers about itself.

A kind is one file: a frozen dataclass below :class:`RowWork`.  Columns are named as the migration file names
them, which is how they are called when the step runs.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Context, Decimal
from enum import IntEnum
from typing import Any, TypeAlias

from icemigrate.changes.base import Hazard, Problem, Reversal, Sql, Subject
from icemigrate.data.plain_names import bare_word
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import CheckFailed
from icemigrate.frozen import Frozen
from icemigrate.model.data_step import DataStep
from icemigrate.model.moments import as_read
from icemigrate.model.names import Path, TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table

TABLE_MARK = "{table}"
"""In a query of the file: the rows that it asks about."""
BEFORE_MARK = "{before}"
"""In a query of the file: the rows as they were before the migration; filled in when it is asked."""
DATA_NOTE = "data"
"""Key, behind icemigrate's prefix, in the summary of every snapshot that a data step makes."""


TRIES = 5
"""How often rows are written when others write to the table all the while."""
PAUSE = "let those who write the table pause while it runs"
"""What helps where they do."""


class Stage(IntEnum):
    """When a data step runs."""

    BEFORE = 0
    """On the table, before anything of the migration is done."""
    WRITE = 10
    """On the branch, behind the metadata that the rows need."""
    AFTER = 20
    """On the branch, behind everything that was written."""
    SETTLED = 30
    """On the table itself, when rows and metadata are as the migration leaves them."""


class Ask(Frozen):
    """A query, and what it must give.

    :param gives: as JSON: one value for one row of one column, or a list of rows, whose order says nothing.
    :param name: what is checked, in words.
    :param hint: what helps where it does not hold.
    :param is_told: whether the answer is what is wrong, told behind the name.
    """

    text: str
    gives: str
    name: str
    hint: str = "mend the rows, or the check"
    is_told: bool = False

    def failure(self, rows: Sequence[Sequence[Any]]) -> str | None:
        """What is wrong by an answer; ``None`` where it is as it must be."""
        wanted = json.loads(self.gives, parse_float=Decimal)
        if not isinstance(wanted, list):
            wanted = [[wanted]]
        moments = {i for row in rows for i, value in enumerate(row) if isinstance(value, datetime)}
        lists = (row if isinstance(row, list) else [row] for row in wanted)
        expected = sorted(_row(_with_moments(row, moments)) for row in lists)
        if sorted(map(_row, rows)) == expected:
            return None
        if self.is_told:
            return f"{self.name} {_shown(rows)}"
        return f"{self.name}: it must give {_shown(wanted)} and gives {_shown(rows)}"

    def require(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take an answer that is as it must be.

        :raises CheckFailed: it is another.
        """
        wrong = self.failure(rows)
        if wrong is not None:
            raise CheckFailed(wrong, self.hint)


class Rewriting(Frozen):
    """Files that lie the old way are written again.

    :param text: the ``CALL`` that does so where every file lies the old way.
    :param is_sorted: whether the new files keep the table's sort order.
    """

    text: str
    is_sorted: bool


DataStatement: TypeAlias = Sql | Ask | Rewriting
"""What a data step runs: a statement that writes rows, a query that must give something, or a rewriting."""


def _with_moments(row: Sequence[Any], columns: Collection[int]) -> Iterator[Any]:
    """A row of the file; in columns of timestamps its texts are moments, however they are written."""
    for i, value in enumerate(row):
        moment = as_read(value) if i in columns and isinstance(value, str) else None
        yield value if moment is None else moment


def _row(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(_plain, values))


_LARGEST_EXPONENT = 100_000
_EXACT = Context(prec=1000)
"""Of itself Python rounds to 28 digits, and Iceberg's decimals have up to 38."""


def _plain(value: Any) -> str:
    """A value so that 1, 1.0 and a decimal 1.00 are equal, and a date equals its text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, Decimal)):
        number = Decimal(str(value))
        # An exponent that no column has is left as it is: to normalize it is an error.
        is_plain = number.is_finite() and abs(number.adjusted()) < _LARGEST_EXPONENT
        return str(number.normalize(_EXACT)) if is_plain else str(number)
    return f"'{value}"


_MOST_SHOWN = 5


def _shown(rows: Sequence[Any]) -> str:
    """Rows for a message; many only in part."""
    if not rows:
        return "no rows"
    lists = [list(row) if isinstance(row, (list, tuple)) else [row] for row in rows]
    if len(lists) == 1 and len(lists[0]) == 1:
        return _value(lists[0][0])
    shown = ", ".join(f"({', '.join(map(_value, row))})" for row in lists[:_MOST_SHOWN])
    more = len(lists) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _value(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


class Ground(Frozen):
    """What a data step stands on.

    :param declared: the table's declared name.
    :param table: the table as it is when rows are written.
    :param old: fields whose values were there before the migration.
    :param back: fields that come back under their own ids, so that files may hold values of them.
    :param gone: fields that earlier migrations dropped, and whose values files may still hold; as paths.
    """

    declared: TableName
    table: Table
    old: frozenset[int]
    back: frozenset[int] = frozenset()
    gone: tuple[str, ...] = ()

    def is_old(self, path: Path) -> bool:
        """Whether a column had values before the migration, those that come back with it included."""
        field = self.table.schema.find(path)
        return field is not None and (field.id in self.old or field.id in self.back)

    def is_back(self, path: Path) -> bool:
        """Whether a column comes back."""
        field = self.table.schema.find(path)
        return field is not None and field.id in self.back


def strange_word(expression: str, subject: Subject, ground: Ground) -> Iterator[Problem]:
    """An expression that is one word, which is no column of the table: mostly a text without its quotes."""
    word = bare_word(expression)
    known = [field.name for field in ground.table.schema.fields]
    if word is None or word.lower() in (name.lower() for name in known):
        return
    other = did_you_mean(word, known)
    text = f"a text stands in quotes of its own: `\"'{word}'\"`"
    yield Problem(
        "unknown-column",
        ground.declared,
        subject,
        f"the expression is the word `{word}`, and table `{ground.table.name}` has no column of that name",
        f"{text}; {other}" if other else text,
    )


def old_fields(base: Table | None, there: Table | None, is_resumed: bool) -> frozenset[int]:
    """The fields that had values before a migration.

    :param base: the table as declared before it.
    :param there: as it is; what an earlier run of the same migration has added is in it.
    """
    known = (base,) if is_resumed else (base, there)
    return frozenset(i for table in known if table is not None for i in index(table.schema))


def fields_back(base: Table | None, there: Table | None, goal: Table, is_resumed: bool) -> frozenset[int]:
    """The fields that a migration brings back: restored, or redone under the ids that they had.

    :param goal: the table as it shall be, in which only fields that are made anew have ids below zero.
    """
    known = {i for i in index(goal.schema) if i > 0}
    return frozenset(known - old_fields(base, there, is_resumed))


def gone_before(before: Table | None, after: Table | None) -> tuple[str, ...]:
    """The paths of what was dropped before a migration and stays so, until rows are written anew.

    What the migration itself drops is still there when rows are written.
    """
    if before is None or after is None:
        return ()
    left = {dropped.field.id for dropped in after.dropped}
    return tuple(format_path(d.path) for d in before.dropped if d.field.id in left)


def with_ends(reason: str, gone: Sequence[str]) -> str:
    """Why there is a way back; and of what there is none any more, since rows are written anew."""
    if not gone:
        return reason
    return (
        f"{reason}; but the way back of {', '.join(gone)}, dropped before, ends here: "
        "the values are not in the new files"
    )


class RowWork(DataStep):
    """One data step of one table."""

    @property
    @abstractmethod
    def stage(self) -> Stage:
        """When it runs."""

    @property
    def writes(self) -> bool:
        """Whether it changes rows, rather than asking about them."""
        return self.stage not in (Stage.BEFORE, Stage.AFTER)

    @property
    @abstractmethod
    def subject(self) -> Subject:
        """The part of a table entry that it comes from."""

    def place_of(self, failure: str) -> Subject:
        """The part of a table entry that a failure of its statements is about."""
        return self.subject

    def parts(self) -> Iterator[tuple[Subject, RowWork]]:
        """The step in the parts in which a file says it, with where they stand; each can run alone."""
        yield self.subject, self

    @abstractmethod
    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """What it runs, in order.

        :param rows: the table, or its branch, as SQL names it.
        """

    def late(self, rows: str, required: Collection[Path]) -> tuple[DataStatement, ...]:
        """The same for rows that others wrote behind those of the migration, before columns are swapped and
        become required; nothing where these may stay as they are.

        :param rows: the branch on which it runs, as SQL names it.
        :param required: columns that become required, and are filled by this step alone.
        """
        return ()

    def fitted(self, ground: Ground) -> RowWork:
        """The step as it has to be done on this ground."""
        return self

    def problems(self, ground: Ground) -> Iterator[Problem]:
        """Why it must not be done."""
        return iter(())

    def doubts(self, ground: Ground) -> Iterator[Problem]:
        """Why it must not be done, where the table has no columns but those that are known."""
        return iter(())

    def hazards(self, ground: Ground) -> tuple[Hazard, ...]:
        """The consents it needs."""
        return ()

    def overwrites(self, ground: Ground) -> bool:
        """Whether values change that were there before the migration, so that its undo is one of rows too."""
        return False

    @abstractmethod
    def reversal(self, ground: Ground) -> Reversal:
        """Whether it can be undone, and why."""

    @abstractmethod
    def describe(self) -> str:
        """The step in a few words, without the table's name."""
