"""Traces of batches, sent to a receiver of OTLP over HTTP."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from icemigrate.commands.ingest_reports import ReportSettings, report_run
from icemigrate.errors import EngineError
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_result import BatchPhase, BatchResult
from icemigrate.pipeline.batch_traces import is_tracing, shown_phases

SECOND = 10**9
BATCH = BatchResult(
    3,
    (
        TableBatch("o.acme_logs", "acme", "logs", 5, 50),
        TableBatch("o.globex_logs", "globex", "logs", 2, 0, problem="password=hunter22 is wrong"),
    ),
    deferred=2,
    phases=(
        BatchPhase("write files", 10 * SECOND, 13 * SECOND),
        BatchPhase("commit table", 13 * SECOND, 14 * SECOND, "o.acme_logs"),
        BatchPhase("commit table", 14 * SECOND, 15 * SECOND, "o.globex_logs"),
        BatchPhase("record totals", 15 * SECOND, 16 * SECOND),
    ),
)


class Receiver:
    """A receiver of OTLP.

    :ivar requests: what it got.
    :ivar status: what it answers.
    """

    def __init__(self, status: int) -> None:
        self.status = status
        self.requests = list[ExportTraceServiceRequest]()
        self.paths = set[str]()
        self.address = ""

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def service(self) -> str:
        (resource,) = {
            one.resource.SerializeToString(deterministic=True): one.resource
            for one in (part for request in self.requests for part in request.resource_spans)
        }.values()
        return next(a.value.string_value for a in resource.attributes if a.key == "service.name")


@contextmanager
def receiver(status: int = 200) -> Iterator[Receiver]:
    found = Receiver(status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                content = gzip.decompress(content)
            found.paths.add(self.path)
            found.requests.append(ExportTraceServiceRequest.FromString(content))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_spans_of_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as otlp:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp.address)
        with report_run(ReportSettings(), tmp_path, tmp_path / "checkpoint") as reports:
            reports.batch_done(BATCH)
    assert (otlp.paths, otlp.service) == ({"/v1/traces"}, "icemigrate")
    (root,) = (span for span in otlp.spans if not span.parent_span_id)
    assert (root.name, root.start_time_unix_nano, root.end_time_unix_nano) == (
        "ingest batch",
        10 * SECOND,
        16 * SECOND,
    )
    attributes = {one.key: one.value.int_value for one in root.attributes}
    assert (attributes["icemigrate.batch"], attributes["icemigrate.rows"]) == (3, 50)
    children = sorted((span for span in otlp.spans if span is not root), key=lambda s: s.start_time_unix_nano)
    assert [(one.name, one.start_time_unix_nano // SECOND) for one in children] == [
        ("write files", 10),
        ("commit table", 13),
        ("commit table", 14),
        ("record totals", 15),
    ]
    assert {(one.trace_id, one.parent_span_id) for one in children} == {(root.trace_id, root.span_id)}
    assert [one.status.code for one in children] == [0, 0, Status.STATUS_CODE_ERROR, 0]
    assert "hunter22" not in children[2].status.message


def test_the_error_that_ends_a_run_has_a_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as otlp:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{otlp.address}/x")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "drain")
        with (
            pytest.raises(EngineError),
            report_run(ReportSettings(), tmp_path, tmp_path / "checkpoint"),
        ):
            raise EngineError("the storage fails")
    assert (otlp.paths, otlp.service) == ({"/x"}, "drain")
    (span,) = otlp.spans
    assert (span.name, span.status.message) == ("ingest error", "the storage fails")


def test_an_endpoint_that_refuses_traces_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    notices = list[str]()
    with receiver(400) as otlp:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp.address)
        monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
        with report_run(ReportSettings(), tmp_path, tmp_path / "checkpoint", notices.append) as reports:
            reports.batch_done(BATCH)
    assert notices == ["Traces are lost: the endpoint of OTLP does not take them"]
    assert capfd.readouterr().err == ""


def test_traces_that_cannot_be_sent_do_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    for change, expected in (
        (lambda: monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None), "is not installed; "),
        (lambda: monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), "the protocol is `grpc`"),
    ):
        notices = list[str]()
        change()
        with report_run(ReportSettings(), tmp_path, tmp_path / "checkpoint", notices.append) as reports:
            reports.batch_done(BATCH)
        (notice,) = notices
        assert expected in notice


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
    ],
)
def test_which_variables_ask_for_traces(variables: dict[str, str], expected: bool) -> None:
    assert is_tracing(variables) is expected


def test_a_batch_of_many_tables_has_a_limited_number_of_spans() -> None:
    commits = [BatchPhase("commit table", 0, number % 500, f"t{number}") for number in range(1000)]
    phases = (BatchPhase("write files", 0, 1), *commits, BatchPhase("record totals", 0, 1))
    shown = shown_phases(phases, {"t0": "no right", "t500": "no right"})
    tables = {phase.table for phase in shown if phase.table is not None}
    assert (len(shown), len(tables)) == (102, 100)
    assert {"t0", "t500", "t499", "t999"} <= tables
    assert "t1" not in tables
    assert shown[0].name == "write files"


def test_without_the_variables_nothing_of_opentelemetry_is_imported() -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from icemigrate.commands.ingest_reports import ReportSettings, report_run\n"
        "with report_run(ReportSettings(), Path('x'), Path('y')): pass\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin"},
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout == "[]\n"
