"""The state of a table that a query reads: the current one, a snapshot, a time, a tag or a branch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.table_data.table_session import CurrentTable


class ReadPoint(Frozen):
    """What to read of a table; without any of these its current rows.

    :param snapshot_id: a snapshot.
    :param timestamp: the rows of the main branch at a time, with a time zone.
    :param tag: the name of a tag.
    :param branch: the name of a branch.
    :param ref: the name of a tag or of a branch.
    """

    snapshot_id: int | None = None
    timestamp: datetime | None = None
    tag: str | None = None
    branch: str | None = None
    ref: str | None = None


CURRENT = ReadPoint()


class ResolvedPoint(Frozen):
    """What is read of a table.

    :param snapshot_id: ``None`` for a table without rows.
    :param schema_id: of the schema that its rows are read with.
    """

    snapshot_id: int | None
    schema_id: int


def parse_timestamp(text: str) -> datetime:
    """A time of ISO 8601; without a zone it is in UTC.

    :raises UsageError: it is no such time.
    """
    try:
        # Python 3.10 reads no `Z`.
        at = datetime.fromisoformat(f"{text[:-1]}+00:00" if text[-1:] in ("Z", "z") else text)
    except ValueError as error:
        raise UsageError(
            f"`{text}` is not a time", "write it as in `2026-01-31T12:00:00Z`; without a zone it is in UTC"
        ) from error
    return at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at


def resolve_point(table: CurrentTable, point: ReadPoint = CURRENT) -> ResolvedPoint:
    """The snapshot and the schema of a point.

    The current rows and a branch have the table's current schema, a snapshot, a tag and a time the schema of
    their snapshot, as in Spark.

    :raises UsageError: the table has no such snapshot, tag or branch, had no snapshot at that time, or more
        than one of them is given.
    """
    given = [name for name in _OPTIONS if getattr(point, name) is not None]
    if len(given) > 1:
        options = " and ".join(f"`{_OPTIONS[name]}`" for name in given)
        raise UsageError(f"{options} exclude each other", "give one of them")
    metadata = table.metadata
    current_schema: int = metadata["current-schema-id"]
    if point.snapshot_id is not None:
        return _with_own_schema(table, point.snapshot_id)
    if point.timestamp is not None:
        return _with_own_schema(table, _snapshot_at(table, point.timestamp))
    name = point.ref or point.tag or point.branch
    if name is None:
        return ResolvedPoint(_current_snapshot(metadata), current_schema)
    kinds = ["tag"] * (point.branch is None) + ["branch"] * (point.tag is None)
    ref = _find_ref(table, name, kinds)
    if ref["type"] == "tag":
        return _with_own_schema(table, ref["snapshot-id"])
    return ResolvedPoint(ref["snapshot-id"], current_schema)


_OPTIONS = {
    "snapshot_id": "--snapshot",
    "timestamp": "--timestamp",
    "tag": "--tag",
    "branch": "--branch",
    "ref": "FOR VERSION AS OF",
}


def _current_snapshot(metadata: Mapping[str, Any]) -> int | None:
    number: int | None = metadata.get("current-snapshot-id")
    return None if number == -1 else number


def _with_own_schema(table: CurrentTable, snapshot_id: int) -> ResolvedPoint:
    metadata = table.metadata
    found = next((s for s in metadata["snapshots"] if s["snapshot-id"] == snapshot_id), None)
    if found is None:
        raise UsageError(
            f"table `{table.declared}` has no snapshot {snapshot_id}",
            f"`icemigrate table snapshots {table.declared}` lists its snapshots",
        )
    schema_id = found.get("schema-id", metadata["current-schema-id"])
    if all(schema["schema-id"] != schema_id for schema in metadata["schemas"]):
        raise UsageError(
            f"the schema {schema_id} of snapshot {snapshot_id} was removed from table `{table.declared}`",
            "read a branch, which has the current schema",
        )
    return ResolvedPoint(snapshot_id, schema_id)


def _snapshot_at(table: CurrentTable, at: datetime) -> int:
    """The snapshot of the main branch at a time.

    Specification, `Snapshot Log <https://iceberg.apache.org/spec/#table-metadata-fields>`_: the newest entry
    at or before the time.
    """
    log = sorted(table.metadata.get("snapshot-log") or (), key=lambda entry: int(entry["timestamp-ms"]))
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    milliseconds = (at - _EPOCH).total_seconds() * 1000
    before = [entry for entry in log if entry["timestamp-ms"] <= milliseconds]
    if before:
        number: int = before[-1]["snapshot-id"]
        return number
    if not log:
        raise UsageError(f"table `{table.declared}` has no snapshots yet", "omit the time")
    first = (_EPOCH + timedelta(milliseconds=log[0]["timestamp-ms"])).isoformat(timespec="milliseconds")
    raise UsageError(
        f"table `{table.declared}` has no snapshot at or before {at.isoformat()}",
        f"the first one of its log is of {first}",
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _find_ref(table: CurrentTable, name: str, kinds: list[str]) -> Mapping[str, Any]:
    refs: Mapping[str, Any] = table.metadata["refs"]
    words = " or ".join(kinds)
    found: Mapping[str, Any] | None = refs.get(name)
    if found is not None and found["type"] in kinds:
        return found
    names = [known for known, ref in refs.items() if ref["type"] in kinds]
    hint = did_you_mean(name, names)
    if found is not None:
        hint = f"`{name}` is a {found['type']}: use `--{found['type']} {name}`"
    elif hint is None:
        listed = ", ".join(f"`{known}`" for known in sorted(names)[:_LISTED])
        hint = f"its {words} names begin with {listed}" if listed else f"it has no {words}"
    raise UsageError(f"table `{table.declared}` has no {words} `{name}`", hint)


_LISTED = 5
