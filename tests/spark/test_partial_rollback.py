"""`rollback --partial` on a real table leaves what others use, and undoes the rest; the redo names it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.errors import Mistakes
from icemigrate.planning.undo import UndoOptions
from tests.support.deleted_rows import Deleting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHANGE = """
allow: [destructive]
tables:
  - name: db.t
    renames: {v: label}
    drop_columns: [c]
    columns: [{name: venue, type: string}, {name: rest, type: string}, {name: free, type: string}]
    properties: {k: w}
"""
PARTIAL = UndoOptions(partial=True)


def test_a_name_that_is_taken_and_columns_of_another_layout_stay_and_the_rest_is_undone(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = Deleting(tmp_path, spark, identifier="[]")
    lake.insert(range(2))
    lake.apply("0002", CHANGE)
    lake.sql("ALTER TABLE @ ADD COLUMN v string")
    lake.sql("ALTER TABLE @ ADD PARTITION FIELD venue")
    lake.sql("ALTER TABLE @ WRITE ORDERED BY rest")
    lake.sql("INSERT INTO @ (id, label, venue, rest, v) VALUES (9, 'l9', 'x', 'r', 'theirs')")
    refused = lake.project.plan_rollback(spark=lake.spark)
    assert {d.code for d in refused.diagnostics} == {"duplicate-name"}
    lake.rollback(PARTIAL)
    assert sorted(f.name for f in lake.table().schema.fields) == ["c", "id", "label", "rest", "v", "venue"]
    assert "k" not in lake.table().properties
    assert [f.name for f in lake.table().spec.live] == ["venue"]
    assert lake.rows("id, label, c") == {0: "c0", 1: "c1", 9: None}
    assert lake.rows("id, label") == {0: "v0", 1: "v1", 9: "l9"}
    assert lake.rows("id, v") == {0: None, 1: None, 9: "theirs"}
    (held,) = [m for m in lake.project.status().migrations if m.state == "held"]
    assert held.stays == ("db.t: the name label", "db.t: venue", "db.t: rest")
    # The file as it was does not fit what is left, and the refusal says what is left.
    with pytest.raises(Mistakes) as mistakes:
        lake.project.plan(redo="0002")
    (note,) = [d for d in mistakes.value.diagnostics if d.code == "left-in-part"]
    assert note.message == (
        "0002 was rolled back in part; still present: db.t: the name label; db.t: venue; db.t: rest"
    )
    lake.write("0002", "tables: [{name: db.t, columns: [{name: free, type: string}]}]")
    planned = lake.project.plan(redo="0002")
    assert [d.message for d in planned.diagnostics if d.code == "left-in-part"] == [note.message]
    lake.redo()
    assert "free" in [f.name for f in lake.table().schema.fields]
