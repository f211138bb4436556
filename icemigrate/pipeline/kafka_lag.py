"""How far a stream is behind topics of Kafka, by the offsets of its last complete batch and of the brokers.

No record is read.  The brokers find the first record from a time onwards.  So a search for the latest time
whose first record is not behind the next one gives the time of the oldest record that waits, to the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from icemigrate.frozen import Frozen, replace
from icemigrate.pipeline.kafka_records import tenant_of_topic, topic_pattern
from icemigrate.pipeline.stream_checkpoint import kafka_offsets
from icemigrate.project.telemetry_sources import KafkaSource
from icemigrate.wal.storage_path import AnyPath

_TIMEOUT_MS = 10_000
_EXACT_MS = 1_000


class PartitionLag(Frozen):
    """A partition of a topic.

    :param tenant: where the address or the name of the topic gives one for all records.
    :param next_offset: the first one that no complete batch has; ``None`` where none has records of it.
    :param waiting: records from there on; ``None`` where the brokers were not asked.
    :param oldest_ms: the time of the first of them, in milliseconds since 1970.
    """

    topic: str
    partition: int
    tenant: str | None
    next_offset: int | None
    waiting: int | None = None
    oldest_ms: int | None = None


class KafkaLag(Frozen):
    """The partitions of all sources.

    :param problem: why brokers were not asked, as a clause.
    """

    partitions: tuple[PartitionLag, ...] = ()
    problem: str | None = None


def kafka_lag(sources: Sequence[KafkaSource], checkpoint: AnyPath, complete: int, now_ms: int) -> KafkaLag:
    """The lag of the topics of sources.

    :param complete: the number of the last complete batch; -1 for none.
    :raises EngineError: the checkpoint cannot be read.
    """
    drained = kafka_offsets(checkpoint, complete) if sources and complete >= 0 else ()
    found, problem = list[PartitionLag](), None
    for number, source in enumerate(sources):
        known = _known(source, drained[number] if number < len(drained) else {})
        try:
            with closing(_consumer(source)) as consumer:
                found += _asked(consumer, source, known, now_ms)
        except _NotAsked as error:
            problem = problem or str(error)
            found += known
        except Exception as error:  # the client raises those of sockets, of TLS and its own
            text = " ".join(str(error).split()) or type(error).__name__
            problem = problem or f"the brokers {source.servers} do not answer: {text[:200]}"
            found += known
    return KafkaLag(tuple(found), problem)


class _NotAsked(Exception):
    """Brokers cannot be asked; the text is a clause."""


def _known(source: KafkaSource, drained: Mapping[str, Mapping[str, int]]) -> list[PartitionLag]:
    return [
        PartitionLag(topic, int(partition), tenant_of_topic(source, topic), offset)
        for topic, offsets in sorted(drained.items())
        for partition, offset in sorted(offsets.items(), key=lambda pair: int(pair[0]))
    ]


def _consumer(source: KafkaSource) -> Any:
    """A client of the brokers.

    :raises _NotAsked: its package is not installed, or does not have a setting of Java's client.
    """
    try:
        from kafka import KafkaConsumer  # type: ignore[import-untyped]
    except ImportError:
        raise _NotAsked("the package `kafka-python`, which asks the brokers, is not installed") from None
    settings = {name.removeprefix("kafka.").replace(".", "_"): text for name, text in source.client.items()}
    if unknown := settings.keys() - KafkaConsumer.DEFAULT_CONFIG.keys():
        raise _NotAsked(f"the brokers are not asked: only Java's client has the setting `{min(unknown)}`")
    limit = {"bootstrap_timeout_ms": _TIMEOUT_MS}
    return KafkaConsumer(bootstrap_servers=source.servers.split(","), **limit | settings)


def _asked(
    consumer: Any, source: KafkaSource, known: Iterable[PartitionLag], now_ms: int
) -> Iterator[PartitionLag]:
    from kafka import TopicPartition

    pattern = topic_pattern(source.topic)
    topics = sorted(topic for topic in consumer.topics() if re.fullmatch(pattern, topic))
    places = [
        TopicPartition(topic, number)
        for topic in topics
        for number in sorted(consumer.partitions_for_topic(topic) or ())
    ]
    drained = {(one.topic, one.partition): one.next_offset for one in known}
    begins = consumer.beginning_offsets(places, timeout_ms=_TIMEOUT_MS) if places else {}
    ends = consumer.end_offsets(places, timeout_ms=_TIMEOUT_MS) if places else {}
    nexts = {place: max(drained.get(tuple(place)) or 0, begins[place]) for place in places}
    oldest = _times(consumer, {place: nexts[place] for place in places if nexts[place] < ends[place]}, now_ms)
    for place in places:
        lag = PartitionLag(
            place.topic,
            place.partition,
            tenant_of_topic(source, place.topic),
            drained.get(tuple(place)),
            max(ends[place] - nexts[place], 0),
        )
        yield replace(lag, oldest_ms=oldest.get(place))


def _times(consumer: Any, nexts: Mapping[Any, int], now_ms: int) -> dict[Any, int]:
    """The times of records, in milliseconds since 1970, to the second.

    :param nexts: the offsets of the records, by partition.
    """
    low, high = dict.fromkeys(nexts, 0), dict.fromkeys(nexts, now_ms + _EXACT_MS)
    while True:
        asked = {one: (low[one] + high[one]) // 2 for one in nexts if high[one] - low[one] > _EXACT_MS}
        if not asked:
            return low
        found = consumer.offsets_for_times(asked, timeout_ms=_TIMEOUT_MS)
        for place, time_ms in asked.items():
            first = found.get(place)
            if first is not None and first.offset == nexts[place]:
                low[place] = high[place] = first.timestamp
            elif first is not None and 0 <= first.offset < nexts[place]:
                low[place] = time_ms
            else:
                high[place] = time_ms
