"""`repair --abandon` and `reset` on real tables: a reset environment takes the first migration again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate import Project
from icemigrate.commands.abandoned_versions import abandon_versions
from icemigrate.commands.reset import plan_reset
from icemigrate.errors import UsageError
from icemigrate.project import open_project
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKE = """
tables:
  - {name: db.made, columns: [{name: id, type: int}]}
  - {name: db.old, adopt: true, columns: [{name: id, type: int}]}
"""


def test_a_reset_environment_begins_again(tmp_path: Path, spark: SparkSession) -> None:
    shop = OwnProject(tmp_path, spark, "shop", "reset")
    file = tmp_path / "icemigrate.yaml"

    def sql(text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in shop.spark.sql(text.replace("@", shop.catalog)).collect()]

    sql("CREATE NAMESPACE IF NOT EXISTS @.db")
    sql("CREATE TABLE @.db.old (id INT) USING iceberg")
    sql("INSERT INTO @.db.old VALUES (7)")
    (tmp_path / "migrations" / "0001_make.yaml").write_text(MAKE, encoding="utf-8")
    more = "tables: [{name: db.old, columns: [{name: more, type: int}]}]\n"
    (tmp_path / "migrations" / "0002_more.yaml").write_text(more, encoding="utf-8")
    shop.project.apply(spark=shop.spark)
    sql("INSERT INTO @.db.made VALUES (1)")
    shop.project.rollback(spark=shop.spark)
    project = open_project(tmp_path)
    assert abandon_versions(project, versions=["2"], spark=shop.spark).abandoned == ("0002",)
    assert [m.state for m in shop.project.status().migrations] == ["applied", "abandoned"]

    with pytest.raises(UsageError, match="is not disposable"):
        plan_reset(project)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("}}", "}, disposable: true}"), encoding="utf-8")
    shop.project = Project(tmp_path)
    done = shop.project.reset(spark=shop.spark)
    assert [(t.table, t.action) for t in done.tables] == [("db.made", "trash"), ("db.old", "release")]
    assert sql("SELECT id FROM @.db.old") == [(7,)]
    assert sql("SELECT name FROM @.db.old.refs WHERE name LIKE 'icemigrate%'") == []
    assert "icemigrate.owner" not in dict(sql("SHOW TBLPROPERTIES @.db.old"))
    trash = done.tables[0].trash
    assert trash is not None
    assert sql(f"SELECT id FROM @.{trash}") == [(1,)], "rows wait in the trash"
    assert shop.project.reset(spark=shop.spark).is_empty

    # What begins again has a folder of its own, and `maintain` may purge the trash.
    (tmp_path / "migrations" / "0002_more.yaml").unlink()
    assert shop.project.apply(spark=shop.spark).applied == ("0001",)
    assert sql("SELECT count(*) FROM @.db.made") == [(0,)]
    kept = shop.project.maintain("trash", dry_run=True).kept
    assert [(k.table, k.reason.partition(" since")[0]) for k in kept] == [(trash, "in the trash")]
