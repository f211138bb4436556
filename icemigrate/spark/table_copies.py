"""Structural copies of tables, on which statements run without touching the tables themselves.

A copy is a table's metadata without snapshots, references, logs, statistics and older schemas, in a catalog
that lives in the memory of the session's JVM (Iceberg's ``InMemoryCatalog``): Spark takes it for a table like
any other, no file is written anywhere, and no manifest is read.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import count
from typing import Any

from icemigrate.changes.change import Change, ChangePhase, SqlStatement
from icemigrate.changes.keep_view import KeptViewChange
from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import merge_tables
from icemigrate.planning.plan import Step
from icemigrate.planning.steps import render_statements
from icemigrate.spark.java_errors import convert_java_errors, spark_error_summary
from icemigrate.spark.java_manifests import iterate_java
from icemigrate.spark.publish import apply_step, statement_texts
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark.statement_events import StatementAnnouncer

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_IN_MEMORY = "org.apache.iceberg.inmemory.InMemoryCatalog"
_EMPTY: Mapping[str, Any] = {
    "snapshots": [],
    "refs": {},
    "snapshot-log": [],
    "metadata-log": [],
    "statistics": [],
    "partition-statistics": [],
    "current-snapshot-id": -1,
}
_VERSIONS = 20
"""How many versions of a schema gather on a copy: each statement reads them all and writes them anew."""
_NOT_PLANNED = "Error occurred during query planning:"
"""How Spark's ``EXPLAIN`` begins where it does not understand a statement."""
_numbers = count(1)


class TableCopies:
    """A catalog of copies beside that of an engine; tables keep their names in it.

    :param engine: the engine that owns the session; its own catalog is neither read nor changed here.
    """

    def __init__(self, engine: SparkEngine) -> None:
        self._session = engine.session
        self._real = engine.catalog_name
        # A session keeps a catalog after its first use, so each set of copies has one of its own.
        self._name = f"icemigrate_scratch_{next(_numbers)}"
        for key, value in {"": _CATALOG, ".catalog-impl": _IN_MEMORY, ".cache-enabled": "false"}.items():
            self._session.conf.set(f"spark.sql.catalog.{self._name}{key}", value)
        self.engine = SparkEngine(self._session, self._name, is_own=engine.is_own)
        self._namespaces: set[tuple[str, ...]] = set()

    def add(self, name: TableName, metadata: Mapping[str, Any]) -> None:
        """Copy a table.

        :param metadata: the JSON of its metadata file.
        """
        location = f"memory:/{self._name}/{uuid.uuid4()}"
        file = f"{location}/metadata/00000.metadata.json"
        iceberg = self.engine.java.iceberg
        text = json.dumps(structural_metadata(metadata, location))
        if name.namespace not in self._namespaces:
            self.engine.create_namespace(name.namespace)
            self._namespaces.add(name.namespace)
        copied = iceberg.TableMetadataParser.fromJson(text)
        # The files of all in-memory catalogs of a JVM share one file system.
        target = iceberg.inmemory.InMemoryFileIO().newOutputFile(file)
        iceberg.TableMetadataParser.overwrite(copied, target)
        self.engine.java.catalog.registerTable(self.engine.java.identifier(name), file)

    def remove(self, name: TableName) -> None:
        """Forget a copy."""
        self.engine.java.catalog.dropTable(self.engine.java.identifier(name), True)

    def run(self, step: Step, current: Table, announcer: StatementAnnouncer) -> Table:
        """Run a step's statements on the copy of its table.

        References and rows are left out: a copy has no snapshot.  So are views: a copy only gets the property
        that names them.

        :param current: the predicted table before it, with references.
        :returns: the predicted table after it.
        :raises EngineError: a statement would fail on the table, too.
        """
        if not step.statements:
            return apply_step(step, current)
        changes = [
            c.change for c in step.changes if c.change.phase not in (ChangePhase.REFERENCES, ChangePhase.ROWS)
        ]
        if not changes or isinstance(changes[0], KeptViewChange):
            for statement in step.statements:
                with announcer.statement(current.name, statement.text, on_copy=True):
                    pass
            if changes:
                self.engine.commit(current.name, _applying(changes))
        elif isinstance(step.statements[0], SqlStatement):
            self._statements(changes, current, announcer)
        else:
            with announcer.statement(current.name, step.statements[0].text, on_copy=True):
                self.engine.commit(current.name, _applying(changes))
        return apply_step(step, current)

    def query_planning_error(self, text: str) -> str | None:
        """Why Spark would not run a statement or a query on the tables; ``None`` where it would."""
        try:
            plan = self.engine.ask(f"EXPLAIN {text}")
        except EngineError as error:
            return error.message.replace(self._name, self._real)
        text_of_plan = "\n".join(str(row[0]) for row in plan)
        if not text_of_plan.startswith(_NOT_PLANNED):
            return None
        return spark_error_summary(text_of_plan.removeprefix(_NOT_PLANNED)).replace(self._name, self._real)

    def _statements(self, changes: Sequence[Change], current: Table, announcer: StatementAnnouncer) -> None:
        shown, here = (render_statements(changes, current, catalog) for catalog in (self._real, self._name))
        for number, (real, copied) in enumerate(zip(shown, here, strict=True), start=1):
            assert isinstance(copied, SqlStatement), "a step is said in SQL as a whole, or is one commit"
            with announcer.statement(current.name, real.text, on_copy=True):
                for text in statement_texts(self.engine, copied, changes, current):
                    self._sql(text)
            if number % _VERSIONS == 0:
                self._forget_schemas(current.name)

    def _forget_schemas(self, name: TableName) -> None:
        """Remove the schema versions that statements have left in a copy."""
        with convert_java_errors():
            operations = self.engine.java.table(name).operations()
            base = operations.current()
            old = self.engine.java.jvm.java.util.HashSet()
            for schema in iterate_java(base.schemas()):
                if schema.schemaId() != base.currentSchemaId():
                    old.add(schema.schemaId())
            builder = self.engine.java.iceberg.TableMetadata.buildFrom(base)
            operations.commit(base, builder.removeSchemas(old).build())

    def _sql(self, text: str) -> None:
        try:
            self.engine.sql(text)
        except EngineError as error:
            # The user knows the table, not its copy.
            message = error.message.replace(self._name, self._real)
            raise EngineError(message, error.hint) from error

    def close(self) -> None:
        """Close the catalog; remaining copies are dropped with it."""
        catalog = self.engine.java.catalog
        for namespace in catalog.listNamespaces():
            for identifier in catalog.listTables(namespace):
                catalog.dropTable(identifier, True)
        for key in ("", ".catalog-impl", ".cache-enabled"):
            self._session.conf.unset(f"spark.sql.catalog.{self._name}{key}")


def structural_metadata(metadata: Mapping[str, Any], location: str) -> dict[str, Any]:
    """The part of a table's metadata that structural statements read, under another location.

    :param metadata: the JSON of a metadata file.
    """
    copied = {**metadata, **_EMPTY, "location": location}
    current = metadata.get("current-schema-id")
    if current is not None:
        # A hundred versions of a wide schema would be written anew with each statement.
        copied["schemas"] = [dict(s) for s in metadata["schemas"] if s["schema-id"] == current]
    return copied


def copy_differences(wanted: Table, before: Table, copy: Table) -> tuple[str, ...]:
    """Differences between a copy and its expected state, with field ids.

    Additional properties that Spark sets are no difference.

    :param wanted: ``before`` after the changes.
    :param before: the table before them.
    """
    left, right = (_comparable(table, before, wanted) for table in (wanted, copy))
    facts = merge_tables(right, left, right).open
    if facts or left == right:
        return facts
    return tuple(
        f"{wanted.name}: the {part} is another"
        for part, one, other in (
            ("schema", left.schema, right.schema),
            ("partition spec", left.spec, right.spec),
            ("sort order", left.sort_order, right.sort_order),
            ("highest field id", left.last_column_id, right.last_column_id),
        )
        if one != other
    )


def _comparable(table: Table, before: Table, wanted: Table) -> Table:
    """A table with only the compared facts: without ids of the server, and with the changed properties."""
    keys = {*before.properties, *wanted.properties}
    asked = {k for k in keys if before.properties.get(k) != wanted.properties.get(k)}
    return Table(
        name=wanted.name,
        schema=replace(table.schema, id=0),
        spec=replace(table.spec, id=0),
        sort_order=replace(table.sort_order, id=0),
        properties={k: v for k, v in table.properties.items() if k in asked},
        format_version=table.format_version,
        last_column_id=table.last_column_id,
    )


def _applying(changes: Sequence[Change]) -> Callable[[Table], Table]:
    return lambda table: reduce(lambda t, change: change.apply(t), changes, table)
