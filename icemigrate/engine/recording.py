"""The engine that is none: it keeps tables in memory and writes down what it was asked for.

It speaks no SQL.  A plan tells it what each statement comes to: when the last one of a step is run, the
step's changes are folded over the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

from icemigrate.changes.base import Change, Phase, Sql
from icemigrate.engine.guard import Guard
from icemigrate.engine.port import Engine, Marker, OnProgress
from icemigrate.errors import EngineError, HeadMoved
from icemigrate.frozen import replace
from icemigrate.model.evidence import Evidence, Questions
from icemigrate.model.names import TableName
from icemigrate.model.reserved import SUMMARY_PREFIX
from icemigrate.model.schema import Schema
from icemigrate.model.table import DEFAULT_FORMAT_VERSION, Snapshot, Table
from icemigrate.plan import Plan, TablePlan


@dataclass(slots=True)
class RecordingEngine(Engine):
    """An engine for trying a plan out without Java.

    :param tables: by name; changed by what is run.
    :param effects: what a statement does to the tables, by its text.
    :param fails: statements, or parts of their text, that fail.
    :param ignores: statements, or parts of their text, that are accepted and do nothing.
    :param log: all that was asked for, in order.
    :param rows: what was appended, by table.
    :param answers: what queries give, by a part of their text; others give no rows.
    :param takes_many_columns: as a Spark of 4.0 or later.
    :param known: what is known of tables' files; of others nothing.
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
    known: dict[TableName, Evidence] = field(default_factory=dict)
    _mutex: Lock = field(default_factory=Lock, repr=False)

    def expect(self, plan: Plan) -> None:
        """Learn what the plan's statements come to."""
        for migration in plan.migrations:
            for table in migration.tables:
                self._expect(table)

    def _expect(self, plan: TablePlan) -> None:
        name = plan.name
        version = plan.wanted.format_version if plan.wanted else DEFAULT_FORMAT_VERSION
        for step in plan.all_steps:
            changes = [planned.change for planned in step.changes]
            texts = [s.text for s in step.statements if isinstance(s, Sql)]
            if texts and len(texts) == len(step.statements):
                self.effects[texts[-1]] = partial(self._fold, name, changes, version)
            # Only a change of the whole table renames it, and that works on any table.
            renames = [c for c in changes if c.phase in (Phase.TABLE, Phase.REMOVE_TABLE)]
            name = renames[-1].apply(Table(name, Schema())).name if renames else name

    def _fold(self, name: TableName, changes: Sequence[Change], version: int) -> None:
        table = self.tables.pop(name, None) or Table(name, Schema(), format_version=version)
        for change in changes:
            table = change.apply(table)
        self.tables[table.name] = table

    def sql(self, text: str) -> None:
        """Write the statement down, and do what the plan says it does."""
        if self._takes(text):
            self.effects.get(text, lambda: None)()

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        """Write the statement down."""
        self.sql(text)

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = lambda share: None
    ) -> int:
        """Write the call down: there are no files here."""
        self.sql(call)
        return 0

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The answer that was given beforehand."""
        if not self._takes(text):
            return []
        return next((rows for part, rows in self.answers.items() if part in text), [])

    def evidence(self, name: TableName, questions: Questions) -> Evidence:
        """What was said that it is."""
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

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """Nothing: there are no metadata files here."""
        return None

    def commit(self, name: TableName, fold: Callable[[Table], Table], holds_rows: bool = False) -> Table:
        """Fold a change over the table."""
        if self._takes(f"commit {name}"):
            self.tables[name] = fold(self.tables[name])
        return self.tables[name]

    @contextmanager
    def guarded(self, guard: Guard) -> Iterator[None]:
        """A block like any other: nothing here is changed by anybody else."""
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
                raise HeadMoved(f"table `{name}` was changed by somebody else meanwhile", "try again")
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
        """A name that tells the table's states apart."""
        table = self.tables.get(name)
        return None if table is None else f"memory:{name}#{len(self.log)}"

    def _takes(self, text: str) -> bool:
        self.log.append(text)
        if any(part in text for part in self.fails):
            raise EngineError(f"refused: {text}")
        return not any(part in text for part in self.ignores)
