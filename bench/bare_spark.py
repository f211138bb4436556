"""The peer of ``ingest``: a bare Spark job that writes the segments of a log as Parquet, without Iceberg.

It has its own parser of segments and its own flattening, in the two ways that such a job is written: Spark
SQL's ``from_json`` (``sql``), or Python functions (``python``).  It checks no checksum, and expects OTLP JSON
as exporters write it.  Files are partitioned by tenant and day.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

_HEADER, _MARK = 16, 8
_KINDS = {1: "traces", 2: "logs", 3: "metrics"}
_FRAME, _BODY = "<II", "<BBQH"
_FRAME_SIZE, _BODY_SIZE = struct.calcsize(_FRAME), struct.calcsize(_BODY)

_VALUE = (
    "struct<stringValue: string, boolValue: boolean, intValue: bigint, doubleValue: double, "
    "arrayValue: string, kvlistValue: string, bytesValue: string>"
)
_ATTRIBUTES = f"array<struct<key: string, value: {_VALUE}>>"
_SCOPE = f"struct<name: string, version: string, attributes: {_ATTRIBUTES}>"
_RESOURCE = f"struct<attributes: {_ATTRIBUTES}>"
_EVENTS = f"array<struct<timeUnixNano: bigint, name: string, attributes: {_ATTRIBUTES}>>"
_LINKS = f"array<struct<traceId: string, spanId: string, traceState: string, attributes: {_ATTRIBUTES}>>"
_SPAN = (
    "struct<traceId: string, spanId: string, parentSpanId: string, traceState: string, flags: bigint, "
    "name: string, kind: int, startTimeUnixNano: bigint, endTimeUnixNano: bigint, "
    f"attributes: {_ATTRIBUTES}, events: {_EVENTS}, links: {_LINKS}, "
    "status: struct<code: int, message: string>>"
)
_RECORD = (
    "struct<timeUnixNano: bigint, observedTimeUnixNano: bigint, severityNumber: int, severityText: string, "
    f"eventName: string, body: {_VALUE}, attributes: {_ATTRIBUTES}, traceId: string, spanId: string, "
    "flags: bigint>"
)
_BUCKETS = "struct<offset: int, bucketCounts: array<bigint>>"
_POINT = (
    "struct<timeUnixNano: bigint, startTimeUnixNano: bigint, asDouble: double, asInt: bigint, count: bigint, "
    "sum: double, min: double, max: double, bucketCounts: array<bigint>, explicitBounds: array<double>, "
    f"scale: int, zeroCount: bigint, positive: {_BUCKETS}, negative: {_BUCKETS}, "
    "quantileValues: array<struct<quantile: double, value: double>>, "
    f"attributes: {_ATTRIBUTES}, flags: bigint>"
)
_DATA = f"struct<dataPoints: array<{_POINT}>, aggregationTemporality: int, isMonotonic: boolean>"
_TYPES = {
    "gauge": "gauge",
    "sum": "sum",
    "histogram": "histogram",
    "exponentialHistogram": "exponential_histogram",
    "summary": "summary",
}
_METRIC = "struct<name: string, description: string, unit: string, " + (
    ", ".join(f"{name}: {_DATA}" for name in _TYPES) + ">"
)
_REQUESTS = {
    "traces": f"resourceSpans array<struct<resource: {_RESOURCE}, "
    f"scopeSpans: array<struct<scope: {_SCOPE}, spans: array<{_SPAN}>>>>>",
    "logs": f"resourceLogs array<struct<resource: {_RESOURCE}, "
    f"scopeLogs: array<struct<scope: {_SCOPE}, logRecords: array<{_RECORD}>>>>>",
    "metrics": f"resourceMetrics array<struct<resource: {_RESOURCE}, "
    f"scopeMetrics: array<struct<scope: {_SCOPE}, metrics: array<{_METRIC}>>>>>",
}


def _text(value: str) -> str:
    number = f"coalesce(cast({value}.intValue AS string), cast({value}.doubleValue AS string))"
    return f"coalesce({value}.stringValue, {number}, cast({value}.boolValue AS string), {value}.arrayValue)"


def _map(attributes: str) -> str:
    pairs = f"transform({attributes}, one -> struct(one.key, coalesce({_text('one.value')}, '')))"
    return f"map_from_entries(coalesce({pairs}, array()))"


def _time(nanos: str) -> str:
    return f"timestamp_micros(nullif({nanos}, 0) div 1000)"


def _id(name: str) -> str:
    return f"unhex(nullif({name}, ''))"


_ORIGIN = (
    f"{_map('resource.attributes')}['service.name'] AS service_name, "
    f"{_map('resource.attributes')} AS resource_attributes, "
    "scope.name AS scope_name, scope.version AS scope_version, "
    f"{_map('scope.attributes')} AS scope_attributes"
)
_COLUMNS = {
    "traces": f"""
        {_id("one.traceId")} AS trace_id, {_id("one.spanId")} AS span_id,
        {_id("one.parentSpanId")} AS parent_span_id, one.traceState AS trace_state,
        coalesce(one.flags, 0) AS flags, one.name, one.kind, {_time("one.startTimeUnixNano")} AS start_time,
        {_time("one.endTimeUnixNano")} AS end_time,
        one.endTimeUnixNano - one.startTimeUnixNano AS duration_ns,
        coalesce(one.status.code, 0) AS status_code, one.status.message AS status_message,
        {_map("one.attributes")} AS attributes,
        transform(coalesce(one.events, array()), event -> struct({_time("event.timeUnixNano")} AS time,
            event.name, {_map("event.attributes")} AS attributes)) AS events,
        transform(coalesce(one.links, array()), link -> struct({_id("link.traceId")} AS trace_id,
            {_id("link.spanId")} AS span_id, link.traceState AS trace_state,
            {_map("link.attributes")} AS attributes)) AS links""",
    "logs": f"""
        {_time("coalesce(one.timeUnixNano, one.observedTimeUnixNano)")} AS time,
        {_time("one.observedTimeUnixNano")} AS observed_time, one.severityNumber AS severity_number,
        one.severityText AS severity_text, one.eventName AS event_name, {_text("one.body")} AS body,
        {_map("one.attributes")} AS attributes, {_id("one.traceId")} AS trace_id,
        {_id("one.spanId")} AS span_id, coalesce(one.flags, 0) AS flags""",
    "metrics": f"""
        metric.name, metric.description, metric.unit, type,
        coalesce(data.aggregationTemporality, 0) AS temporality,
        coalesce(data.isMonotonic, false) AS is_monotonic, {_time("one.timeUnixNano")} AS time,
        {_time("one.startTimeUnixNano")} AS start_time,
        coalesce(one.asDouble, cast(one.asInt AS double)) AS value, one.asInt AS int_value, one.count,
        one.sum, one.min, one.max, coalesce(one.bucketCounts, array()) AS bucket_counts,
        coalesce(one.explicitBounds, array()) AS explicit_bounds, one.scale, one.zeroCount AS zero_count,
        struct(one.positive.offset, one.positive.bucketCounts AS counts) AS positive,
        struct(one.negative.offset, one.negative.bucketCounts AS counts) AS negative,
        coalesce(one.quantileValues, array()) AS quantiles, {_map("one.attributes")} AS attributes,
        coalesce(one.flags, 0) AS flags""",
}
_FOLDERS = {"traces": "start_time", "logs": "time", "metrics": "time"}
"""The times whose days are partitions."""


def parse_segment(content: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Tenant, kind and payload of each entry."""
    at = _HEADER
    while content[at + _MARK : at + _MARK + 1] == b"E":
        begin = at + _MARK + 1 + _FRAME_SIZE
        length, _ = struct.unpack_from(_FRAME, content, at + _MARK + 1)
        kind, _, _, size = struct.unpack_from(_BODY, content, begin)
        payload = begin + _BODY_SIZE + size
        at = begin + length
        yield content[begin + _BODY_SIZE : payload].decode(), _KINDS[kind], content[payload:at]


def _entries(kind: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def parse(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for content in batch.column("content"):
                rows = [(t, p) for t, k, p in parse_segment(content.as_py()) if k == kind]
                for at in range(0, len(rows), 100):
                    tenants, payloads = zip(*rows[at : at + 100], strict=True)
                    arrays = [pa.array(tenants), pa.array([one.decode() for one in payloads])]
                    yield pa.record_batch(arrays, names=["tenant", "payload"])

    return parse


def write_by_sql(spark: Any, log: str, target: str) -> None:
    """Flatten by ``from_json``, once for each kind."""
    segments = spark.read.format("binaryFile").option("pathGlobFilter", "*.wal").load(log).select("content")
    for kind, schema in _REQUESTS.items():
        (resources,) = (word for word in schema.split()[:1])
        scopes, items = {
            "traces": ("scopeSpans", "spans"),
            "logs": ("scopeLogs", "logRecords"),
            "metrics": ("scopeMetrics", "metrics"),
        }[kind]
        entries = segments.mapInArrow(_entries(kind), "tenant string, payload string")
        parsed = entries.selectExpr("tenant", f"from_json(payload, '{schema}').{resources} AS parts")
        scoped = parsed.selectExpr("tenant", "explode(parts) AS part").selectExpr(
            "tenant", "part.resource", f"explode(part.{scopes}) AS part"
        )
        found = scoped.selectExpr("tenant", "resource", "part.scope", f"explode(part.{items}) AS one")
        if kind == "metrics":
            typed = ", ".join(
                f"struct('{name}' AS type, one.{field} AS data)" for field, name in _TYPES.items()
            )
            found = found.selectExpr(
                "tenant", "resource", "scope", "one AS metric", f"inline(array({typed}))"
            ).selectExpr("*", "explode(data.dataPoints) AS one")
        rows = found.selectExpr("tenant", *_split(_ORIGIN), *_split(_COLUMNS[kind]))
        _write(rows, kind, target)


def _split(columns: str) -> list[str]:
    """Expressions that commas separate outside of brackets."""
    found, depth, begin = list[str](), 0, 0
    for at, character in enumerate(columns):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            found.append(columns[begin:at])
            begin = at + 1
    return [*found, columns[begin:]]


def _write(rows: Any, kind: str, target: str) -> None:
    partitioned = rows.selectExpr("*", f"to_date({_FOLDERS[kind]}) AS day")
    partitioned.write.mode("overwrite").partitionBy("tenant", "day").option("compression", "zstd").parquet(
        f"{target}/{kind}"
    )


def write_by_python(spark: Any, log: str, target: str) -> None:
    """Flatten by Python functions, once for each kind."""
    from pyspark.sql.pandas.types import to_arrow_schema

    segments = spark.read.format("binaryFile").option("pathGlobFilter", "*.wal").load(log).select("content")
    for kind, schema in _schemas().items():
        arrow = to_arrow_schema(spark.createDataFrame([], schema).schema)
        _write(segments.mapInArrow(_flattened(kind, arrow), schema), kind, target)


_MAP = "map<string, string>"
_START = f"tenant string, service_name string, resource_attributes {_MAP}, scope_name string, " + (
    f"scope_version string, scope_attributes {_MAP}, "
)


def _schemas() -> dict[str, str]:
    return {
        "traces": _START + "trace_id binary, span_id binary, parent_span_id binary, trace_state string, "
        "flags bigint, name string, kind int, start_time timestamp, end_time timestamp, duration_ns bigint, "
        f"status_code int, status_message string, attributes {_MAP}, "
        f"events array<struct<time: timestamp, name: string, attributes: {_MAP}>>, "
        f"links array<struct<trace_id: binary, span_id: binary, trace_state: string, attributes: {_MAP}>>",
        "logs": _START + "time timestamp, observed_time timestamp, severity_number int, "
        "severity_text string, "
        f"event_name string, body string, attributes {_MAP}, trace_id binary, span_id binary, flags bigint",
        "metrics": _START + "name string, description string, unit string, type string, temporality int, "
        "is_monotonic boolean, time timestamp, start_time timestamp, value double, int_value bigint, "
        "count bigint, sum double, min double, max double, bucket_counts array<bigint>, "
        "explicit_bounds array<double>, scale int, zero_count bigint, "
        "positive struct<offset: int, counts: array<bigint>>, "
        "negative struct<offset: int, counts: array<bigint>>, "
        f"quantiles array<struct<quantile: double, value: double>>, attributes {_MAP}, flags bigint",
    }


def _flattened(kind: str, schema: Any) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def flatten(batches: Iterable[Any]) -> Iterator[Any]:
        import msgspec
        import pyarrow as pa

        rows = list[dict[str, Any]]()
        for batch in batches:
            for content in batch.column("content"):
                for tenant, found, payload in parse_segment(content.as_py()):
                    if found == kind:
                        request = msgspec.json.decode(payload)
                        rows += ({"tenant": tenant, **row} for row in _FLATTEN[kind](request))
                    if len(rows) >= 5000:
                        yield pa.RecordBatch.from_pylist(rows, schema)
                        rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema)

    return flatten


def _pairs(attributes: Iterable[Any]) -> list[tuple[str, str]]:
    found = []
    for one in attributes:
        ((type_, value),) = one["value"].items()
        found.append((one["key"], value if type_ in {"stringValue", "intValue"} else json.dumps(value)))
    return found


def _origin(part: Any, scope: Any) -> dict[str, Any]:
    resource = _pairs(part["resource"].get("attributes", ()))
    found = scope.get("scope", {})
    return {
        "service_name": dict(resource).get("service.name"),
        "resource_attributes": resource,
        "scope_name": found.get("name"),
        "scope_version": found.get("version"),
        "scope_attributes": _pairs(found.get("attributes", ())),
    }


def _at(nanos: str | None) -> datetime | None:
    return None if nanos is None else datetime.fromtimestamp(int(nanos) / 1e9, timezone.utc)


def _bytes(text: str | None) -> bytes | None:
    return bytes.fromhex(text) if text else None


def _span_rows(request: Any) -> Iterator[dict[str, Any]]:
    for part in request["resourceSpans"]:
        for scope in part["scopeSpans"]:
            origin = _origin(part, scope)
            for one in scope["spans"]:
                begin, end = int(one["startTimeUnixNano"]), int(one["endTimeUnixNano"])
                yield {
                    **origin,
                    "trace_id": _bytes(one["traceId"]),
                    "span_id": _bytes(one["spanId"]),
                    "parent_span_id": _bytes(one.get("parentSpanId")),
                    "trace_state": one.get("traceState"),
                    "flags": one.get("flags", 0),
                    "name": one["name"],
                    "kind": one["kind"],
                    "start_time": _at(one["startTimeUnixNano"]),
                    "end_time": _at(one["endTimeUnixNano"]),
                    "duration_ns": end - begin,
                    "status_code": one["status"].get("code", 0),
                    "status_message": one["status"].get("message"),
                    "attributes": _pairs(one["attributes"]),
                    "events": [
                        {
                            "time": _at(event["timeUnixNano"]),
                            "name": event["name"],
                            "attributes": _pairs(event["attributes"]),
                        }
                        for event in one.get("events", ())
                    ],
                    "links": [],
                }


def _log_rows(request: Any) -> Iterator[dict[str, Any]]:
    for part in request["resourceLogs"]:
        for scope in part["scopeLogs"]:
            origin = _origin(part, scope)
            for one in scope["logRecords"]:
                yield {
                    **origin,
                    "time": _at(one["timeUnixNano"]),
                    "observed_time": _at(one["observedTimeUnixNano"]),
                    "severity_number": one["severityNumber"],
                    "severity_text": one["severityText"],
                    "event_name": one.get("eventName"),
                    "body": one["body"]["stringValue"],
                    "attributes": _pairs(one["attributes"]),
                    "trace_id": _bytes(one["traceId"]),
                    "span_id": _bytes(one["spanId"]),
                    "flags": one.get("flags", 0),
                }


def _metric_rows(request: Any) -> Iterator[dict[str, Any]]:
    for part in request["resourceMetrics"]:
        for scope in part["scopeMetrics"]:
            origin = _origin(part, scope)
            for metric in scope["metrics"]:
                for field in _TYPES.keys() & metric.keys():
                    data = metric[field]
                    shared = {
                        **origin,
                        "name": metric["name"],
                        "description": metric.get("description"),
                        "unit": metric.get("unit"),
                        "type": _TYPES[field],
                        "temporality": data.get("aggregationTemporality", 0),
                        "is_monotonic": data.get("isMonotonic", False),
                    }
                    yield from ({**shared, **_point_row(one)} for one in data["dataPoints"])


def _point_row(one: Any) -> dict[str, Any]:
    whole = int(one["asInt"]) if "asInt" in one else None
    return {
        "time": _at(one["timeUnixNano"]),
        "start_time": _at(one["startTimeUnixNano"]),
        "value": one.get("asDouble") if whole is None else float(whole),
        "int_value": whole,
        "count": int(one["count"]) if "count" in one else None,
        "sum": one.get("sum"),
        "bucket_counts": [int(count) for count in one.get("bucketCounts", ())],
        "explicit_bounds": one.get("explicitBounds", []),
        "quantiles": [],
        "attributes": _pairs(one["attributes"]),
        "flags": one.get("flags", 0),
    }


_FLATTEN = {"traces": _span_rows, "logs": _log_rows, "metrics": _metric_rows}
WAYS = {"sql": write_by_sql, "python": write_by_python}


def main() -> None:
    """Write a log as Parquet."""
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("log", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.log.level": "ERROR",
        # All nested fields are used, and the optimizer takes long to find that out.
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
        "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    WAYS[given.way](spark, str(given.log), str(given.target))
    spark.stop()


if __name__ == "__main__":
    main()
