"""A table whose column is dropped while rows are deleted in every way that Iceberg has, and its readers."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

from icemigrate.catalog import open_catalog
from icemigrate.iceberg.file_evidence_values import EvidenceQuery, ValueShare
from icemigrate.iceberg.names import TableName
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from icemigrate.events import Event
    from icemigrate.planning.undo import UndoOptions

NAME = TableName(("db",), "t")
C = 3
"""The field id of the column that is dropped."""

_CREATE = """
    tables:
      - name: db.t
        columns: [{name: id, type: int, required: true}, {name: v, type: string}, {name: c, type: string}]
        identifier: IDENTIFIER
        format_version: FORMAT
        properties: {write.update.mode: MODE, write.delete.mode: MODE, write.merge.mode: MODE,
          write.delete.granularity: GRANULARITY}
"""
DROP = "{allow: [destructive], tables: [{name: db.t, drop_columns: [c]}]}"


class Deleting(OwnProject):
    """A project with one table ``db.t(id, v, c)``; migration 0002 drops ``c``."""

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        format_version: int = 2,
        mode: str = "merge-on-read",
        identifier: str = "[id]",
        granularity: str = "file",
        settings: str = "",
    ) -> None:
        super().__init__(folder, spark, "shop", "deleting", settings)
        text = _CREATE.replace("FORMAT", str(format_version)).replace("MODE", mode)
        self.apply("0001", text.replace("IDENTIFIER", identifier).replace("GRANULARITY", granularity))

    def write(self, version: str, text: str) -> None:
        """Write a migration file."""
        file = self.folder / "migrations" / f"{version}_m.yaml"
        file.write_text(dedent(text), encoding="utf-8")

    def apply(self, version: str, text: str) -> tuple[str, ...]:
        """Write a migration file, and apply it; its notes."""
        self.write(version, text)
        return self.project.apply(spark=self.spark).notes

    def redo(self, version: str = "0002") -> None:
        """Apply a version again that was rolled back."""
        self.project.apply(self.project.plan(redo=version), spark=self.spark)

    def rollback(
        self, options: UndoOptions, only: str | None = None, on_event: Callable[[Event], None] | None = None
    ) -> tuple[str, ...]:
        """Take back the last version, or ``only`` one; the notes."""
        hear = {} if on_event is None else {"on_event": on_event}
        return self.project.rollback(options=options, only=only, spark=self.spark, **hear).notes

    def notes(self, options: UndoOptions, only: str | None = None) -> list[str]:
        """What the plan of a rollback says."""
        plan = self.project.plan_rollback(options=options, only=only, spark=self.spark).plan
        return [n for m in plan.migrations for t in m.tables for n in t.notes]

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement in which `@` stands for the table."""
        return [tuple(row) for row in self.spark.sql(text.replace("@", f"{self.catalog}.db.t")).collect()]

    def insert(self, ids: Iterable[int]) -> None:
        """Add one file of rows, whose ``c`` is named after the id."""
        rows = ", ".join(f"({i}, 'v{i}', 'c{i}')" for i in ids)
        self.sql(f"INSERT INTO @ SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")

    def compact(self) -> None:
        """Write every data file again."""
        self.call("rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")

    def call(self, text: str) -> None:
        """Call one of Iceberg's procedures."""
        self.spark.sql(f"CALL {self.catalog}.system.{text}").collect()

    def delete_by_equality(self, row_id: int) -> None:
        """Delete one row as Flink does: by a file that holds its id."""
        import pyarrow as pa
        from pyarrow import parquet

        java = self.engine.java
        table = java.table(NAME)
        file = self.folder / f"equality-{row_id}.parquet"
        field = pa.field("id", pa.int32(), nullable=False, metadata={"PARQUET:field_id": "1"})
        parquet.write_table(pa.table({"id": pa.array([row_id], pa.int32())}, pa.schema([field])), file)
        gateway = self.spark.sparkContext._gateway
        field_ids = gateway.new_array(gateway.jvm.int, 1)
        field_ids[0] = 1
        builder = java.iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(field_ids)
        builder.withPath(f"file:{file}").withFormat("PARQUET")
        builder.withFileSizeInBytes(file.stat().st_size).withRecordCount(1)
        delta = table.newRowDelta()
        delta.addDeletes(builder.build())
        delta.commit()
        self.sql("REFRESH TABLE @")

    def rows(self, columns: str = "id, c") -> dict[int, Any]:
        """The last of these columns by the first, as Spark reads them."""
        return {row[0]: row[-1] for row in self.sql(f"SELECT {columns} FROM @")}

    def rows_by_pyiceberg(self, column: str = "c") -> dict[int, Any]:
        """The same, as PyIceberg reads them."""
        from pyiceberg.table import StaticTable

        location = self.engine.metadata_location(NAME)
        assert location is not None
        read = StaticTable.from_metadata(location).scan(selected_fields=("id", column)).to_arrow()
        return {row["id"]: row[column] for row in read.to_pylist()}

    def table(self) -> Any:
        """The table as the engine reads it."""
        found = self.engine.table(NAME)
        assert found is not None
        return found

    def shares(self) -> tuple[ValueShare, ValueShare]:
        """How many rows have a ``c`` in their files: counted by the engine, and by the reader of plans."""
        field = {C: frozenset({C})}
        by_java = self.engine.evidence(NAME, EvidenceQuery(None, held=field)).held[C]
        by_python = open_catalog(self.environment.catalog).rows_with_values(NAME, field)
        assert by_python is not None
        return by_java, by_python[C]
