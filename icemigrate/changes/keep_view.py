"""Views that keep the old column names of a table readable: created, replaced and dropped.

The property is set and removed by a metadata commit, which also works on a table that Spark cannot load.

A view runs after the table is published, and its table property is set after it.  So a run that continues an
interrupted one finds the property missing, and creates the view again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    MetadataCommit,
    PlanProblem,
    Reversal,
    SqlStatement,
    Statement,
    Subject,
    TablePair,
    TablePart,
)
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.statement_shapes import always_reversible
from icemigrate.frozen import replace
from icemigrate.iceberg.kept_views import KeptView, is_kept_view_key, kept_view, view_name
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.retention import format_duration
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, Table, differing_keys, made_by, owner_of
from icemigrate.iceberg.views import View
from icemigrate.spark_sql.identifiers import quote, table_sql
from icemigrate.spark_sql.literals import listed_sql, properties_sql
from icemigrate.spark_sql.type_sql import are_names_distinct, spark_loads

_MOST_NAMED = 5
VIEW_PHASES = (ChangePhase.FREE_VIEWS, ChangePhase.VIEWS)
"""The phases of the changes of kept views."""
MISSING_COLUMN = "keep-view-column"
"""The rule of a view that reads a column which the table does not have."""
CHANGED_VIEW = "another client created or changed it"
"""Why a view stays that icemigrate would drop."""


class KeptViewChange(Change):
    """A change of one kept view.

    :param view: the view after the change, or the one that is dropped.
    """

    view: KeptView

    @property
    def view_name(self) -> TableName:
        """The name of the view in the catalog."""
        return view_name(self.table, self.view.name)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("keep_view",)

    @abstractmethod
    def known_views(self) -> tuple[KeptView, ...]:
        """The definitions that the view in the catalog may have before the change."""

    def is_own(self, found: View, catalog: str) -> bool:
        """Whether a view in the catalog is as icemigrate created it.

        :param catalog: the catalog's name in Spark SQL.
        """
        return any(is_kept_view(found, self.table, view, catalog) for view in self.known_views())


class SetKeptView(KeptViewChange):
    """The creation or the replacement of a view."""

    phase: ClassVar[ChangePhase] = ChangePhase.VIEWS
    unreadable_hint: ClassVar[str] = "remove `keep_view`"

    def apply(self, table: Table) -> Table:
        """The table with the property that names the view."""
        return replace(table, properties={**table.properties, self.view.key: self.view.value})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``CREATE OR REPLACE VIEW``, and the commit of the table property that names the view."""
        owner = owner_of(before)
        creator = self.view.version if owner is None else made_by(owner, self.view.version)
        create = (
            f"CREATE OR REPLACE VIEW {table_sql(catalog, self.view_name)} "
            f"TBLPROPERTIES {properties_sql({CREATED_BY_PROPERTY: creator})} "
            f"AS {query_sql(catalog, self.table, self.view)}"
        )
        return (SqlStatement(create), MetadataCommit(f"set property {self.view.key}"))

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """A table that Spark cannot read, and a column that another client renamed or dropped."""
        if not (spark_loads(before.schema) and are_names_distinct(before.schema)):
            yield self._problem(
                "keep-view-unreadable",
                f"Spark cannot read `{self.table}`, so it cannot create view `{self.view.name}`",
                self.unreadable_hint,
            )
        names = {field.name for field in before.schema.fields}
        lost = [format_path((new,)) for _, new in self.view.columns if new not in names]
        if lost:
            yield self._problem(
                MISSING_COLUMN,
                f"view `{self.view.name}` reads `{lost[0]}`, and the table has no column of this name",
                "another client renamed or dropped it: `icemigrate drift --accept` declares that",
            )

    def _problem(self, rule: str, message: str, hint: str) -> PlanProblem:
        return PlanProblem(rule, self.table, self.subject, message, hint)


class KeepView(SetKeptView):
    """Create a view with the column names from before the migration."""

    kind: ClassVar[str] = "keep_view"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"properties"})
    symbol: ClassVar[str] = "+"

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The views that are new, by name."""
        for before, old, new in _differing_views(pair):
            if old is None and new is not None:
                yield cls(before.name, new)

    def known_views(self) -> tuple[KeptView, ...]:
        """An interrupted run may have created the view."""
        return (self.view,)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing drops the view")

    def describe(self) -> str:
        """The old names, how long they are kept, and the columns that the view does not have."""
        age = format_duration(self.view.max_age_ms)
        return f"view {self.view.name}{_names_text(self.view)}, for {age}"


class ReplaceKeptView(SetKeptView):
    """Replace a kept view, because a column that it reads, or its table, has another name or type.

    :param previous: the view before.
    """

    kind: ClassVar[str] = "replace_kept_view"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"properties"})
    unreadable_hint: ClassVar[str] = "drop the columns that Spark cannot read first"

    previous: KeptView

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The views that differ, by name."""
        for before, old, new in _differing_views(pair):
            if old is not None and new is not None and old != new:
                yield cls(before.name, new, old)

    def known_views(self) -> tuple[KeptView, ...]:
        """An interrupted run may have replaced the view."""
        return (self.previous, self.view)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing replaces the view again")

    def describe(self) -> str:
        kept = {old for old, _ in self.view.columns}
        gone = [old for old, _ in self.previous.columns if old not in kept]
        without = f", without {', '.join(map(_shown, gone))}" if gone else ""
        return f"replace view {self.view.name}{_names_text(self.view)}{without}"


class DropKeptView(KeptViewChange):
    """Drop a kept view.

    It runs before the table changes, so that no reader finds a view that cannot be read.
    """

    kind: ClassVar[str] = "drop_kept_view"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"properties"})
    phase: ClassVar[ChangePhase] = ChangePhase.FREE_VIEWS
    symbol: ClassVar[str] = "-"

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The views that are gone, by name."""
        for before, old, new in _differing_views(pair):
            if old is not None and new is None:
                yield cls(before.name, old)

    def known_views(self) -> tuple[KeptView, ...]:
        return (self.view,)

    def apply(self, table: Table) -> Table:
        """The table without the property that names the view."""
        return without_kept_view(table, self.view)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``DROP VIEW``, and the removal of the table property."""
        return drop_view_statements(catalog, self.table, self.view)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing creates the view again")

    def describe(self) -> str:
        return f"view {self.view.name}"


def missing_column_notes(changes: Iterable[Change]) -> Iterator[str]:
    """A note for each new view without a column that the same migration drops.

    :param changes: those of one table.
    """
    changes = tuple(changes)
    for change in changes:
        if type(change) is not KeepView:
            continue
        kept = {old for old, _ in change.view.columns}
        dropped = [c.path for c in changes if isinstance(c, DropColumn) and len(c.path) == 1]
        if lost := [format_path(path) for path in dropped if path[0] not in kept]:
            yield f"view {change.view.name} does not have {', '.join(lost)}, which the migration drops"


def drop_view_statements(catalog: str, table: TableName, view: KeptView) -> tuple[Statement, ...]:
    """``DROP VIEW``, and the commit that removes the table property that names the view."""
    name = table_sql(catalog, view_name(table, view.name))
    return (SqlStatement(f"DROP VIEW IF EXISTS {name}"), MetadataCommit(f"remove property {view.key}"))


def without_kept_view(table: Table, view: KeptView) -> Table:
    """The table without the property that names a view."""
    return replace(table, properties={k: v for k, v in table.properties.items() if k != view.key})


def query_sql(catalog: str, table: TableName, view: KeptView) -> str:
    """The query of a view.

    :param table: the table; its name without the namespace is that of the view's definition.
    """
    columns = [quote(new) if new == old else f"{quote(new)} AS {quote(old)}" for old, new in view.columns]
    source = table_sql(catalog, TableName(table.namespace, view.table))
    return f"SELECT{listed_sql(columns)} FROM {source}"


def is_kept_view(found: View, table: TableName, view: KeptView, catalog: str) -> bool:
    """Whether a view in the catalog has the creator and the query of a kept view."""
    creator = found.properties.get(CREATED_BY_PROPERTY, "")
    is_created_here = creator.rpartition("/")[2] == view.version
    query = query_sql(catalog, table, view)
    return is_created_here and any(q.dialect == "spark" and q.sql == query for q in found.queries)


def _differing_views(pair: TablePair) -> Iterator[tuple[Table, KeptView | None, KeptView | None]]:
    """The table before, and each view that differs: before and after."""
    if pair.both is None:
        return
    before, after = pair.both
    for key in sorted(filter(is_kept_view_key, differing_keys(before.properties, after.properties))):
        old, new = (
            kept_view(key, t.properties[key]) if key in t.properties else None for t in (before, after)
        )
        yield before, old, new


def _names_text(view: KeptView) -> str:
    """The columns with an old name, as the end of a description; empty without one."""
    shown = [f"{_shown(new)} as {_shown(old)}" for old, new in view.renamed[:_MOST_NAMED]]
    if len(view.renamed) > _MOST_NAMED:
        shown.append(f"{len(view.renamed) - _MOST_NAMED} more")
    return f" with {', '.join(shown)}" if shown else ""


def _shown(name: str) -> str:
    return format_path((name,))
