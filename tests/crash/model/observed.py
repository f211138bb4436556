"""Tables as any reader of Iceberg sees them: metadata files, manifests and rows.  Without the product.

Iceberg's specification, "Table Metadata": every commit writes a new metadata file and keeps the names of the
earlier ones in ``metadata-log``, so that the commits of a table can be read one by one afterwards.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from tests.crash.model.declared import Column

Rows: TypeAlias = Mapping[int, Mapping[int, Any]]
"""Values by the row's id (the column `id`) and the field id."""


def path_of(location: str) -> str:
    """A location as a path: clients write `file:/x` and `file:///x` for the same file."""
    return "/" + location.removeprefix("file:").lstrip("/")


class FilesAreGone(Exception):
    """The snapshot has expired, and its files were deleted."""


@dataclass(frozen=True)
class Commit:
    """A table right after a commit.

    :param location: the path of its metadata file.
    """

    location: str

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The metadata file."""
        content: dict[str, Any] = json.loads(Path(self.location).read_text(encoding="utf-8"))
        return content

    @property
    def uuid(self) -> str:
        """What a table keeps under any name (specification: ``table-uuid``)."""
        return str(self.metadata["table-uuid"])

    @property
    def last_column_id(self) -> int:
        """The highest field id that was ever assigned (specification: ``last-column-id``)."""
        return int(self.metadata["last-column-id"])

    @property
    def snapshot(self) -> int | None:
        """The current snapshot of `main`."""
        number = self.metadata.get("current-snapshot-id")
        return None if number in (None, -1) else int(number)

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.get("properties", {}))

    @property
    def references(self) -> dict[str, str]:
        """Branches and tags (specification: ``refs``)."""
        return {name: ref["type"] for name, ref in self.metadata.get("refs", {}).items()}

    @cached_property
    def fields(self) -> dict[int, Column]:
        """The top-level columns of the current schema by field id."""
        return _fields(self.metadata, self.metadata["current-schema-id"])

    @cached_property
    def required(self) -> dict[int, bool]:
        """Whether a column of the current schema refuses nulls."""
        schema = _schema(self.metadata, self.metadata["current-schema-id"])
        return {f["id"]: f["required"] for f in schema["fields"]}

    @cached_property
    def partition(self) -> frozenset[tuple[str, int]]:
        """The terms of the default spec; format 1 keeps removed ones as `void` ("Partition Evolution")."""
        number = self.metadata["default-spec-id"]
        spec = next(s for s in self.metadata["partition-specs"] if s["spec-id"] == number)
        return frozenset((f["transform"], f["source-id"]) for f in spec["fields"] if f["transform"] != "void")

    @cached_property
    def rows(self) -> Rows:
        """The rows of `main` under the current schema, as PyIceberg reads them.

        :raises Duplicate: two rows have one id.
        """
        if self.snapshot is None:
            return {}
        try:
            table = self._table.scan().to_arrow()
        except FileNotFoundError as error:
            raise FilesAreGone(str(error)) from error
        names = {column.name: number for number, column in self.fields.items()}
        rows = table.to_pylist()
        counted = Counter(row["id"] for row in rows)
        twice = sorted(number for number, count in counted.items() if count > 1)
        if twice:
            raise Duplicate(f"ids {twice} are there more than once")
        return {row["id"]: {names[name]: value for name, value in row.items()} for row in rows}

    @cached_property
    def _table(self) -> Any:
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(f"file://{self.location}")

    @cached_property
    def _written_under(self) -> dict[int, dict[int, Column]]:
        """By the row's id, the columns of the schema that the row's file was written under.

        Specification, "Snapshots" (``schema-id``) and "Manifests" (``snapshot_id`` of an entry: the snapshot
        that added the file).  Of several files that hold a row, the newest by sequence number is read.
        """
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        table, newest = self._table, dict[int, tuple[int, dict[int, Column]]]()
        schemas = {s["snapshot-id"]: s.get("schema-id") for s in self.metadata["snapshots"]}
        current = table.current_snapshot()
        for manifest in current.manifests(table.io) if current is not None else ():
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                if not _holds_rows(entry.data_file):
                    continue
                number = schemas.get(entry.snapshot_id)
                # The snapshot may have expired: then nothing says which columns there were.
                columns = _fields(self.metadata, number) if number is not None else {}
                ids = pq.read_table(path_of(entry.data_file.file_path), columns=["id"])["id"].to_pylist()
                for row in ids:
                    if newest.get(row, (-1, {}))[0] < (entry.sequence_number or 0):
                        newest[row] = (entry.sequence_number or 0, columns)
        return {row: columns for row, (_, columns) in newest.items()}

    def was_written_with(self, row: int, field: int) -> bool:
        """Whether the file that holds the row was written while the table had the column."""
        return field in self._written_under.get(row, {})

    def brought_along(self, row: int, field: int) -> Any:
        """The value in a row's file for a column that the table did not have when the file was committed.

        A writer that has planned its write before the column was dropped, and commits afterwards, adds such a
        file: Iceberg's writers try a commit again on the newest schema without writing the file again.
        """
        import pyarrow.parquet as pq

        if self.was_written_with(row, field):
            return None
        for task in self._table.scan().plan_files():
            content = pq.read_table(path_of(task.file.file_path))
            ids = [int((f.metadata or {}).get(b"PARQUET:field_id", -1)) for f in content.schema]
            found = content.column("id").to_pylist()
            if row in found and field in ids:
                return content.column(ids.index(field)).to_pylist()[found.index(row)]
        return None

    def partition_faults(self) -> list[str]:
        """Files whose partition values are not what their rows give.

        Specification, "Partitioning": a data file's partition tuple is the transform of the source values of
        each of its rows; readers prune by it, and take the values of identity partitions from it.
        """
        import pyarrow.parquet as pq
        from pyiceberg.transforms import parse_transform

        faults: list[str] = []
        table, current = self._table, self._table.current_snapshot()
        specs = {s["spec-id"]: s["fields"] for s in self.metadata["partition-specs"]}
        for manifest in current.manifests(table.io) if current is not None else ():
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                file = entry.data_file
                if not _holds_rows(file):
                    continue
                for position, term in enumerate(specs[manifest.partition_spec_id]):
                    if term["transform"] == "void" or term["source-id"] not in self.fields:
                        continue
                    content = pq.read_table(path_of(file.file_path))
                    ids = [int((f.metadata or {}).get(b"PARQUET:field_id", -1)) for f in content.schema]
                    if term["source-id"] not in ids:
                        continue
                    source = table.schema().find_field(term["source-id"])
                    give = parse_transform(term["transform"]).transform(source.field_type)
                    values = set(map(give, content.column(ids.index(term["source-id"])).to_pylist()))
                    given = file.partition[position]
                    if values != {given}:
                        what = f"{term['transform']} of {source.name}"
                        faults.append(f"{what}: the rows give {values}, the file's partition is {given!r}")
        return faults


class Duplicate(Exception):
    """Two rows have one id."""


def commits_of(location: str, since: str | None = None) -> list[Commit]:
    """All commits of a table, oldest first.

    :param since: the location of the one before the first that is wanted.
    """
    last = Commit(path_of(location))
    earlier = [Commit(path_of(e["metadata-file"])) for e in last.metadata.get("metadata-log", ())]
    all_of_them = [*earlier, last]
    if since is None:
        return all_of_them
    numbers = [commit.location for commit in all_of_them]
    return all_of_them[numbers.index(path_of(since)) :] if path_of(since) in numbers else all_of_them


def tables_in(database: Path) -> dict[tuple[str, str], str]:
    """Every table of a SQL catalog, as namespace and name, and the path of its current metadata file."""
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        rows = connection.execute("SELECT table_namespace, table_name, metadata_location FROM iceberg_tables")
        return {(space, name): path_of(location) for space, name, location in rows.fetchall()}


def _holds_rows(file: Any) -> bool:
    """Whether a file of a manifest is a data file (content 0), not one of deletes (1 and 2)."""
    return int(getattr(file.content, "value", file.content)) == 0


def _schema(metadata: Mapping[str, Any], number: int) -> dict[str, Any]:
    schemas = metadata.get("schemas") or [metadata["schema"]]
    # `expire_snapshots` may have removed the schemas that nothing refers to.
    return next((s for s in schemas if s.get("schema-id", 0) == number), {"fields": []})


def _fields(metadata: Mapping[str, Any], number: int) -> dict[int, Column]:
    return {f["id"]: Column(f["name"], _type(f["type"])) for f in _schema(metadata, number)["fields"]}


def _type(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
