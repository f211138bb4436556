"""What of a commit a table's metadata shows after a lost answer."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.iceberg.json_text import Json
from icemigrate.metadata_engine import apply_updates as apply_updates_module
from icemigrate.metadata_engine import rest_outcome
from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.rest_outcome import is_made
from icemigrate.metadata_engine.table_store import StoredTable, TableCommit
from tests.support.metadata_samples import sample
from tests.support.small_commits import TRADES

BASE = sample("spark-v2")
HEAD = BASE["current-snapshot-id"]
SCHEMA = next(s for s in BASE["schemas"] if s["schema-id"] == BASE["current-schema-id"])
SPEC = next(s for s in BASE["partition-specs"] if s["spec-id"] == BASE["default-spec-id"])
NEW_FIELD = {"id": BASE["last-column-id"] + 1, "name": "brand_new", "required": False, "type": "long"}
SNAPSHOT = {
    "snapshot-id": 7,
    "sequence-number": BASE["last-sequence-number"] + 1,
    "timestamp-ms": BASE["last-updated-ms"],
    "manifest-list": "s3://lake/list.avro",
    "summary": {"operation": "append"},
}
TAG = {"action": "set-snapshot-ref", "ref-name": "audit", "type": "tag", "snapshot-id": HEAD}

UPDATES: dict[str, tuple[Json, ...]] = {
    "a snapshot": ({"action": "add-snapshot", "snapshot": SNAPSHOT},),
    "a schema": (
        {"action": "add-schema", "schema": {**SCHEMA, "fields": [*SCHEMA["fields"], NEW_FIELD]}},
        {"action": "set-current-schema", "schema-id": -1},
    ),
    "a spec": (
        {"action": "add-spec", "spec": {"spec-id": 9, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
    ),
    "a sort order": (
        {
            "action": "add-sort-order",
            "sort-order": {
                "order-id": 9,
                "fields": [
                    {
                        "source-id": SCHEMA["fields"][0]["id"],
                        "transform": "identity",
                        "direction": "desc",
                        "null-order": "nulls-last",
                    }
                ],
            },
        },
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ),
    "a property": ({"action": "set-properties", "updates": {"new": "1"}},),
    "a property less": (
        {"action": "set-properties", "updates": {"new": "1"}},
        {"action": "remove-properties", "removals": ["new", next(iter(BASE["properties"]))]},
    ),
    "a tag": (TAG,),
    "a location": ({"action": "set-location", "location": "s3://lake/other/"},),
    "a uuid": ({"action": "assign-uuid", "uuid": "0e7d0f43-5a3c-4a5b-8b1c-9a2f6d1c3b7e"},),
    "a format version": ({"action": "upgrade-format-version", "format-version": 3},),
}


def after(json: Json, updates: tuple[Json, ...]) -> dict[str, Any]:
    now_ms = BASE["last-updated-ms"] + 1
    return apply_updates(json, updates, previous_location="s3://lake/before.json", now_ms=now_ms)


@pytest.mark.parametrize("what", UPDATES)
def test_a_commit_is_found_also_below_other_changes(what: str) -> None:
    commit = TableCommit(TRADES, StoredTable("s3://lake/before.json", BASE), UPDATES[what])
    assert not is_made(commit, BASE)
    made = after(BASE, UPDATES[what])
    assert is_made(commit, made)
    assert is_made(commit, after(made, ({"action": "set-properties", "updates": {"theirs": "1"}},)))


def test_ids_that_the_server_chooses_are_not_compared() -> None:
    updates = UPDATES["a schema"]
    commit = TableCommit(TRADES, StoredTable("s3://lake/before.json", BASE), updates)
    made = after(BASE, updates)
    schemas = [{**s, "schema-id": s["schema-id"] + 100} for s in made["schemas"]]
    assert is_made(commit, {**made, "schemas": schemas, "current-schema-id": made["current-schema-id"] + 100})


@pytest.mark.parametrize(
    "updates",
    [({"action": "remove-snapshot-ref", "ref-name": "audit"},), ({**TAG, "max-ref-age-ms": 5},)],
)
def test_a_changed_or_removed_tag_is_found(updates: tuple[Json, ...]) -> None:
    base = after(BASE, (TAG,))
    commit = TableCommit(TRADES, StoredTable("s3://lake/before.json", base), updates)
    assert not is_made(commit, base)
    assert is_made(commit, after(base, updates))


def test_removed_snapshots_are_found() -> None:
    base = after(BASE, UPDATES["a snapshot"])
    updates = ({"action": "remove-snapshots", "snapshot-ids": [SNAPSHOT["snapshot-id"]]},)
    commit = TableCommit(TRADES, StoredTable("s3://lake/before.json", base), updates)
    assert not is_made(commit, base)
    assert is_made(commit, after(base, updates))


def test_removed_schemas_are_found() -> None:
    base = after(BASE, UPDATES["a schema"])
    updates = ({"action": "remove-schemas", "schema-ids": [SCHEMA["schema-id"]]},)
    commit = TableCommit(TRADES, StoredTable("s3://lake/before.json", base), updates)
    assert not is_made(commit, base)
    assert is_made(commit, after(base, updates))


def test_an_update_of_an_unknown_kind_is_never_shown() -> None:
    updates = ({"action": "set-statistics", "snapshot-id": HEAD},)
    assert not is_made(TableCommit(TRADES, StoredTable("s3://lake/before.json", BASE), updates), BASE)


@pytest.mark.parametrize("what", ["a schema", "a spec", "a sort order"])
def test_a_part_that_is_not_yet_current_is_not_enough(what: str) -> None:
    commit = TableCommit(TRADES, StoredTable("s3://lake/before.json", BASE), UPDATES[what])
    assert not is_made(commit, after(BASE, UPDATES[what][:1]))
    only_added = TableCommit(TRADES, StoredTable("s3://lake/before.json", BASE), UPDATES[what][:1])
    assert not is_made(only_added, BASE)
    assert is_made(only_added, after(BASE, UPDATES[what][:1]))


def test_every_update_that_can_be_applied_can_be_found() -> None:
    assert rest_outcome._SHOWS.keys() | {"add-snapshot"} == apply_updates_module._HANDLERS.keys()
