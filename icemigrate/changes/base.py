"""What every kind of change answers about itself.

A kind is one file: a frozen dataclass below :class:`Change`.  It finds itself in the difference
of two states of a table (:meth:`Change.detect`), folds itself over a table exactly as Iceberg
would (:meth:`Change.apply`), says how it is done (:meth:`Change.statements`), what it costs
(:meth:`Change.hazards`) and whom it breaks (:meth:`Change.harms`), what forbids it
(:meth:`Change.problems`), and whether there is a way back (:meth:`Change.reversal`).

Fields are named by id; the path beside it is how the field is called when the step runs, for the
statement and for the reader.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from functools import cached_property
from typing import ClassVar, TypeAlias

from icemigrate.frozen import AbstractFrozen, Frozen
from icemigrate.model.names import TableName
from icemigrate.model.schema import Entry, Schema, altered, apart, index
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom

Subject: TypeAlias = tuple[str, ...]
"""What in a table entry a thing is about, e.g. ``("columns", "address.zip", "type")``: a path of
keys as they stand in a migration file, so that a place in the file can be found for it."""


class Phase(IntEnum):
    """The order of changes inside one migration of one table.

    What another change needs gone goes first, what needs another change stands behind it.
    """

    TABLE = 0
    UPGRADE = 10
    FREE_IDENTIFIER = 20
    FREE_ORDER = 30
    FREE_PARTITIONS = 40
    DROP = 50
    RENAME = 60
    ALTER = 70
    RESTORE = 80
    ADD = 90
    MOVE = 100
    PARTITION = 110
    ORDER = 120
    IDENTIFIER = 130
    PROPERTIES = 140
    REFERENCES = 150
    ROWS = 160
    REMOVE_TABLE = 200


class HazardKind(str, Enum):
    """What a migration file must ``allow`` before a change that has it may run."""

    DESTRUCTIVE = "destructive"
    INCOMPATIBLE = "incompatible"
    IRREVERSIBLE = "irreversible"


class Hazard(Frozen):
    """One consent that is needed, and why.

    :param scope: what it concerns, dotted, as ``allow`` may scope it (``market_data.trades.qualifiers``).
    """

    kind: HazardKind
    reason: str
    scope: str


class Reversible(str, Enum):
    """Whether a change can be undone without losing anything."""

    YES = "reversible"
    WHILE = "reversible while"
    NO = "irreversible"


class Reversal(Frozen):
    """The answer with its reason; for ``WHILE`` the reason is the condition."""

    answer: Reversible
    reason: str


class Harm(Frozen):
    """What a change does to those who write the table and do not know of it.

    :param reason: what happens to them, as the end of a sentence that begins with their name.
    """

    whom: Whom
    reason: str


OTHER_PARTITIONING = Harm(Whom.STREAMS, "goes on writing by the partitioning that it started with")
"""Flink's sink and a streaming query take the spec of the table as they loaded it (iceberg #11536)."""


class Problem(Frozen):
    """A change that must not be done, consent or not.

    :param rule: permanent kebab-case identifier of the rule.
    :param hint: the way out.
    """

    rule: str
    table: TableName
    subject: Subject
    message: str
    hint: str | None = None


class Sql(Frozen):
    """A Spark SQL statement, complete: tables stand in it with the catalog before them."""

    text: str


class MetadataCommit(Frozen):
    """What Spark SQL cannot say: one commit through Iceberg's Java API that folds the step's changes
    over the table as it is then (:meth:`Change.apply`), asserting what it read.

    :param summary: the commit in words, for the plan.
    """

    summary: str


class Deferred(Frozen):
    """What hangs on the table's manifests as they are when it runs: its statements are chosen then.

    :param summary: what comes of it, for the plan.
    """

    summary: str


Statement: TypeAlias = Sql | MetadataCommit | Deferred


class Pair(Frozen, dict=True):
    """Two states of one table, fields matched by id: what is there, and what shall be.

    A table that is not there is ``None``.  Fields that shall be new have negative ids in ``after``.
    """

    before: Table | None
    after: Table | None

    @cached_property
    def old(self) -> Mapping[int, Entry]:
        """The fields of ``before`` by id."""
        return index(self.before.schema) if self.before else {}

    @cached_property
    def new(self) -> Mapping[int, Entry]:
        """The fields of ``after`` by id."""
        return index(self.after.schema) if self.after else {}

    @property
    def both(self) -> tuple[Table, Table] | None:
        """Both states, where the table exists before and after."""
        return (self.before, self.after) if self.before and self.after else None

    @cached_property
    def altered(self) -> tuple[tuple[Entry, Entry], ...]:
        """The fields of both sides about which anything differs (but their place), what is below included:
        old entry and new, in the new order."""
        return () if self.both is None else tuple(altered(*(table.schema for table in self.both)))

    @cached_property
    def old_apart(self) -> Mapping[int, Entry]:
        """The fields of ``before`` that do not stay as they are."""
        before, after = (Schema() if table is None else table.schema for table in (self.before, self.after))
        return dict(apart(before, after))


class Change(AbstractFrozen):
    """One change of one table.

    :param table: the table's name when the step runs.
    """

    kind: ClassVar[str]
    """Permanent name of the kind in plan files and records."""
    phase: ClassVar[Phase]
    symbol: ClassVar[str] = "~"
    """How the plan for people marks it: ``+``, ``~``, ``-`` or ``→``."""

    table: TableName

    @classmethod
    @abstractmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """The changes of this kind that lead from ``pair.before`` to ``pair.after``, in running order."""

    @property
    def subject(self) -> Subject:
        """The part of a table entry that this change comes from."""
        return ()

    @abstractmethod
    def apply(self, table: Table) -> Table:
        """The table after the change, ids given as Iceberg gives them.

        Kinds that make or remove a table are asked differently, see ``create_table`` and ``drop_table``.
        """

    @abstractmethod
    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """How it is done on a table in the state ``before`` in the Spark catalog ``catalog``."""

    @classmethod
    def alike(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """The changes, from the first on, that :meth:`combine` says together; none where each is alone."""
        return iter(())

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """Fewer statements for neighbours that are :meth:`alike`."""
        raise AssertionError(f"{cls.kind} stands alone")

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """The consents it needs on a table in the state ``before``."""
        return ()

    def harms(self) -> tuple[Harm, ...]:
        """What it does to those who write the table; whom none of it meets may go on as they are."""
        return ()

    def problems(self, before: Table) -> Iterator[Problem]:
        """Why it must not be done on a table in the state ``before``."""
        return iter(())

    @abstractmethod
    def reversal(self, before: Table) -> Reversal:
        """Whether it can be undone, and why."""

    @abstractmethod
    def describe(self) -> str:
        """The change in a few words, without the table's name."""

    def scope(self) -> str:
        """What ``allow`` may name to consent to just this."""
        return str(self.table)
