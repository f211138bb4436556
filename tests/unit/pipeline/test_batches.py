"""A batch of a log without Spark: what its tasks write, and what is committed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest

from icemigrate.errors import CatalogError, EngineError, ExitCode, UsageError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.metadata_engine.table_store import CommitRefused, StoredTable, TableCommit
from icemigrate.otlp.telemetry_columns import RequestColumns
from icemigrate.otlp.tenant_requests import TenantRule
from icemigrate.pipeline import batch_commit, iceberg_sink, ingest_stream, sink_port
from icemigrate.pipeline.batch_commit import TableBatch, is_committed
from icemigrate.pipeline.batch_result import PhaseClock
from icemigrate.pipeline.checkpoint_copy import stream_checkpoint
from icemigrate.pipeline.created_tables import CreatedTables
from icemigrate.pipeline.entry_files import (
    BatchContext,
    EntryFileWriter,
    file_batches,
)
from icemigrate.pipeline.iceberg_sink import IcebergSink
from icemigrate.pipeline.quarantine import missing_columns, quarantine_schema
from icemigrate.pipeline.segment_entries import entry_batches
from icemigrate.pipeline.sink_port import publish_all
from icemigrate.pipeline.table_retries import TableKey
from icemigrate.pipeline.task_results import TableEntries, read_result
from icemigrate.pipeline.telemetry_arrow import ArrowRows, UnsuitableTable
from icemigrate.project.namespace_mapping import NamespaceMapping
from icemigrate.project.telemetry_sources import FileSource
from icemigrate.project.tenant_tables import TenantTables, may_be_equal, tenant_tables
from icemigrate.table_data.load_database import open_load_database
from icemigrate.table_data.load_target import load_target
from icemigrate.table_data.new_table import create_table
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.row_commit import PrepareChange, commit_rows
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import reserved_of
from icemigrate.wal import Entry, EntryKind
from icemigrate.wal.log_folder import LogError
from icemigrate.wal.log_lock import LogLock
from icemigrate.wal.segment_format import SegmentEncoder
from tests.support.small_commits import set_properties, with_column
from tests.support.table_project import TableProject

SPANS = """\
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: [acme, globex]}
    columns:
      - {name: trace_id, type: "fixed[16]"}
      - {name: start_time, type: timestamptz, required: true}
      - {name: attributes, type: "map<string, string>"}
      - {name: links, type: "list<struct<trace_id: fixed[16], attributes: map<string, string>>>"}
      - {name: comment, type: string}
    partition_by: ["day(start_time)"]
"""
TABLES = tenant_tables(["traces=otel.${tenant}_traces"])
QUARANTINE = TableName(("otel",), "quarantine")
START = 1_700_000_000_000_000_000


def spans(*numbers: int) -> bytes:
    """An export request with a span for each number, one a day."""
    found = [
        {
            "traceId": f"{number:032x}",
            "startTimeUnixNano": str(START + number * 86_400_000_000_000),
            "attributes": [{"key": "n", "value": {"intValue": number}}],
            "links": [{"traceId": f"{number:032x}"}],
        }
        for number in numbers
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}).encode()


def entry(tenant: str, payload: bytes, kind: EntryKind = EntryKind.TRACES) -> Entry:
    return Entry(tenant, kind, START, payload)


@pytest.fixture
def project(tmp_path: Path) -> TableProject:
    made = TableProject.create(tmp_path, SPANS)
    with made.tables() as session:
        create_table(session, str(QUARANTINE), quarantine_schema())
    return made


class RunningQuery:
    """A stream of Spark that goes on."""

    isActive = True  # noqa: N815

    def __init__(self) -> None:
        self.events = list[str]()

    def awaitTermination(self, _seconds: int) -> bool:  # noqa: N802
        return False

    def stop(self) -> None:
        self.events.append("stop")


def test_an_error_beside_the_stream_ends_it_after_its_batch(
    project: TableProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, log = RunningQuery(), tmp_path / "log"
    log.mkdir()

    def start(_spark: Any, _settings: Any, batches: Any) -> RunningQuery:
        monkeypatch.setattr(batches, "finish", lambda: nullcontext(query.events.append("finish")))
        return query

    def refuse(_settings: Any) -> int:
        raise LogError("a segment cannot be removed")

    monkeypatch.setattr(ingest_stream, "_start", start)
    monkeypatch.setattr(ingest_stream, "use_own_python", lambda _spark: None)
    monkeypatch.setattr(ingest_stream, "_MAINTENANCE_SECONDS", 0)
    monkeypatch.setattr(ingest_stream, "_remove_drained", refuse)
    settings = ingest_stream.IngestSettings(log, log / "checkpoint", TABLES, QUARANTINE, interval_s=1)
    with project.tables() as session, pytest.raises(LogError, match="cannot be removed"):
        ingest_stream.ingest(session, None, settings, lambda _batch: None)  # type: ignore[arg-type]
    assert query.events == ["finish", "stop"]


class Events(LogLock):
    """The checks of the lock, and the calls of functions that change the log or a table."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.calls = list[str]()
        self.checks_left = 1000

    def require_held(self) -> None:
        self.calls.append("check")
        self.checks_left -= 1
        if self.checks_left < 0:
            raise LogError("this process lost the lock")

    def record(self, name: str, *results: Any) -> None:
        """Let each call of a function be an event; the last result is that of all further calls."""
        left = list(results)

        def call(*_values: Any, **_options: Any) -> Any:
            self.calls.append(name)
            return left.pop(0) if len(left) > 1 else left[0]

        self._patch.setattr(sink_port if name == "publish" else ingest_stream, name, call)


class Frame:
    """A ``DataFrame`` of a batch, with one result."""

    def __getattr__(self, _name: str) -> Callable[..., Frame]:
        return lambda *_values: self

    def collect(self) -> list[TableEntries]:
        return [TableEntries("otel.acme_traces", "acme", "traces", entries=1)]


def test_a_batch_checks_the_lock_before_each_change(
    project: TableProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, log = Events(monkeypatch), tmp_path / "log"
    (log / "checkpoint" / "offsets").mkdir(parents=True)
    (log / "checkpoint" / "metadata").write_text('{"id": "q"}', encoding="utf-8")
    (log / "checkpoint" / "offsets" / "0").write_text('v1\n{}\n{"logOffset": 0}', encoding="utf-8")
    failed = TableBatch("otel.acme_traces", "acme", "traces", 1, 0, "there is no table")
    for name, result in {"publish": failed, "defer_entries": 1, "drop_deferred": None}.items():
        events.record(name, result)
    events.record("record_totals", None)
    monkeypatch.setattr(ingest_stream, "_of_tables", lambda entries, _tables: entries)
    monkeypatch.setattr(ingest_stream, "read_result", lambda row: row)
    settings = ingest_stream.IngestSettings(log, log / "checkpoint", TABLES, QUARANTINE)

    def create(_tables: Any) -> CreatedTables:
        events.calls.append("create_tables")
        return CreatedTables()

    with project.tables() as session:
        checkpoint = stream_checkpoint(settings.checkpoint)
        batches = ingest_stream._Batches(session, settings, lambda _: None, create, checkpoint, events)
        batches.source = ingest_stream._source(settings)
        run_batch = batches.of_stream()
        run_batch(Frame(), 0)  # type: ignore[arg-type]
        steps = [call for call in events.calls if call != "check"]
        assert steps == ["drop_deferred", "publish", "defer_entries", "create_tables", "record_totals"]
        for at, call in enumerate(events.calls):
            assert call == "check" or events.calls[at - 1] == "check", events.calls
        for checks in range(events.calls.count("check")):
            events.calls, events.checks_left = [], checks
            with pytest.raises(LogError, match="lost the lock"):
                run_batch(Frame(), 0)  # type: ignore[arg-type]
            assert events.calls[-1] == "check"


def test_a_run_that_lost_the_lock_changes_nothing_in_the_log(
    project: TableProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, events, log = RunningQuery(), Events(monkeypatch), tmp_path / "log"
    log.mkdir()
    for name in ("seal_abandoned", "_retry_tables", "_remove_drained"):
        events.record(name, 0)
    events.record("collect", 4, 4, 1, 4)
    events.record("_start", query)
    monkeypatch.setattr(ingest_stream, "use_own_python", lambda _spark: None)
    monkeypatch.setattr(ingest_stream, "_MAINTENANCE_SECONDS", 0)
    settings = ingest_stream.IngestSettings(
        log, log / "checkpoint", TABLES, QUARANTINE, interval_s=1, sources=(FileSource("x", TenantRule()),)
    )
    events.checks_left = 6
    with project.tables() as session, pytest.raises(LogError, match="lost the lock"):
        ingest_stream.ingest(session, None, settings, lambda _batch: None, lock=events)  # type: ignore[arg-type]
    assert events.calls == [
        *("check", "seal_abandoned"),
        *("check", "collect") * 3,
        "_start",
        *("check", "_retry_tables", "check", "collect", "seal_abandoned", "_remove_drained"),
        "check",
    ]
    assert query.events == ["stop"]


def run(
    session: TableSession,
    entries: Iterable[Entry],
    batch: str = "q-0",
    damage: bool = False,
    paused: Mapping[TableKey, str] | None = None,
    latest_ns: int = 2**63,
    tables: TenantTables = TABLES,
) -> list[TableBatch]:
    """Write and commit one batch, as Spark's tasks and its driver do."""
    encoder = SegmentEncoder()
    listed = list(entries)
    parts = [encoder.encode_entry(one) for one in listed]
    if damage:
        parts[0] = parts[0][:-1] + b"?"
    content = encoder.header + b"".join(parts) + encoder.encode_footer(len(listed))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "1.wal"
        path.write_bytes(content)
        paths = pa.record_batch([pa.array([f"file:{path}"])], names=["path"])
        return write_and_commit(
            session, batch, path.parent, entry_batches([paths]), paused, latest_ns, tables
        )


def write_and_commit(
    session: TableSession,
    batch: str,
    log: Path,
    entries: Iterable[Any],
    paused: Mapping[TableKey, str] | None,
    latest_ns: int,
    tables: TenantTables,
) -> list[TableBatch]:
    """Write and commit a batch of a log, by the Arrow batches of its entries."""
    table = pa.Table.from_batches(list(entries))
    ordered = table.sort_by([("tenant", "ascending"), ("kind", "ascending"), ("offset", "ascending")])
    environment = session.environment
    context = BatchContext(
        environment.catalog.settings,
        tables,
        environment.names,
        QUARANTINE,
        reserved_of(environment),
        paused or {},
        latest_ns,
        log=log,
    )
    results = [
        read_result(Row(row))
        for result in file_batches(context, ordered.to_batches())
        for row in result.to_pylist()
    ]
    clock = PhaseClock(lambda: None)
    return publish_all([IcebergSink(session)], batch, results, context.paused, clock)


class Row:
    """A row as Spark gives it."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        return self._values[name]

    def asDict(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        return self._values


def rows(session: TableSession, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = query_table(session, name).to_pylist()
    return found


def test_entries_become_rows_of_their_tenants_tables(project: TableProject) -> None:
    with project.tables() as session:
        done = run(session, [entry("acme", spans(1, 2)), entry("globex", spans(3)), entry("acme", spans(4))])
        assert [(one.table, one.entries, one.rows, one.problem) for one in done] == [
            ("otel.acme_traces", 2, 3, None),
            ("otel.globex_traces", 1, 1, None),
        ]
        found = rows(session, "otel.acme_traces")
        assert sorted(dict(row["attributes"])["n"] for row in found) == ["1", "2", "4"]
        assert {row["comment"] for row in found} == {None}
        assert sorted(row["links"][0]["trace_id"][-1] for row in found) == [1, 2, 4]


def test_a_problem_of_a_column_has_no_value_of_the_tenant() -> None:
    rows = ArrowRows({"n": "string"}, (Field(1, "n", Primitive("int")),))
    rows.add(RequestColumns(1, {"n": ["secret" * 1000]}), 1)
    with pytest.raises(UnsuitableTable) as error:
        rows.take()
    assert str(error.value) == "column `n` has type `int`, which lacks values of type `string`"


def test_a_repeated_batch_is_committed_once(project: TableProject) -> None:
    entries = [entry("acme", spans(1)), entry("globex", spans(2))]
    with project.tables() as session:
        run(session, entries[:1])  # as a process that ends between two commits
        run(session, entries)
        assert len(rows(session, "otel.acme_traces")) == len(rows(session, "otel.globex_traces")) == 1
        run(session, entries, "q-1")
        assert len(rows(session, "otel.acme_traces")) == 2


TENANTS = ("acme", "globex", "initech", "umbrella")


@pytest.fixture
def transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Transactions:
    spans_of_four = SPANS.replace("acme, globex", ", ".join(TENANTS))
    return Transactions(TableProject.create(tmp_path, spans_of_four), monkeypatch)


class Transactions:
    """A project of four tenants, and the commits to its catalog.

    :ivar sent: the names of the tables of each commit.
    :ivar before: called before the first commit.
    :ivar after: called after it.
    """

    def __init__(self, project: TableProject, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.sent = list[list[str]]()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        original = SqlTableStore.commit

        def commit(
            store: SqlTableStore, commits: Sequence[TableCommit], *rest: Any
        ) -> tuple[StoredTable, ...]:
            self.sent.append([one.name.name.removesuffix("_traces") for one in commits])
            is_first = len(self.sent) == 1
            if is_first:
                self.before()
            made = original(store, commits, *rest)
            if is_first:
                self.after()
            return made

        monkeypatch.setattr(SqlTableStore, "commit", commit)

    def run(self, batch: str = "q-0") -> list[str | None]:
        """The problems of a batch with an entry of each tenant."""
        with self.project.tables() as session:
            done = run(session, [entry(tenant, spans(1)) for tenant in TENANTS], batch)
            assert [one.entries for one in done] == [1] * 4
            assert all(one.rows == (one.problem is None) for one in done)
            return [one.problem for one in done]

    def rows(self) -> list[int]:
        with self.project.tables() as session:
            return [
                len(rows(session, f"otel.{tenant}_traces"))
                for tenant in TENANTS
                if session.find(TableName(("otel",), f"{tenant}_traces")) is not None
            ]

    def change(self, tenant: str, column: str = "", drop: bool = False) -> None:
        """What another client does."""
        name = TableName(("otel",), f"{tenant}_traces")
        with self.project.tables() as session:
            found = session.find(name)
            assert found is not None
            if drop:
                session.store.drop(name)
            elif column:
                session.store.commit([with_column(found.stored, name, column)])
            else:
                session.store.commit([set_properties(found.stored, name, theirs="1")])

    def files(self) -> int:
        """The data files and manifests of all tables."""
        folder = self.project.folder / ".icemigrate" / "warehouse" / "otel"
        return len([*folder.rglob("*.parquet"), *folder.rglob("*-m*.avro"), *folder.rglob("snap-*.avro")])


def test_the_tables_of_a_batch_are_committed_in_one_transaction(transactions: Transactions) -> None:
    before = transactions.files()
    assert transactions.run() == [None] * 4
    assert transactions.sent == [list(TENANTS)]
    assert transactions.rows() == [1] * 4
    assert transactions.files() == before + 3 * 4
    transactions.sent.clear()
    assert transactions.run() == [None] * 4  # a repeated batch
    assert transactions.sent == []
    assert transactions.rows() == [1] * 4
    assert transactions.files() == before + 3 * 4


def test_a_transaction_that_is_refused_is_not_halved(transactions: Transactions) -> None:
    def refuse() -> None:
        raise CommitRefused("the disk is full")

    transactions.before = refuse
    assert transactions.run() == [None] * 4
    assert transactions.sent == [list(TENANTS), *([tenant] for tenant in TENANTS)]
    assert transactions.rows() == [1] * 4


def test_a_table_on_which_another_client_is_faster_does_not_stop_the_others(
    transactions: Transactions,
) -> None:
    before = transactions.files()
    transactions.before = lambda: transactions.change("globex")
    assert transactions.run() == [None] * 4
    # All four, the other client, each half.
    assert transactions.sent == [list(TENANTS), ["globex"], list(TENANTS[:2]), list(TENANTS[2:])]
    assert transactions.rows() == [1] * 4
    assert transactions.files() == before + 3 * 4


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_table_that_another_client_drops_or_changes_does_not_stop_the_others(
    transactions: Transactions, is_dropped: bool
) -> None:
    transactions.before = lambda: transactions.change("globex", column="theirs", drop=is_dropped)
    problems = transactions.run()
    assert [problem is None for problem in problems] == [True, False, True, True]
    text = "there is no table" if is_dropped else "another client changed the columns"
    assert text in (problems[1] or "")
    assert transactions.rows() == ([1] * 3 if is_dropped else [1, 0, 1, 1])


@pytest.mark.parametrize("is_made", [True, False])
def test_a_process_that_ends_at_a_transaction_repeats_the_batch(
    transactions: Transactions, is_made: bool
) -> None:
    def end() -> None:
        raise KeyboardInterrupt

    setattr(transactions, "after" if is_made else "before", end)
    with pytest.raises(KeyboardInterrupt):
        transactions.run()
    assert transactions.rows() == [int(is_made)] * 4
    assert transactions.run() == [None] * 4
    assert transactions.rows() == [1] * 4


def test_a_repeated_batch_is_known_after_its_snapshot_expired(project: TableProject) -> None:
    entries = [entry("acme", spans(1))]
    with project.tables() as session:
        run(session, entries)
        table = session.load("otel.acme_traces")
        later = {**table.stored.json, "snapshots": []}
        assert is_committed(CurrentTable(table.declared, table.name, StoredTable("x", later)), "q-0")
        assert not is_committed(CurrentTable(table.declared, table.name, StoredTable("x", later)), "q-1")


def test_the_mark_of_a_batch_is_no_drift(project: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    with project.tables() as session:
        run(session, [entry("acme", spans(1))])
    assert project.run("drift") == ExitCode.OK
    assert "icemigrate.batch" not in capsys.readouterr().out


def test_a_quarantine_with_a_problem_stops_the_batch(project: TableProject) -> None:
    project.migrate(2, "tables: [{name: other.quarantine, columns: [{name: tenant, type: long}]}]\n")
    with project.tables() as session:
        columns = load_target(session.load("other.quarantine")).columns
        assert "`tenant` (string)" in missing_columns(columns)
        assert "`payload` (binary)" in missing_columns(columns)
        assert missing_columns(load_target(session.load(str(QUARANTINE))).columns) == ()
        store = session.store
        context = BatchContext(
            session.environment.catalog.settings,
            TABLES,
            session.environment.names,
            TableName(("no",), "table"),
            reserved_of(session.environment),
        )
        with open_load_database() as db:
            writer = EntryFileWriter(context, store, db)
            bad = dict.fromkeys(("tenant", "kind", "encoding", "segment", "offset"))
            writer.quarantine({**bad, "payload": b"x"}, "damaged")
            result = writer.quarantined()
    assert result is not None
    assert (result.problem, result.stops) == ("there is no table `no.table`", True)


def test_files_that_are_not_committed_are_deleted(project: TableProject) -> None:
    with project.tables() as session:
        for _ in range(2):
            run(session, [entry("acme", spans(1))])
    assert len(list(project.folder.joinpath(".icemigrate", "warehouse", "otel").rglob("*.parquet"))) == 1


def test_a_tenant_with_a_problem_does_not_stop_the_others(project: TableProject) -> None:
    late = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no time"}]}]}]}).encode()
    with project.tables() as session:
        done = run(session, [entry("acme", spans(1)), entry("globex", late), entry("initech", spans(2))])
        assert [(one.tenant, one.entries, one.rows, one.problem) for one in done] == [
            ("acme", 1, 1, None),
            ("globex", 1, 0, "column `start_time` is required, and rows have no value of it"),
            ("initech", 1, 0, "there is no table `otel.initech_traces`"),
        ]
        done = run(session, [entry("acme", b"{}", EntryKind.LOGS)], "q-1")
        assert [one.problem for one in done] == ["no table is given for logs"]
    assert len(list(project.folder.joinpath(".icemigrate", "warehouse", "otel").rglob("*.parquet"))) == 1


def test_what_cannot_be_read_is_quarantined_with_the_reason(project: TableProject) -> None:
    with project.tables() as session:
        run(
            session,
            [
                entry("acme", spans(1)),
                entry("globex", b"{"),
                entry("../x", spans(2)),
                entry("acme", spans(3)),
                Entry("acme", EntryKind.TRACES, 2**63, spans(4)),
            ],
            damage=True,
        )
        found = {row["problem"]: row for row in rows(session, str(QUARANTINE))}
        assert found.keys() == {
            "the payload is no JSON: Input data was truncated",
            "'../x' cannot be the id of a tenant",
            "the checksum of the entry is wrong",
            f"the time {2**63} of the entry is after 2262",
            "the footer counts 5 entries, and 3 can be read",
        }
        assert found["the payload is no JSON: Input data was truncated"]["payload"] == b"{"
        assert found["the payload is no JSON: Input data was truncated"]["tenant"] == "globex"
        assert found["'../x' cannot be the id of a tenant"]["payload"] == spans(2)
        assert len(rows(session, "otel.acme_traces")) == 1


def test_a_mapped_namespace_gives_no_two_tenants_one_table(project: TableProject) -> None:
    project.migrate(2, "tables: [{name: prod_shop.traces, columns: [{name: trace_id, type: 'fixed[16]'}]}]\n")
    tables = tenant_tables(["traces=${tenant}.traces"])
    with project.tables() as session:
        environment = session.environment
        mapped = replace(environment.environment, namespaces={"shop": "prod_shop"})
        session.environment = replace(environment, names=NamespaceMapping(mapped))
        entries = [entry("shop", spans(1)), entry("prod_shop", spans(2))]
        done = {
            one.tenant: one for batch in ("q-0", "q-0") for one in run(session, entries, batch, tables=tables)
        }
        found = rows(session, "shop.traces")
    problem = (
        "`prod_shop.traces` in the catalog is the table `shop.traces`, by `namespaces` of the environment"
    )
    assert (done["prod_shop"].rows, done["prod_shop"].problem) == (0, problem)
    assert (done["shop"].rows, done["shop"].problem) == (1, None)
    assert [row["trace_id"][-1] for row in found] == [1]


def test_entries_from_the_future_are_ingested_and_counted(project: TableProject) -> None:
    later = Entry("acme", EntryKind.TRACES, START + 1, spans(1))
    with project.tables() as session:
        done = run(session, [entry("acme", spans(2)), later, later], latest_ns=START)
        assert [(one.entries, one.future, one.problem) for one in done] == [(3, 2, None)]
        assert len(rows(session, "otel.acme_traces")) == 3


def test_large_attributes_are_stored_whole(project: TableProject) -> None:
    large = "x" * 10_000_000
    span = {
        "startTimeUnixNano": str(START),
        "attributes": [{"key": large[:1000], "value": {"stringValue": large}}],
    }
    payload = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    with project.tables() as session:
        (done,) = run(session, [entry("acme", payload), entry("acme", payload), entry("acme", spans(1))])
        assert (done.entries, done.problem) == (3, None)
        values = [one for row in rows(session, "otel.acme_traces") for one in dict(row["attributes"]).items()]
    assert [(len(name), len(value)) for name, value in values if len(name) > 1] == [(1000, 10_000_000)] * 2


def parquet_files(project: TableProject) -> list[Path]:
    return list(project.folder.joinpath(".icemigrate", "warehouse", "otel").rglob("*.parquet"))


def change_before_commit(
    monkeypatch: pytest.MonkeyPatch, session: TableSession, change: Callable[[str], None]
) -> None:
    """Let another client change the table of acme after the files of a batch are written."""

    def commit(session: TableSession, name: str, prepare: PrepareChange) -> Any:
        if "acme" in name:
            change(name)
        return commit_rows(session, name, prepare)

    monkeypatch.setattr(batch_commit, "commit_rows", commit)


def test_a_table_that_changes_during_a_batch_does_not_stop_the_others(
    project: TableProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = batch_commit.layout_of

    def change(name: str) -> None:
        monkeypatch.setattr(batch_commit, "layout_of", lambda _: "9/9")

    entries = [entry("acme", spans(1)), entry("globex", spans(2))]
    with project.tables() as session, monkeypatch.context() as patch:
        change_before_commit(patch, session, change)
        first = run(session, entries[:1])
        monkeypatch.setattr(batch_commit, "layout_of", real)
        second = run(session, entries[1:])
    problem = "another client changed the columns of table `otel.acme_traces` during the batch"
    assert [(one.rows, one.problem) for one in (*first, *second)] == [(0, problem), (1, None)]
    assert len(parquet_files(project)) == 1


def test_a_table_that_is_dropped_during_a_batch_does_not_stop_the_others(
    project: TableProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    with project.tables() as session:
        entries = [entry("acme", spans(1)), entry("globex", spans(2))]
        find = session.find
        gone = set[str]()
        monkeypatch.setattr(iceberg_sink, "commit_together", lambda *_: {})  # as after its refusal
        change_before_commit(monkeypatch, session, gone.add)
        monkeypatch.setattr(session, "find", lambda name: None if str(name) in gone else find(name))
        done = run(session, entries)
    assert [(one.rows, one.problem) for one in done] == [
        (0, "there is no table `otel.acme_traces`"),
        (1, None),
    ]
    assert len(parquet_files(project)) == 1


@pytest.mark.parametrize(("is_uncertain", "files"), [(False, 1), (True, 2)])
def test_a_table_whose_commit_the_catalog_refuses_does_not_stop_the_others(
    project: TableProject, monkeypatch: pytest.MonkeyPatch, is_uncertain: bool, files: int
) -> None:
    entries = [entry("acme", spans(1)), entry("globex", spans(2))]
    with project.tables() as session:
        commit = session.store.commit

        def refuse(commits: Sequence[TableCommit], *values: Any) -> Any:
            if "acme" not in str(commits[0].name):
                return commit(commits, *values)
            error = CommitRefused("403 Forbidden")
            error.keeps_files = is_uncertain
            raise error

        monkeypatch.setattr(session.store, "commit", refuse)
        if is_uncertain:
            with pytest.raises(CommitRefused, match="403"):
                run(session, entries)
        else:
            done = run(session, entries)
            assert [(one.rows, one.problem) for one in done] == [(0, "403 Forbidden"), (1, None)]
    assert len(parquet_files(project)) == files


def test_a_paused_table_gets_no_files_and_unreadable_entries_are_quarantined(project: TableProject) -> None:
    entries = [entry("acme", spans(1)), entry("acme", b"{"), entry("acme", b"{", EntryKind.LOGS)]
    with project.tables() as session:
        done = run(session, entries, paused={("acme", "traces"): "no right"})
        found = rows(session, str(QUARANTINE))
    assert [(one.kind, one.entries, one.problem, one.quarantined) for one in done] == [
        ("logs", 0, "no table is given for logs", 1),
        ("traces", 1, "no right", 1),
        (None, 2, None, 0),
    ]
    assert [row["kind"] for row in found] == ["logs", "traces"]


@pytest.mark.parametrize("is_reachable", [True, False])
def test_a_storage_that_fails_for_one_table_alone_does_not_stop_the_batch(
    project: TableProject, is_reachable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = TableEntries("otel.acme_traces", "acme", "traces", problem="access denied", stops=True)
    with project.tables() as session:
        if is_reachable:
            batch_commit.require_running(session, [failed])
            quarantine = TableEntries(str(QUARANTINE), problem="access denied", stops=True)
            with pytest.raises(EngineError, match=r"`otel\.quarantine`: access denied"):
                batch_commit.require_running(session, [quarantine])
            in_files = TableEntries("", "acme", "traces", problem="the disk is full", stops=True)
            with pytest.raises(EngineError, match="traces of tenant `acme`: the disk is full"):
                batch_commit.require_running(session, [in_files])
            return

        def fail(_name: TableName) -> None:
            raise CatalogError("no answer")

        monkeypatch.setattr(session, "find", fail)
        with pytest.raises(EngineError, match=r"`otel\.acme_traces`: access denied"):
            batch_commit.require_running(session, [failed])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no table is given"),
        (["spans=otel.${tenant}"], "`spans=otel.${tenant}` does not begin with a kind and `=`"),
        (["traces"], "`traces` does not begin with a kind and `=`"),
        (["traces=otel.traces"], "the name `otel.traces` is the same for all tenants"),
        (["traces=${tenant}"], "`${tenant}` has no namespace: write `namespace.${tenant}`"),
        (["logs=a.${tenant}", "logs=b.${tenant}"], "the kind `logs` is given twice"),
        *(
            (list(patterns), "a table of traces can have the same name as a table of logs")
            for patterns in (
                ("traces=a.${tenant}", "logs=a.${tenant}"),
                ("traces=a.${tenant}", "logs=a.${tenant}_logs"),
                ("traces=a.t_${tenant}", "logs=a.${tenant}_t"),
                ("traces=a.${tenant}_T", "logs=a.${tenant}_t"),
                ("traces=${tenant}.x", "logs=a_${tenant}.${tenant}"),
            )
        ),
    ],
)
def test_a_pattern_that_names_no_table_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        tenant_tables(arguments)
    assert error.value.message == message


def test_the_quarantine_is_no_table_of_a_tenant() -> None:
    tables = tenant_tables(["traces=otel.${tenant}_traces", "logs=`t_${tenant}`.logs"])
    for name, is_shared in {
        ("otel", "quarantine"): False,
        ("otel", "x_traces"): True,
        ("otel", "X_TRACES"): True,
        ("t_a", "logs"): True,
        ("t_a", "x_logs"): False,
    }.items():
        found = any(may_be_equal(p, TableName(name[:1], name[1])) for p in tables.patterns.values())
        assert found is is_shared, name


def test_a_tenant_fills_its_part_of_a_name() -> None:
    tables = tenant_tables(["traces=`t_${tenant}`.traces", "logs=otel.${tenant}_logs"])
    assert tables.table("a-b", EntryKind.TRACES) == TableName(("t_a-b",), "traces")
    assert tables.table("a-b", EntryKind.LOGS) == TableName(("otel",), "a-b_logs")
    assert tables.table("a-b", EntryKind.METRICS) is None
