"""How far a stream is behind topics of Kafka, with brokers in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kafka import TopicPartition

from icemigrate.pipeline import kafka_lag as lag
from icemigrate.pipeline.kafka_lag import PartitionLag, kafka_lag
from icemigrate.project.telemetry_sources import KafkaSource, parse_source
from icemigrate.render.ingest_status_text import ingest_status_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.results.ingest_status_results import IngestStatus, KafkaPartition

NOW_MS = 1_800_000_000_000


class Found(NamedTuple):
    offset: int
    timestamp: int


class Brokers:
    """Partitions whose records have times; the first offsets are removed ones."""

    def __init__(self, times: Mapping[tuple[str, int], tuple[int, list[int]]]) -> None:
        self._times = {TopicPartition(*place): records for place, records in times.items()}
        self.searches = 0
        self.is_closed = False

    def topics(self) -> set[str]:
        return {place.topic for place in self._times}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {place.partition for place in self._times if place.topic == topic}

    def beginning_offsets(self, places: Iterable[Any], timeout_ms: int) -> dict[Any, int]:
        return {place: self._times[place][0] for place in places}

    def end_offsets(self, places: Iterable[Any], timeout_ms: int) -> dict[Any, int]:
        return {place: self._times[place][0] + len(self._times[place][1]) for place in places}

    def offsets_for_times(self, asked: Mapping[Any, int], timeout_ms: int) -> dict[Any, Found | None]:
        self.searches += 1
        found: dict[Any, Found | None] = {}
        for place, time_ms in asked.items():
            first, times = self._times[place]
            later = (Found(first + at, one) for at, one in enumerate(times) if one >= time_ms)
            found[place] = next(later, None)
        return found

    def close(self) -> None:
        self.is_closed = True


def source(options: str) -> KafkaSource:
    found = parse_source(f"kafka://broker:9092/{options}", Path("/"))
    assert isinstance(found, KafkaSource)
    return found


def checkpoint(folder: Path, *offsets: str) -> Path:
    (folder / "offsets").mkdir()
    (folder / "offsets" / "3").write_text(
        "\n".join(["v1", "{}", '{"logOffset": 0}', *offsets]), encoding="utf-8"
    )
    return folder


def test_records_that_wait_by_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [NOW_MS - 90_000, NOW_MS - 60_000, NOW_MS - 30_000]
    brokers = Brokers(
        {
            ("otlp.acme.spans", 0): (0, old),
            ("otlp.acme.spans", 1): (7, [NOW_MS - 5000] * 3),
            ("otlp.new.spans", 0): (5, old),
            ("other", 0): (0, old),
        }
    )
    monkeypatch.setattr(lag, "_consumer", lambda _source: brokers)
    folder = checkpoint(tmp_path, '{"otlp.acme.spans": {"0": 1, "1": 10}}')
    found = kafka_lag([source("otlp.*.spans?kind=traces")], folder, 3, NOW_MS)
    assert (found.problem, brokers.is_closed) == (None, True)
    assert brokers.searches <= 45
    first, second, third = found.partitions
    assert second == PartitionLag("otlp.acme.spans", 1, "acme", 10, 0)
    assert (first.next_offset, first.waiting, first.tenant) == (1, 2, "acme")
    assert (third.next_offset, third.waiting, third.tenant) == (None, 3, "new")
    for one, time_ms in ((first, NOW_MS - 60_000), (third, NOW_MS - 90_000)):
        assert one.oldest_ms is not None
        assert abs(one.oldest_ms - time_ms) <= 1000


def test_brokers_that_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_source: KafkaSource) -> Brokers:
        raise OSError("NoBrokersAvailable")

    folder = checkpoint(tmp_path, "-", '{"otlp": {"1": 4, "0": 12}}')
    sources = [source("none?kind=traces"), source("otlp?kind=traces&tenant=acme")]
    drained = (PartitionLag("otlp", 0, "acme", 12), PartitionLag("otlp", 1, "acme", 4))
    monkeypatch.setattr(lag, "_consumer", refuse)
    found = kafka_lag(sources, folder, 3, NOW_MS)
    assert found.partitions == drained
    assert found.problem == "the brokers broker:9092 do not answer: NoBrokersAvailable"
    monkeypatch.undo()
    java = source("otlp?kind=traces&tenant=acme&kafka.ssl.truststore.location=/x")
    assert "only Java's client has the setting" in (kafka_lag([java], folder, -1, NOW_MS).problem or "")


def test_the_text_has_what_waits() -> None:
    partitions = (
        KafkaPartition("otlp", 0, "acme", 12, 2, 61.0),
        KafkaPartition("otlp", 1, None, 12, 0, None),
        KafkaPartition("otlp", 2, None, 4, None, None),
    )
    status = IngestStatus("log", 0, 0, None, 0, 0, 0.0, 0.0, 0, (), (), (), partitions, "no\nanswer")
    assert ingest_status_text(status, PLAIN_STYLE).splitlines()[:3] == [
        "kafka     otlp-0 of acme: 2 records wait, the oldest one for 1 min 1 s",
        "kafka     otlp-2: drained up to offset 4",
        "kafka     no answer",
    ]
