"""Tables changed by hand in every way, by Spark and by PyIceberg: told, accepted, and led back on a copy.

One project holds two tables that are made alike and changed alike; what others did to the one is declared,
and the other is led back to what was recorded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from icemigrate.catalog import open_catalog
from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.reconcile import plan_reconcile, reconcile, reconcile_request
from icemigrate.commands.saved_plans import load_saved_plan, save_plan
from icemigrate.diagnostics import has_errors
from icemigrate.errors import Mistakes
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.drift.differing_facts import find_differing_facts
from icemigrate.project.namespace_mapping import catalog_settings
from icemigrate.render.formats import render
from icemigrate.results.command_results import PlanResult, errors_of
from icemigrate.results.drift_results import DriftResult, TableDrift
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMAS = Path(__file__).parents[2] / "schemas"
MADE = """\
  - name: db.{0}
    description: Trades
    columns:
      - {{name: id, type: long, required: true}}
      - {{name: volume, type: int, description: Pieces}}
      - {{name: note, type: string}}
      - {{name: address, type: 'struct<street: string, zip: int>'}}
      - {{name: at, type: timestamptz}}
    identifier: [id]
    partition_by: [day(at)]
    sort_by: [id]
    properties:
      {{owner.team: trading, write.format.default: parquet, write.metadata.metrics.column.volume: full}}
    retention: {{snapshots: {{max_age: 30d}}, rows: {{column: at, max_age: 30d}}}}
"""
TAGS = """\
  - name: db.{0}
    branches: {{audit: {{retention: {{max_age: 7d}}}}, lab: {{}}}}
    tags: {{first: {{retention: {{max_age: 365d}}}}, second: {{branch: main}}}}
"""
SPARK = """\
ALTER TABLE @ RENAME COLUMN note TO remark
ALTER TABLE @ ADD COLUMN venue string
ALTER TABLE @ RENAME COLUMN address.street TO road
ALTER TABLE @ ALTER COLUMN at FIRST
ALTER TABLE @ DROP COLUMN volume
ALTER TABLE @ DROP PARTITION FIELD day(at)
ALTER TABLE @ ADD PARTITION FIELD bucket(8, id)
ALTER TABLE @ DROP IDENTIFIER FIELDS id
ALTER TABLE @ WRITE ORDERED BY at
ALTER TABLE @ SET TBLPROPERTIES ('comment' = 'Deals', 'theirs' = '1')
ALTER TABLE @ UNSET TBLPROPERTIES ('history.expire.max-snapshot-age-ms')
INSERT INTO @ (id, at) VALUES (9, timestamp '2026-02-02 00:00:00')
ALTER TABLE @ REPLACE TAG second
ALTER TABLE @ REPLACE BRANCH audit RETAIN 9 DAYS
ALTER TABLE @ CREATE BRANCH extra
""".splitlines()


class Shop(OwnProject):
    """A shop whose tables others change."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        super().__init__(folder, spark, "shop", "drift")

    def write(self, name: str, text: str) -> None:
        (self.folder / "migrations" / name).write_text(text, encoding="utf-8")

    def apply(self) -> tuple[str, ...]:
        return self.project.apply(spark=self.spark).applied

    def sql(self, text: str, table: str = "t") -> list[tuple[object, ...]]:
        query = text.replace("@", f"{self.catalog}.db.{table}")
        return [tuple(row) for row in self.spark.sql(query).collect()]

    def table(self, name: str) -> Table:
        catalog = open_catalog(catalog_settings(self.environment))
        try:
            found = catalog.load([TableName(("db",), name)])[TableName(("db",), name)]
        finally:
            catalog.close()
        assert found is not None
        return found

    def drift(self, *tables: str) -> DriftResult:
        found = self.project.drift(*tables)
        schema = json.loads((SCHEMAS / "drift.schema.json").read_text("utf-8"))
        jsonschema.validate(
            json.loads(render(found, "json")), schema, format_checker=jsonschema.FormatChecker()
        )
        return found

    def drifted(self, table: str) -> TableDrift:
        (found,) = self.drift(f"db.{table}").tables
        return found

    def plan_reconcile(self, *tables: str, allow: tuple[str, ...] = ()) -> PlanResult:
        what = reconcile_request([f"db.{t}" for t in tables], allow)
        return plan_reconcile(self.opened, None, what, spark=self.spark)

    def by_pyiceberg(self, table: str) -> None:
        """What another library does, without Spark."""
        from pyiceberg.catalog.sql import SqlCatalog

        database = self.folder / ".icemigrate" / "catalog.db"
        catalog = SqlCatalog(self.catalog, uri=f"sqlite:///{database}")
        try:
            loaded = catalog.load_table(("db", table))
            with loaded.transaction() as transaction:
                transaction.set_properties({"owner.team": "research"})
                transaction.remove_properties("write.format.default")
            with loaded.update_schema() as update:
                update.update_column("id", doc="Key")
                update.add_column("flag", _boolean())
        finally:
            catalog.close()
        self.spark.sql(f"REFRESH TABLE {self.catalog}.db.{table}")


def _boolean() -> object:
    from pyiceberg.types import BooleanType

    return BooleanType()


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    shop = Shop(tmp_path, spark)
    shop.write("0001_make.yaml", "tables:\n" + MADE.format("t") + MADE.format("r"))
    shop.apply()
    for table in ("t", "r"):
        shop.sql("INSERT INTO @ VALUES (1, 10, 'x', named_struct('street', 's', 'zip', 5), now())", table)
    shop.write("0002_tags.yaml", "tables:\n" + TAGS.format("t") + TAGS.format("r"))
    shop.apply()
    return shop


def by_hand(shop: Shop, table: str) -> None:
    if table == "t":
        # The way back from this one ends with the first file that is written under it.
        shop.sql("ALTER TABLE @ ALTER COLUMN address.zip TYPE bigint", table)
    for statement in SPARK:
        shop.sql(statement, table)
    shop.by_pyiceberg(table)


def test_hand_changes_are_told_accepted_and_led_back(shop: Shop, tmp_path: Path) -> None:
    assert shop.drift().tables == ()
    recorded = shop.table("r")
    for table in ("t", "r"):
        by_hand(shop, table)
    told = {f.fact: (f.change, f.told) for f in shop.drifted("t").facts}
    drift = {fact for fact, (_, counts) in told.items() if counts == "drift"}
    assert drift == {
        "columns.address.street.name",
        "columns.address.zip.type",
        "columns.id.description",
        "columns.note.name",
        "columns.order",
        "columns.volume",
        "identifier",
        "partition_by",
        "sort_by",
        "properties.comment",
        "properties.history.expire.max-snapshot-age-ms",
        "properties.owner.team",
        "properties.write.format.default",
        "branches.audit",
        "tags.second",
    }
    assert {fact for fact, (_, counts) in told.items() if counts == "unmanaged"} == {
        "columns.venue",
        "columns.flag",
        "properties.theirs",
        "branches.extra",
        "properties.write.distribution-mode",
    }
    facts = {f.fact: f for f in shop.drifted("t").facts}
    # The row was written under the new names, by this very application; the flag came after it.
    renamed, flag = facts["columns.note.name"].before, facts["columns.flag"].after
    assert renamed is not None
    assert flag is not None
    assert renamed <= flag
    assert facts["columns.flag"].writers[0].startswith("spark 4.1")

    accepted = shop.project.accept_drift("db.t")
    assert accepted.path is not None
    text = Path(accepted.path).read_text(encoding="utf-8")
    assert "renames: {note: remark, address.street: road}" in text
    assert "destructive db.t.volume" in text
    before = shop.table("t")
    assert shop.apply() == ("0003",)
    # Rows are retained by a column that is still called so; nothing of the table had to be changed.
    assert find_differing_facts(before, shop.table("t")) == ()
    assert shop.drift("db.t").tables == ()

    refused = shop.plan_reconcile("r")
    assert not refused.ready
    assert [d.code for d in errors_of(refused.diagnostics)] == ["missing-allow"] * 2
    result = shop.plan_reconcile("r", allow=("destructive db.r.second", "destructive db.r.audit"))
    assert not has_errors(result.diagnostics), result.diagnostics
    document = json.loads(render(result, "json"))
    schema = json.loads((SCHEMAS / "plan.schema.json").read_text("utf-8"))
    jsonschema.validate(document, schema, format_checker=jsonschema.FormatChecker())
    save_plan(result, tmp_path / "back.json")
    assert load_saved_plan(tmp_path / "back.json") == result.plan
    done = reconcile(shop.opened, load_saved_plan(tmp_path / "back.json"), spark=shop.spark)
    assert done.tables == ("db.r",)
    schema = json.loads((SCHEMAS / "reconcile.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(render(done, "json")), schema)
    found = shop.drift("db.r")
    assert not found.drifted
    assert {f.told for t in found.tables for f in t.facts} == {"unmanaged"}
    now = shop.table("r")
    assert {f.fact for f in shop.drifted("r").facts} == {
        "columns.venue",
        "columns.flag",
        "properties.theirs",
        "branches.extra",
        "properties.write.distribution-mode",
    }
    assert [f for f in find_differing_facts(recorded, now) if f.managed] == []
    # Rows from before have the values of the column that came back, rows that were written since none.
    assert shop.sql("SELECT id, volume, note, address.street FROM @ ORDER BY id", "r") == [
        (1, 10, "x", "s"),
        (9, None, None, None),
    ]
    last = shop.project.history().events[-1]
    assert (last.event, last.version) == ("reconciled", None)
    assert shop.plan_reconcile("r").is_empty
    assert shop.project.plan().is_empty


def test_what_cannot_go_back_without_loss_is_refused_fact_by_fact(shop: Shop) -> None:
    shop.sql("ALTER TABLE @ ALTER COLUMN volume TYPE bigint", "r")
    shop.sql("ALTER TABLE @ SET TBLPROPERTIES ('format-version' = '3')", "r")
    shop.sql("INSERT INTO @ VALUES (2, 20, 'y', null, now())", "r")
    shop.sql("ALTER TABLE @ DROP BRANCH lab", "r")
    refused = shop.plan_reconcile("r")
    assert sorted(d.code for d in errors_of(refused.diagnostics)) == [
        "format-downgrade",
        "narrow-type",
        "snapshot-expired",
    ]
    with pytest.raises(Mistakes):
        reconcile(shop.opened, refused.plan, spark=shop.spark)


def test_files_of_before_a_type_was_widened_are_read_under_it_again(shop: Shop) -> None:
    """Also where a later commit has put what is known of them into a manifest of its own."""
    merged = "format_version: {0}, properties: {{commit.manifest.min-count-to-merge: '2'}}"
    columns = "columns: [{name: id, type: int}, {name: s, fields: [{name: d, type: 'decimal(5,2)'}]}]"
    made = (f"  - {{name: db.w{v}, {columns}, {merged.format(v)}}}\n" for v in (1, 2))
    shop.write("0003_wide.yaml", f"tables:\n{''.join(made)}")
    shop.apply()
    for table in ("w1", "w2"):
        for row in ("1, named_struct('d', 1.5)", "2, named_struct('d', 2.5)"):
            shop.sql(f"INSERT INTO @ VALUES ({row})", table)
        shop.sql("ALTER TABLE @ ALTER COLUMN id TYPE bigint", table)
        shop.sql("ALTER TABLE @ ALTER COLUMN s.d TYPE decimal(9,2)", table)
    reconcile(shop.opened, shop.plan_reconcile("w1", "w2").plan, spark=shop.spark)
    for table in ("w1", "w2"):
        assert shop.sql("SELECT id, cast(s.d AS double) FROM @ ORDER BY id", table) == [(1, 1.5), (2, 2.5)]
    assert shop.drift("db.w1", "db.w2").tables == ()
    shop.sql("ALTER TABLE @ ALTER COLUMN id TYPE bigint", "w2")
    shop.sql("INSERT INTO @ VALUES (3, named_struct('d', 3.5))", "w2")
    (error,) = errors_of(shop.plan_reconcile("w2").diagnostics)
    assert error.code == "narrow-type"
    assert error.message.startswith("db.w2: `id` cannot be `int` again: 1 data file was added since")


def test_a_table_with_another_name_gets_its_name_back(shop: Shop) -> None:
    shop.sql("ALTER TABLE @ RENAME TO db.elsewhere", "r")
    assert (shop.drifted("r").state, shop.drifted("r").found) == ("renamed", "db.elsewhere")
    reconcile(shop.opened, shop.plan_reconcile("r").plan, spark=shop.spark)
    assert shop.drift().tables == ()
    shop.sql("DROP TABLE @", "r")
    assert shop.drifted("r").state == "gone"
    assert [d.code for d in errors_of(shop.plan_reconcile("r").diagnostics)] == ["table-gone"]
    accepted = shop.project.accept_drift("db.r")
    assert accepted.path is not None
    assert shop.apply() == ("0003",)
    assert shop.drift().tables == ()


def moved_and_back(shop: Shop, first: int) -> None:
    """A file moves a tag and a branch and pins a tag where it is; what they left outlives an expiry."""
    before = shop.table("t").refs
    shop.write(
        "0004_move.yaml",
        "allow: [destructive]\ntables:\n  - name: db.t\n"
        "    branches: {audit: {branch: main, retention: {max_age: 9d, snapshots: {keep_at_least: 3}}}}\n"
        f"    tags: {{first: {{snapshot: {first}}}, third: {{branch: audit}}}}\n",
    )
    (planned,) = plan(shop.opened).plan.migrations
    texts = [c.text for t in planned.tables for c in t.changes()]
    assert [t.split(" (")[0] for t in texts] == [
        f"move branch audit from snapshot {before['audit'].snapshot_id}",
        f"move tag third from snapshot {before['third'].snapshot_id}",
    ]
    assert f"to snapshot {before['main'].snapshot_id} (" in texts[0]
    shop.apply()
    now = shop.table("t").refs
    assert (now["first"], now["audit"].snapshot_id) == (before["first"], before["main"].snapshot_id)
    assert now["third"].snapshot_id == before["audit"].snapshot_id
    kept = {ref.snapshot_id for name, ref in now.items() if name.startswith("icemigrate-shop-0004-released")}
    assert kept == {before["audit"].snapshot_id, before["third"].snapshot_id}
    shop.sql("INSERT INTO @ VALUES (4, 40, 'z', null, now())")
    options = "table => 'db.t', older_than => now(), retain_last => 1"
    shop.sql(f"CALL {shop.catalog}.system.expire_snapshots({options})")
    shop.project.rollback(spark=shop.spark)
    back = shop.table("t").refs
    assert {n: back[n] for n in ("first", "audit", "third")} == {
        n: before[n] for n in ("first", "audit", "third")
    }
    apply(shop.opened, plan(shop.opened, redo="0004").plan, spark=shop.spark)
    assert shop.table("t").refs["audit"].snapshot_id == back["main"].snapshot_id
    shop.project.rollback(spark=shop.spark)
    shop.write("0004_move.yaml", f"tables:\n  - name: db.t\n    tags: {{first: {{snapshot: {first}}}}}\n")
    apply(shop.opened, plan(shop.opened, redo="0004").plan, spark=shop.spark)


def test_references_as_code_go_the_whole_course(shop: Shop) -> None:
    """Made, changed, dropped with consent, undone and done again; what others do to them is told."""

    def references(table: str = "t") -> dict[str, object]:
        return {
            n: (r.kind, r.max_ref_age_ms, r.min_snapshots_to_keep)
            for n, r in shop.table(table).refs.items()
            if n != "main" and not n.startswith("icemigrate-")
        }

    day = 86_400_000
    made = {
        "audit": ("branch", 7 * day, None),
        "lab": ("branch", None, None),
        "first": ("tag", 365 * day, None),
        "second": ("tag", None, None),
    }
    assert references() == made
    first = shop.table("t").refs["first"].snapshot_id
    shop.sql("INSERT INTO @ VALUES (3, 30, 'z', null, now())")
    shop.write(
        "0003_change.yaml",
        "allow: [destructive db.t.lab, destructive db.t.second]\nbecause: the trial is over\n"
        "tables:\n  - name: db.t\n"
        "    branches: {audit: {retention: {max_age: 9d, snapshots: {keep_at_least: 3}}}, lab: null}\n"
        "    tags: {first: {}, second: null, third: {}}\n",
    )
    shop.apply()
    changed = {
        "audit": ("branch", 9 * day, 3),
        "first": ("tag", None, None),
        "third": ("tag", None, None),
    }
    assert references() == changed
    # Limits change where a reference is; a new tag is at the newest snapshot.
    refs = shop.table("t").refs
    assert refs["first"].snapshot_id == first != refs["third"].snapshot_id
    assert shop.drift().tables == ()
    shop.project.rollback(spark=shop.spark)
    assert references() == made
    assert shop.drift().tables == ()
    apply(shop.opened, plan(shop.opened, redo="0003").plan, spark=shop.spark)
    assert references() == changed
    moved_and_back(shop, first)
    shop.sql("ALTER TABLE @ DROP TAG third")
    shop.sql("ALTER TABLE @ REPLACE TAG first RETAIN 5 DAYS")
    shop.sql("ALTER TABLE @ DROP BRANCH audit")
    told = {f.fact: (f.change, f.told) for f in shop.drifted("t").facts}
    assert told == {
        "branches.audit": ("removed", "expired"),
        "tags.first": ("changed", "drift"),
        "tags.third": ("removed", "drift"),
    }
    # Spark's REPLACE without a snapshot moves a tag to the newest one.
    assert [d.code for d in errors_of(shop.plan_reconcile("t").diagnostics)] == ["missing-allow"]
    back = shop.plan_reconcile("t", allow=("destructive db.t.first",))
    reconcile(shop.opened, back.plan, spark=shop.spark)
    now = references()
    assert (now["first"], now["third"]) == (changed["first"], changed["third"])
    assert shop.table("t").refs["first"].snapshot_id == first
