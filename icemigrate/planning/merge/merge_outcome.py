"""Facts, and the result of comparing their three values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from icemigrate.changes.change import Subject
from icemigrate.frozen import Frozen, PartlyCompared
from icemigrate.iceberg.names import TableName

ABSENT = "(absent)"


class ShownValue(PartlyCompared):
    """A value that is compared by its key and shown by its text."""

    uncompared = frozenset({"text"})

    key: Any
    text: str

    def __str__(self) -> str:
        return self.text


class Fact(Frozen):
    """One aspect of a table that is as before, as wanted, or different from both.

    :param subject: keys as in a table entry, e.g. ``("columns", "price", "type")``.
    """

    table: TableName
    subject: Subject

    def __str__(self) -> str:
        return f"{self.table}:{'.'.join(self.subject)}"

    def is_about(self, subject: Subject) -> bool:
        """Whether it is a fact of a column or setting, or of a part of it."""
        own, other = ".".join(self.subject), ".".join(subject)
        return own == other or own.startswith(f"{other}.")


UNKNOWN_BASE = "(unknown to the history)"
"""The base of a conflict about a table that the history does not have."""


NO_TABLE = "no such table in the catalog"
OTHER_TABLE = "another table, which is not the recorded one"
RECREATED_TABLE = "another table, which was created again under the name"
"""Values of a table's name in a conflict."""


class Conflict(PartlyCompared):
    """A fact that is neither as before nor as wanted; the three values as text.

    :param resolutions: what a user can do, each tried by planning; see
        :mod:`icemigrate.commands.conflict_resolutions`.
    """

    uncompared = frozenset({"resolutions"})

    fact: str
    base: str
    wanted: str
    actual: str
    resolutions: tuple[str, ...] = ()


@dataclass(slots=True)
class MergeOutcome:
    """Collects the results of comparing facts.

    :ivar keep: facts that keep their current value, as if the file declared it.
    """

    table: TableName
    overwrite: frozenset[str]
    keep: frozenset[str] = frozenset()
    done: list[Fact] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    opened: list[Conflict] = field(default_factory=list)
    """The facts of :attr:`open` with their values, for callers that may refuse them."""

    def decide(self, subject: Subject, base: Any, wanted: Any, actual: Any, halfway: bool = False) -> bool:
        """Whether the target takes ``wanted``; adds finished facts and conflicts to the results.

        :param halfway: whether ``actual`` is an intermediate value of our own statements, so that an
            interrupted run is continued.
        """
        if wanted == base:
            return False
        fact = Fact(self.table, subject)
        if actual == wanted:
            self.done.append(fact)
            return False
        if actual == base or halfway or str(fact) in self.overwrite:
            self.take(subject, base, wanted, actual)
            return True
        self.refuse(subject, base, wanted, actual)
        return False

    def take(self, subject: Subject, base: Any, wanted: Any, actual: Any) -> None:
        """Take ``wanted`` for the target."""
        fact = str(Fact(self.table, subject))
        self.open.append(fact)
        self.opened.append(
            Conflict(fact, fact_value_text(base), fact_value_text(wanted), fact_value_text(actual))
        )

    def refuse(self, subject: Subject, base: Any, wanted: Any, actual: Any) -> None:
        """Add a conflict that ``--overwrite`` cannot resolve: the fact depends on something that is gone."""
        fact = str(Fact(self.table, subject))
        if fact in self.keep:
            return
        self.conflicts.append(
            Conflict(fact, fact_value_text(base), fact_value_text(wanted), fact_value_text(actual))
        )


def fact_value_text(value: Any) -> str:
    """A value of a fact in words."""
    return "none" if value is None else str(value)
