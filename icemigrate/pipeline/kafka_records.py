"""Records of Kafka as entries, through Spark's own source; each record is one export request.

The offsets of a batch are in the checkpoint of the stream beside its segments, so that a repeated batch has
the same records (Spark, `Structured Streaming + Kafka Integration Guide
<https://spark.apache.org/docs/latest/streaming/structured-streaming-kafka-integration.html>`_).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from icemigrate.frozen import replace
from icemigrate.otlp.tenant_requests import TenantRequest, TenantRule, split_request
from icemigrate.pipeline.segment_entries import ENTRY_COLUMNS, row_batches
from icemigrate.project.telemetry_sources import KafkaSource
from icemigrate.versions import spark_release
from icemigrate.wal.entries import EntryKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS = {kind.value: kind for kind in EntryKind}
_RECORD = (
    "topic",
    "partition",
    "offset",
    "unix_micros(timestamp) * 1000 AS time_ns",
    "key",
    "value",
    "headers",
)


class _NoTenant(Exception):
    """A record that does not have what the source says; the text is a clause."""


def kafka_packages() -> tuple[str, ...]:
    """Maven coordinates of the jars that a stream of records needs.

    :raises EngineError: none are known for the installed Spark.
    """
    try:
        import pyspark
    except ImportError:
        return ()  # the start of Spark reports it
    return spark_release(pyspark.__version__).kafka_packages


def kafka_entries(spark: SparkSession, source: KafkaSource) -> DataFrame:
    """The records of topics as a stream with the columns of :data:`ENTRY_COLUMNS`, from the first one on."""
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", source.servers)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", source.records_per_batch)
    )
    is_pattern = "*" in source.topic
    reader = reader.option(
        "subscribePattern" if is_pattern else "subscribe",
        topic_pattern(source.topic) if is_pattern else source.topic,
    )
    for name, value in source.client.items():
        reader = reader.option(name, value)
    return reader.load().selectExpr(*_RECORD).mapInArrow(partial(record_batches, source), ENTRY_COLUMNS)


def record_batches(source: KafkaSource, batches: Iterable[Any]) -> Iterator[Any]:
    """The entries of records as Arrow.

    :param batches: ``pyarrow.RecordBatch`` with the columns of a record.
    """
    records = (record for batch in batches for record in batch.to_pylist())
    return row_batches(row for record in records for row in record_rows(source, record))


def record_rows(source: KafkaSource, record: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a record, see :data:`ENTRY_COLUMNS`; the segment is the topic with the partition."""
    segment = f"{record['topic']}-{record['partition']}"
    place, time_ns = (segment, record["offset"]), max(0, record["time_ns"])
    value = record["value"]
    try:
        if not value:
            raise _NoTenant("the record has no value")
        rule = _rule(source, record)
    except _NoTenant as error:
        yield (None, None, None, time_ns, *place, value or b"", str(error))
        return
    for part in split_request(value, rule):
        if isinstance(part, TenantRequest):
            kind, encoding = part.kind.value, part.encoding.value
            yield (part.tenant, kind, encoding, time_ns, *place, part.payload, None)
        else:
            yield (None, None, None, time_ns, *place, part.payload, part.problem)


def _rule(source: KafkaSource, record: Mapping[str, Any]) -> TenantRule:
    """The rule for a record.

    :raises _NoTenant: it lacks a header or a key that the source names.
    """
    rule = source.rule
    if source.kind_header is not None:
        word = _header(record, source.kind_header)
        if word not in _KINDS:
            raise _NoTenant(f"the header `{source.kind_header}` has the unknown kind {word[:60]!r}")
        rule = replace(rule, kind=_KINDS[word])
    if source.tenant_header is not None:
        return replace(rule, tenant=_header(record, source.tenant_header))
    if source.has_tenant_key:
        if record["key"] is None:
            raise _NoTenant("the record has no key")
        return replace(rule, tenant=record["key"].decode("utf-8", "replace"))
    if source.has_tenant_in_topic:
        match = re.fullmatch(topic_pattern(source.topic), record["topic"])
        assert match is not None, "Spark subscribes to topics of the pattern"
        return replace(rule, tenant=match[1])
    return rule


def _header(record: Mapping[str, Any], name: str) -> str:
    for header in reversed(record["headers"] or []):
        if header["key"] == name and header["value"] is not None:
            text: str = header["value"].decode("utf-8", "replace")
            return text
    raise _NoTenant(f"the record has no header `{name}`")


def topic_pattern(topic: str) -> str:
    """A regular expression for Python and Java."""
    return re.escape(topic).replace(r"\*", "(.+)")


def tenant_of_topic(source: KafkaSource, topic: str) -> str | None:
    """The tenant of all records of a topic; ``None`` where records have it."""
    if source.has_tenant_in_topic:
        match = re.fullmatch(topic_pattern(source.topic), topic)
        return None if match is None else match[1]
    return None if source.has_tenant_key or source.tenant_header is not None else source.rule.tenant
