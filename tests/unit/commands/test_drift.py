"""``drift`` and ``drift --accept``: each way of changing a table by hand, told in names and then declared."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from icemigrate.commands.check import check
from icemigrate.commands.drift import drift
from icemigrate.commands.drift_accept import accept_drift
from icemigrate.commands.plan import plan
from icemigrate.commands.rebase import rebase
from icemigrate.commands.squash import squash
from icemigrate.errors import Mistakes, UsageError
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Primitive, Struct
from icemigrate.planning.drift.differing_facts import find_differing_facts
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.drift_results import DriftResult
from tests.support.embedded_project import Embedded

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "drift.schema.json").read_text("utf-8"))
ACCEPTED = json.loads((Path(__file__).parents[3] / "schemas" / "drift-accept.schema.json").read_text("utf-8"))
T = TableName.parse("db.t")
PROJECT = """\
project: market
environments:
  local:
    catalog: {type: sqlite}
    record: history
    overrides: [{tables: "db.o", properties: {owner.team: data}}]
default_environment: local
"""
MAKE = """\
tables:
  - name: db.t
    columns:
      - {name: id, type: long, required: true}
      - {name: volume, type: int, description: Pieces}
      - {name: note, type: string}
      - {name: address, type: 'struct<street: string, zip: int>'}
      - {name: at, type: timestamptz}
    identifier: [id]
    partition_by: [day(at)]
    sort_by: [id]
    properties: {owner.team: trading, write.format.default: parquet}
    retention: {rows: {column: at, max_age: 30d}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    (tmp_path / "icemigrate.yaml").write_text(PROJECT, encoding="utf-8")
    made = Embedded(tmp_path)
    made.write("0001_make.yaml", MAKE)
    made.apply()
    # The engine's tables get their uuid when they are saved, so it is the next migration that records it.
    made.write(
        "0002_size.yaml", "tables: [{name: db.t, properties: {write.target-file-size-bytes: '1000000'}}]\n"
    )
    made.apply()
    return made


def told(shop: Embedded, *tables: str) -> DriftResult:
    found = drift(open_project(shop.folder), None, tables)
    jsonschema.validate(json.loads(render(found, "json")), SCHEMA, format_checker=jsonschema.FormatChecker())
    assert render(found)
    return found


def facts(shop: Embedded) -> dict[str, str]:
    """Every fact, as its change and what it counts as."""
    return {f.fact: f"{f.change}, {f.told}" for t in told(shop).tables for f in t.facts}


def change(shop: Embedded, **parts: object) -> None:
    """What somebody does to the table by hand."""
    shop.engine.tables[T] = replace(shop.engine.tables[T], **parts)
    shop.save()


def columns(shop: Embedded) -> dict[str, Field]:
    return {f.name: f for f in shop.engine.tables[T].schema.fields}


def schema(shop: Embedded, *fields: Field, identifier: frozenset[int] | None = None) -> Schema:
    there = shop.engine.tables[T].schema
    return replace(
        there, fields=fields, identifier_ids=there.identifier_ids if identifier is None else identifier
    )


def accept(shop: Embedded, *tables: str) -> str:
    """The text of the file that is written."""
    done = accept_drift(open_project(shop.folder), None, tables)
    assert done.path is not None, done.notes
    assert render(done)
    jsonschema.validate(json.loads(render(done, "json")), ACCEPTED)
    return Path(shop.folder, "migrations", Path(done.path).name).read_text(encoding="utf-8")


def test_nothing_is_recorded_before_the_first_apply(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").write_text(PROJECT, encoding="utf-8")
    shop = Embedded(tmp_path)
    shop.write("0001_make.yaml", MAKE)
    assert not told(shop).recorded
    assert "Nothing is recorded yet" in render(told(shop))
    assert accept_drift(open_project(tmp_path)).path is None


def test_what_is_as_it_was_applied_is_no_drift(shop: Embedded) -> None:
    assert told(shop).tables == ()
    assert not told(shop).drifted


def test_every_fact_is_told_in_names(shop: Embedded) -> None:
    c = columns(shop)
    assert isinstance(c["address"].type, Struct)
    street, zip_ = c["address"].type.fields
    address = replace(c["address"], type=Struct((replace(zip_, name="postcode"), street)))
    change(
        shop,
        schema=schema(
            shop,
            address,
            replace(c["id"], required=False),
            replace(c["volume"], name="quantity", type=Primitive("long"), doc=None),
            c["at"],
            Field(90, "venue", Primitive("string")),
            identifier=frozenset(),
        ),
        spec=replace(shop.engine.tables[T].spec, fields=()),
        sort_order=replace(shop.engine.tables[T].sort_order, fields=()),
        properties={
            "write.format.default": "orc",
            "icemigrate.retention.rows.column": "at",
            "theirs": "1",
            "write.target-file-size-bytes": "1000000",
        },
        format_version=3,
        last_column_id=90,
    )
    assert facts(shop) == {
        "columns.address.order": "changed, drift",
        "columns.address.zip.name": "changed, drift",
        "columns.id.required": "changed, drift",
        "columns.note": "removed, drift",
        "columns.order": "changed, drift",
        "columns.volume.description": "changed, drift",
        "columns.volume.name": "changed, drift",
        "columns.volume.type": "changed, drift",
        "identifier": "changed, drift",
        "partition_by": "changed, drift",
        "sort_by": "changed, drift",
        "properties.icemigrate.retention.rows.max-age-ms": "removed, drift",
        "properties.owner.team": "removed, drift",
        "properties.write.format.default": "changed, drift",
        "format_version": "changed, drift",
        "columns.venue": "added, unmanaged",
        "properties.theirs": "added, unmanaged",
    }
    values = {f.fact: (f.recorded, f.actual) for f in told(shop).tables[0].facts}
    assert values["columns.volume.name"] == ("volume", "quantity")
    assert values["columns.volume.description"] == ("Pieces", "none")
    assert values["partition_by"] == ("day(at)", "unpartitioned")
    assert values["identifier"] == ("id", "none")
    assert values["columns.order"] == ("id, volume, note, address, at", "address, id, quantity, at, venue")
    assert told(shop).drifted


def test_a_column_under_the_name_of_a_dropped_one_is_told_as_another(shop: Embedded) -> None:
    shop.write("0003_less.yaml", "allow: [destructive]\ntables: [{name: db.t, drop_columns: [note]}]\n")
    note = columns(shop)["note"].id
    shop.apply()
    there = shop.engine.tables[T].schema.fields
    fields = (Field(90, "note", Primitive("long")), Field(91, "venue", Primitive("string")))
    change(shop, schema=schema(shop, *there, *fields), last_column_id=91)
    assert facts(shop) == {"columns.note": "added, unmanaged", "columns.venue": "added, unmanaged"}
    words = (
        f"unmanaged: 0001 declared note as field {note}, which was dropped; "
        "the current note is a different column"
    )
    assert {f.fact: f.note for t in told(shop).tables for f in t.facts} == {
        "columns.note": words,
        "columns.venue": None,
    }
    assert f"({words})" in render(told(shop))


def test_a_renamed_column_takes_along_what_names_it(shop: Embedded) -> None:
    """Properties of metrics follow a rename; the limit of rows stays behind, which is nobody's doing."""
    shop.write(
        "0003_metrics.yaml",
        "tables: [{name: db.t, properties: {write.metadata.metrics.column.at: full}}]\n",
    )
    shop.apply()
    c = columns(shop)
    properties = dict(shop.engine.tables[T].properties)
    properties["write.metadata.metrics.column.moment"] = properties.pop("write.metadata.metrics.column.at")
    fields = [replace(f, name="moment") if f is c["at"] else f for f in c.values()]
    change(shop, schema=schema(shop, *fields), properties=properties)
    assert facts(shop) == {"columns.at.name": "changed, drift"}
    assert "renames: {at: moment}" in accept(shop)
    shop.apply()
    assert told(shop).tables == ()
    assert shop.engine.tables[T].properties["icemigrate.retention.rows.column"] == "moment"


def test_a_pending_migration_is_no_drift_and_what_it_wants_is_told_as_done(shop: Embedded) -> None:
    shop.write(
        "0003_rename.yaml",
        "tables: [{name: db.t, renames: {volume: quantity}, "
        "columns: [{name: venue, type: string}, {name: x, type: int}]}]\n",
    )
    assert told(shop).tables == ()
    c = columns(shop)
    fields = [replace(f, name="quantity") if f is c["volume"] else f for f in c.values()]
    change(shop, schema=schema(shop, *fields, Field(90, "venue", Primitive("string"))), last_column_id=90)
    found = told(shop)
    assert {f.fact: (f.told, f.pending) for f in found.tables[0].facts} == {
        "columns.volume.name": ("done already", "0003"),
        "columns.venue": ("done already", "0003"),
    }
    assert not found.drifted


def test_a_table_that_is_gone_renamed_or_replaced_is_told(shop: Embedded) -> None:
    there = shop.engine.tables.pop(T)
    shop.save()
    (table,) = told(shop).tables
    assert (table.state, table.drifted) == ("gone", True)
    shop.engine.tables[TableName.parse("other.place")] = replace(there, name=TableName.parse("other.place"))
    shop.save()
    (table,) = told(shop).tables
    assert (table.state, table.found, table.facts) == ("renamed", "other.place", ())
    del shop.engine.tables[TableName.parse("other.place")]
    shop.engine.tables[T] = replace(there, uuid="11111111-2222-3333-4444-555555555555")
    shop.save()
    (table,) = told(shop).tables
    assert table.state == "replaced"
    assert "is a different table now" in table.notes[0]
    assert "db.t: another table has its name" in accept_drift(open_project(shop.folder)).notes[0]


def test_a_renamed_table_is_accepted(shop: Embedded) -> None:
    there = shop.engine.tables.pop(T)
    shop.engine.tables[TableName.parse("db.u")] = replace(there, name=TableName.parse("db.u"))
    shop.save()
    assert "renamed_from: db.t" in accept(shop)
    shop.apply()
    assert told(shop).tables == ()


def test_everything_that_was_accepted_is_done_already_and_then_silent(shop: Embedded) -> None:
    c = columns(shop)
    change(
        shop,
        schema=schema(
            shop,
            c["id"],
            replace(c["volume"], name="quantity", type=Primitive("long")),
            c["at"],
            c["address"],
            Field(90, "venue", Primitive("string")),
        ),
        spec=replace(shop.engine.tables[T].spec, fields=()),
        sort_order=replace(shop.engine.tables[T].sort_order, fields=()),
        properties={**shop.engine.tables[T].properties, "theirs": "1", "owner.team": "other"},
        last_column_id=90,
    )
    text = accept(shop)
    assert "allow: [destructive db.t.note" in text
    assert "because: changed by hand in local already" in text
    again = accept_drift(open_project(shop.folder))
    assert again.path is None
    assert [note for note in again.notes if "already declares this" in note] == [
        "db.t: pending migration 0003 already declares this"
    ]
    before: Table = shop.engine.tables[T]
    shop.apply()
    assert shop.engine.tables[T] == before
    assert told(shop).tables == ()
    assert (shop.folder / "migrations" / "icemigrate.lock").exists()


def test_what_no_file_can_say_is_told(shop: Embedded) -> None:
    shop.write("0003_other.yaml", "tables: [{name: db.o, columns: [{name: a, type: int}]}]\n")
    shop.apply()
    other = TableName.parse("db.o")
    shop.engine.tables[other] = replace(shop.engine.tables[other], properties={"owner.team": "mine"})
    c = columns(shop)
    fields = [replace(f, type=Primitive("boolean")) if f is c["volume"] else f for f in c.values()]
    change(shop, schema=schema(shop, *fields))
    done = accept_drift(open_project(shop.folder))
    assert done.path is None
    assert "db.o: properties.owner.team is set by the environment's overrides" in done.notes[0]
    assert "columns.volume.type changed from int to boolean" in done.notes[1]


def test_a_table_can_be_chosen_and_must_be_recorded(shop: Embedded) -> None:
    change(shop, properties={})
    assert told(shop, "db.t").drifted
    with pytest.raises(UsageError, match="the history has no table"):
        told(shop, "db.x")
    with pytest.raises(UsageError):
        told(shop, "db..x")


def test_a_pending_file_of_the_same_table_is_to_stand_behind(shop: Embedded) -> None:
    shop.write("0003_wide.yaml", "tables: [{name: db.t, columns: [{name: volume, type: long}]}]\n")
    change(shop, properties={**shop.engine.tables[T].properties, "owner.team": "other"})
    done = accept_drift(open_project(shop.folder))
    assert done.path is not None
    assert done.path.endswith("0004_accept_drift.yaml")
    assert "`icemigrate rebase 0003` moves it after the new file" in done.notes[0]


def test_only_the_exact_names_of_our_tags_and_branches_are_passed_over(shop: Embedded) -> None:
    file = shop.metadata_file(T)
    document = json.loads(file.read_text(encoding="utf-8"))
    snapshot = {"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": "x", "summary": {"operation": "append"}}
    kinds = {
        "main": "branch",
        "icemigrate-market-0001": "tag",
        "icemigrate-market-0002-before": "tag",
        "icemigrate-release": "tag",
        "icemigrate-market-0002-data": "branch",
        "icemigrate-lab": "branch",
    }
    refs = {name: {"type": kind, "snapshot-id": 7} for name, kind in kinds.items()}
    document |= {"snapshots": [snapshot], "current-snapshot-id": 7, "refs": refs}
    file.write_text(json.dumps(document), encoding="utf-8")
    (table,) = told(shop).tables
    assert {f.fact for f in table.facts} == {"tags.icemigrate-release", "branches.icemigrate-lab"}
    (stray,) = (n for n in table.notes if "branch" in n)
    assert stray.startswith("the branch icemigrate-market-0002-data was left by an interrupted run")
    assert "icemigrate-market-0002-data" not in accept(shop)


def test_limits_that_no_file_can_say_are_told_and_the_rest_is_declared(shop: Embedded) -> None:
    file = shop.metadata_file(T)
    document = json.loads(file.read_text(encoding="utf-8"))
    snapshot = {"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": "x", "summary": {"operation": "append"}}
    refs = {
        "main": {"type": "branch", "snapshot-id": 7, "max-snapshot-age-ms": 90_000},
        "odd": {"type": "branch", "snapshot-id": 7, "max-snapshot-age-ms": 1500},
        "even": {"type": "tag", "snapshot-id": 7, "max-ref-age-ms": 120_000},
    }
    document |= {"snapshots": [snapshot], "current-snapshot-id": 7, "refs": refs}
    file.write_text(json.dumps(document), encoding="utf-8")
    done = accept_drift(open_project(shop.folder))
    assert done.notes == (
        "db.t: branches.main is a branch, kept snapshots for 90 seconds, which a file cannot declare",
        "db.t: branches.odd is a branch, kept snapshots for 1500 milliseconds, which a file cannot declare",
    )
    assert done.path is not None
    pending = plan(open_project(shop.folder)).plan
    assert pending.ready
    assert [n for m in pending.migrations for t in m.tables for n in t.notes] == [
        "done already: db.t:tags.even"
    ]


@pytest.mark.parametrize("is_managed", [False, True])
def test_a_column_that_no_file_can_name_keeps_nothing_else_from_being_declared(
    shop: Embedded, is_managed: bool
) -> None:
    c = columns(shop)
    named = {"volume": replace(c["volume"], doc="New")}
    if is_managed:
        named["note"] = replace(c["note"], name="")
    more = [
        Field(91, "venue", Primitive("string")),
        *([] if is_managed else [Field(90, "", Primitive("int"))]),
    ]
    change(shop, schema=schema(shop, *(c | named).values(), *more), last_column_id=91)
    done = accept_drift(open_project(shop.folder))
    assert done.notes == ("db.t: columns.``: a file cannot declare this name",)
    assert done.path is not None
    pending = plan(open_project(shop.folder)).plan
    assert pending.ready
    done_already = [n.partition(" (")[0] for m in pending.migrations for t in m.tables for n in t.notes]
    assert done_already == [
        "done already: db.t:columns.volume.description",
        "done already: db.t:columns.venue",
    ]


def test_nothing_is_accepted_on_files_that_do_not_fit_the_history(shop: Embedded) -> None:
    change(shop, properties={**shop.engine.tables[T].properties, "owner.team": "other"})
    file = shop.folder / "migrations" / "0002_size.yaml"
    text = file.read_text(encoding="utf-8")
    shop.write("0002_size.yaml", text.replace("1000000", "2000000"))
    with pytest.raises(Mistakes) as edited:
        accept_drift(open_project(shop.folder))
    assert [d.code for d in edited.value.diagnostics] == ["edited-file"]
    file.unlink()
    with pytest.raises(Mistakes) as missing:
        accept_drift(open_project(shop.folder))
    assert [d.code for d in missing.value.diagnostics] == ["missing-file"]
    assert sorted(p.name for p in file.parent.glob("*.yaml")) == ["0001_make.yaml"]


def test_a_late_file_of_the_same_table_is_to_stand_behind_too(shop: Embedded) -> None:
    shop.write("0000_team.yaml", "tables: [{name: db.t, properties: {write.target-file-size-bytes: '7'}}]\n")
    change(shop, properties={**shop.engine.tables[T].properties, "owner.team": "other"})
    done = accept_drift(open_project(shop.folder))
    assert done.path is not None
    assert done.path.endswith("0003_accept_drift.yaml")
    assert done.notes == (
        "0000 is late and changes the same table: `icemigrate rebase 0000` moves it after the new file; "
        "where it uses a name that has changed, edit it first",
    )


def test_what_a_squash_stands_for_is_what_was_changed_by_hand(shop: Embedded) -> None:
    change(shop, properties={**shop.engine.tables[T].properties, "owner.team": "other"})
    squash(open_project(shop.folder), "0002")
    assert "owner.team: other" in accept(shop)


def test_the_way_out_of_two_renames_works_as_it_is_told(shop: Embedded) -> None:
    shop.write("0003_name.yaml", "tables: [{name: db.t, renames: {volume: amount}}]\n")
    fields = (replace(f, name="size") if f.name == "volume" else f for f in columns(shop).values())
    change(shop, schema=schema(shop, *fields))
    shown = render(plan(open_project(shop.folder)))
    assert "either  keep the current state: declare it in `0003_name.yaml`" in shown
    assert "or      restore the recorded state: `plan --reconcile --table db.t`" in shown
    project = open_project(shop.folder)
    done = accept_drift(project)
    assert any("edit it first" in note for note in done.notes)
    with pytest.raises(Mistakes) as unplanned:
        plan(project)
    (wrong,) = unplanned.value.diagnostics
    assert wrong.message == "there is no column `volume` to rename"
    assert wrong.hint == (
        "0003 is pending: `icemigrate rebase 0003` moves it after this file; where it uses a name that has "
        "changed, edit it first"
    )
    with pytest.raises(Mistakes) as refused:
        rebase(project, ["0003"])
    assert "where a file uses a name that has changed by then" in (refused.value.diagnostics[0].hint or "")
    shop.write("0003_name.yaml", "tables: [{name: db.t, renames: {size: amount}}]\n")
    assert [Path(r.new).name for r in rebase(project, ["0003"]).renamed] == ["0005_name.yaml"]
    assert check(project).ok
    assert plan(project).ready


def test_what_no_file_declared_is_counted_beside_the_drift(shop: Embedded) -> None:
    table = shop.engine.tables[T]
    change(shop, properties={**table.properties, "owner.team": "other", "theirs": "1"})
    assert "Drift: 1 fact of 1 table; also 1 that no migration declared." in render(told(shop))


def test_columns_are_told_as_the_table_has_them() -> None:
    names = [f"c{i}" for i in range(12, 0, -1)]
    fields = tuple(Field(i, name, Primitive("int"), True) for i, name in enumerate(names, start=1))
    base = Table(T, Schema(fields))
    now = replace(base, schema=Schema(tuple(replace(f, required=False) for f in fields[::-1])))
    told = [fact.subject for fact in find_differing_facts(base, now)]
    assert told == [*(("columns", name, "required") for name in names), ("columns", "order")]


def test_a_branch_under_the_name_of_one_of_our_tags_is_told_and_not_declared(shop: Embedded) -> None:
    file = shop.metadata_file(T)
    document = json.loads(file.read_text(encoding="utf-8"))
    snapshot = {"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": "x", "summary": {"operation": "append"}}
    refs = {name: {"type": "branch", "snapshot-id": 7} for name in ("main", "icemigrate-market-0009", "dev")}
    document |= {"snapshots": [snapshot], "current-snapshot-id": 7, "refs": refs}
    file.write_text(json.dumps(document), encoding="utf-8")
    assert facts(shop).keys() == {"branches.icemigrate-market-0009", "branches.dev"}
    said = accept(shop)
    assert "icemigrate-market-0009" not in said
    assert "dev: {}" in said


def test_accepting_says_which_rollbacks_it_ends(shop: Embedded) -> None:
    properties = shop.engine.tables[T].properties
    change(shop, properties={**properties, "write.target-file-size-bytes": "2000000"})
    (note,) = accept_drift(open_project(shop.folder)).notes
    assert note == (
        "after 0003 is applied, `rollback --only 0002` is refused: both change "
        "db.t properties write.target-file-size-bytes"
    )


def test_undeclared_tables_of_declared_namespaces_are_counted_but_are_no_drift(shop: Embedded) -> None:
    assert told(shop).undeclared == 0
    for text in ("db.other", "elsewhere.other"):
        name = TableName.parse(text)
        shop.engine.tables[name] = replace(shop.engine.tables[T], name=name, uuid=None)
    shop.save()
    found = told(shop)
    assert (found.undeclared, found.drifted) == (1, False)
    assert "note: 1 table in the namespaces of these tables is not declared: `icemigrate import`" in render(
        found
    )
    assert told(shop, "db.t").undeclared is None
    shop.write("0003_other.yaml", "tables: [{name: db.other, columns: [{name: id, type: long}]}]\n")
    assert told(shop).undeclared == 0
