"""Who writes a table, as far as the summaries of its snapshots tell.

Engines leave their mark in the summary of every snapshot they commit, each under keys of its own.  A writer
is what will write again: a stream by the name under which it goes on after a restart, a batch job by the
name of its application, since every run has another id.

Where the keys come from (Iceberg at the end of August 2026, Trino 477):

- ``engine-name``, ``engine-version``: ``EnvironmentContext.java``, which Spark, Flink and Kafka Connect fill
  in; ``app-id``, ``app-name`` beside them: ``SparkCatalog.java``;
- ``spark.app.id``: ``SparkWrite.java``; ``spark.sql.streaming.queryId`` and ``.epochId``: its
  ``BaseStreamingWrite``;
- ``flink.job-id`` and ``flink.operator-id``: ``SinkUtil.java``, written by every Flink sink;
- ``kafka.connect.commit-id`` and ``kafka.connect.offsets.<control topic>.<group>``: ``Coordinator.java``;
- ``trino_query_id``, ``trino_user``: Trino's ``IcebergUtil`` and ``IcebergMetadata``;
- PyIceberg writes none (``pyiceberg/table/snapshots.py``), nor do most libraries that are not Java.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.model.reserved import SUMMARY_PREFIX

WATCHED_DAYS = 7
"""How far back is looked for those who write a table."""

DAY_MS = 86_400_000
_OFFSETS = "kafka.connect.offsets."


class Whom(Flag):
    """Kinds of writers, by how a change may be hard on them.

    Whether a job gives its values by position or by name stands in its code alone: no snapshot tells.
    """

    SPARK = auto()
    """Jobs that are no streams: each of their statements is held against the table as it is then."""
    TRINO = auto()
    SPARK_STREAM = auto()
    """While one runs it writes the table as it was when it started; when it starts again, Spark holds its
    columns against the table: those that are required, and the order."""
    OTHER_STREAM = auto()
    UNNAMED = auto()
    """Libraries that say nothing of themselves."""
    OTHER = auto()

    JOBS = SPARK | TRINO
    STREAMS = SPARK_STREAM | OTHER_STREAM
    """They hold the table's schema and partitioning as both were when they started."""
    ALL = JOBS | STREAMS | UNNAMED | OTHER


_JOBS = {"spark": Whom.SPARK, "trino": Whom.TRINO, None: Whom.UNNAMED}


class Writer(Frozen):
    """Somebody who wrote a table in the last :data:`WATCHED_DAYS`, and may well write again.

    :param engine: as it calls itself (``spark``, ``flink``, ``kafka-connect``, ``trino``); ``None`` where it
        says nothing, as PyIceberg does.
    :param stream: it runs on and on, and commits as it goes.
    :param name: what stays from run to run: application, user, query of a stream, operator, consumer group.
    :param id: of its last run: application, job or query.
    :param version: the engine's.
    :param commits: how many of its snapshots are still there.
    :param a_day: those, by the days looked at; of a table whose snapshots do not go back that far, by fewer.
    :param last_ms: when it last committed, in milliseconds since 1970.
    """

    engine: str | None = None
    stream: bool = False
    name: str | None = None
    id: str | None = None
    version: str | None = None
    commits: int = 0
    a_day: float = 0.0
    last_ms: int = 0

    @property
    def kind(self) -> Whom:
        """Which kind it is of."""
        if self.stream:
            return Whom.SPARK_STREAM if self.engine == "spark" else Whom.OTHER_STREAM
        return _JOBS.get(self.engine, Whom.OTHER)


def writers_of(json: Mapping[str, Any], now_ms: int) -> tuple[Writer, ...]:
    """Who wrote the table of a metadata file in the last days, the busiest first.

    Compactions (``replace``) and what bears a mark of ours are no writes.  A snapshot that is not what the
    specification says names nobody: that is for others to refuse.
    """
    since = now_ms - WATCHED_DAYS * DAY_MS
    found: dict[tuple[object, ...], list[Mapping[str, str]]] = {}
    last: dict[tuple[object, ...], int] = {}
    earliest = now_ms
    for snapshot in json.get("snapshots") or ():
        at = snapshot.get("timestamp-ms") if isinstance(snapshot, dict) else None
        if type(at) is not int or at <= since:
            # Older ones show that nothing of the days looked at has been expired.
            earliest = since if type(at) is int else earliest
            continue
        earliest = min(earliest, at)
        summary = snapshot.get("summary")
        summary = summary if isinstance(summary, dict) else {}
        if summary.get("operation") == "replace" or any(key.startswith(SUMMARY_PREFIX) for key in summary):
            continue
        key = _identity(summary)
        found.setdefault(key, []).append(summary)
        last[key] = max(at, last.get(key, at))
    days = max((now_ms - earliest) / DAY_MS, 1.0)
    writers = [_writer(key, of_one, last[key], days) for key, of_one in found.items()]
    return tuple(sorted(writers, key=lambda w: (-w.commits, -w.last_ms)))


def writer_of(snapshot: Mapping[str, Any]) -> Writer:
    """Who made one snapshot of a metadata file."""
    summary = snapshot.get("summary") or {}
    return _writer(_identity(summary), [summary], snapshot["timestamp-ms"], 1.0)


def _identity(summary: Mapping[str, str]) -> tuple[object, ...]:
    """Engine, whether it is a stream, and the name that stays."""
    if "flink.job-id" in summary:
        return "flink", True, summary.get("flink.operator-id")
    if "kafka.connect.commit-id" in summary:
        # Topic and group may both hold dots; together they are the connector's name anyway.
        offsets = next((key for key in summary if key.startswith(_OFFSETS)), None)
        return "kafka-connect", True, None if offsets is None else offsets.removeprefix(_OFFSETS)
    if "spark.sql.streaming.queryId" in summary:
        return "spark", True, summary["spark.sql.streaming.queryId"]
    if "trino_query_id" in summary:
        return "trino", False, summary.get("trino_user")
    engine = summary.get("engine-name", "spark" if "spark.app.id" in summary else None)
    return engine, False, summary.get("app-name")


_IDS = ("flink.job-id", "trino_query_id", "spark.app.id", "app-id")
"""Where the id of a run stands."""


def _writer(key: tuple[object, ...], summaries: list[Mapping[str, str]], last: int, days: float) -> Writer:
    engine, stream, name = key
    latest = summaries[-1]
    return Writer(
        engine=None if engine is None else str(engine),
        stream=bool(stream),
        name=None if name is None else str(name),
        id=next((str(latest[k]) for k in _IDS if k in latest), None),
        version=latest.get("engine-version"),
        commits=len(summaries),
        a_day=round(len(summaries) / days, 1),
        last_ms=last,
    )
