"""Rows of every state of a table, by each reader of queries and by Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from icemigrate.errors import IcemigrateError
from icemigrate.table_data.query_metadata import point_metadata
from icemigrate.table_data.query_scans import scan_to_arrow
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.query_values import json_values
from icemigrate.table_data.table_points import ReadPoint, resolve_point
from icemigrate.table_data.table_session import open_tables

if TYPE_CHECKING:
    from tests.support.spark_project import OwnProject


def compare_rows(project: OwnProject, name: str) -> dict[str, int]:
    """Compare the rows of all snapshots, tags and branches; how many states each reader read.

    :raises AssertionError: a reader has other rows or columns than Spark.
    """
    counts = {"query": 0, "pyiceberg": 0}
    table = f"{project.catalog}.{name}"
    project.spark.sql(f"REFRESH TABLE {table}")
    with open_tables(project.opened) as session:
        found = session.load(name)
        metadata = found.metadata
        states = [(f"VERSION AS OF {s['snapshot-id']}", ReadPoint(snapshot_id=s["snapshot-id"])) for s in
                  metadata["snapshots"]]  # fmt: skip
        for ref, value in metadata["refs"].items():
            states.append((f"VERSION AS OF '{ref}'", ReadPoint(**{value["type"]: ref})))
        for clause, point in [("", ReadPoint()), *states]:
            by_spark = project.spark.sql(f"SELECT * FROM {table} {clause}").toArrow()
            ours = query_table(session, name, at=point)
            assert ours.column_names == by_spark.column_names, clause
            assert _rows(ours) == _rows(by_spark.cast(ours.schema)), f"{clause} of {found.stored.location}"
            counts["query"] += 1
            state = point_metadata(metadata, resolve_point(found, point), session.store.files.read)
            try:
                scanned = scan_to_arrow(session, name, state)
            except IcemigrateError as error:
                if "equality deletes" in error.message:
                    continue
                raise
            scanned = scanned.select(ours.column_names)
            assert _rows(scanned.cast(ours.schema)) == _rows(ours), f"{clause}, by PyIceberg"
            counts["pyiceberg"] += 1
    return counts


def _rows(table: Any) -> list[str]:
    columns = [json_values(column.combine_chunks()) for column in table.columns]
    return sorted(json.dumps(row) for row in zip(*columns, strict=True))
