"""Who writes a table on a REST catalog, and how much of it lies otherwise, read off S3 without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.planning.plan import TablePlan
from tests.servers.lake import Lake
from tests.support.case_tables import pyiceberg_of

pytestmark = pytest.mark.parametrize("kind", ["rest"], indirect=True)

MAKE = """
    tables: [{name: market_data.trades, columns: [{name: symbol, type: string}, {name: size, type: int}]}]
"""
CHANGE = """
    tables: [{name: market_data.trades, renames: {size: quantity}, partition_by: ['bucket(4, symbol)']}]
"""


def planned(lake: Lake) -> TablePlan:
    (migration,) = lake.plan().plan.migrations
    (table,) = migration.tables
    return table


def test_a_plan_names_the_writers_and_the_files_that_stay_as_they_lie(lake: Lake) -> None:
    lake.write("0001_make", MAKE)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('A', 1)")
    others = pyiceberg_of(lake.project, lake.kind.variables).load_table((lake.namespace, "trades"))
    others.append(pa.table({"symbol": ["B"], "size": pa.array([2], pa.int32())}))
    sizes = [f.file.file_size_in_bytes for f in others.scan().plan_files()]

    lake.write("0002_change", CHANGE)
    table = planned(lake)
    assert {w.writer.engine: w.writer.commits for w in table.writers} == {"spark": 1, None: 1}
    assert all(w.breaks for w in table.writers), "both give `size` by its name"
    share = table.old_files
    assert share is not None
    assert share == OldSpecFiles(2, 2, sum(sizes), sum(sizes))
    lake.apply()

    lake.sql("INSERT INTO {t} VALUES ('C', 3)")
    (status,) = lake.api.status().tables
    assert status.old_files is not None
    assert (status.old_files.files, status.old_files.all_files, status.old_files.bytes) == (2, 3, sum(sizes))
