"""Facts, and what the comparison of their three values comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from icemigrate.changes.base import Subject
from icemigrate.frozen import Frozen, PartlyCompared
from icemigrate.model.names import TableName

ABSENT = "(absent)"


class Shown(PartlyCompared):
    """A value that is compared by its key and shown by its text."""

    uncompared = frozenset({"text"})

    key: Any
    text: str

    def __str__(self) -> str:
        return self.text


class Fact(Frozen):
    """One thing that can be as it was, as it shall be, or something else.

    :param subject: keys as in a table entry, e.g. ``("columns", "price", "type")``.
    """

    table: TableName
    subject: Subject

    def __str__(self) -> str:
        return f"{self.table}:{'.'.join(self.subject)}"


UNKNOWN_BASE = "(unknown to the history)"
"""The base of a conflict about a table that the history does not know."""


class Conflict(Frozen):
    """A fact that is neither as it was nor as it shall be; the three values as text."""

    fact: str
    base: str
    wanted: str
    actual: str


@dataclass(slots=True)
class Verdicts:
    """Collects what the comparison of each fact comes to."""

    table: TableName
    overwrite: frozenset[str]
    done: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    opened: list[Conflict] = field(default_factory=list)
    """Those of :attr:`open` with their values, for whoever may not take them."""

    def decide(self, subject: Subject, base: Any, wanted: Any, actual: Any, halfway: bool = False) -> bool:
        """Whether the target takes ``wanted``; notes what was done already and what conflicts.

        :param halfway: ``actual`` is what our own statements pass through, so that a run which died there
            is gone on with.
        """
        if wanted == base:
            return False
        fact = str(Fact(self.table, subject))
        if actual == wanted:
            self.done.append(fact)
            return False
        if actual == base or halfway or fact in self.overwrite:
            self.take(subject, base, wanted, actual)
            return True
        self.refuse(subject, base, wanted, actual)
        return False

    def take(self, subject: Subject, base: Any, wanted: Any, actual: Any) -> None:
        """The target takes ``wanted``."""
        fact = str(Fact(self.table, subject))
        self.open.append(fact)
        self.opened.append(Conflict(fact, show(base), show(wanted), show(actual)))

    def refuse(self, subject: Subject, base: Any, wanted: Any, actual: Any) -> None:
        """A conflict that no overwriting ends: what the fact rests on is gone."""
        fact = str(Fact(self.table, subject))
        self.conflicts.append(Conflict(fact, show(base), show(wanted), show(actual)))


def show(value: Any) -> str:
    """A value of a fact in words."""
    return "none" if value is None else str(value)
