"""The schemas that `maintain` may remove from a table's metadata, decided from values alone."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from icemigrate.catalog.value_counts import MEASURED_FIELDS, is_measured
from icemigrate.commands.maintain import _part, still_due
from icemigrate.evidence.narrowed_types import _widest
from icemigrate.execution.signals import StopRequest
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import AppliedVersion, VersionState
from icemigrate.history.undo_record_codec import pack_undo
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.maintenance.context import MaintenanceAction, MaintenanceContext
from icemigrate.maintenance.needed_schemas import unneeded_schema_ids
from icemigrate.maintenance.old_schemas import find_old_schemas
from icemigrate.render.formats import render
from icemigrate.results.maintain_results import ActionSummary, MaintainResult, SkippedTable
from icemigrate.spark.engine_port import SchemaRemoval
from icemigrate.spark.partition_entries import type_in

NAME = TableName(("db",), "a")
AT = datetime(2026, 5, 1, tzinfo=timezone.utc)
JSON_SCHEMA = Path(__file__).parents[3] / "schemas" / "maintain.schema.json"
NO_EQUALITY_DELETES = {"total-equality-deletes": "0"}


def schema(id_: int, **types: Any) -> dict[str, Any]:
    """A schema with a field for each type; the digits of a field's name are its id."""
    fields = [
        {"id": int(name[1:]), "name": name, "required": False, "type": type_} for name, type_ in types.items()
    ]
    return {"type": "struct", "schema-id": id_, "fields": fields}


def snapshot(id_: int, schema_id: int | None = None, **summary: str) -> dict[str, Any]:
    found = {"snapshot-id": id_, "timestamp-ms": id_, "summary": {**NO_EQUALITY_DELETES, **summary}}
    return found if schema_id is None else {**found, "schema-id": schema_id}


def metadata(*schemas: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The metadata of a table of format version 2 whose current schema is the last one."""
    return {
        "format-version": 2,
        "schemas": list(schemas),
        "current-schema-id": schemas[-1]["schema-id"],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        **{key.replace("_", "-"): value for key, value in more.items()},
    }


ADDED = (schema(0, c1="int"), schema(1, c1="int", c2="int"), schema(2, c1="int", c2="int", c3="int"))
DROPPED = (schema(0, c1="int", c2="int"), schema(1, c1="int"), schema(2, c1="int", c3="int"))
BY_C2 = {"spec-id": 1, "fields": [{"field-id": 1000, "name": "c2", "transform": "identity", "source-id": 2}]}


@pytest.mark.parametrize(
    ("read", "expiring", "unneeded"),
    [
        (metadata(*ADDED), (), {0, 1}),
        (metadata(ADDED[0]), (), set()),
        ({**metadata(*ADDED), "current-schema-id": 0}, (), {1, 2}),
        (metadata(*ADDED, snapshots=[snapshot(7, 1)]), (), {0}),
        (metadata(*ADDED, snapshots=[snapshot(7, 0), snapshot(8, 1)]), (7,), {0}),
        (metadata(*ADDED, snapshots=[snapshot(7)]), (), {0, 1}),
        ({"format-version": 1, "schema": schema(0, c1="int")}, (), set()),
        (metadata(*ADDED, snapshots=[snapshot(7, 9)]), (), {0, 1}),
    ],
    ids=["only current", "one", "after a rollback", "snapshot", "expiring", "unnamed", "format 1", "lost"],
)
def test_the_current_schema_and_those_of_snapshots_are_needed(
    read: dict[str, Any], expiring: Any, unneeded: set[int]
) -> None:
    assert unneeded_schema_ids(read, (), expiring) == unneeded


@pytest.mark.parametrize(
    ("read", "unneeded"),
    [
        (metadata(*DROPPED, snapshots=[snapshot(7, 2)]), {0, 1}),
        (metadata(*DROPPED, snapshots=[snapshot(7, 2, **{"total-equality-deletes": "3"})]), {1}),
        (metadata(*DROPPED, snapshots=[{"snapshot-id": 7, "schema-id": 2}]), {1}),
        ({**metadata(*DROPPED, snapshots=[{"snapshot-id": 7, "schema-id": 2}]), "format-version": 1}, {0, 1}),
        (metadata(*DROPPED, partition_specs=[BY_C2, {"spec-id": 2, "fields": []}]), {1}),
    ],
    ids=["no deletes", "deletes", "unknown", "format 1", "partition spec"],
)
def test_a_dropped_column_stays_in_one_schema_while_it_is_read(
    read: dict[str, Any], unneeded: set[int]
) -> None:
    assert unneeded_schema_ids(read) == unneeded


def test_a_dropped_column_stays_with_its_newest_type() -> None:
    older, newer = schema(0, c1="int", c2="int"), schema(1, c1="int", c2="long")
    read = metadata(older, newer, schema(2, c1="int"), partition_specs=[BY_C2])
    assert unneeded_schema_ids(read) == {0}
    assert type_in(read, 2) == type_in({**read, "schemas": [newer, read["schemas"][2]]}, 2)
    # The schema of a snapshot has the column, and not its newest type.
    assert unneeded_schema_ids({**read, "snapshots": [snapshot(7, 0)]}) == set()
    assert unneeded_schema_ids({**read, "snapshots": [snapshot(7, 1)]}) == {0}


def test_a_nested_column_counts_as_a_column() -> None:
    inside = {"type": "list", "element-id": 5, "element": "int", "element-required": False}
    structs = {"type": "struct", "fields": [{"id": 6, "name": "f", "required": False, "type": inside}]}
    spec = {"spec-id": 0, "fields": [{"name": "x", "transform": "identity", "source-ids": [5]}]}
    read = metadata(schema(0, c1=structs), schema(1, c2="int"), schema(2, c3="int"), partition_specs=[spec])
    assert unneeded_schema_ids(read) == {1}


RAW_INT = schema(0, c1="int", c2="int")
RECORDED = schema_from_json(RAW_INT)


@pytest.mark.parametrize(
    ("recorded", "unneeded"),
    [((), {0, 1}), ((RECORDED,), {0}), ((RECORDED, schema_from_json(schema(1, c2="long"))), {0, 1})],
    ids=["not in the history", "another type in the history", "all types in the history"],
)
def test_a_type_that_only_another_client_gave_a_column_stays(
    recorded: tuple[Schema, ...], unneeded: set[int]
) -> None:
    read = metadata(RAW_INT, schema(1, c1="int", c2="long"), schema(2, c1="int"))
    assert unneeded_schema_ids(read, recorded) == unneeded
    left = [s for s in read["schemas"] if s["schema-id"] not in unneeded]
    assert unneeded_schema_ids({**read, "schemas": left}, recorded) == set(), "the next run removes no more"


def test_a_type_that_this_release_cannot_read_stays() -> None:
    read = metadata(RAW_INT, schema(1, c1="int", c2="quaternion"), schema(2, c1="int"))
    assert unneeded_schema_ids(read, (RECORDED,)) == {0}


def test_a_table_that_had_more_fields_than_metrics_stays_recognizable() -> None:
    wide = schema(0, **{f"c{n}": "int" for n in range(1, MEASURED_FIELDS + 2)})
    read = metadata(wide, schema(1, c1="int", c2="int"), schema(2, c1="int"))
    unneeded = unneeded_schema_ids(read)
    assert unneeded == {1}
    left = [s for s in read["schemas"] if s["schema-id"] not in unneeded]
    assert is_measured(read) is is_measured({**read, "schemas": left}) is False
    assert unneeded_schema_ids(metadata(RAW_INT, wide | {"schema-id": 1})) == {0}


def test_the_undo_records_of_a_table_are_what_the_search_for_narrow_types_reads() -> None:
    table = Table(NAME, RECORDED, uuid="u1")
    wide = replace(table, schema=schema_from_json(schema(0, c1="int", c2="long")))
    undo = UndoRecord("0002", (TableUndo(NAME, NAME, table, table, table, wide),))
    applied = AppliedVersion(Version.parse("0002"), "c", "", AT, state=VersionState.ROLLED_BACK)
    history = History("market", applied=(applied,), undo={"0002": pack_undo(undo)})
    look = MaintenanceContext(None, history, AT, lambda: None)  # type: ignore[arg-type, return-value]
    assert look.recorded_schemas("u1") == [table.schema, wide.schema]
    assert (look.recorded_schemas("u2"), look.recorded_schemas(None)) == ((), ())
    field = wide.schema.by_id(2)
    assert field is not None
    assert _widest(table.schema.fields[1].type, 2, table, history) == field.type


def _look(read: dict[str, Any]) -> MaintenanceContext:
    """A project with one table, whose metadata file is given."""
    table = Table(NAME, schema_from_json(read["schemas"][-1]), uuid="u1", owner="market")
    history = History("market", state=DeclaredState({NAME: table}))
    names = SimpleNamespace(table=lambda name: name, adjust=lambda table: table)
    session: Any = SimpleNamespace(names=names, project=SimpleNamespace(name="market"))
    look = MaintenanceContext(session, history, AT, lambda: None)  # type: ignore[arg-type, return-value]
    look._tables[NAME], look._metadata[NAME] = table, read
    return look


def test_the_plan_shows_what_is_removed_and_which_tags_need_the_rest() -> None:
    (act,) = find_old_schemas(_look(metadata(*ADDED)), {})
    assert isinstance(act, MaintenanceAction)
    assert act.shown == ActionSummary(
        "schemas",
        "db.a",
        "remove 2 of 3 schemas (237 B), unused by any snapshot, branch, tag or undo",
        "metadata commit on db.a: removeSchemas(0, 1)",
    )
    wide = [schema(i, **{f"c{n}": "int" for n in range(1, 1000 + i)}) for i in range(4)]
    tags = {f"v{i}": {"snapshot-id": 10 + i, "type": "tag"} for i in range(1, 3)}
    read = metadata(*wide, snapshots=[snapshot(11, 1), snapshot(12, 2)], refs=tags)
    look = _look(read)
    act, kept = find_old_schemas(look, {})
    assert isinstance(act, MaintenanceAction)
    assert (act.schemas, act.shown.text.split(",")[0]) == ({0}, "remove 1 of 4 schemas (54.8 kB)")
    assert kept == SkippedTable("schemas", "db.a", "2 old schemas are needed by tags (110 kB): v1, v2")
    (act,) = find_old_schemas(look, {NAME: frozenset({11, 12})})
    assert isinstance(act, MaintenanceAction)
    assert act.schemas == {0, 1, 2}
    result = MaintainResult("market", "prod", ("schemas",), AT, (act.shown,), (kept,))
    assert render(result).endswith("Maintenance: 1 table with schemas to remove.\n")
    jsonschema.validate(
        json.loads(render(result, "json")), json.loads(JSON_SCHEMA.read_text(encoding="utf-8"))
    )


def test_a_schema_that_is_needed_again_when_the_action_runs_stays() -> None:
    read = metadata(*ADDED)
    (act,) = find_old_schemas(_look(read), {})
    removed = list[frozenset[int]]()

    def remove(_name: Any, _uuid: Any, unneeded: Any) -> SchemaRemoval:
        removed.append(unneeded({**read, "snapshots": [snapshot(7, 1)]}))
        removed.append(unneeded(metadata(*ADDED, schema(3, c1="int"))))
        return SchemaRemoval(len(removed[0]))

    assert isinstance(act, MaintenanceAction)
    engine: Any = SimpleNamespace(commits=SimpleNamespace(remove_schemas=remove))
    assert act.run(engine) == "1 schema removed"
    assert removed == [{0}, {0, 1}], "not schema 2, which was not shown"
    more = replace(act, schemas=frozenset({0, 1, 2}))
    assert still_due([act], [more]) == ((), ("db.a: more schemas would now be removed than were shown",))


@pytest.mark.parametrize(
    ("done", "notes", "tried"),
    [
        (
            SchemaRemoval(0, "Malformed request: unknown action"),
            ["db.a: the catalog does not remove schemas: Malformed request: unknown action"],
            1,
        ),
        (SchemaRemoval(0), ["db.a: its schemas are needed now"] * 2, 2),
    ],
    ids=["refused", "needed"],
)
def test_a_catalog_that_removes_no_schemas_is_reported_once_and_the_command_continues(
    done: Any, notes: list[str], tried: int
) -> None:
    calls = list[Any]()
    commits = SimpleNamespace(remove_schemas=lambda *given: [calls.append(given), done][1])
    engine: Any = SimpleNamespace(commits=commits)
    (act,) = find_old_schemas(_look(metadata(*ADDED)), {})
    assert isinstance(act, MaintenanceAction)
    # The history cannot be written: it records only what was removed.
    held: Any = SimpleNamespace(step=lambda text: None)
    nothing: Any = None
    found = _part(nothing, held, "schemas", [act, act], engine, StopRequest(), lambda part, table: None)
    assert (found, len(calls)) == (([], notes), tried)
