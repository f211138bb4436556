"""The snapshot that a user names: by its id, a tag, a branch, or a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timezone
from typing import Any

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.single_values import TIMESTAMP_PATTERN
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.table_data.table_session import CurrentTable

_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile("-?[0-9]{1,19}")


class ChosenSnapshot(Frozen):
    """A snapshot of a table, and the words that named it.

    :param text: the id, the name or the time as it was written.
    :param json: the snapshot as metadata has it.
    """

    text: str
    json: Mapping[str, Any]

    @property
    def snapshot_id(self) -> int:
        """Its id."""
        number: int = self.json["snapshot-id"]
        return number


def choose_snapshot(table: CurrentTable, text: str | int) -> ChosenSnapshot:
    """The snapshot of an id, a tag, a branch, or a time.

    A time chooses the snapshot that main had then, by the log of snapshots (specification, "Point in Time
    Reads").  A time without a zone is in UTC.

    :param text: in this order: an id, the name of a tag or a branch, a time in ISO 8601.
    :raises UsageError: the table has no such snapshot.
    """
    shown = str(text)
    metadata = table.metadata
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    if _NUMBER.fullmatch(shown) and int(shown) in by_id:
        return ChosenSnapshot(shown, by_id[int(shown)])
    if shown in metadata["refs"]:
        return ChosenSnapshot(shown, by_id[metadata["refs"][shown]["snapshot-id"]])
    moment = parse_moment(shown)
    if moment is None:
        raise UsageError(f"table `{table.declared}` has no snapshot `{shown}`", _hint(table, shown))
    number = _at(table, moment)
    if number not in by_id:
        raise UsageError(
            f"the snapshot that table `{table.declared}` had at {shown} has expired", _list(table)
        )
    return ChosenSnapshot(shown, by_id[number])


def parse_moment(text: str) -> datetime | None:
    """The time in an ISO 8601 text; a day is its midnight, and a time without a zone is in UTC.

    ``None`` where the text is no time.
    """
    try:
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text)
            return datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
        match = TIMESTAMP_PATTERN.fullmatch(text)
        if match is None:
            return None
        day_text, minutes, seconds, fraction, zone = match.groups()
        # Before Python 3.11 `fromisoformat` accepts neither `Z` nor a zone without a colon.
        zone = re.sub(r"([0-9][0-9])([0-9][0-9])", r"\1:\2", (zone or "Z").upper().replace("Z", "+00:00"))
        micros = (fraction or "").ljust(6, "0")[:6]
        return datetime.fromisoformat(f"{day_text} {minutes}:{seconds or '00'}.{micros}{zone}")
    except ValueError:
        return None


def ancestor_ids(metadata: Mapping[str, Any], snapshot_id: int | None) -> Iterator[int]:
    """The ids of a snapshot and of the snapshots that it was made from, as far as metadata has them."""
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    seen = set[int]()
    while snapshot_id in by_id and snapshot_id not in seen:
        assert snapshot_id is not None
        seen.add(snapshot_id)
        yield snapshot_id
        snapshot_id = by_id[snapshot_id].get("parent-snapshot-id")


def _at(table: CurrentTable, moment: datetime) -> int:
    log = table.metadata["snapshot-log"]
    milliseconds = moment.timestamp() * 1000
    found = [entry["snapshot-id"] for entry in log if entry["timestamp-ms"] <= milliseconds]
    if found:
        number: int = found[-1]
        return number
    if not log:
        raise UsageError(f"branch `{MAIN_BRANCH}` of table `{table.declared}` has no snapshots")
    first = datetime.fromtimestamp(log[0]["timestamp-ms"] / 1000, tz=timezone.utc)
    raise UsageError(
        f"table `{table.declared}` had no snapshot at {moment.isoformat()}",
        f"its first snapshot is from {first.isoformat(timespec='milliseconds')}",
    )


def _hint(table: CurrentTable, text: str) -> str:
    refs = [*table.metadata["refs"]]
    return did_you_mean(text, refs) or _list(table)


def _list(table: CurrentTable) -> str:
    return f"`icemigrate table snapshots {table.declared}` lists snapshots, tags and branches"
