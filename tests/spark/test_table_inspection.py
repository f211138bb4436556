"""What `table` shows, compared with Spark's metadata tables; compaction and rollback on real files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.errors import EngineError
from icemigrate.table_data.compaction import compact
from icemigrate.table_data.compare_snapshots import compare_snapshots
from icemigrate.table_data.file_lists import list_files, list_manifests, list_partitions
from icemigrate.table_data.snapshot_list import list_snapshots
from icemigrate.table_data.snapshot_rollback import rollback_table
from icemigrate.table_data.table_description import describe_table
from icemigrate.table_data.table_session import open_tables
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONTENTS = ("data", "position_deletes", "equality_deletes")


def _rows(project: OwnProject, query: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in project.spark.sql(query).collect()]


def _table(project: OwnProject, version: int) -> str:
    """A partitioned table with appends, deletes, an overwrite, a tag, and two partition specs."""
    name = f"{project.catalog}.db.events"
    sql = project.spark.sql
    sql(f"CREATE NAMESPACE IF NOT EXISTS {project.catalog}.db")
    sql(
        f"CREATE TABLE {name} (id bigint, at timestamp, kind string, price decimal(9,2)) USING iceberg "
        f"PARTITIONED BY (days(at), kind) TBLPROPERTIES ('format-version'='{version}', "
        "'write.delete.mode'='merge-on-read')"
    )
    for number in range(5):
        sql(
            f"INSERT INTO {name} SELECT id + {number * 10}, "
            "timestamp '2026-11-01 10:00:00' + make_interval(0, 0, 0, "
            "cast(id % 2 as int)), if(id % 3 = 0, null, concat('k/', id % 3)), 1.5 FROM range(10)"
        )
    sql(f"DELETE FROM {name} WHERE id IN (3, 14, 25)")
    sql(f"ALTER TABLE {name} CREATE TAG deleted")
    sql(f"ALTER TABLE {name} DROP PARTITION FIELD kind")
    sql(f"INSERT INTO {name} VALUES (100, null, 'z', -1.25)")
    return name


@pytest.mark.parametrize("version", [2, 3])
def test_inspection_compaction_and_rollback(tmp_path: Path, spark: SparkSession, version: int) -> None:
    project = OwnProject(tmp_path, spark, "events", "inspected")
    name = _table(project, version)
    _compare_with_spark(project, name)
    _compact_and_roll_back(project, name)


def _compare_with_spark(project: OwnProject, name: str) -> None:
    with open_tables(project.opened) as tables:
        files = list_files(tables, "db.events")
        expected = _rows(project, f"SELECT * FROM {name}.files")
        assert sorted((f.path, f.content, f.format, f.spec_id, f.rows) for f in files.files) == sorted(
            (r["file_path"], _CONTENTS[r["content"]], r["file_format"], r["spec_id"], r["record_count"])
            for r in expected
        )
        assert {f.path: f.size_bytes for f in files.files} == {
            r["file_path"]: r["file_size_in_bytes"] for r in expected
        }
        assert files.total == len(expected)

        partitions = list_partitions(tables, "db.events")
        expected = _rows(project, f"SELECT * FROM {name}.partitions")
        assert sorted(
            (p.spec_id, p.files, p.rows, p.size_bytes, p.delete_files, p.deletes)
            for p in partitions.partitions
        ) == sorted(
            (
                r["spec_id"],
                r["file_count"],
                r["record_count"],
                r["total_data_file_size_in_bytes"],
                r["position_delete_file_count"] + r["equality_delete_file_count"],
                r["position_delete_record_count"] + r["equality_delete_record_count"],
            )
            for r in expected
        )
        assert "at_day=2026-11-02/kind=k/1" in {p.partition for p in partitions.partitions}
        assert "at_day=null" in {p.partition for p in partitions.partitions}

        manifests = list_manifests(tables, "db.events")
        expected = _rows(project, f"SELECT * FROM {name}.manifests")
        assert sorted((m.path, m.length, m.spec_id, m.added_by or 0) for m in manifests.manifests) == sorted(
            (r["path"], r["length"], r["partition_spec_id"], r["added_snapshot_id"]) for r in expected
        )
        counted = {r["path"]: r["added_data_files_count"] + r["added_delete_files_count"] for r in expected}
        assert {m.path: m.added_files for m in manifests.manifests} == counted

        entries = list_snapshots(tables.load("db.events"))
        expected = _rows(project, f"SELECT * FROM {name}.snapshots ORDER BY committed_at")
        assert [(e.snapshot_id, e.parent_id, e.operation) for e in entries] == [
            (r["snapshot_id"], r["parent_id"], r["operation"]) for r in expected
        ]
        deletion = next(entry for entry in entries if entry.tags == ("deleted",))
        assert deletion.parent_id is not None
        rows = [
            compare_snapshots(tables, "db.events", before, after, key=["id"]).rows
            for before, after in ((deletion.parent_id, "deleted"), ("deleted", "main"))
        ]
        assert [(r.added, r.removed, r.changed, r.is_whole) for r in rows if r is not None] == [
            (0, 3, 0, True),
            (1, 0, 0, True),
        ]
        history = _rows(project, f"SELECT * FROM {name}.history WHERE is_current_ancestor")
        described = describe_table(tables, "db.events")
        assert [point.snapshot_id for point in described.growth] == [r["snapshot_id"] for r in history]
        assert {health.finding for health in described.health} >= {"delete-files", "old-spec-files"}


def _compact_and_roll_back(project: OwnProject, name: str) -> None:
    rows = _rows(project, f"SELECT * FROM {name} ORDER BY id")
    with open_tables(project.opened) as tables:
        before = list_files(tables, "db.events")
        with pytest.raises(EngineError):
            compact(tables, "db.events", where="no such column = 1", spark=project.spark)
        assert list_files(tables, "db.events") == before
        result = compact(tables, "db.events", spark=project.spark)
        assert result.rewritten_files > result.added_files > 0
        after = list_files(tables, "db.events")
        assert {f.content for f in after.files} == {"data"}
        assert after.total < before.total
        project.spark.sql(f"REFRESH TABLE {name}")
        assert _rows(project, f"SELECT * FROM {name} ORDER BY id") == rows
        assert before.snapshot_id is not None
        rollback_table(tables, "db.events", before.snapshot_id)
        assert list_files(tables, "db.events") == before
        project.spark.sql(f"REFRESH TABLE {name}")
        assert _rows(project, f"SELECT * FROM {name} ORDER BY id") == rows
        assert result.snapshot_id is not None
        rollback_table(tables, "db.events", result.snapshot_id)
        assert list_files(tables, "db.events") == after
