"""Records of Kafka as entries, without a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icemigrate.errors import EngineError, UsageError
from icemigrate.pipeline.kafka_records import record_batches, record_rows
from icemigrate.pipeline.stream_checkpoint import complete_segments, require_sources
from icemigrate.project.telemetry_sources import KafkaSource, parse_source
from icemigrate.versions import CURRENT, spark_release
from tests.support.collector_exporter import json_request, protobuf_request


def source(options: str, topic: str = "otlp") -> KafkaSource:
    found = parse_source(f"kafka://broker:9092/{topic}?{options}", Path("/"))
    assert isinstance(found, KafkaSource)
    return found


def record(value: bytes | None, **fields: Any) -> dict[str, Any]:
    plain = {"topic": "otlp", "partition": 3, "offset": 7, "time_ns": 5, "key": None, "headers": None}
    return {**plain, "value": value, **fields}


def header(name: str, value: bytes | None) -> dict[str, Any]:
    return {"key": name, "value": value}


@pytest.mark.parametrize(
    ("options", "topic", "fields"),
    [
        ("kind=traces&tenant=acme", "otlp", {}),
        ("kind=traces&tenant_header=t", "otlp", {"headers": [header("t", b"x"), header("t", b"acme")]}),
        ("kind=traces&tenant_key=true", "otlp", {"key": b"acme"}),
        ("kind=traces", "otlp.*.spans", {"topic": "otlp.acme.spans"}),
        ("kind_header=k&tenant=acme", "otlp", {"headers": [header("k", b"traces")]}),
    ],
)
def test_the_tenant_and_the_kind_of_a_record(options: str, topic: str, fields: dict[str, Any]) -> None:
    for payload, encoding in (
        (json_request((None, 1)), "otlp_json"),
        (protobuf_request((None, 1)), "otlp_protobuf"),
    ):
        (row,) = record_rows(source(options, topic), record(payload, **fields))
        segment = f"{fields.get('topic', 'otlp')}-3"
        assert row == ("acme", "traces", encoding, 5, segment, 7, payload, None)


def test_resources_of_several_tenants_are_several_entries() -> None:
    for encode in (json_request, protobuf_request):
        record_of_two = record(encode(("acme", 1), ("globex", 2), (None, 3), ("acme", 4)))
        rows = list(record_rows(source("kind=traces"), record_of_two))
        assert [(row[0], row[6], row[7]) for row in rows] == [
            (None, encode((None, 3)), "a resource has no text in the attribute `tenant.id`"),
            ("acme", encode(("acme", 1), ("acme", 4)), None),
            ("globex", encode(("globex", 2)), None),
        ]


@pytest.mark.parametrize(
    ("options", "fields", "problem"),
    [
        ("kind=traces", {"value": None}, "the record has no value"),
        ("kind=traces", {"value": b""}, "the record has no value"),
        ("kind=traces&tenant_header=t", {}, "the record has no header `t`"),
        ("kind=traces&tenant_header=t", {"headers": [header("t", None)]}, "the record has no header `t`"),
        (
            "kind=traces&tenant_header=t",
            {"headers": [header("t", b"a.b")]},
            "'a.b' cannot be the id of a tenant",
        ),
        ("kind=traces&tenant_key=true", {}, "the record has no key"),
        ("kind=traces&tenant_key=true", {"key": b"\xff"}, "'\ufffd' cannot be the id of a tenant"),
        (
            "kind_header=k",
            {"headers": [header("k", b"spans")]},
            "the header `k` has the unknown kind 'spans'",
        ),
        ("kind=traces&tenant=x", {"value": b"x"}, "the request is no JSON object: "),
        ("kind=traces&tenant=x", {"value": b"\x0a\x7f"}, "the payload is no Protocol Buffers message: "),
    ],
)
def test_a_record_that_cannot_be_read_is_a_row_with_the_reason(
    options: str, fields: dict[str, Any], problem: str
) -> None:
    (row,) = record_rows(source(options), {**record(json_request((None, 1))), **fields})
    assert row[0] is None
    assert row[4:6] == ("otlp-3", 7)
    assert row[7].startswith(problem)


def test_records_are_arrow_batches() -> None:
    rows = [record(json_request(("acme", n)), offset=n) for n in (1, 2)]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    (batch,) = record_batches(source("kind=traces"), [pa.record_batch(columns)])
    assert batch["tenant"].to_pylist() == ["acme", "acme"]
    assert batch["offset"].to_pylist() == [1, 2]


def test_a_checkpoint_is_of_one_number_of_sources(tmp_path: Path) -> None:
    require_sources(tmp_path, 2)
    (tmp_path / "offsets").mkdir()
    require_sources(tmp_path, 2)
    (tmp_path / "offsets" / "9").write_text("v1\n{}\n{}", encoding="utf-8")
    (tmp_path / "offsets" / "10").write_text('v1\n{}\n{"logOffset":1}\n{"otlp":{"0":7}}', encoding="utf-8")
    require_sources(tmp_path, 2)
    with pytest.raises(UsageError, match="is of runs with 1 addresses of Kafka, and this run has 0"):
        require_sources(tmp_path, 1)


def test_no_segment_is_drained_before_the_log_has_one(tmp_path: Path) -> None:
    for name, text in (
        ("offsets/0", 'v1\n{}\n-\n{"otlp":{"0":7}}'),
        ("sources/0/0", 'v1\n{"path":"file:///x.wal","batchId":0}'),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert complete_segments(tmp_path, 0) == frozenset()


def test_the_jars_of_the_source() -> None:
    names = [package.split(":")[1] for package in CURRENT.kafka_packages]
    assert names == [
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
        "kafka-clients",
        "commons-pool2",
    ]
    with pytest.raises(EngineError, match=r"no source for Kafka is known here for Spark 3\.5"):
        _ = spark_release("3.5.7").kafka_packages
