"""Times and authors of changes, as far as a table's metadata has them.

A change of a table's definition records no author: Iceberg keeps the time of each metadata file
(specification, "Table Metadata Fields", ``metadata-log``), and for each write of rows its engine and its
schema (``snapshots``).  So a time is exact where only one commit can have made the change, and otherwise an
interval; writers in that interval are listed as such, not as authors of the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.iceberg.metadata_check import read_schema
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.snapshot_writers import writer_of
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX
from icemigrate.planning.drift.differing_facts import DifferingFact
from icemigrate.planning.merge.merge_fields import field_aspects

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class ChangeAttribution(Frozen):
    """The interval of a change, and the writers in it.

    :param after: the change is later than this time; ``None`` where no bound is known.
    :param before: the change is not later than this time; equal to ``after`` where the time is exact.
    :param writers: the table's writers in the interval, each as a phrase.
    """

    after: datetime | None
    before: datetime | None
    writers: tuple[str, ...] = ()


class PastObservation(Frozen):
    """The facts of a table at an earlier time.

    :param so: whether facts had their current value; missing facts are unknown.
    """

    at: datetime
    so: Mapping[DifferingFact, bool]


def attribute_changes(
    metadata: Mapping[str, Any], seen: Sequence[PastObservation], facts: tuple[DifferingFact, ...]
) -> dict[DifferingFact, ChangeAttribution]:
    """The interval of each fact's change, from the metadata and from earlier observations.

    :param metadata: JSON of the table's current metadata file.
    :param seen: observations from the history, in any order.
    """
    commits = sorted(set(_commits(metadata)))
    snapshots = [s for s in metadata.get("snapshots") or () if not _is_ours(s)]
    schemas = {s.get("schema-id", 0): s for s in metadata.get("schemas") or ()}
    known = {i: _schema(json) for i, json in schemas.items()}
    out: dict[DifferingFact, ChangeAttribution] = {}
    for fact in facts:
        observations = [(_ms(s.at), s.so.get(fact)) for s in seen]
        observations += [
            (s["timestamp-ms"], _shows(_written_under(s, known), metadata, known, fact)) for s in snapshots
        ]
        # A value that was lost and returned does not date its return.
        low = max((at for at, so in observations if so is False), default=None)
        high = min((at for at, so in observations if so and (low is None or at > low)), default=None)
        out[fact] = _between(low, high, commits, snapshots)
    return out


def _between(
    low: int | None, high: int | None, commits: list[int], snapshots: list[Any]
) -> ChangeAttribution:
    """:param high: the time of its first observation; ``None`` without one before now."""
    if low is None:
        return ChangeAttribution(None, _moment(commits[-1] if high is None else high))
    possible = [c for c in commits if low < c and (high is None or c <= high)]
    if len(possible) == 1 and commits[0] <= low:
        # Iceberg removes the oldest metadata files: the list is complete only if it has an earlier one.
        low = high = possible[0]
    elif possible:
        # It was one of these commits.
        high = possible[-1]
    if high is None:
        return ChangeAttribution(_moment(low), None)
    writers = dict.fromkeys(_phrase(s) for s in snapshots if low <= s["timestamp-ms"] <= high)
    return ChangeAttribution(_moment(low), _moment(high), tuple(w for w in writers if w))


def _commits(metadata: Mapping[str, Any]) -> Iterator[int]:
    """Times of the metadata files that are still listed."""
    yield from (entry["timestamp-ms"] for entry in metadata.get("metadata-log") or ())
    yield metadata["last-updated-ms"]


def _written_under(snapshot: Mapping[str, Any], known: Mapping[int, Schema | None]) -> Schema | None:
    return known.get(snapshot.get("schema-id", -1))


def _is_ours(snapshot: Mapping[str, Any]) -> bool:
    return any(key.startswith(SUMMARY_PREFIX) for key in snapshot.get("summary") or {})


def _shows(
    schema: Schema | None,
    metadata: Mapping[str, Any],
    known: Mapping[int, Schema | None],
    fact: DifferingFact,
) -> bool | None:
    """Whether a write under this schema saw the column as it is now; ``None`` where that is unknown."""
    now = known.get(metadata.get("current-schema-id", 0))
    if fact.key[0] != "columns" or schema is None or now is None:
        return None
    field_id, *aspect = fact.key[1:]
    then, there = schema_index(schema).get(field_id), schema_index(now).get(field_id)
    if then is None or there is None:
        return (then is None) == (there is None)
    return not aspect or field_aspects(then.field)[aspect[0]] == field_aspects(there.field)[aspect[0]]


def _schema(json: Any) -> Schema | None:
    try:
        return read_schema("schemas", json)
    except BadMetadata:
        return None


def _phrase(snapshot: Mapping[str, Any]) -> str:
    """A writer as a phrase; empty for a writer without a name."""
    writer = writer_of(snapshot)
    engine = " ".join(filter(None, (writer.engine, writer.version)))
    run = "" if writer.id is None else f"{'job' if writer.stream else 'application'} {writer.id}"
    return ", ".join(filter(None, (engine, run, writer.name)))


def _ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _moment(ms: int) -> datetime:
    """The time; that of a damaged entry is the latest or the earliest that there is."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return (datetime.max if ms > 0 else datetime.min).replace(tzinfo=timezone.utc)
