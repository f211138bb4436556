"""A project on a catalog of its own, whose random tables are written to, and changed, by others as well."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.execution.environment_session import open_environment
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema, schema_index, sibling_ids
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import is_nested
from icemigrate.spark_sql.identifiers import table_sql
from tests.support.random_rows import Row, read_row, row_sql
from tests.support.random_tables import KEY
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS = "icemigrate-"


class UndoWorld(OwnProject):
    """The project, its catalog, and what anybody can do there."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        super().__init__(folder, spark, "undo", "undo")

    def file(self, version: str, text: str) -> None:
        """Put a migration file down."""
        (self.folder / "migrations" / f"{version}_m.yaml").write_text(text, encoding="utf-8")

    def declared(self) -> dict[TableName, Table]:
        """The tables as the history has them."""
        with open_environment(self.opened, None) as world:
            return dict(world.history().state.tables)

    def actual(self, name: TableName) -> Table:
        """A table of the catalog, which must be there."""
        found = self.engine.table(name)
        assert found is not None, f"{name} is gone"
        return found

    def locations(self) -> dict[str, str]:
        """The metadata file of every table there is, the history's too: another one after every commit."""
        (database,) = (self.folder / ".icemigrate").rglob("*.db")
        with closing(sqlite3.connect(database)) as rows:
            found = rows.execute(
                "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables"
            )
            return dict(found.fetchall())

    def sql(self, text: str, table: TableName) -> None:
        """What somebody says of a table, which stands as ``@`` in it."""
        self.spark.sql(text.replace("@", table_sql(self.catalog, table)))

    def write(self, name: TableName, *numbers: int) -> Schema:
        """Write rows of these numbers; gives the schema that they were written under."""
        schema = self.actual(name).schema
        # Said in SQL they are there when Spark plans; as Python's rows they would need a process for Python.
        rows = ", ".join(row_sql(schema, n) for n in numbers)
        self.spark.sql(f"INSERT INTO {table_sql(self.catalog, name)} VALUES {rows}")
        return schema

    def rows(self, name: TableName) -> dict[int, Row]:
        """All rows by their number, as Spark reads them."""
        self._let_variants_be_read(name)
        schema = self.actual(name).schema
        found = self.spark.table(table_sql(self.catalog, name)).collect()
        rows = [read_row(schema, tuple(r)) for r in found]
        out = {r[KEY]: r for r in rows}
        assert len(out) == len(rows), f"rows of {name} are there twice"
        return out

    def _let_variants_be_read(self, name: TableName) -> None:
        """Do what the rule ``variant-unknown-to-rows`` tells to do where a variant is new or came back."""
        told = self.engine.metadata_json(name)
        assert told is not None
        schemas = {s["schema-id"]: s["fields"] for s in told["schemas"]}
        newest = (s for s in told["snapshots"] if s["snapshot-id"] == told["current-snapshot-id"])
        for snapshot in newest:
            known = {f["name"] for f in schemas[snapshot["schema-id"]]}
            fields = schemas[told["current-schema-id"]]
            if any(f["type"] == "variant" and f["name"] not in known for f in fields):
                self.sql("INSERT INTO @ SELECT * FROM @ WHERE false", name)

    def rows_by_pyiceberg(self, name: TableName) -> dict[int, Row]:
        """The same, as PyIceberg reads them."""
        from pyiceberg.table import StaticTable

        location = self.locations()[f"{'.'.join(name.namespace)}.{name.name}"]
        table = StaticTable.from_metadata(location)
        schema = self.actual(name).schema
        found = table.scan().to_arrow().to_pylist()
        return {r[KEY]: r for r in (read_row(schema, tuple(row.values())) for row in found)}


def facts(table: Table) -> dict[Any, Any]:
    """What a migration can speak of, by field id; what the server and the history put there left out."""
    out: dict[Any, Any] = {}
    for i, entry in schema_index(table.schema).items():
        f = entry.field
        out |= {
            (i, "path"): entry.path,
            (i, "type"): type(f.type).__name__ if is_nested(f.type) else f.type,
            (i, "required"): f.required,
            (i, "doc"): f.doc,
            (i, "defaults"): (f.initial_default, f.write_default),
        }
    out |= {("part", f.source_ids, str(f.transform), f.name): True for f in table.spec.live}
    out["identifier"] = table.schema.identifier_ids
    out["order"] = table.sort_order.fields
    out["format"] = table.format_version
    out |= {("property", k): v for k, v in table.properties.items()}
    out |= {
        ("ref", n): (r.kind, r.snapshot_id, r.max_ref_age_ms)
        for n, r in table.refs.items()
        if n != "main" and not n.startswith(OURS)
    }
    return out


def disordered(before: Table, now: Table) -> Iterator[str]:
    """Fields that stand in another order among their siblings, those passed over that either side has not."""
    old, new = sibling_ids(before.schema), sibling_ids(now.schema)
    for parent in old.keys() & new.keys():
        common = set(old[parent]) & set(new[parent])
        orders = [[i for i in found if i in common] for found in (old[parent], new[parent])]
        if orders[0] != orders[1]:
            yield f"{now.name}: of {parent or 'the columns'} the order is {orders[1]}, not {orders[0]}"
