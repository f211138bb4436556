"""A load of OpenTelemetry data as a backend receives it: export requests of many tenants, the same each time.

Tenants are skewed as in Zipf's law, spans of a trace come from several services, and each item has the
attributes that the semantic conventions give a web service.  It is plain Python: a core makes about as many
items as it ingests, and a load is made once.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from icemigrate.frozen import Frozen
from icemigrate.otlp.export_requests import IDS, empty_request
from icemigrate.wal import Entry, EntryKind, Fsync, PayloadEncoding, Writer

Json: TypeAlias = dict[str, Any]
_SECOND_NS = 1_000_000_000
_SHARES = {EntryKind.TRACES: 0.5, EntryKind.LOGS: 0.3, EntryKind.METRICS: 0.2}
"""Of the requests."""
_SERVICES = ("gateway", "cart", "checkout", "payment", "catalog", "search", "shipping", "mail")
_ROUTES = ("/api/items", "/api/items/{id}", "/api/orders", "/api/orders/{id}", "/api/users/{id}", "/health")
_METHODS = ("GET", "GET", "GET", "POST", "PUT", "DELETE")
_TABLES = ("items", "orders", "users", "payments", "shipments")
_AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5)", "curl/8.5.0")
_LEVELS = (("INFO", 9), ("INFO", 9), ("INFO", 9), ("DEBUG", 5), ("WARN", 13), ("ERROR", 17))
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class TelemetryLoad(Frozen):
    """What a load has.

    :param requests: of all tenants and kinds; each is one entry of a log.
    :param items: spans, log records or data points of a request.
    :param tenants: how many; each has at least one request of each kind where there are enough.
    :param begin_ns: the time of the first items, in nanoseconds since 1970.
    :param seconds: the time that the items span.
    :param encoding: of the payloads.
    """

    requests: int
    items: int = 100
    tenants: int = 50
    seed: int = 1
    begin_ns: int = 1_767_225_600 * _SECOND_NS
    seconds: int = 3600
    encoding: PayloadEncoding = PayloadEncoding.OTLP_JSON

    def tenant(self, number: int) -> str:
        """The id of a tenant."""
        return f"tenant_{number:0{len(str(self.tenants - 1))}}"

    def entries(self) -> Iterator[Entry]:
        """The entries of the load, in the order of their times."""
        chance = random.Random(f"tenants {self.seed}")
        weights = list(accumulate(1 / (rank + 1) for rank in range(self.tenants)))
        kinds = list(accumulate(_SHARES.values()))
        pairs = [(number, kind) for number in range(self.tenants) for kind in EntryKind]
        for number in range(self.requests):
            if number < len(pairs):
                tenant, kind = pairs[number]
            else:
                (tenant,) = chance.choices(range(self.tenants), cum_weights=weights)
                (kind,) = chance.choices(list(_SHARES), cum_weights=kinds)
            yield self._entry(number, tenant, kind)

    def _entry(self, number: int, tenant: int, kind: EntryKind) -> Entry:
        at = self.begin_ns + self.seconds * _SECOND_NS * number // self.requests
        request = _Request(random.Random(f"{self.seed} {number}"), tenant, number, at)
        message = _MAKERS[kind](request, self.items)
        return Entry(self.tenant(tenant), kind, at, _encode(message, kind, self.encoding), self.encoding)


def write_load(load: TelemetryLoad, folder: Path, segment_bytes: int = 16 * 1024 * 1024) -> None:
    """Append the entries of a load to a log."""
    with Writer(folder, fsync=Fsync.NEVER, segment_bytes=segment_bytes, segment_seconds=3600) as log:
        for entry in load.entries():
            log.append_all([entry])


class _Request(Frozen):
    """What the items of a request share.

    :param number: of the request in the load.
    :param at: the time of the first item, in nanoseconds.
    """

    chance: random.Random
    tenant: int
    number: int
    at: int

    @property
    def service(self) -> str:
        return _SERVICES[self.number % len(_SERVICES)]

    def trace_id(self, item: int) -> str:
        """The id of an item's trace, which the requests of several services have."""
        first = (self.tenant << 48) + (self.number // len(_SERVICES) << 16) + item + 1
        high = _mixed(first)
        return f"{high:016x}{_mixed(high + 1):016x}"

    def span_id(self) -> str:
        return f"{self.chance.getrandbits(64) | 1:016x}"

    def time(self) -> int:
        return self.at + self.chance.randrange(5 * _SECOND_NS)

    def resource(self) -> Json:
        pod = self.chance.randrange(4)
        attributes = {
            "service.name": self.service,
            "service.namespace": "shop",
            "service.version": f"1.{self.tenant % 7}.0",
            "service.instance.id": f"{self.service}-{pod}",
            "deployment.environment.name": "production",
            "host.name": f"node-{self.chance.randrange(12)}",
            "k8s.namespace.name": "shop",
            "k8s.pod.name": f"{self.service}-7d9f8c6b5-{pod:05x}",
            "telemetry.sdk.language": "java",
            "telemetry.sdk.version": "1.58.0",
        }
        return {"attributes": _attributes(attributes)}


def _mixed(number: int) -> int:
    """A number of 64 bits that looks random, as SplitMix64 makes it."""
    mixed = number * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    return mixed ^ mixed >> 27


def _attributes(values: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items()]


def _any_value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any_value(one) for one in value]}}
    return {"stringValue": value}


def _traces(request: _Request, items: int) -> Json:
    spans = list[Json]()
    while len(spans) < items:
        trace_id = request.trace_id(len(spans))
        server = _server_span(request, trace_id)
        spans.append(server)
        for _ in range(min(request.chance.randrange(4), items - len(spans))):
            spans.append(_client_span(request, server))
    scope = {"name": "io.opentelemetry.tomcat-10.0", "version": "2.23.0-alpha"}
    parts = [{"resource": request.resource(), "scopeSpans": [{"scope": scope, "spans": spans}]}]
    return {"resourceSpans": parts}


def _server_span(request: _Request, trace_id: str) -> Json:
    chance = request.chance
    method, route, start = chance.choice(_METHODS), chance.choice(_ROUTES), request.time()
    status = chance.choices((200, 404, 500), (96, 2, 2))[0]
    duration = int(chance.lognormvariate(17, 1))
    span: Json = {
        "traceId": trace_id,
        "spanId": request.span_id(),
        "parentSpanId": "" if request.service == "gateway" else request.span_id(),
        "flags": 257,
        "name": f"{method} {route}",
        "kind": 2,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + duration),
        "attributes": _attributes(
            {
                "http.request.method": method,
                "http.route": route,
                "url.path": route.replace("{id}", str(chance.randrange(100_000))),
                "url.scheme": "https",
                "http.response.status_code": status,
                "server.address": "shop.example.com",
                "server.port": 443,
                "client.address": f"198.51.100.{chance.randrange(256)}",
                "user_agent.original": chance.choice(_AGENTS),
                "network.protocol.version": "1.1",
            }
        ),
        "status": {"code": 2, "message": "Internal Server Error"} if status == 500 else {},
    }
    if status == 500:
        failure = {"exception.type": "java.lang.IllegalStateException", "exception.message": "pool is empty"}
        span["events"] = [
            {
                "timeUnixNano": str(start + duration // 2),
                "name": "exception",
                "attributes": _attributes(failure),
            }
        ]
    return span


def _client_span(request: _Request, server: Json) -> Json:
    chance, table = request.chance, request.chance.choice(_TABLES)
    start = int(server["startTimeUnixNano"])
    return {
        "traceId": server["traceId"],
        "spanId": request.span_id(),
        "parentSpanId": server["spanId"],
        "flags": 257,
        "name": f"SELECT shop.{table}",
        "kind": 3,
        "startTimeUnixNano": str(start + 100_000),
        "endTimeUnixNano": str(start + 100_000 + int(chance.lognormvariate(14, 1))),
        "attributes": _attributes(
            {
                "db.system.name": "postgresql",
                "db.namespace": "shop",
                "db.operation.name": "SELECT",
                "db.query.text": f"SELECT id, name, price, created_at FROM {table} WHERE id = $1",
                "server.address": "db.shop.internal",
                "server.port": 5432,
                "thread.id": chance.randrange(200),
            }
        ),
        "status": {},
    }


def _logs(request: _Request, items: int) -> Json:
    chance, records = request.chance, list[Json]()
    for item in range(items):
        text, number = chance.choice(_LEVELS)
        at, order = request.time(), chance.randrange(10**9)
        record: Json = {
            "timeUnixNano": str(at),
            "observedTimeUnixNano": str(at + 1_000_000),
            "severityNumber": number,
            "severityText": text,
            "body": {
                "stringValue": f"order {order} of customer {chance.randrange(10**6)} changed: {text.lower()}"
            },
            "attributes": _attributes(
                {
                    "thread.name": f"http-nio-8080-exec-{chance.randrange(50)}",
                    "code.function.name": "shop.orders.OrderService.update",
                    "order.id": order,
                    "retry": number > 9,
                }
            ),
            "traceId": request.trace_id(item),
            "spanId": request.span_id(),
        }
        records.append(record)
    scope = {"name": "shop.orders.OrderService"}
    parts = [{"resource": request.resource(), "scopeLogs": [{"scope": scope, "logRecords": records}]}]
    return {"resourceLogs": parts}


def _metrics(request: _Request, items: int) -> Json:
    chance = request.chance
    thirds = (items + 2) // 3, (items + 1) // 3, items // 3

    def point(values: Json) -> Json:
        attributes = {"http.route": chance.choice(_ROUTES), "http.request.method": chance.choice(_METHODS)}
        times = {"startTimeUnixNano": str(request.at - 60 * _SECOND_NS), "timeUnixNano": str(request.time())}
        return {**times, **values, "attributes": _attributes(attributes)}

    def histogram() -> Json:
        counts = [chance.randrange(100) for _ in range(len(_BOUNDS) + 1)]
        values: Json = {"count": str(sum(counts)), "sum": sum(counts) * chance.random()}
        return {**values, "bucketCounts": [str(one) for one in counts], "explicitBounds": list(_BOUNDS)}

    gauges = [point({"asDouble": chance.random() * 100}) for _ in range(thirds[0])]
    sums = [point({"asInt": str(chance.randrange(10**6))}) for _ in range(thirds[1])]
    histograms = [point(histogram()) for _ in range(thirds[2])]
    metrics = [
        {"name": "jvm.cpu.recent_utilization", "unit": "1", "gauge": {"dataPoints": gauges}},
        {
            "name": "http.server.request.body.size",
            "unit": "By",
            "sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": sums},
        },
        {
            "name": "http.server.request.duration",
            "description": "Duration of HTTP server requests",
            "unit": "s",
            "histogram": {"aggregationTemporality": 2, "dataPoints": histograms},
        },
    ]
    scope = {"name": "io.opentelemetry.runtime-telemetry", "version": "2.23.0"}
    parts = [{"resource": request.resource(), "scopeMetrics": [{"scope": scope, "metrics": metrics}]}]
    return {"resourceMetrics": parts}


_MAKERS: Mapping[EntryKind, Callable[[_Request, int], Json]] = {
    EntryKind.TRACES: _traces,
    EntryKind.LOGS: _logs,
    EntryKind.METRICS: _metrics,
}


def _encode(message: Json, kind: EntryKind, encoding: PayloadEncoding) -> bytes:
    if encoding is PayloadEncoding.OTLP_JSON:
        return msgspec.json.encode(message)
    from google.protobuf.json_format import ParseDict

    encoded: bytes = ParseDict(_with_base64_ids(message), empty_request(kind)).SerializeToString()
    return encoded


def _with_base64_ids(node: Any) -> Any:
    """A message with the ids as the general JSON form of Protocol Buffers has them."""
    if isinstance(node, list):
        return [_with_base64_ids(one) for one in node]
    if isinstance(node, dict):
        return {
            name: base64.b64encode(bytes.fromhex(value)).decode() if name in IDS else _with_base64_ids(value)
            for name, value in node.items()
        }
    return node
