"""A test double of the engine: it keeps tables in memory and records every call.

It runs no SQL.  A plan supplies the effect of each statement: when the last statement of a step is run, the
step's changes are applied to the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

from icemigrate.changes.change import Change, ChangePhase, SqlStatement
from icemigrate.changes.rename_table import RenameTable
from icemigrate.errors import EngineError, HeadMoved
from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, DEFAULT_FORMAT_VERSION, Snapshot, Table
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX
from icemigrate.iceberg.views import View, ViewQuery
from icemigrate.planning.plan import Plan, TablePlan
from icemigrate.spark.commit_fence import Fence
from icemigrate.spark.engine_port import Engine, Marker, OnProgress
from icemigrate.spark_sql.branch_statements import create_branch_sql

_CREATE_VIEW = re.compile(
    r"CREATE OR REPLACE VIEW (?P<name>\S+) TBLPROPERTIES \('[^']+' = '(?P<creator>[^']+)'\) AS (?P<query>.+)",
    re.DOTALL,
)
_DROP_VIEW = re.compile(r"DROP VIEW IF EXISTS (?P<name>\S+)")


def _without_catalog(name: str) -> tuple[tuple[str, ...], str]:
    """The namespace and the name of a plain name with its catalog."""
    _, *namespace, last = name.split(".")
    return tuple(namespace), last


@dataclass(slots=True)
class RecordingEngine(Engine):
    """An engine for trying a plan out without Java.

    :param tables: by name; statements change them.
    :param effects: effect of a statement on the tables, by its text.
    :param fails: statements, or parts of their text, that fail.
    :param ignores: statements, or parts of their text, that are accepted and have no effect.
    :param log: all calls, in order.
    :param rows: appended rows, by table.
    :param answers: results of queries, by a part of their text; others return no rows.
    :param takes_many_columns: whether it behaves as Spark 4.0 or later.
    :param runs_sql: whether steps run as statements.
    :param known: evidence of tables' files; other tables have none.
    """

    tables: dict[TableName, Table] = field(default_factory=dict)
    effects: dict[str, Callable[[], None]] = field(default_factory=dict)
    fails: set[str] = field(default_factory=set)
    ignores: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    namespaces: set[tuple[str, ...]] = field(default_factory=set)
    markers: list[tuple[TableName, Marker]] = field(default_factory=list)
    rows: dict[TableName, list[Mapping[str, Any]]] = field(default_factory=dict)
    answers: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    catalog_name: str = "lake"
    takes_many_columns: bool = True
    runs_sql: bool = True
    known: dict[TableName, Evidence] = field(default_factory=dict)
    views: dict[TableName, View] = field(default_factory=dict)
    _mutex: Lock = field(default_factory=Lock, repr=False)

    def expect(self, plan: Plan) -> None:
        """Register the effects of the plan's statements."""
        for migration in plan.migrations:
            for table in migration.tables:
                self._expect(table)

    def _expect(self, plan: TablePlan) -> None:
        name = plan.first_name
        version = plan.wanted.format_version if plan.wanted else DEFAULT_FORMAT_VERSION
        for step in plan.all_steps:
            changes = [planned.change for planned in step.changes]
            if isinstance(first := changes[0], RenameTable) and first.makes_way:
                own = replace(first, makes_way=False)
                self.effects[step.statements[0].text] = partial(self._fold, first.table, [own], version)
                continue
            texts = [s.text for s in step.statements if isinstance(s, SqlStatement)]
            if texts and len(texts) == len(step.statements):
                self.effects[texts[-1]] = partial(self._fold, name, changes, version)
            # Only a change of the whole table renames it, and that works on any table.
            renames = [c for c in changes if c.phase in (ChangePhase.TABLE, ChangePhase.REMOVE_TABLE)]
            name = renames[-1].apply(Table(name, Schema())).name if renames else name

    def _fold(self, name: TableName, changes: Sequence[Change], version: int) -> None:
        table = self.tables.pop(name, None) or Table(name, Schema(), format_version=version)
        for change in changes:
            table = change.apply(table)
        self.tables[table.name] = table

    def sql(self, text: str) -> None:
        """Record the statement, and apply its registered effect."""
        if self._takes(text):
            self._change_view(text)
            self.effects.get(text, lambda: None)()

    def _change_view(self, text: str) -> None:
        """Create, replace or drop the view of a statement."""
        if found := _CREATE_VIEW.match(text):
            name = TableName(*_without_catalog(found["name"]))
            properties = {CREATED_BY_PROPERTY: found["creator"]}
            self.views[name] = View(
                name, (ViewQuery("spark", found["query"]),), properties=properties, created_ms=0
            )
        elif found := _DROP_VIEW.match(text):
            self.views.pop(TableName(*_without_catalog(found["name"])), None)

    @contextmanager
    def in_time_zone(self, zone: str) -> Iterator[None]:
        """An ordinary block: no statement is computed here."""
        yield

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Write the statement down."""
        self.sql(text)

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = lambda share: None
    ) -> int:
        """Record the call: there are no files here."""
        self.sql(call)
        return 0

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The registered answer."""
        if not self._takes(text):
            return []
        return next((rows for part, rows in self.answers.items() if part in text), [])

    def evidence(self, name: TableName, questions: EvidenceQuery) -> Evidence:
        """The registered evidence."""
        return self.known.get(name, Evidence())

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Make a namespace."""
        if self._takes(f"create namespace {'.'.join(namespace)}"):
            self.namespaces.add(namespace)

    def drop_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Drop a namespace."""
        inner = (other for other in self.namespaces if other[: len(namespace)] == namespace != other)
        if any(name.namespace == namespace for name in self.tables) or any(inner):
            return False
        if self._takes(f"drop namespace {'.'.join(namespace)}"):
            self.namespaces.discard(namespace)
        return True

    def table(self, name: TableName) -> Table | None:
        """The table as it is now."""
        return self.tables.get(name)

    def view(self, name: TableName) -> View | None:
        """The view as it is now."""
        return self.views.get(name)

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """``None``: there are no metadata files here."""
        return None

    def commit(self, name: TableName, fold: Callable[[Table], Table], holds_rows: bool = False) -> Table:
        """Apply a change to the table."""
        if self._takes(f"commit {name}"):
            self.tables[name] = fold(self.tables[name])
        return self.tables[name]

    def create_branch(self, name: TableName, branch: str) -> None:
        """Run the statement that creates the branch."""
        self.sql(create_branch_sql(self.catalog_name, name, branch))

    @contextmanager
    def guarded(self, guard: Fence) -> Iterator[None]:
        """An ordinary block: no other process changes these tables."""
        yield

    def fence(self, name: TableName, version: str) -> bool:
        """Write it down."""
        return name in self.tables and self._takes(f"fence {name}")

    def set_owner(self, name: TableName, owner: str | None) -> None:
        """Write the owner on the table."""
        if name in self.tables and self._takes(f"owner of {name}: {owner}"):
            self.tables[name] = replace(self.tables[name], owner=owner)

    def create(self, table: Table) -> Table:
        """Make a table."""
        if self._takes(f"create {table.name}"):
            self.tables[table.name] = table
        return table

    def rename(self, name: TableName, new: TableName) -> None:
        """Give a table another name."""
        if self._takes(f"rename {name} to {new}"):
            self.tables[new] = replace(self.tables.pop(name), name=new)

    def mark(self, name: TableName, marker: Marker) -> None:
        """Write the marker down."""
        if self._takes(f"mark {name} {marker.tag}"):
            self.markers.append((name, marker))
            table = self.tables.get(name)
            if table is not None and table.owner is None:
                self.tables[name] = replace(table, owner=marker.project)

    def append(
        self,
        name: TableName,
        rows: Sequence[Mapping[str, Any]],
        properties: Mapping[str, str],
        remove: Sequence[str],
        *,
        expected_head: int | None,
        summary: Mapping[str, str],
    ) -> int:
        """Keep the rows, change the properties and move the head, if it is the expected one."""
        if not self._takes(f"append {name}"):
            return expected_head or 0
        with self._mutex:
            table = self.tables[name]
            if table.snapshot_id != expected_head:
                raise HeadMoved(f"another writer changed table `{name}`", "try again")
            kept = {key: value for key, value in table.properties.items() if key not in remove}
            notes = {
                key.removeprefix(SUMMARY_PREFIX): value
                for key, value in summary.items()
                if key.startswith(SUMMARY_PREFIX)
            }
            new = (expected_head or 0) + 1
            self.tables[name] = replace(
                table,
                properties={**kept, **properties},
                snapshot=Snapshot(new, new, operation="append", notes=notes),
            )
            self.rows.setdefault(name, []).extend(rows)
            return new

    def metadata_location(self, name: TableName) -> str | None:
        """A name that identifies the table's state."""
        table = self.tables.get(name)
        return None if table is None else f"memory:{name}#{len(self.log)}"

    def _takes(self, text: str) -> bool:
        self.log.append(text)
        if any(part in text for part in self.fails):
            raise EngineError(f"refused: {text}")
        return not any(part in text for part in self.ignores)
