"""The sinks of `ingest`: tables and loose Parquet files, each entry once, also after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from icemigrate.commands.ingest import IngestRequest, ingest_settings
from icemigrate.errors import EngineError, ExitCode, Mistakes, UsageError
from icemigrate.iceberg.names import TableName
from icemigrate.pipeline import sink_folders
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_result import PhaseClock
from icemigrate.pipeline.entry_files import BatchContext, EntryFileWriter
from icemigrate.pipeline.iceberg_sink import IcebergSink
from icemigrate.pipeline.parquet_sink import ParquetSink
from icemigrate.pipeline.quarantine import quarantine_schema
from icemigrate.pipeline.sink_port import publish, publish_all
from icemigrate.pipeline.task_results import TableEntries
from icemigrate.project import open_project
from icemigrate.project.sink_choice import SinkChoice, SinkKind
from icemigrate.project.tenant_tables import tenant_tables
from icemigrate.system import file_writes
from icemigrate.table_data.load_database import open_load_database
from icemigrate.table_data.new_table import create_table
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.writable_tables import reserved_of
from icemigrate.wal import EntryKind, storage_path
from icemigrate.wal.storage_path import AnyPath, StoragePath
from tests.support.rest_tables import rest_tables
from tests.support.storage_folders import ObjectStorage, bucket, use_storage
from tests.support.table_project import TableProject

SPANS = """\
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: [acme, globex]}
    columns:
      - {name: trace_id, type: "fixed[16]"}
      - {name: start_time, type: timestamptz}
      - {name: attributes, type: "map<string, string>"}
      - {name: links, type: "list<struct<trace_id: fixed[16], attributes: map<string, string>>>"}
    partition_by: ["day(start_time)"]
"""
QUARANTINE = TableName(("otel",), "quarantine")
DAY_NS = 86_400_000_000_000
START = 1_700_000_000_000_000_000
"""On 2023-11-14."""


def spans(*numbers: int) -> bytes:
    """An export request with a span for each number, one a day."""
    found = [
        {
            "traceId": f"{number:032x}",
            "startTimeUnixNano": str(START + number * DAY_NS),
            "attributes": [{"key": "n", "value": {"intValue": number}}],
            "links": [{"traceId": f"{number:032x}"}],
        }
        for number in numbers
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}).encode()


class Pipeline:
    """A project and a folder of Parquet files, to which batches are written without Spark.

    :param root: the folder as the sink has it, where it is on a storage.
    """

    def __init__(self, project: TableProject, folder: Path, root: AnyPath | None = None) -> None:
        self.project, self.folder, self.root = project, folder, root or folder

    def write(self, batch: str, tenant: str, payloads: Iterable[bytes], kind: SinkKind) -> TableEntries:
        """What a task does."""
        entries = [{"payload": payload, "encoding": "otlp_json", "time_ns": START} for payload in payloads]
        with self.project.tables() as session, open_load_database() as db:
            environment = session.environment
            context = BatchContext(
                environment.catalog.settings,
                tenant_tables(["traces=otel.${tenant}_traces"]),
                environment.names,
                QUARANTINE,
                reserved_of(environment),
                sinks=SinkChoice(kind, folder=self.root),
                batch=batch,
            )
            return EntryFileWriter(context, session.store, db).write(tenant, EntryKind.TRACES, entries)

    def publish(self, batch: str, result: TableEntries, kind: SinkKind = SinkKind.BOTH) -> TableBatch:
        """What the driver does."""
        with self.project.tables() as session:
            sinks = [IcebergSink(session), ParquetSink(SinkChoice(kind, folder=self.root))]
            return publish(sinks, batch, [result], is_paused=False)

    def run(self, batch: str, tenant: str, payloads: Iterable[bytes], kind: SinkKind) -> TableBatch:
        return self.publish(batch, self.write(batch, tenant, payloads, kind), kind)

    def in_table(self, tenant: str = "acme") -> list[dict[str, Any]]:
        with self.project.tables() as session:
            return sorted(query_table(session, f"otel.{tenant}_traces").to_pylist(), key=_trace)

    def in_files(self, tenant: str = "acme") -> list[dict[str, Any]]:
        found = (pq.ParquetFile(path).read().to_pylist() for path in self.files(tenant))
        return sorted((row for rows in found for row in rows), key=_trace)

    def files(self, tenant: str = "acme") -> list[Path]:
        return sorted(self.tenant(tenant).glob("day=*/*"))

    def tenant(self, tenant: str = "acme") -> Path:
        return self.folder / f"traces/tenant={tenant}"


def _trace(row: dict[str, Any]) -> bytes:
    found: bytes = row["trace_id"]
    return found


def pipeline_project(tmp_path: Path) -> TableProject:
    (tmp_path / "project").mkdir()
    project = TableProject.create(tmp_path / "project", SPANS)
    with project.tables() as session:
        create_table(session, str(QUARANTINE), quarantine_schema())
    return project


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(pipeline_project(tmp_path), tmp_path / "parquet")


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    return use_storage(monkeypatch, tmp_path / "storage")


@pytest.fixture
def storage_pipeline(tmp_path: Path, storage: ObjectStorage) -> Pipeline:
    """The folder of files is on an object storage."""
    assert storage is not None
    return Pipeline(pipeline_project(tmp_path), tmp_path / "storage/telemetry/parquet", bucket("parquet"))


@pytest.fixture(params=["pipeline", "storage_pipeline"])
def any_pipeline(request: pytest.FixtureRequest) -> Pipeline:
    found: Pipeline = request.getfixturevalue(request.param)
    return found


def test_both_sinks_have_the_same_rows(any_pipeline: Pipeline) -> None:
    done = any_pipeline.run("q-0", "acme", [spans(1, 2), spans(2, 3)], SinkKind.BOTH)
    assert (done.entries, done.rows, done.problem) == (2, 4, None)
    rows = any_pipeline.in_files()
    assert len(rows) == 4
    assert rows == any_pipeline.in_table()


COLUMNS = """\
tables:
  - name: otel.acme_traces
    columns: [{name: %s, type: %s}]
    properties: {icemigrate.attribute.column.%s: %s}
"""


def test_attributes_fill_columns_of_tables_and_files(pipeline: Pipeline) -> None:
    pipeline.run("q-0", "acme", [spans(1)], SinkKind.BOTH)
    pipeline.project.migrate(2, COLUMNS % ("number", "long", "number", "attributes.n"))
    pipeline.project.migrate(3, COLUMNS % ("host", "string", "host", "resource_attributes.host.name"))
    pipeline.project.migrate(4, COLUMNS % ("is_ok", "boolean", "is_ok", "attributes.n"))
    host = {"attributes": [{"key": "host.name", "value": {"stringValue": "h"}}]}
    request = json.loads(spans(2, 3))
    request["resourceSpans"][0]["resource"] = host
    span = request["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    span["attributes"][0]["value"] = {"stringValue": "many"}
    pipeline.run("q-1", "acme", [json.dumps(request).encode(), spans(4)], SinkKind.BOTH)
    rows = pipeline.in_table()
    assert [(row["number"], row["host"], row["is_ok"]) for row in rows] == [
        (None, None, None),  # written before the columns
        (2, "h", None),
        (None, "h", None),  # no number: the map has the text
        (4, None, None),
    ]
    assert [dict(row["attributes"])["n"] for row in rows] == ["1", "2", "many", "4"]
    assert [row.get("number") for row in pipeline.in_files()] == [None, 2, None, 4]

    pipeline.project.migrate(5, COLUMNS % ("day", "date", "day", "attributes.n"))
    done = pipeline.run("q-2", "acme", [spans(5)], SinkKind.ICEBERG)
    assert done.problem == (
        "column `day` has type `date`, and attributes fill columns of the types `string`, `long`, `int`, "
        "`double`, `boolean`"
    )


def test_files_are_by_day_with_the_name_of_the_batch(any_pipeline: Pipeline) -> None:
    any_pipeline.run(
        "q-7",
        "acme",
        [spans(1, 2), b'{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}'],
        SinkKind.PARQUET,
    )
    assert [str(path.relative_to(any_pipeline.tenant())) for path in any_pipeline.files()] == [
        "day=2023-11-15/q-7-00000.parquet",
        "day=2023-11-16/q-7-00001.parquet",
        "day=__HIVE_DEFAULT_PARTITION__/q-7-00002.parquet",
    ]
    assert any_pipeline.in_table() == []


def test_a_tenant_without_a_table_gets_all_columns(pipeline: Pipeline) -> None:
    done = pipeline.run("q-0", "initech", [spans(1)], SinkKind.PARQUET)
    assert (done.table, done.rows, done.problem) == ("", 1, None)
    schema = pq.read_schema(pipeline.files("initech")[0])
    assert {"span_id", "service_name", "events"} <= set(schema.names)
    assert not any(field.metadata for field in schema)  # no field ids: the table will have other ones


def test_tables_have_the_first_word_on_a_problem(any_pipeline: Pipeline) -> None:
    done = any_pipeline.run("q-0", "initech", [spans(1)], SinkKind.BOTH)
    assert done.problem == "there is no table `otel.initech_traces`"
    assert any_pipeline.files("initech") == []


class Killed(BaseException):
    """The end of the process."""


STEPS = ("create_durable", "sync_folder", "make_durable_folder")


def test_a_batch_that_is_killed_at_any_step_is_published_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0

    def step(real: Any) -> Any:
        def call(*args: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return real(*args)

        return call

    for name in STEPS:
        monkeypatch.setattr(sink_folders, name, step(getattr(sink_folders, name)))
    # The record is written by functions of other modules.
    monkeypatch.setattr(storage_path, "replace_durable", step(storage_path.replace_durable))
    monkeypatch.setattr(file_writes, "sync_folder", step(file_writes.sync_folder))
    monkeypatch.setattr(Path, "replace", step(Path.replace))
    kills = 0
    for batch in range(200):
        left = batch
        payloads = [spans(batch + 1, batch + 2), spans(batch + 1)]
        try:
            pipeline.run(f"q-{batch}", "acme", payloads, SinkKind.PARQUET)
        except Killed:
            kills += 1
            left = 10_000
            pipeline.run(f"q-{batch}", "acme", payloads, SinkKind.PARQUET)
            pipeline.run(
                f"q-{batch}", "acme", payloads, SinkKind.PARQUET
            )  # the stream did not note the first
        else:
            break
    assert kills > 10
    assert len(pipeline.in_files()) == 3 * (kills + 1)
    assert not list(pipeline.folder.rglob("_staging"))


def test_a_batch_on_a_storage_that_is_killed_at_any_step_is_published_once(
    storage_pipeline: Pipeline, storage: ObjectStorage
) -> None:
    left = 0

    def step() -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1

    storage.before_change = step
    kills = 0
    for batch in range(200):
        left = batch
        payloads = [spans(batch + 1, batch + 2), spans(batch + 1)]
        try:
            storage_pipeline.run(f"q-{batch}", "acme", payloads, SinkKind.PARQUET)
        except Killed:
            kills += 1
            for _ in range(2):  # the stream did not note the first
                left = 10_000
                storage_pipeline.run(f"q-{batch}", "acme", payloads, SinkKind.PARQUET)
        else:
            break
    assert kills > 5
    assert len(storage_pipeline.in_files()) == 3 * (kills + 1)
    assert not list(storage_pipeline.folder.rglob("_staging/*"))


def test_a_storage_that_is_away_ends_the_batch(storage_pipeline: Pipeline, storage: ObjectStorage) -> None:
    result = storage_pipeline.write("q-0", "acme", [spans(1)], SinkKind.BOTH)
    storage.is_away = True
    with pytest.raises(EngineError, match="NETWORK_CONNECTION: no route"):
        storage_pipeline.publish("q-0", result)
    storage.is_away = False
    storage_pipeline.run("q-0", "acme", [spans(1)], SinkKind.BOTH)
    assert len(storage_pipeline.in_files()) == len(storage_pipeline.in_table()) == 1


def test_a_repeated_batch_leaves_no_file_of_an_earlier_attempt(any_pipeline: Pipeline) -> None:
    any_pipeline.run("q-0", "acme", [spans(1, 2, 3)], SinkKind.PARQUET)
    before = {path: path.stat().st_ino for path in any_pipeline.files()}
    any_pipeline.run("q-0", "acme", [spans(1)], SinkKind.PARQUET)  # such as after a change of the code
    (path,) = any_pipeline.files()
    assert path.stat().st_ino == before[path]  # with the same content it stays: a table may have adopted it
    assert len(any_pipeline.in_files()) == 1


def test_a_repeated_batch_with_a_problem_takes_its_files_back(any_pipeline: Pipeline) -> None:
    any_pipeline.run("q-0", "acme", [spans(1)], SinkKind.PARQUET)
    result = any_pipeline.write("q-0", "acme", [spans(1)], SinkKind.PARQUET)
    outcome = TableBatch("", "acme", "traces", 1, 0, "a reason")
    ParquetSink(SinkChoice(SinkKind.PARQUET, folder=any_pipeline.root)).publish(
        "q-0", [result], outcome, is_paused=False
    )
    assert any_pipeline.files() == []


def test_a_full_disk_ends_the_batch(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    result = pipeline.write("q-0", "acme", [spans(1)], SinkKind.BOTH)

    def refuse(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sink_folders, "make_durable_folder", refuse)
    with pytest.raises(EngineError, match="no space left"):
        pipeline.publish("q-0", result)
    monkeypatch.undo()
    pipeline.run("q-0", "acme", [spans(1)], SinkKind.BOTH)
    assert len(pipeline.in_files()) == len(pipeline.in_table()) == 1


def _refuse_files(_path: Path, _content: bytes) -> None:
    raise OSError(28, "No space left on device")


def test_a_batch_that_its_table_has_is_repeated_until_its_files_are_written(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.run("q-0", "acme", [spans(1)], SinkKind.BOTH)
    monkeypatch.setattr(sink_folders, "create_durable", _refuse_files)
    with pytest.raises(
        EngineError, match=r"`otel\.acme_traces` has the rows .* lacks them: .* no space left"
    ):
        pipeline.run("q-0", "acme", [spans(1)], SinkKind.BOTH)
    assert len(pipeline.in_files()) == 1  # those of the first attempt stay
    monkeypatch.undo()
    pipeline.run("q-0", "acme", [spans(1)], SinkKind.BOTH)
    assert pipeline.in_files() == pipeline.in_table()


def test_a_tenant_without_files_does_not_wait_for_them(pipeline: Pipeline) -> None:
    pipeline.run("q-0", "acme", [spans(1)], SinkKind.ICEBERG)
    result = TableEntries("otel.acme_traces", "acme", "traces", entries=1, problem="no right")
    assert pipeline.publish("q-0", result, SinkKind.ICEBERG).problem is None


def test_a_server_of_tables_gets_no_files_of_tenants_without_a_table(tmp_path: Path) -> None:
    with rest_tables() as server:
        server.root = str(tmp_path / "warehouse")
        catalog = f"{{type: rest, uri: {server.uri}, warehouse: {server.root}}}"
        (tmp_path / "icemigrate.yaml").write_text(
            f"project: otel\nenvironments: {{lake: {{catalog: {catalog}}}}}\n", encoding="utf-8"
        )
        pipeline = Pipeline(TableProject(tmp_path), tmp_path / "parquet")
        pipeline.project.migrate(1, SPANS.partition("    partition_by")[0])
        choices = {"acme": SinkKind.BOTH, "initech": SinkKind.PARQUET, "umbrella": SinkKind.PARQUET}
        results = [
            pipeline.write("q-0", tenant, [spans(*range(1, number + 1))], kind)
            for number, (tenant, kind) in enumerate(choices.items(), start=1)
        ]
        with pipeline.project.tables() as session:
            files = ParquetSink(SinkChoice(tenants=choices, folder=pipeline.folder))
            clock = PhaseClock(lambda: None)
            done = publish_all([IcebergSink(session), files], "q-0", results, frozenset(), clock)
        assert [(one.tenant, one.rows, one.problem) for one in done] == [
            ("acme", 1, None),
            ("initech", 2, None),
            ("umbrella", 3, None),
        ]
        assert [len(pipeline.in_files(tenant)) for tenant in choices] == [1, 2, 3]
        assert len(pipeline.in_table()) == 1


def test_a_service_moves_tenant_by_tenant(pipeline: Pipeline) -> None:
    """Loose files, then both, then tables: `adopt-parquet` takes only what the table lacks."""
    pipeline.run("q-0", "acme", [spans(1, 2)], SinkKind.PARQUET)
    pipeline.run("q-1", "acme", [spans(3)], SinkKind.BOTH)
    pipeline.run("q-2", "acme", [spans(4)], SinkKind.ICEBERG)
    assert len(pipeline.in_table()) == 2
    command = ("adopt-parquet", str(pipeline.tenant()), "--into", "otel.acme_traces")
    assert pipeline.project.run(*command) == ExitCode.OK
    numbers = [int.from_bytes(row["trace_id"], "big") for row in pipeline.in_table()]
    assert numbers == [1, 2, 3, 4]
    assert pipeline.project.run(*command) == ExitCode.OK
    assert len(pipeline.in_table()) == 4
    assert pipeline.project.run(*command, "--undo") == ExitCode.OK
    assert len(pipeline.in_table()) == 2


def test_the_project_file_gives_each_tenant_its_sink(tmp_path: Path) -> None:
    text = (
        "project: otel\npipeline:\n  sink: parquet\n  tenant_sinks: {acme: both}\n  parquet_folder: files\n"
    )
    (tmp_path / "icemigrate.yaml").write_text(text, encoding="utf-8")
    sinks = open_project(tmp_path).pipeline.sinks
    assert (sinks.of("acme"), sinks.of("globex")) == (SinkKind.BOTH, SinkKind.PARQUET)
    assert sinks.require_folder().folder == tmp_path / "files"


def test_a_url_that_names_no_folder_is_refused(tmp_path: Path) -> None:
    text = 'project: otel\npipeline:\n  parquet_folder: "s3:///files"\n  tenant_sinks: {a.b: both}\n'
    (tmp_path / "icemigrate.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Mistakes) as raised:
        open_project(tmp_path)
    assert [str(one.place).rpartition("yaml")[2] for one in raised.value.diagnostics] == [":3:19", ":4:18"]


def test_a_folder_on_a_storage_gets_the_keys_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").write_text(
        "project: otel\nenvironments: {lake: {catalog: {type: sqlite}, storage: {region: eu-west-1}}}\n"
        "pipeline: {log: log, tables: {traces: 'otel.${tenant}_traces'}, parquet_folder: 's3://bucket/files'}\n",
        encoding="utf-8",
    )
    settings = ingest_settings(open_project(tmp_path), IngestRequest(sink="parquet"))
    folder = settings.sinks.folder
    assert isinstance(folder, StoragePath)
    assert (str(folder), dict(folder.settings)) == ("s3://bucket/files", {"s3.region": "eu-west-1"})


def test_files_need_a_folder() -> None:
    with pytest.raises(UsageError, match="no folder for Parquet files"):
        SinkChoice(tenants={"acme": SinkKind.BOTH}).require_folder()
    assert SinkChoice().require_folder().folder is None
