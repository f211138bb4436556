"""The interface of a kind of change.

A kind is a frozen class below :class:`Change`.  It detects its changes in the difference of two states of a
table (:meth:`Change.detect`), computes the table after the change exactly as Iceberg would
(:meth:`Change.apply`), and has its statements (:meth:`Change.statements`), its hazards
(:meth:`Change.hazards`), its impact on writers (:meth:`Change.writer_impacts`), what forbids it
(:meth:`Change.problems`), and whether it can be undone (:meth:`Change.reversal`).

Fields are identified by id; the path beside it is the field's path when the step runs, for the statement
and for the reader.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from typing import ClassVar, Literal, TypeAlias, get_args

from icemigrate.frozen import AbstractFrozen, Frozen, cached_property, field
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import IndexedField, Schema, altered_fields, differing_fields, schema_index
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table

Subject: TypeAlias = tuple[str, ...]
"""A part of a table entry, such as ``("columns", "address.zip", "type")``: a path of keys as in a migration
file, from which its position in the file is found."""


TablePart: TypeAlias = Literal[
    "fields", "identifier", "spec", "sort_order", "properties", "format_version", "refs"
]
"""A part of a table that changes compare."""
ALL_PARTS: frozenset[TablePart] = frozenset(get_args(TablePart))


class ChangePhase(IntEnum):
    """Order of changes within one migration of one table.

    A change that makes room for another runs before it; a change that needs another runs after it.
    """

    TABLE = 0
    FREE_VIEWS = 5
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
    VIEWS = 170
    REMOVE_TABLE = 200


class HazardKind(str, Enum):
    """A kind of hazard, which the migration file must ``allow`` before the change may run."""

    DESTRUCTIVE = "destructive"
    INCOMPATIBLE = "incompatible"
    IRREVERSIBLE = "irreversible"


class Hazard(Frozen):
    """A destructive, incompatible or irreversible effect of a change, which needs consent.

    :param scope: what it affects, as ``allow`` may name it, such as ``market_data.trades.qualifiers``.
    """

    kind: HazardKind
    reason: str
    scope: str


class Reversibility(str, Enum):
    """Whether a change can be undone without losing anything."""

    YES = "reversible"
    WHILE = "reversible while"
    NO = "irreversible"


class Reversal(Frozen):
    """Whether a change can be undone, with the reason; for ``WHILE`` the reason is the condition."""

    answer: Reversibility
    reason: str


class WriterImpact(Frozen):
    """What a change does to writers of the table that are not updated.

    :param reason: a verb phrase whose subject is the writer.
    """

    writer_kind: WriterKind
    reason: str


STALE_PARTITIONING_IMPACT = WriterImpact(
    WriterKind.STREAMS, "keeps writing with the partitioning that it started with"
)
"""Flink's sink and a streaming query keep the spec of the table that they loaded (iceberg #11536)."""


class PlanProblem(Frozen):
    """A change that is refused, with or without consent.

    :param rule: permanent kebab-case identifier of the rule.
    :param hint: what to do instead.
    """

    rule: str
    table: TableName
    subject: Subject
    message: str
    hint: str | None = None


class SqlStatement(Frozen):
    """A complete Spark SQL statement, with the catalog in the names of tables."""

    text: str = field(name="sql")


class MetadataCommit(Frozen):
    """One commit through Iceberg's Java API, for changes that Spark SQL cannot express.

    It applies the step's changes to the current table (:meth:`Change.apply`) and asserts what it read.

    :param summary: the commit in words, for the plan.
    """

    summary: str = field(name="metadata_commit")

    @property
    def text(self) -> str:
        """The commit as it is recorded."""
        return f"metadata commit: {self.summary}"


class DeferredStatement(Frozen):
    """Statements that are chosen when the step runs, from the table's manifests.

    :param summary: the result in words, for the plan.
    """

    summary: str = field(name="deferred")

    @property
    def text(self) -> str:
        """The statements as they are recorded."""
        return f"when it runs: {self.summary}"


Statement: TypeAlias = SqlStatement | MetadataCommit | DeferredStatement


class TablePair(Frozen, dict=True):
    """Two states of one table, before and after a migration, with fields matched by id.

    A table that does not exist is ``None``.  New fields have negative ids in ``after``.
    """

    before: Table | None
    after: Table | None

    @cached_property
    def old(self) -> Mapping[int, IndexedField]:
        """The fields of ``before`` by id."""
        return schema_index(self.before.schema) if self.before else {}

    @cached_property
    def new(self) -> Mapping[int, IndexedField]:
        """The fields of ``after`` by id."""
        return schema_index(self.after.schema) if self.after else {}

    @property
    def both(self) -> tuple[Table, Table] | None:
        """Both states; ``None`` unless the table exists before and after."""
        return (self.before, self.after) if self.before and self.after else None

    @cached_property
    def differing_parts(self) -> frozenset[TablePart]:
        """The parts that differ; all of them unless the table exists before and after."""
        return ALL_PARTS if self.both is None else frozenset(_differing_parts(*self.both))

    @cached_property
    def altered(self) -> tuple[tuple[IndexedField, IndexedField], ...]:
        """Fields of both states that differ in more than their position, nested ones included: old entry and
        new, in the new order."""
        return () if self.both is None else tuple(altered_fields(*(table.schema for table in self.both)))

    @cached_property
    def old_apart(self) -> Mapping[int, IndexedField]:
        """The fields of ``before`` that change or are dropped, by id."""
        before, after = (Schema() if table is None else table.schema for table in (self.before, self.after))
        return dict(differing_fields(before, after))


def _differing_parts(old: Table, new: Table) -> Iterator[TablePart]:
    """The parts that differ; an unchanged part is mostly the same object in both tables."""
    if old.schema is not new.schema:
        if old.schema.fields != new.schema.fields:
            yield "fields"
        if old.schema.identifier_ids != new.schema.identifier_ids:
            yield "identifier"
    if old.spec is not new.spec and old.spec.definitions != new.spec.definitions:
        yield "spec"
    if old.sort_order is not new.sort_order and old.sort_order.fields != new.sort_order.fields:
        yield "sort_order"
    if old.properties is not new.properties and old.properties != new.properties:
        yield "properties"
    if old.format_version != new.format_version:
        yield "format_version"
    if old.refs is not new.refs and old.refs != new.refs:
        yield "refs"


class Change(AbstractFrozen):
    """One change of one table.

    :param table: the table's name when the step runs.
    """

    kind: ClassVar[str]
    """Permanent name of the kind in plan files and records."""
    phase: ClassVar[ChangePhase]
    compares: ClassVar[frozenset[TablePart]] = ALL_PARTS
    """The parts of which at least one differs where a change of this kind is needed, so that it need not be
    detected otherwise; without a declaration it always is."""
    symbol: ClassVar[str] = "~"
    """Its mark in the text of a plan: ``+``, ``~``, ``-`` or ``→``."""

    table: TableName

    @classmethod
    @abstractmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The changes of this kind from ``pair.before`` to ``pair.after``, in running order."""

    @property
    def subject(self) -> Subject:
        """The part of a table entry that this change comes from."""
        return ()

    @abstractmethod
    def apply(self, table: Table) -> Table:
        """The table after the change, with ids assigned as Iceberg assigns them.

        For kinds that create or drop a table, see ``create_table`` and ``drop_table``.
        """

    @classmethod
    def apply_all(cls, changes: Sequence[Change], table: Table) -> Iterator[Table]:
        """The table before each of some changes of this kind, and after the last."""
        yield table
        for change in changes:
            table = change.apply(table)
            yield table

    def lacks(self, table: Table) -> Iterator[str]:
        """Fields and other parts that the change needs and the table does not have, each in a few words.

        An exception of :meth:`apply` on a table that lacks nothing is a bug.
        """
        return iter(())

    @abstractmethod
    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """The statements for a table in the state ``before`` in the Spark catalog ``catalog``."""

    @classmethod
    def combinable(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """The leading changes that :meth:`combine` can combine; none if the kind combines nothing."""
        return iter(())

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """Fewer statements for neighbours that are :meth:`combinable`."""
        raise AssertionError(f"{cls.kind} cannot be combined")

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """The hazards of the change on a table in the state ``before``."""
        return ()

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        """Its impacts on writers of the table; a writer without an impact needs no change."""
        return ()

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """Why the change is refused on a table in the state ``before``."""
        return iter(())

    @abstractmethod
    def reversal(self, before: Table) -> Reversal:
        """Whether it can be undone, and why."""

    @abstractmethod
    def describe(self) -> str:
        """The change in a few words, without the table's name."""

    def scope(self) -> str:
        """What ``allow`` may name to consent to this change only."""
        return str(self.table)
