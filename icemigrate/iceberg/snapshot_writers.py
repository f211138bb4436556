"""The writers of a table, from the summaries of its snapshots.

Engines put their own keys into the summary of every snapshot that they commit.  A writer is a client that
will write again: a stream by the name under which it continues after a restart, a batch job by the name of
its application, because every run has another id.

Sources of the keys (Iceberg at the end of August 2026, Trino 477):

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
from icemigrate.iceberg.json_text import Raw, read_json
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX

WATCHED_DAYS = 7
"""The number of days in which writers of a table are searched."""

DAY_MS = 86_400_000
_OFFSETS = "kafka.connect.offsets."


class WriterKind(Flag):
    """Kinds of writers, by how a change affects them.

    Only the code of a job shows whether it writes its values by position or by name; no snapshot records it.
    """

    SPARK = auto()
    """Jobs that are not streams: each of their statements is checked against the current table."""
    TRINO = auto()
    SPARK_STREAM = auto()
    """A running stream writes the table as it was at its start; at a restart, Spark checks its columns:
    required ones, and the order.
    """
    OTHER_STREAM = auto()
    UNNAMED = auto()
    """Libraries that write no name."""
    OTHER = auto()

    JOBS = SPARK | TRINO
    STREAMS = SPARK_STREAM | OTHER_STREAM
    """They keep the table's schema and partitioning from their start."""
    ALL = JOBS | STREAMS | UNNAMED | OTHER


_JOBS = {"spark": WriterKind.SPARK, "trino": WriterKind.TRINO, None: WriterKind.UNNAMED}


class Writer(Frozen):
    """A client that wrote a table in the last :data:`WATCHED_DAYS`, and is likely to write again.

    :param engine: its own name (``spark``, ``flink``, ``kafka-connect``, ``trino``); ``None`` without one, as
        with PyIceberg.
    :param stream: whether it runs continuously, and commits while it runs.
    :param name: constant from run to run: application, user, query of a stream, operator, consumer group.
    :param id: of its last run: application, job or query.
    :param version: the engine's.
    :param commits: number of its snapshots that still exist.
    :param a_day: the same for each day in question, or for fewer days where the snapshots do not go back that
        far.
    :param last_ms: its last commit, in milliseconds since 1970.
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
    def kind(self) -> WriterKind:
        """Which kind it is of."""
        if self.stream:
            return WriterKind.SPARK_STREAM if self.engine == "spark" else WriterKind.OTHER_STREAM
        return _JOBS.get(self.engine, WriterKind.OTHER)


def writers_of(json: Mapping[str, Any], now_ms: int) -> tuple[Writer, ...]:
    """The writers in a metadata file of the last days, the busiest first.

    Compactions (``replace``) and snapshots of icemigrate are not writes. A snapshot that does not match the
    specification names no writer: other code refuses it.
    """
    since = now_ms - WATCHED_DAYS * DAY_MS
    found: dict[tuple[object, ...], list[Mapping[str, str]]] = {}
    last: dict[tuple[object, ...], int] = {}
    earliest = now_ms
    for snapshot in json.get("snapshots") or ():
        at = snapshot.get("timestamp-ms") if isinstance(snapshot, dict) else None
        if type(at) is not int or at <= since:
            # Older snapshots show that none of the days in question has expired.
            earliest = since if type(at) is int else earliest
            continue
        earliest = min(earliest, at)
        summary = _summary(snapshot)
        if summary.get("operation") == "replace" or any(key.startswith(SUMMARY_PREFIX) for key in summary):
            continue
        key = _identity(summary)
        found.setdefault(key, []).append(summary)
        last[key] = max(at, last.get(key, at))
    days = max((now_ms - earliest) / DAY_MS, 1.0)
    writers = [_writer(key, of_one, last[key], days) for key, of_one in found.items()]
    return tuple(sorted(writers, key=lambda w: (-w.commits, -w.last_ms)))


def _summary(snapshot: Mapping[str, Any]) -> Mapping[str, str]:
    """The summary of a snapshot, which may still be text."""
    summary = snapshot.get("summary")
    try:
        summary = read_json(summary) if type(summary) is Raw else summary
    except (ValueError, RecursionError):
        return {}
    return summary if isinstance(summary, dict) else {}


def writer_of(snapshot: Mapping[str, Any]) -> Writer:
    """The writer of one snapshot of a metadata file."""
    summary = snapshot.get("summary") or {}
    return _writer(_identity(summary), [summary], snapshot["timestamp-ms"], 1.0)


def _identity(summary: Mapping[str, str]) -> tuple[object, ...]:
    """Engine, whether it is a stream, and the name that stays."""
    if "flink.job-id" in summary:
        return "flink", True, summary.get("flink.operator-id")
    if "kafka.connect.commit-id" in summary:
        # Topic and group may both contain dots; together they are the connector's name anyway.
        offsets = next((key for key in summary if key.startswith(_OFFSETS)), None)
        return "kafka-connect", True, None if offsets is None else offsets.removeprefix(_OFFSETS)
    if "spark.sql.streaming.queryId" in summary:
        return "spark", True, summary["spark.sql.streaming.queryId"]
    if "trino_query_id" in summary:
        return "trino", False, summary.get("trino_user")
    engine = summary.get("engine-name", "spark" if "spark.app.id" in summary else None)
    return engine, False, summary.get("app-name")


_IDS = ("flink.job-id", "trino_query_id", "spark.app.id", "app-id")
"""Keys of the summary that contain the id of a run."""


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
