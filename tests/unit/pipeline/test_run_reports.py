"""Metrics, lag and health of a run, as a service manager and Prometheus read them over HTTP."""

from __future__ import annotations

import http.client
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from icemigrate.commands import ingest_reports
from icemigrate.commands.ingest_reports import ReportSettings, report_run
from icemigrate.errors import EngineError, UsageError
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_result import BatchPhase, BatchResult
from icemigrate.pipeline.log_lag import LagMeter, LogLag
from icemigrate.pipeline.metrics_server import serve_metrics
from icemigrate.pipeline.pipeline_metrics import METRICS, PipelineMetrics, sample_name
from icemigrate.pipeline.run_health import RunHealth
from icemigrate.pipeline.waiting_entries import WaitingEntries
from icemigrate.project.listen_address import ListenAddress, parse_listen_address
from icemigrate.wal import EntryKind, Writer
from tests.support.log_streams import LATER, LogStream, write_log

ANY_PORT = parse_listen_address("0")
BATCH = BatchResult(
    3,
    (
        TableBatch("o.acme_logs", "acme", "logs", 5, 50, size=1000),
        TableBatch("o.globex_logs", "globex", "logs", 2, 0, problem="no right"),
        TableBatch("o.q", None, None, 4, 4),
        TableBatch("o.acme_traces", "acme", "traces", 0, 0, quarantined=4),
    ),
    deferred=2,
    phases=(BatchPhase("write files", 10**9, 3 * 10**9), BatchPhase("record totals", 3 * 10**9, 4 * 10**9)),
)


def get(address: ListenAddress, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def samples(metrics: PipelineMetrics) -> dict[tuple[str, ...], float]:
    """Values by the name without the prefix and the labels."""
    return {
        (sample.name.removeprefix("icemigrate_ingest_"), *sample.labels.values()): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
    }


def test_a_batch_is_counted() -> None:
    metrics = PipelineMetrics()
    metrics.add(BATCH)
    found = samples(metrics)
    assert found["entries_total", "acme", "logs"] == 5
    assert found["rows_total", "acme", "logs"] == 50
    assert found["written_bytes_total", "acme", "logs"] == 1000
    assert found["table_failures_total", "globex", "logs"] == 1
    assert found["quarantined_entries_total",] == 4
    assert (found["batches_total",], found["failed_tables",]) == (1, 1)
    assert found["batch_seconds_sum",] == 3
    assert found["last_batch_timestamp_seconds",] > 10**9
    assert ("entries_total", "acme", "traces") not in found
    metrics.add(BatchResult(4, (TableBatch("o.globex_logs", "globex", "logs", 2, 9),)))
    assert samples(metrics)["failed_tables",] == 0


def test_the_number_of_series_is_bounded() -> None:
    metrics = PipelineMetrics(most_tenants=2)
    for number in range(50):
        metrics.add(BatchResult(number, (TableBatch("t", f"t{number}", "logs", 1, 1),)))
    waiting = tuple(WaitingEntries(f"t{number}", "logs", 1, number * 10**9) for number in range(50))
    metrics.set_lag(LogLag((*waiting, WaitingEntries(None, None, 7, None))), 100)
    found = samples(metrics)
    assert {key: value for key, value in found.items() if key[0] in ("entries_total", "lag_seconds")} == {
        ("entries_total", "t0", "logs"): 1,
        ("entries_total", "t1", "logs"): 1,
        ("entries_total", "(others)", "logs"): 48,
        ("lag_seconds", "t0", "logs"): 100,
        ("lag_seconds", "t1", "logs"): 99,
        ("lag_seconds", "(others)", "logs"): 98,
        ("lag_seconds", "(unreadable)", ""): 0,
    }
    assert found["lag_entries", "(others)", "logs"] == 48
    metrics.set_lag(LogLag(waiting[:1]), 100)
    found = samples(metrics)
    assert (found["lag_entries", "t0", "logs"], found["lag_entries", "(others)", "logs"]) == (1, 0)


def test_every_metric_has_its_name() -> None:
    names = {family.name for family in PipelineMetrics().registry.collect()}
    assert {sample_name(metric).removesuffix("_total") for metric in METRICS} == names


def test_the_lag_has_sealed_and_deferred_segments(tmp_path: Path) -> None:
    stream = write_log(tmp_path)
    meter = LagMeter(stream.log, stream.checkpoint)
    lag = meter.measure()
    assert (lag.segments, lag.deferred, lag.unread, sum(one.entries for one in lag.waiting)) == (4, 0, 0, 12)
    assert lag.size == sum(path.stat().st_size for path in stream.log.glob("*.wal"))
    stream.retention_s = 2 * LATER
    stream.run()
    lag = meter.measure()
    assert (lag.segments, lag.size, lag.deferred) == (0, 0, 4)
    assert [(one.tenant, one.entries) for one in lag.waiting] == [("initech", 4)]


def test_a_measurement_reads_a_limited_number_of_bytes_and_each_segment_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Writer(tmp_path) as writer:
        for number in range(5):
            writer.append("acme", EntryKind.LOGS, b"{}", time_ns=number)
            writer.flush()
    read = list[str]()
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path.name), real(path))[1])
    meter = LagMeter(tmp_path, tmp_path / "checkpoint", largest_read=100)
    found = [meter.measure() for _ in range(4)]
    assert [lag.unread for lag in found] == [3, 1, 0, 0]
    # The oldest segment is the first one.
    assert [lag.waiting[0].oldest_ns for lag in found] == [0, 0, 0, 0]
    segments = [name for name in read if name.endswith(".wal")]
    assert len(segments) == len(set(segments)) == 5


def test_a_run_is_healthy_while_batches_complete_or_nothing_waits() -> None:
    now = [0.0]
    health = RunHealth(60, lambda: now[0])
    assert (health.problem(), health.reason_not_ready()) == (None, "Spark starts")
    now[0] = 50
    health.start()
    now[0] = 110
    assert health.reason_not_ready() is None
    now[0] = 111
    assert health.problem() == "entries wait, and no batch is complete for 61 s"
    health.progress()
    assert health.problem() is None
    health.end()
    assert health.problem() == health.reason_not_ready() == "the stream ended"


def test_the_pages_of_the_server() -> None:
    metrics, health = PipelineMetrics(), RunHealth(60)
    with serve_metrics(ANY_PORT, metrics, health) as address:
        assert address.is_loopback
        status, text = get(address, "/metrics?x=1")
        assert status == 200
        families = {family.name: family for family in text_string_to_metric_families(text)}
        assert families["icemigrate_ingest_batches"].samples[0].value == 0
        assert get(address, "/metrics", "HEAD") == (200, "")
        assert get(address, "/health/live") == (200, "ok\n")
        assert get(address, "/health") == get(address, "/health/ready") == (503, "Spark starts\n")
        health.start()
        assert get(address, "/health") == (200, "ok\n")
        health.end()
        assert get(address, "/health/live") == (503, "the stream ended\n")
        assert get(address, "/../etc/passwd")[0] == 404
        assert get(address, "/metrics", "POST")[0] == 501
        with pytest.raises(EngineError, match="cannot listen at"), serve_metrics(address, metrics, health):
            pass
    with pytest.raises(ConnectionRefusedError):
        get(address, "/health")


def test_idle_connections_do_not_stop_the_server() -> None:
    with serve_metrics(ANY_PORT, PipelineMetrics(), RunHealth(60)) as address:
        idle = [socket.create_connection((address.host, address.port)) for _ in range(40)]
        for connection in idle:
            with suppress(ConnectionError), connection:
                assert connection.recv(1) == b"", "the server disconnects an idle client"
        for _ in range(100):
            try:
                assert get(address, "/health/live")[0] == 200
                return
            except (ConnectionError, http.client.HTTPException):
                continue
        raise AssertionError("the server answers no client")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9464", "127.0.0.1", 9464),
        (":9464", "127.0.0.1", 9464),
        ("0.0.0.0:80", "0.0.0.0", 80),
        ("localhost:1", "localhost", 1),
        ("[::1]:9464", "::1", 9464),
    ],
)
def test_an_address(text: str, host: str, port: int) -> None:
    address = parse_listen_address(text)
    assert (address.host, address.port) == (host, port)
    assert address.is_loopback is (host != "0.0.0.0")
    assert parse_listen_address(str(address)) == address


@pytest.mark.parametrize(
    "text", ["", "x", "127.0.0.1", "a:99999", "a:-1", "::1:80", "http://a:80", "a:8\n", "a:٣"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a server"):
        parse_listen_address(text)


def test_a_run_serves_its_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = LogStream(tmp_path)
    with Writer(tmp_path) as writer:
        writer.append("acme", EntryKind.LOGS, b"{}", time_ns=1)
    notices = list[str]()
    measured = threading.Event()
    real = PipelineMetrics.set_lag

    def set_lag(*args: object) -> None:
        real(*args)  # type: ignore[arg-type]
        measured.set()

    monkeypatch.setattr(ingest_reports.PipelineMetrics, "set_lag", set_lag)
    settings = ReportSettings(ANY_PORT)
    with report_run(settings, stream.log, stream.checkpoint, notices.append) as reports:
        (notice,) = notices
        address = parse_listen_address(notice.removeprefix("Metrics: http://").removesuffix("/metrics"))
        assert measured.wait(60)
        reports.started()
        reports.batch_done(BATCH)
        _, text = get(address, "/metrics")
        assert 'icemigrate_ingest_lag_entries{kind="logs",tenant="acme"} 1.0' in text
        assert 'icemigrate_ingest_rows_total{kind="logs",tenant="acme"} 50.0' in text
        assert get(address, "/health") == (200, "ok\n")
    with report_run(ReportSettings(), stream.log, stream.checkpoint) as reports:
        reports.batch_done(BATCH)  # without a server
