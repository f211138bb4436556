"""`pipeline:` of the project file: settings of `ingest`, their errors, and the options that replace them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.ingest import IngestRequest, ingest_settings
from icemigrate.errors import ExitCode, UsageError
from icemigrate.iceberg.names import TableName
from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.batch_trigger import BatchTrigger
from icemigrate.project import Project, read_project
from icemigrate.project.project_values import PipelineSettings
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.storage_path import StoragePath
from tests.unit.files.examples import source

ROOT = Path("/projects/telemetry")
WRITTEN = """\
pipeline:
  log: wal
  checkpoint: /progress
  tables: {traces: "otel.${tenant}_traces", logs: "otel.${tenant}_logs"}
  quarantine: otel.quarantine
  retention: 7d
  segments_per_batch: 8
  metrics_address: 0.0.0.0:9464
  health_limit: 5m
  from: ["file:otel/traces.json?tenant=acme", "file:/otel/*.json"]
"""


def project(text: str) -> Project:
    found = read_project(source(text, "icemigrate.yaml"), ROOT)
    assert found.project is not None, found.diagnostics
    return found.project


def test_the_settings() -> None:
    assert project(WRITTEN).pipeline == PipelineSettings(
        str(ROOT / "wal"),
        "/progress",
        {"traces": "otel.${tenant}_traces", "logs": "otel.${tenant}_logs"},
        "otel.quarantine",
        timedelta(days=7),
        8,
        "0.0.0.0:9464",
        timedelta(minutes=5),
        ("file:otel/traces.json?tenant=acme", "file:/otel/*.json"),
    )
    assert project("project: x").pipeline == PipelineSettings()


def test_all_mistakes_are_shown_where_they_are() -> None:
    text = """\
pipeline:
  tables:
    traces: otel.traces
    logs: "${tenant}"
    metrics: "otel.${tenant}"
  quarantine: otel.x
"""
    found = read_project(source(text, "icemigrate.yaml"), ROOT)
    assert found.project is None
    assert [(one.code, one.message, one.place.line, one.place.column) for one in found.diagnostics] == [
        ("bad-name", "the name `otel.traces` is the same for all tenants", 3, 13),
        ("bad-name", "`${tenant}` has no namespace: write `namespace.${tenant}`", 4, 11),
        ("bad-name", "the quarantine `otel.x` can be the table of a tenant", 6, 15),
    ]


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("10MB", "write the number of bytes, without a unit: 10 MB is 10000000, 10 MiB is 10485760"),
        ("1.5 g", "write the number of bytes, without a unit: 1.5 GB is 1500000000, 1.5 GiB is 1610612736"),
        ("256MiB", "write the number of bytes, without a unit: 256 MiB is 268435456"),
        ("64k", "write the number of bytes, without a unit: 64 kB is 64000, 64 KiB is 65536"),
        ("10 apples", "write decimal digits, without a unit and quotes"),
    ],
)
@pytest.mark.parametrize("key", ["min_batch_bytes", "batch_bytes"])
def test_a_size_with_a_unit(key: str, value: str, hint: str) -> None:
    (mistake,) = read_project(source(f"pipeline: {{{key}: {value}}}", "icemigrate.yaml"), ROOT).diagnostics
    assert (mistake.code, mistake.hint) == ("wrong-type", hint)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("{tables: {spans: x}}", "unknown-key", "`spans` is not a key of a table for each kind"),
        ("{retention: 7 days}", "bad-format", "duration"),
        ("{segments_per_batch: 0}", "out-of-range", "1"),
        ("{quarantine: x}", "bad-name", "`quarantine`: "),
        ("{segments_per_batch: 1, batch_bytes: 9}", "conflicting-keys", "two limits of a batch"),
        ("{batch_bytes: 0}", "out-of-range", "1"),
        ("{unknown_attributes: columns}", "bad-value", "must be `map` or `column`"),
        ("{unknown_attributes: {spans: column}}", "unknown-key", "policy for each kind"),
        ("{max_batch_delay: 5s}", "conflicting-keys", "has no effect without `min_batch_bytes`"),
        ("{min_batch_bytes: 9, batch_bytes: 8}", "conflicting-keys", "is more than a batch has"),
        ("{min_batch_bytes: 9, max_batch_delay: 10m}", "conflicting-keys", "than the health check allows"),
        ("{min_batch_bytes: 9, health_limit: 1m}", "conflicting-keys", "than the health check allows"),
        (
            "{min_batch_bytes: 9, segments_per_batch: 1}",
            "conflicting-keys",
            "`min_batch_bytes` starts by its",
        ),
        ("{metrics_address: here}", "bad-format", "`here` is not the address of a server"),
        ("{health_limit: soon}", "bad-format", "duration"),
        ("{tables: {}}", "empty-value", "must not be empty"),
        ("{from: ['file:x?tenant=a.b']}", "bad-format", "'a.b' cannot be the id of a tenant"),
        (
            "{tables: {traces: 'a.${tenant}', logs: 'a.${tenant}_logs'}}",
            "bad-name",
            "a table of logs can have the same name as a table of traces",
        ),
    ],
)
def test_a_wrong_key(text: str, code: str, message: str) -> None:
    (found,) = read_project(source(f"pipeline: {text}", "icemigrate.yaml"), ROOT).diagnostics
    assert found.code == code
    assert message in found.message


def test_a_run_without_options_has_the_settings_of_the_project_file() -> None:
    settings = ingest_settings(project(WRITTEN), IngestRequest())
    assert (settings.log, settings.checkpoint) == (ROOT / "wal", Path("/progress"))
    assert settings.tables.table("acme", EntryKind.LOGS) == TableName(("otel",), "acme_logs")
    assert settings.quarantine == TableName(("otel",), "quarantine")
    assert (settings.retention_s, settings.limit) == (7 * 86_400, BatchLimit(8))


def test_the_bytes_of_a_batch_replace_the_number_of_segments() -> None:
    written = WRITTEN.replace("segments_per_batch: 8", "batch_bytes: 1000")
    assert ingest_settings(project(written), IngestRequest()).limit.spark_option == (
        "maxBytesPerTrigger",
        1000,
    )


def test_what_starts_a_batch() -> None:
    assert ingest_settings(project(WRITTEN), IngestRequest()).trigger is None
    without_limit = WRITTEN.replace("  segments_per_batch: 8\n", "")
    found = ingest_settings(project(f"{without_limit}  min_batch_bytes: 1000\n"), IngestRequest())
    assert (found.trigger, found.limit.size) == (BatchTrigger(1000, 60), 2**30)
    found = ingest_settings(project(f"{without_limit}  min_batch_bytes: {2**31}\n"), IngestRequest())
    assert found.limit.size == 2**31
    found = ingest_settings(
        project(f"{without_limit}  min_batch_bytes: 10\n  batch_bytes: 20\n"), IngestRequest()
    )
    assert found.limit.size == 20
    written = f"{without_limit}  min_batch_bytes: 1000\n  max_batch_delay: 90s\n"
    assert ingest_settings(project(written), IngestRequest()).trigger == BatchTrigger(1000, 90)


def test_options_replace_the_keys() -> None:
    request = IngestRequest(Path("/other"), ("traces=o.${tenant}",), "q.q", retention_s=5)
    settings = ingest_settings(project(WRITTEN), request)
    # The checkpoint in the file is that of another log.
    assert (settings.log, settings.checkpoint) == (Path("/other"), Path("/other/checkpoint"))
    assert settings.tables.table("acme", EntryKind.LOGS) is None
    assert (settings.quarantine, settings.retention_s) == (TableName(("q",), "q"), 5)
    # That it is the log of the file is seen also where it is written otherwise.
    request = IngestRequest("/projects/telemetry/./wal", ("traces=o.${tenant}",))
    assert ingest_settings(project(WRITTEN), request).checkpoint == Path("/progress")


def test_a_log_on_a_storage_is_reached_as_the_environment_says() -> None:
    text = """\
environments:
  here:
    catalog: {type: rest, uri: "http://127.0.0.1:8181", warehouse: "s3://lake"}
    storage: {endpoint: "http://127.0.0.1:8333", path_style: true, properties: {s3.region: eu-west-1}}
pipeline: {log: "s3://telemetry/log", tables: {logs: "otel.${tenant}"}, quarantine: q.q}
"""
    settings = ingest_settings(project(text), IngestRequest())
    assert isinstance(settings.log, StoragePath)
    assert dict(settings.log.settings) == {
        "s3.endpoint": "http://127.0.0.1:8333",
        "s3.force-virtual-addressing": "false",
        "s3.region": "eu-west-1",
    }
    assert settings.checkpoint == settings.log / "checkpoint"
    request = IngestRequest(checkpoint="/progress", tables=("traces=o.${tenant}",))
    assert ingest_settings(project(text), request).checkpoint == Path("/progress")


@pytest.mark.parametrize(
    ("text", "message"),
    [("project: x", "no table is given"), ("pipeline: {tables: {logs: 'a.${tenant}'}}", "no log is given")],
)
def test_what_neither_gives(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        ingest_settings(project(text), IngestRequest())
    assert error.value.message == message
    assert "project file" in str(error.value.hint)


def test_the_status_of_the_log_of_the_project_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "icemigrate.yaml").write_text("pipeline: {log: wal}\n", encoding="utf-8")
    with Writer(tmp_path / "wal") as writer:
        writer.append("acme", EntryKind.LOGS, b"{}")
    assert main(["ingest", "status", "--project", str(tmp_path)]) == ExitCode.OK
    assert "1 entry waits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", set()),
        ("map", set()),
        ("column", {"traces", "logs", "metrics"}),
        ("{traces: column, logs: map}", {"traces"}),
    ],
)
def test_the_policy_for_unknown_attributes(text: str, kinds: set[str]) -> None:
    written = f"{WRITTEN}  unknown_attributes: {text}\n" if text else WRITTEN
    found = ingest_settings(project(written), IngestRequest())
    assert {kind.value for kind in found.observed} == kinds
