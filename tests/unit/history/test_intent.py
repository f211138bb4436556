"""What a run was asked for is in its intent; an older intent is read as one that asked nothing."""

from __future__ import annotations

from datetime import datetime, timezone

from icemigrate.declare.version import Version
from icemigrate.history.intent import Intent, intent_from_json, intent_to_json
from icemigrate.plan import Direction

BEGUN = Intent(
    version=Version.parse("0002"),
    direction=Direction.ROLLBACK,
    started_at=datetime(2026, 11, 28, tzinfo=timezone.utc),
    user="ana",
    host="ci",
    run="c0ffee",
    choices=("--partial", "--no-refill"),
)


def test_an_intent_is_read_as_it_was_written() -> None:
    assert intent_from_json(intent_to_json(BEGUN)) == BEGUN
    assert BEGUN.command == "rollback --partial --no-refill"


def test_an_intent_of_an_older_icemigrate_is_read() -> None:
    written = intent_to_json(BEGUN)
    del written["choices"]
    read = intent_from_json(written)
    assert (read.choices, read.is_redo, read.command) == ((), False, "rollback")
