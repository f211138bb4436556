"""Who changed a table and when, as far as its metadata tells.

A change of a table's definition leaves no name: Iceberg keeps when each metadata file was written
(specification, "Table Metadata Fields", ``metadata-log``), and of each write of rows which engine made it and
under which schema (``snapshots``).  So a time is exact where only one commit can have done it, and else lies
between two; and who wrote in that time is said as that, and not as who did it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from icemigrate.drift.facts import Fact
from icemigrate.frozen import Frozen
from icemigrate.merge.fields import aspects
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.metadata_check import read_schema
from icemigrate.model.reserved import SUMMARY_PREFIX
from icemigrate.model.schema import Schema, index
from icemigrate.model.writers import writer_of

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Trace(Frozen):
    """When something was done, and who was about.

    :param after: it was done after this moment; ``None`` where nothing is known.
    :param before: it was done at this moment or before it; the same as ``after`` where it is known exactly.
    :param writers: who wrote to the table in that time, each as a phrase.
    """

    after: datetime | None
    before: datetime | None
    writers: tuple[str, ...] = ()


class Seen(Frozen):
    """What somebody saw of a table at some time.

    :param so: which facts were as they are now; of those that are left out nothing is known.
    """

    at: datetime
    so: Mapping[Fact, bool]


def trace(metadata: Mapping[str, Any], seen: Sequence[Seen], facts: tuple[Fact, ...]) -> dict[Fact, Trace]:
    """What the metadata tells of each fact, and what was seen of it before.

    :param metadata: JSON of the table's current metadata file.
    :param seen: what the history knows of the table, in any order.
    """
    commits = sorted(set(_commits(metadata)))
    snapshots = [s for s in metadata.get("snapshots") or () if not _is_ours(s)]
    schemas = {s.get("schema-id", 0): s for s in metadata.get("schemas") or ()}
    known = {i: _schema(json) for i, json in schemas.items()}
    out: dict[Fact, Trace] = {}
    for fact in facts:
        told = [(_ms(s.at), s.so.get(fact)) for s in seen]
        told += [
            (s["timestamp-ms"], _shows(_written_under(s, known), metadata, known, fact)) for s in snapshots
        ]
        # What was so, and was otherwise later, tells nothing of how it came to be so again.
        low = max((at for at, so in told if so is False), default=None)
        high = min((at for at, so in told if so and (low is None or at > low)), default=None)
        out[fact] = _between(low, high, commits, snapshots)
    return out


def _between(low: int | None, high: int | None, commits: list[int], snapshots: list[Any]) -> Trace:
    """:param high: the first time that it was seen; ``None`` where nobody did before now."""
    if low is None:
        return Trace(None, _moment(commits[-1] if high is None else high))
    possible = [c for c in commits if low < c and (high is None or c <= high)]
    if len(possible) == 1 and commits[0] <= low:
        # Iceberg forgets the oldest metadata files: only where it knows one of before, it knows all since.
        low = high = possible[0]
    elif possible:
        # It was one of these commits.
        high = possible[-1]
    if high is None:
        return Trace(_moment(low), None)
    writers = dict.fromkeys(_phrase(s) for s in snapshots if low <= s["timestamp-ms"] <= high)
    return Trace(_moment(low), _moment(high), tuple(w for w in writers if w))


def _commits(metadata: Mapping[str, Any]) -> Iterator[int]:
    """When each metadata file that is still known was written."""
    yield from (entry["timestamp-ms"] for entry in metadata.get("metadata-log") or ())
    yield metadata["last-updated-ms"]


def _written_under(snapshot: Mapping[str, Any], known: Mapping[int, Schema | None]) -> Schema | None:
    return known.get(snapshot.get("schema-id", -1))


def _is_ours(snapshot: Mapping[str, Any]) -> bool:
    return any(key.startswith(SUMMARY_PREFIX) for key in snapshot.get("summary") or {})


def _shows(
    schema: Schema | None, metadata: Mapping[str, Any], known: Mapping[int, Schema | None], fact: Fact
) -> bool | None:
    """Whether a write under this schema saw the column as it is now; ``None`` where nobody can tell."""
    now = known.get(metadata.get("current-schema-id", 0))
    if fact.key[0] != "columns" or schema is None or now is None:
        return None
    field_id, *aspect = fact.key[1:]
    then, there = index(schema).get(field_id), index(now).get(field_id)
    if then is None or there is None:
        return (then is None) == (there is None)
    return not aspect or aspects(then.field)[aspect[0]] == aspects(there.field)[aspect[0]]


def _schema(json: Any) -> Schema | None:
    try:
        return read_schema("schemas", json)
    except BadMetadata:
        return None


def _phrase(snapshot: Mapping[str, Any]) -> str:
    """A writer in words; empty where he says nothing of himself."""
    writer = writer_of(snapshot)
    engine = " ".join(filter(None, (writer.engine, writer.version)))
    run = "" if writer.id is None else f"{'job' if writer.stream else 'application'} {writer.id}"
    return ", ".join(filter(None, (engine, run, writer.name)))


def _ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _moment(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
