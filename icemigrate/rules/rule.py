"""Rules of ``check``, the changed tables that they inspect, and their findings.

A rule is one file: its docstring is its page (a title, then ``## Why``, ``## Bad``, ``## Good`` and
``## Instead``), its ``RULE`` has the id, name, level and the function that inspects one table of one
migration.  A rule does not read YAML: its findings name a table and a subject, which are located later.

Ids are permanent: the id of a removed rule is never reused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias, TypeVar

from icemigrate.changes.change import ALL_PARTS, Change, Hazard, Subject, TablePair, TablePart
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.data_steps.retype import Retype
from icemigrate.diagnostics import Severity
from icemigrate.frozen import Frozen, cached_property
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.partitioning import PartitionField
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table, differing_keys
from icemigrate.iceberg.types import Field
from icemigrate.planning.plan import PlannedChange, TablePlan
from icemigrate.wal.entries import EntryKind

ChangeT = TypeVar("ChangeT", bound=Change)


class RuleLevel(str, Enum):
    """Severity of a rule's findings, which the project file can set."""

    OFF = "off"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def severity(self) -> Severity | None:
        """The severity of its diagnostics; ``None`` if the rule is off."""
        return None if self is RuleLevel.OFF else Severity(self.value)


OptionValue: TypeAlias = "str | int"
RuleOptions: TypeAlias = Mapping[str, OptionValue]
"""Values by the option's key; ages are in milliseconds, and options without a value are missing."""


class RuleOptionSpec(Frozen):
    """An option of a rule, beside its level.

    :param key: ``at_least`` (an age, in milliseconds), ``at_most`` (a number) or ``pattern`` (a regular
        expression).
    :param value: the default; ``None`` if the rule finds nothing without a value.
    """

    key: str
    value: OptionValue | None
    help_text: str


class RuleFinding(Frozen):
    """A finding about a subject of a table.

    :param table: its declared name.
    :param fallback_subject: used if the table's entry does not contain the subject.
    """

    table: TableName
    subject: Subject
    message: str
    hint: str | None = None
    fallback_subject: Subject = ()


class ChangedTable(Frozen, dict=True):
    """One table that a migration changes, with what rules ask about it.

    :param before: the table as declared before the migration; ``None`` if it is new.
    :param unconsented: hazards that the file does not consent to; other diagnostics report them.
    :param telemetry: the kind of telemetry that ``ingest`` writes to the table; ``None`` for other tables.
    """

    plan: TablePlan
    before: Table | None
    unconsented: frozenset[Hazard] = frozenset()
    telemetry: EntryKind | None = None

    @property
    def name(self) -> TableName:
        """The declared name of the table."""
        return self.plan.declared

    @property
    def after(self) -> Table | None:
        """The table as the migration declares it, new fields with negative ids; ``None`` if it is dropped."""
        return self.plan.wanted

    @cached_property
    def changes(self) -> tuple[PlannedChange, ...]:
        """All changes in the order in which they run."""
        return tuple(self.plan.changes())

    def changes_of_kind(self, kind: type[ChangeT]) -> Iterator[ChangeT]:
        """The changes of one kind."""
        # Kinds have no subclasses, and `isinstance` with an abstract class is ten times as slow.
        return (c.change for c in self.changes if type(c.change) is kind)

    @cached_property
    def parts(self) -> frozenset[TablePart]:
        """The parts that change; all of them unless the table exists before and after, and only its
        definition changes.
        """
        plan, before, after = self.plan, self.before, self.after
        if before is None or after is None or plan.formerly != plan.declared or plan.rows:
            return ALL_PARTS
        differing = TablePair(before, after).differing_parts
        return differing.union(*(type(planned.change).compares for planned in self.changes))

    @cached_property
    def retypes(self) -> tuple[Retype, ...]:
        """Changes of a column's type that rewrite its rows."""
        return tuple(w.work for w in self.plan.rows if isinstance(w.work, Retype))

    @cached_property
    def added(self) -> tuple[tuple[FieldPath, Field], ...]:
        """New fields at every depth, with their paths, including those of a new table."""
        new = () if self.after is None else schema_index(self.after.schema).new()
        return tuple((entry.path, entry.field) for _, entry in new)

    @cached_property
    def newly_named(self) -> tuple[tuple[FieldPath, Field], ...]:
        """New fields with a new name: a column that `retype` replaces has its old name."""
        retyped = {work.path for work in self.retypes}
        return tuple(pf for pf in self.added if pf[0] not in retyped)

    @cached_property
    def renames(self) -> tuple[RenameColumn, ...]:
        """Renames that the file declares, without those of the temporary columns of `retype`."""
        temporary = {work.temporary for work in self.retypes}
        return tuple(r for r in self.changes_of_kind(RenameColumn) if r.path not in temporary)

    @cached_property
    def new_properties(self) -> Mapping[str, str]:
        """Properties that are added or changed."""
        if self.after is None:
            return {}
        old = self.before.properties if self.before else {}
        new = self.after.properties
        return {key: new[key] for key in sorted(differing_keys(old, new)) if key in new}

    @cached_property
    def new_partitions(self) -> tuple[tuple[int, PartitionField], ...]:
        """New partition fields, with their index among the fields that partition the table."""
        if self.after is None:
            return ()
        old = {f.definition for f in self.before.spec.live} if self.before else set()
        return tuple((at, f) for at, f in enumerate(self.after.spec.live) if f.definition not in old)

    def finding(self, subject: Subject, message: str, hint: str | None = None) -> RuleFinding:
        """A finding about this table."""
        return RuleFinding(self.name, subject, message, hint)


RuleFunction: TypeAlias = Callable[[ChangedTable, RuleOptions], Iterator[RuleFinding]]


def finds_nothing(_changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """The function of a rule that inspects no tables, but comments or SQL."""
    return iter(())


class Rule(Frozen):
    """A rule of ``check``.

    :param id: permanent, such as ``IM104``.
    :param name: in kebab-case; users can write it instead of the id.
    :param docstring: of its module; ``None`` if Python runs without docstrings.
    :param find: inspects one table of one migration.
    :param inspects: the parts of which one has changed where it finds anything in an existing table whose
        name and rows the migration leaves alone.
    """

    id: str
    name: str
    level: RuleLevel
    docstring: str | None
    find: RuleFunction = finds_nothing
    options: tuple[RuleOptionSpec, ...] = ()
    inspects: frozenset[TablePart] = ALL_PARTS

    def is_needed(self, parts: frozenset[TablePart]) -> bool:
        """Whether it can find something in a table of which only these parts change."""
        return parts is ALL_PARTS or not parts.isdisjoint(self.inspects)

    @property
    def page(self) -> str:
        """The page of the rule, in Markdown."""
        return (self.docstring or "").strip()

    @property
    def title(self) -> str:
        """What the rule finds, in one sentence without a period."""
        return self.page.partition("\n")[0].rstrip(".")


def options_of(rule: Rule, configured: RuleOptions) -> RuleOptions:
    """The rule's options: the configured ones, and defaults for the others."""
    defaults = {o.key: o.value for o in rule.options if o.value is not None}
    return {**defaults, **configured} if configured else defaults


def column_subject(path: FieldPath, *aspect: str) -> Subject:
    """The subject of a column, or of one of its aspects."""
    return ("columns", format_path(path), *aspect)
