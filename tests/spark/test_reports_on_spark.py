"""What went wrong for others who evolve Iceberg tables, as far as real tables must show it.

What planning decides of the same scenarios stands in ``unit/test_reports.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.errors import Mistakes
from icemigrate.iceberg.names import TableName
from tests.support.undo_project import UndoWorld

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TableName(("db",), "t")


class Scene(UndoWorld):
    """One table that goes through migrations."""

    def migrate(self, version: str, entry: str, allow: str = "") -> list[str]:
        """Apply one migration; gives the codes of what it was warned of."""
        head = f"allow: [{allow}]\n" if allow else ""
        lines = "".join(f"    {line}\n" for line in entry.splitlines())
        self.file(version, f"{head}tables:\n  - name: db.t\n{lines}")
        warned = [d.code for d in self.project.plan().diagnostics]
        self.project.apply(spark=self.spark)
        return warned

    def refused(self, version: str, entry: str, allow: str = "") -> list[str]:
        """Why one migration is refused; the table stays as it is, and the file goes again."""
        before = self.locations()
        with pytest.raises(Mistakes) as told:
            self.migrate(version, entry, allow)
        assert self.locations() == before
        (self.folder / "migrations" / f"{version}_m.yaml").unlink()
        return [d.code for d in told.value.diagnostics]

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives, the table standing as ``@`` in it."""
        found = self.spark.sql(text.replace("@", f"{self.catalog}.db.t")).collect()
        return [tuple(row) for row in found]

    def ids(self) -> dict[str, int]:
        return {f.name: f.id for f in self.actual(T).schema.fields}


@pytest.fixture
def scene(tmp_path: Path, spark: SparkSession) -> Scene:
    return Scene(tmp_path, spark)


def test_b01_nothing_is_applied_where_a_partition_name_blocks_a_column(scene: Scene) -> None:
    scene.migrate(
        "0001", "columns: [{name: id, type: long}, {name: region, type: string}]\npartition_by: [region]"
    )
    both = "renames: {region: sales_region}\ncolumns: [{name: region, type: int}]"
    assert scene.refused("0002", both) == ["partition-name-is-a-column"]
    assert scene.ids() == {"id": 1, "region": 2}
    scene.migrate("0002", "renames: {region: sales_region}")
    assert [(f.name, f.source_ids) for f in scene.actual(T).spec.fields] == [("region", (2,))]


def test_b03_a_change_of_case_keeps_the_id_and_the_rows(scene: Scene) -> None:
    scene.migrate("0001", "columns: [{name: id, type: long}, {name: Email, type: string}]")
    scene.sql("INSERT INTO @ VALUES (1, 'a.b')", T)
    scene.migrate("0002", "renames: {Email: email}")
    assert scene.ids() == {"id": 1, "email": 2}
    assert scene.ask("SELECT email FROM @") == [("a.b",)]


def test_b05_a_partition_by_a_column_with_an_emoji_is_written_and_read(scene: Scene) -> None:
    scene.migrate("0001", 'columns: [{name: id, type: long}, {name: "`😎 mood`", type: string}]')
    assert scene.migrate("0002", 'partition_by: ["`😎 mood`"]') == ["partition-name-not-portable"]
    scene.sql("INSERT INTO @ VALUES (1, 'x'), (2, 'y')", T)
    assert scene.ask("SELECT id FROM @ WHERE `😎 mood` = 'y'") == [(2,)]
    assert "partition-name-not-portable" not in scene.migrate("0003", 'partition_by: ["`😎 mood` as mood"]')
    assert scene.ask("SELECT id FROM @ WHERE `😎 mood` = 'y'") == [(2,)]


def test_b07_what_only_an_older_spec_used_goes_and_all_still_works(scene: Scene) -> None:
    three = "columns: [{name: id, type: long}, {name: trip_no, type: int}, {name: km, type: int}]"
    scene.migrate("0001", f'{three}\npartition_by: ["bucket(8, trip_no)"]')
    scene.sql("INSERT INTO @ VALUES (1, 10, 100)", T)
    scene.migrate("0002", 'partition_by: ["bucket(4, km)"]')
    scene.sql("INSERT INTO @ VALUES (2, 20, 200)", T)
    warned = scene.migrate("0003", "drop_columns: [trip_no]", "destructive")
    assert "earlier-partition-source-missing" in warned
    scene.sql("INSERT INTO @ VALUES (3, 300)", T)
    scene.sql("DELETE FROM @ WHERE id = 1", T)
    assert sorted(scene.ask("SELECT * FROM @")) == [(2, 200), (3, 300)]


def test_b09_the_order_goes_before_its_column(scene: Scene) -> None:
    scene.migrate(
        "0001",
        "columns: [{name: k, type: string, required: true}, {name: at, type: timestamp}]\nsort_by: [at]",
    )
    assert scene.refused("0002", "drop_columns: [at]", "destructive") == ["sort-source-missing"]
    scene.migrate("0002", "drop_columns: [at]\nsort_by: []", "destructive")
    scene.sql("INSERT INTO @ VALUES ('a')", T)
    assert scene.ask("SELECT * FROM @") == [("a",)]


def test_b11_a_column_made_anew_has_a_new_id_its_old_place_and_no_values(scene: Scene) -> None:
    scene.migrate(
        "0001", "columns: [{name: id, type: long}, {name: amount, type: int}, {name: memo, type: string}]"
    )
    scene.sql("INSERT INTO @ VALUES (1, 5, 'm')", T)
    anew = "drop_columns: [amount]\ncolumns: [{name: amount, type: string, after: id}]"
    assert scene.refused("0002", "columns: [{name: amount, type: string}]") == ["no-promotion"]
    scene.migrate("0002", anew, "destructive")
    assert scene.ids() == {"id": 1, "amount": 4, "memo": 3}
    assert scene.ask("SELECT * FROM @") == [(1, None, "m")]


def test_b15_a_rename_that_has_happened_is_nothing_to_do(scene: Scene) -> None:
    scene.migrate(
        "0001", "columns: [{name: id, type: long}, {name: fname, type: string}, {name: dept, type: string}]"
    )
    scene.sql("ALTER TABLE @ RENAME COLUMN fname TO first_name", T)
    scene.migrate("0002", "renames: {fname: first_name}")
    assert scene.ids() == {"id": 1, "first_name": 2, "dept": 3}
    before = scene.locations()
    scene.project.apply(spark=scene.spark)
    assert scene.locations() == before


def test_b21_a_property_comes_after_its_column_and_goes_with_it(scene: Scene) -> None:
    metrics = "write.metadata.metrics.column."
    scene.migrate("0001", "columns: [{name: id, type: long}]")
    scene.migrate("0002", f"columns: [{{name: p, type: string}}]\nproperties: {{{metrics}p: full}}")
    assert scene.actual(T).properties[f"{metrics}p"] == "full"
    scene.migrate("0003", f"renames: {{p: q}}\nproperties: {{{metrics}q: full}}")
    found = {k: v for k, v in scene.actual(T).properties.items() if k.startswith(metrics)}
    assert found == {f"{metrics}q": "full"}
    assert scene.refused("0004", f"properties: {{{metrics}nosuch: full}}") == ["property-without-column"]


def test_b25_a_branch_has_the_new_columns_at_once_and_a_tag_the_old_ones(scene: Scene) -> None:
    scene.migrate("0001", "columns: [{name: a, type: int}]")
    scene.sql("INSERT INTO @ VALUES (1)", T)
    scene.migrate("0002", "branches: {b1: {}}\ntags: {t1: {}}")
    assert scene.migrate("0003", "renames: {a: aa}\ncolumns: [{name: c, type: int}]") == [
        "branch-follows-schema"
    ]

    def columns(of: str) -> list[str]:
        return list(scene.spark.sql(f"SELECT * FROM {scene.catalog}.db.t VERSION AS OF '{of}'").columns)

    assert columns("b1") == ["aa", "c"]
    assert columns("t1") == ["a"]
