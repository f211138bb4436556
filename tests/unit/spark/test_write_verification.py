"""A write whose snapshot is not where it belongs is an error, and says where it is."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.spark.row_branches import require_published, require_written

NAME = TableName(("db",), "t")
OURS = {"icemigrate.data": "p/0002"}


def metadata(refs: dict[str, int], *snapshots: tuple[int, int | None, dict[str, str]]) -> dict[str, Any]:
    return {
        "current-snapshot-id": refs.get("main"),
        "refs": {name: {"snapshot-id": at, "type": "branch"} for name, at in refs.items()},
        "snapshots": [
            {"snapshot-id": at, "summary": summary, **({"parent-snapshot-id": on} if on else {})}
            for at, on, summary in snapshots
        ],
    }


def test_a_new_snapshot_at_the_head_of_the_branch_is_right() -> None:
    require_written(metadata({"b": 2}, (1, None, {}), (2, 1, OURS)), NAME, "b", {1}, OURS)


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (metadata({"b": 1}, (1, None, {})), "it wrote no snapshot"),
        (metadata({"b": 1}, (1, None, OURS)), "it wrote no snapshot"),
        (metadata({}, (1, None, {})), "it wrote no snapshot"),
        (metadata({"b": 1}, (1, None, {}), (2, 1, {**OURS, "wap.id": "audit"})), "staged it as snapshot 2"),
        (metadata({"b": 1, "audit": 2}, (1, None, {}), (2, 1, OURS)), "put it elsewhere, as snapshot 2"),
        (metadata({"b": 2}, (1, None, {}), (2, 1, {"by": "someone else"})), "it wrote no snapshot"),
    ],
)
def test_any_other_outcome_is_an_error(there: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineError, match=words) as caught:
        require_written(there, NAME, "b", {1}, OURS)
    assert "no rows were published" in (caught.value.hint or "")


def test_rows_are_published_where_main_has_come_by_their_snapshot() -> None:
    line = (1, None, {}), (2, 1, OURS), (3, 2, {})
    require_published(metadata({"main": 3}, *line), NAME, 2)
    with pytest.raises(EngineError, match="does not contain snapshot 2"):
        require_published(metadata({"main": 1}, *line), NAME, 2)
