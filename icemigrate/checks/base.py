"""What a rule is, what it looks at, and what it finds.

A rule is one file: its docstring is its page (a first line, then ``## Why``, ``## Bad``, ``## Good`` and
``## Instead``), its ``RULE`` says id, name, level and the function that looks at one table of one
migration.  It knows no YAML: it names a table and a subject, and whoever has the file finds the place.

Ids are permanent: one that is given up is never given to another rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from typing import TypeAlias, TypeVar

from icemigrate.changes.base import Change, Hazard, Subject
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.data.retype import Retype
from icemigrate.diagnostics import Severity
from icemigrate.frozen import Frozen
from icemigrate.model.names import Path, TableName, format_path
from icemigrate.model.partitioning import PartitionField
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.types import Field
from icemigrate.plan import PlannedChange, TablePlan

ChangeT = TypeVar("ChangeT", bound=Change)


class Level(str, Enum):
    """How much the findings of a rule weigh; the project file may say it for each."""

    OFF = "off"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def severity(self) -> Severity | None:
        """The severity of its diagnostics; ``None`` where nothing is told."""
        return None if self is Level.OFF else Severity(self.value)


OptionValue: TypeAlias = "str | int"
Options: TypeAlias = Mapping[str, OptionValue]
"""By the option's key; an age is in milliseconds, and one without a value is left out."""


class Option(Frozen):
    """What a project may say to a rule beside its level.

    :param key: ``at_least`` (an age, in milliseconds here), ``at_most`` (a number) or ``pattern`` (a regular
        expression).
    :param value: where the project says nothing; ``None`` where the rule finds nothing then.
    """

    key: str
    value: OptionValue | None
    says: str


class Finding(Frozen):
    """What a rule has to say about a subject of a table.

    :param table: its declared name.
    :param otherwise: the subject where the entry says nothing of the first one.
    """

    table: TableName
    subject: Subject
    message: str
    hint: str | None = None
    otherwise: Subject = ()


class Touched(Frozen, dict=True):
    """One table in one migration, as the rules look at it.

    :param before: the table as declared before; ``None`` where it is new.
    :param unconsented: hazards that the file does not consent to, which is told already.
    """

    plan: TablePlan
    before: Table | None
    unconsented: frozenset[Hazard] = frozenset()

    @property
    def name(self) -> TableName:
        """The declared name."""
        return self.plan.declared

    @property
    def after(self) -> Table | None:
        """The table as declared then, new fields with negative ids; ``None`` where it is dropped."""
        return self.plan.wanted

    @cached_property
    def changes(self) -> tuple[PlannedChange, ...]:
        """All changes in running order."""
        return tuple(self.plan.changes())

    def of(self, kind: type[ChangeT]) -> Iterator[ChangeT]:
        """The changes of one kind."""
        # Kinds have no kinds below them, and asking an abstract class costs ten times as much.
        return (c.change for c in self.changes if type(c.change) is kind)

    @cached_property
    def retypes(self) -> tuple[Retype, ...]:
        """The columns that become ones of another type by having their rows written."""
        return tuple(w.work for w in self.plan.rows if isinstance(w.work, Retype))

    @cached_property
    def added(self) -> tuple[tuple[Path, Field], ...]:
        """The fields that are new, at every depth, with their paths; those of a new table too."""
        new = () if self.after is None else index(self.after.schema).new()
        return tuple((entry.path, entry.field) for _, entry in new)

    @cached_property
    def newly_named(self) -> tuple[tuple[Path, Field], ...]:
        """Those of them that bear a name that was not there: a column of another type has the old one's."""
        retyped = {work.path for work in self.retypes}
        return tuple(pf for pf in self.added if pf[0] not in retyped)

    @cached_property
    def renames(self) -> tuple[RenameColumn, ...]:
        """The renames by a file; what a column is called while it is filled is read by nobody."""
        filled = {work.temporary for work in self.retypes}
        return tuple(rename for rename in self.of(RenameColumn) if rename.path not in filled)

    @cached_property
    def new_properties(self) -> Mapping[str, str]:
        """The properties that are set anew or otherwise."""
        if self.after is None:
            return {}
        old = self.before.properties if self.before else {}
        return dict(sorted(self.after.properties.items() - old.items()))

    @cached_property
    def new_partitions(self) -> tuple[tuple[int, PartitionField], ...]:
        """The partition fields that are new, with their index among those that partition."""
        if self.after is None:
            return ()
        old = {f.definition for f in self.before.spec.live} if self.before else set()
        return tuple((at, f) for at, f in enumerate(self.after.spec.live) if f.definition not in old)

    def finding(self, subject: Subject, message: str, hint: str | None = None) -> Finding:
        """A finding about this table."""
        return Finding(self.name, subject, message, hint)


Find: TypeAlias = Callable[[Touched, Options], Iterator[Finding]]


def finds_nothing(_touched: Touched, _options: Options) -> Iterator[Finding]:
    """What a rule finds in a table that is about something else: comments, or SQL that reads the tables."""
    return iter(())


class Rule(Frozen):
    """A rule.

    :param id: permanent: ``IM104``.
    :param name: kebab-case, which may stand for the id wherever a user names a rule.
    :param docstring: of its module; ``None`` where Python was told to leave those out.
    :param find: looks at one table of one migration.
    """

    id: str
    name: str
    level: Level
    docstring: str | None
    find: Find = finds_nothing
    options: tuple[Option, ...] = ()

    @property
    def page(self) -> str:
        """Its page: the docstring of its module."""
        return (self.docstring or "").strip()

    @property
    def title(self) -> str:
        """What it finds, in one sentence."""
        return self.page.partition("\n")[0].rstrip(".")


def options_of(rule: Rule, said: Options) -> Options:
    """The rule's options, those that nobody set as they are by themselves."""
    defaults = {o.key: o.value for o in rule.options if o.value is not None}
    return {**defaults, **said} if said else defaults


def column(path: Path, *aspect: str) -> Subject:
    """The subject of a column, or of one aspect of it."""
    return ("columns", format_path(path), *aspect)
