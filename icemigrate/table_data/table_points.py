"""A point of a table: its current rows, a snapshot, a time, a tag or a branch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from typing import Any

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.retention import ancestor_ids
from icemigrate.iceberg.single_values import TIMESTAMP_PATTERN
from icemigrate.table_data.snapshot_list import snapshot_of, utc_time
from icemigrate.table_data.table_session import CurrentTable


class ReadPoint(Frozen):
    """What to read of a table; without any of these its current rows.

    :param snapshot: in this order: the id of a snapshot, the name of a tag or a branch, a time.
    :param snapshot_id: the id of a snapshot.
    :param timestamp: the main branch at a time; without a time zone it is in UTC.
    :param tag: the name of a tag.
    :param branch: the name of a branch.
    :param ref: the name of a tag or of a branch.
    """

    snapshot: str | None = None
    snapshot_id: int | None = None
    timestamp: datetime | None = None
    tag: str | None = None
    branch: str | None = None
    ref: str | None = None


CURRENT = ReadPoint()


class ChosenSnapshot(Frozen):
    """The snapshot of a point.

    :param json: the snapshot as metadata has it.
    :param has_current_schema: whether its rows are read with the table's current schema: those of a branch
        are, as in Spark.
    """

    json: Mapping[str, Any]
    has_current_schema: bool

    @property
    def snapshot_id(self) -> int:
        """Its id."""
        number: int = self.json["snapshot-id"]
        return number


class ResolvedPoint(Frozen):
    """What is read of a table.

    :param snapshot_id: ``None`` for a table without rows.
    :param schema_id: of the schema that its rows are read with.
    """

    snapshot_id: int | None
    schema_id: int


def choose_snapshot(table: CurrentTable, text: str | int) -> ChosenSnapshot:
    """The snapshot that a text names.

    :param text: in this order: an id, the name of a tag or a branch, a time in ISO 8601.
    :raises UsageError: the table has no such snapshot.
    """
    found = find_snapshot(table, ReadPoint(snapshot=str(text)))
    assert found is not None
    return found


def resolve_point(table: CurrentTable, point: ReadPoint = CURRENT) -> ResolvedPoint:
    """The snapshot and the schema of a point.

    The current rows and a branch have the table's current schema, a snapshot, a tag and a time the schema of
    their snapshot, as in Spark.

    :raises UsageError: as :func:`find_snapshot`, or the schema of the snapshot was removed.
    """
    metadata = table.metadata
    current_schema: int = metadata["current-schema-id"]
    chosen = find_snapshot(table, point)
    if chosen is None:
        return ResolvedPoint(None, current_schema)
    if chosen.has_current_schema:
        return ResolvedPoint(chosen.snapshot_id, current_schema)
    schema_id = chosen.json.get("schema-id", current_schema)
    if all(schema["schema-id"] != schema_id for schema in metadata["schemas"]):
        raise UsageError(
            f"the schema {schema_id} of snapshot {chosen.snapshot_id} was removed from table "
            f"`{table.declared}`",
            "read a branch, which has the current schema",
        )
    return ResolvedPoint(chosen.snapshot_id, schema_id)


def find_snapshot(table: CurrentTable, point: ReadPoint = CURRENT) -> ChosenSnapshot | None:
    """The snapshot of a point; ``None`` for the current rows of a table without a snapshot.

    :raises UsageError: the table has no such snapshot, tag or branch, had no snapshot at that time, or more
        than one of them is given.
    """
    given = [name for name in _OPTIONS if getattr(point, name) is not None]
    if len(given) > 1:
        options = " and ".join(f"`{_OPTIONS[name]}`" for name in given)
        raise UsageError(f"{options} exclude each other", "give one of them")
    if point.snapshot is not None:
        point = _read_text(table, point.snapshot)
    if point.snapshot_id is not None:
        return ChosenSnapshot(_by_id(table, point.snapshot_id), False)
    if point.timestamp is not None:
        return ChosenSnapshot(_at(table, point.timestamp), False)
    if point.ref is not None:
        ref = _find_ref(table, point.ref, ("tag", "branch"))
    elif point.tag is not None:
        ref = _find_ref(table, point.tag, ("tag",))
    elif point.branch is not None:
        ref = _find_ref(table, point.branch, ("branch",))
    else:
        current = table.metadata.get("current-snapshot-id")
        return None if current in (None, -1) else ChosenSnapshot(_by_id(table, current), True)
    return ChosenSnapshot(_by_id(table, ref["snapshot-id"]), ref["type"] == "branch")


_OPTIONS = {
    "snapshot": "--snapshot",
    "snapshot_id": "FOR VERSION AS OF",
    "timestamp": "--timestamp",
    "tag": "--tag",
    "branch": "--branch",
    "ref": "FOR VERSION AS OF",
}


def parse_timestamp(text: str, where: str = "") -> datetime:
    """A time of ISO 8601; a day is its midnight, and a time without a zone is in UTC.

    Spaces around it and before its zone, and the zone `UTC`, which messages show, are accepted too.

    :param where: names the text in messages, such as ``--timestamp``.
    :raises UsageError: the text is no such time.
    """
    plain = _SPACES_OF_ZONE.sub(r"\1", text.strip()).upper().replace("UTC", "Z")
    try:
        if _DAY.fullmatch(plain):
            day = date.fromisoformat(plain)
            return datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
        match = TIMESTAMP_PATTERN.fullmatch(plain)
        at = datetime.fromisoformat(plain if match is None else _normal_form(match))
    except ValueError as error:
        prefix = f"`{where}`: " if where else ""
        raise UsageError(f"{prefix}`{text}` is not a time", TIME_FORMS) from error
    return at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at


TIME_FORMS = (
    "write a day (`2026-01-31`), or a day and a time (`2026-01-31T12:00`, `2026-01-31 12:00:00.5`), which is "
    "in UTC unless a zone follows (`2026-01-31T12:00:00+01:00`)"
)
"""The hint about the forms of a time."""
_SPACES_OF_ZONE = re.compile(r"\s+(Z|UTC|[+-][0-9]{2}:?[0-9]{2})\Z", re.IGNORECASE)


def _normal_form(match: re.Match[str]) -> str:
    """A time as Python before 3.11 accepts it: with seconds, microseconds, and a zone such as ``+01:00``."""
    day, minutes, seconds, fraction, zone = match.groups()
    zone = re.sub(r"([0-9][0-9])([0-9][0-9])", r"\1:\2", (zone or "Z").upper().replace("Z", "+00:00"))
    return f"{day} {minutes}:{seconds or '00'}.{(fraction or '').ljust(6, '0')[:6]}{zone}"


_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LIKE_A_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?", re.IGNORECASE)
_NUMBER = re.compile("-?[0-9]{1,19}")


def _read_text(table: CurrentTable, text: str) -> ReadPoint:
    metadata = table.metadata
    number = int(text) if _NUMBER.fullmatch(text) else None
    if number is not None and snapshot_of(metadata, number) is not None:
        return ReadPoint(snapshot_id=number)
    if text in metadata["refs"]:
        return ReadPoint(ref=text)
    if _LIKE_A_TIME.fullmatch(text):
        return ReadPoint(timestamp=parse_timestamp(text))
    if (relative := _relative_hint(table, text)) is not None:
        raise _missing(table, text, ("snapshot", "tag", "branch"), relative)
    if number is not None:
        return ReadPoint(snapshot_id=number)
    hint = did_you_mean(text, metadata["refs"]) or _list_hint(table)
    raise _missing(table, text, ("snapshot", "tag", "branch"), hint)


_RELATIVE = re.compile(
    r"(?:(?:main|HEAD|current)?~|-)(?P<count>[0-9]{0,4})|(?:main|HEAD)\^|previous|prev|parent|last",
    re.IGNORECASE,
)
"""How git and other tools name a snapshot before the current one."""


def _relative_hint(table: CurrentTable, text: str) -> str | None:
    """The id of the snapshot that a text such as ``main~1`` means; ``None`` for another text."""
    match = _RELATIVE.fullmatch(text)
    if match is None:
        return None
    back = int(match["count"] or 1)
    line = list(ancestor_ids(table.metadata, table.metadata.get("current-snapshot-id")))
    if not 0 < back < len(line):
        return _list_hint(table)
    which = "the one before the current one" if back == 1 else f"{back:,} snapshots before the current one"
    return f"write the id: `--snapshot {line[back]}` is {which}"


def _by_id(table: CurrentTable, snapshot_id: int) -> Mapping[str, Any]:
    found = snapshot_of(table.metadata, snapshot_id)
    if found is None:
        raise UsageError(f"table `{table.declared}` has no snapshot {snapshot_id}", _list_hint(table))
    return found


def _at(table: CurrentTable, at: datetime) -> Mapping[str, Any]:
    """The snapshot of the main branch at a time.

    Specification, `Snapshot Log <https://iceberg.apache.org/spec/#table-metadata-fields>`_: the newest entry
    at or before the time.
    """
    log = sorted(table.metadata.get("snapshot-log") or (), key=lambda entry: int(entry["timestamp-ms"]))
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    before = [entry for entry in log if utc_time(entry["timestamp-ms"]) <= at]
    shown = at.isoformat()
    if before:
        found = snapshot_of(table.metadata, before[-1]["snapshot-id"])
        if found is None:
            raise UsageError(
                f"the snapshot that table `{table.declared}` had at {shown} has expired", _list_hint(table)
            )
        return found
    if not log:
        raise UsageError(f"table `{table.declared}` has no snapshots yet", "insert rows first")
    first = utc_time(log[0]["timestamp-ms"]).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    raise UsageError(
        f"table `{table.declared}` has no snapshot at or before {shown}",
        f"`{first}` is the time of the first one: write it, or a later time",
    )


def _find_ref(table: CurrentTable, name: str, kinds: tuple[str, ...]) -> Mapping[str, Any]:
    refs: Mapping[str, Any] = table.metadata["refs"]
    found: Mapping[str, Any] | None = refs.get(name)
    if found is None:
        names = [known for known, ref in refs.items() if ref["type"] in kinds]
        raise _missing(table, name, kinds, did_you_mean(name, names) or _known_names(table, kinds, names))
    kind = found["type"]
    if kind not in kinds:
        raise _missing(table, name, kinds, f"`{name}` is a {kind}: use `--{kind} {name}`")
    return found


def _missing(table: CurrentTable, name: str, kinds: Sequence[str], hint: str) -> UsageError:
    words = " or ".join([", ".join(kinds[:-1])] * (len(kinds) > 1) + [kinds[-1]])
    return UsageError(f"table `{table.declared}` has no {words} `{name}`", hint)


def _known_names(table: CurrentTable, kinds: Sequence[str], names: Sequence[str]) -> str:
    if not names:
        return _list_hint(table)
    listed = ", ".join(f"`{name}`" for name in sorted(names)[:_LISTED])
    return f"its {' or '.join(kinds)} names begin with {listed}"


_LISTED = 5


def _list_hint(table: CurrentTable) -> str:
    return f"`icemigrate table snapshots {table.declared}` lists its snapshots, tags and branches"
