"""When a table was changed and who was about, as far as its metadata tells."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from icemigrate.planning.drift.attribution import ChangeAttribution, PastObservation, attribute_changes
from icemigrate.planning.drift.differing_facts import DifferenceKind, DifferingFact

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
NAME = DifferingFact(("columns", 1, "name"), ("columns", "a", "name"), DifferenceKind.CHANGED, "a", "b")
PROPERTY = DifferingFact(("properties", "p"), ("properties", "p"), DifferenceKind.CHANGED, "1", "2")
DROPPED = DifferingFact(("columns", 2), ("columns", "c"), DifferenceKind.REMOVED, "int", "(absent)")


def at(second: int) -> datetime:
    return EPOCH + timedelta(seconds=second)


def not_so(second: int, fact: DifferingFact) -> PastObservation:
    return PastObservation(at(second), {fact: False})


def schema(id_: int, *names: str) -> dict[str, Any]:
    fields = [
        {"id": i, "name": name, "type": "int", "required": False} for i, name in enumerate(names, start=1)
    ]
    return {"type": "struct", "schema-id": id_, "fields": fields}


def snapshot(second: int, schema_id: int, **summary: str) -> dict[str, Any]:
    return {"snapshot-id": second, "timestamp-ms": second * 1000, "schema-id": schema_id, "summary": summary}


def metadata(commits: list[int], *snapshots: dict[str, Any]) -> dict[str, Any]:
    return {
        "last-updated-ms": commits[-1] * 1000,
        "metadata-log": [{"timestamp-ms": c * 1000, "metadata-file": f"{c}.json"} for c in commits[:-1]],
        "schemas": [schema(0, "a", "c"), schema(1, "b")],
        "current-schema-id": 1,
        "snapshots": list(snapshots),
    }


SPARK = {"engine-name": "spark", "engine-version": "4.1.4", "app-id": "local-17"}
TRINO = {"trino_query_id": "q1", "trino_user": "ann"}

CASES = {
    "one commit since is that one": (metadata([1, 20]), ChangeAttribution(at(20), at(20))),
    "one of several": (metadata([1, 20, 30]), ChangeAttribution(at(10), at(30))),
    "writes under either schema narrow it, down to one commit": (
        metadata([1, 20, 30, 40], snapshot(20, 0, **SPARK), snapshot(40, 1, **SPARK)),
        # The commit at 30 or the one at 40, which wrote under the new name.
        ChangeAttribution(at(20), at(40), ("spark 4.1.4, application local-17",)),
    ),
    "what was written before it narrows to the only commit behind": (
        metadata([1, 20, 30], snapshot(20, 0, **TRINO)),
        ChangeAttribution(at(30), at(30)),
    ),
    "a writer that says little": (
        metadata([1, 20, 30], snapshot(20, 1, **TRINO), snapshot(30, 1, operation="append")),
        ChangeAttribution(at(20), at(20), ("trino, application q1, ann",)),
    ),
    "our own marks are no writer": (
        metadata([1, 20, 30], snapshot(30, 1, **SPARK, **{"icemigrate.version": "0002"})),
        ChangeAttribution(at(10), at(30)),
    ),
    "no metadata file since": (metadata([1, 5]), ChangeAttribution(at(10), None)),
}


@pytest.mark.parametrize("name", CASES)
def test_when_a_column_changed(name: str) -> None:
    json, expected = CASES[name]
    assert attribute_changes(json, [not_so(10, NAME)], (NAME,))[NAME] == expected


def test_schemas_say_nothing_of_properties() -> None:
    json = metadata([1, 20, 30], snapshot(20, 0, **SPARK))
    assert attribute_changes(json, [not_so(10, PROPERTY)], (PROPERTY,))[PROPERTY].after == at(10)


def test_a_dropped_column_is_one_that_later_schemas_lack() -> None:
    json = metadata([1, 20, 30], snapshot(20, 0, **SPARK))
    assert attribute_changes(json, [not_so(10, DROPPED)], (DROPPED,))[DROPPED] == ChangeAttribution(
        at(30), at(30)
    )


def test_without_a_record_all_that_is_known_is_when_it_was_there() -> None:
    found = attribute_changes(metadata([1, 20]), [], (PROPERTY,))[PROPERTY]
    assert found == ChangeAttribution(None, at(20))


def test_what_was_seen_before_the_last_record_came_before_it() -> None:
    seen = [PastObservation(at(30), {PROPERTY: True}), not_so(10, PROPERTY)]
    assert attribute_changes(metadata([1, 20, 40]), seen, (PROPERTY,))[PROPERTY] == ChangeAttribution(
        at(20), at(20)
    )
    assert attribute_changes(metadata([1, 20, 25, 40]), seen, (PROPERTY,))[PROPERTY] == ChangeAttribution(
        at(10), at(25)
    )
    assert attribute_changes(metadata([1, 20, 40]), seen[:1], (PROPERTY,))[PROPERTY] == ChangeAttribution(
        None, at(30)
    )


def test_what_was_so_and_was_not_and_is_so_again_came_back_after_the_gap() -> None:
    json = metadata([1, 20, 30, 40], snapshot(20, 1), snapshot(30, 0), snapshot(40, 1))
    assert attribute_changes(json, [not_so(10, NAME)], (NAME,))[NAME] == ChangeAttribution(at(40), at(40))


def test_a_commit_is_the_only_one_where_those_of_before_are_known() -> None:
    json = metadata([20])  # the table keeps no older metadata files
    assert attribute_changes(json, [not_so(10, PROPERTY)], (PROPERTY,))[PROPERTY] == ChangeAttribution(
        at(10), at(20)
    )
