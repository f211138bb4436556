"""`ingest` as whole processes: entries are in tables exactly once, whenever a process is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from icemigrate.errors import ExitCode
from icemigrate.table_data.query_tables import query_table
from icemigrate.wal import EntryKind, Writer
from tests.support.table_project import TableProject

ROOT = Path(__file__).parents[2]
TRACES = "traces=otel.${tenant}_traces"
SPANS = """\
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: [%s]}
    columns:
      - {name: span_id, type: "fixed[8]"}
      - {name: start_time, type: timestamptz}
"""
KILLED = """
import os, signal, sys
from icemigrate.cli import main
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
real, left = SqlTableStore.commit, [int(sys.argv[1])]
def pass_moment():
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
def commit(*args, **options):
    pass_moment()
    made = real(*args, **options)
    pass_moment()
    return made
SqlTableStore.commit = commit
main(sys.argv[2:])
"""


def spans(number: int) -> bytes:
    span = {"spanId": f"{number + 1:016x}", "startTimeUnixNano": 1}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def counts(project: TableProject, name: str) -> Counter[int]:
    """How often a table has each number."""
    with project.tables() as session:
        found = query_table(session, name).column("span_id").to_pylist()
    return Counter(int.from_bytes(span, "big") - 1 for span in found)


def run(project: TableProject, *args: str) -> subprocess.CompletedProcess[str]:
    """A process; one that is killed leaves no JVM behind."""
    return subprocess.run(
        [sys.executable, *args, "--project", str(project.folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_entry_is_in_a_table_exactly_once(tmp_path: Path) -> None:
    project = TableProject.create(tmp_path, SPANS % "acme, globex")
    log = tmp_path / "log"
    with Writer(log, segment_bytes=2000) as writer:
        for number in range(60):
            writer.append(("acme", "globex", "initech")[number % 3], EntryKind.TRACES, spans(number))
        writer.append("acme", EntryKind.TRACES, b"nonsense")
    command = ["ingest", str(log), "--table", TRACES, "--quarantine", "otel.quarantine", "--retention", "0s"]

    # Between the creation of the quarantine and the transaction of the batch, and after that transaction.
    for moment in (2, 1):
        killed = run(project, "-c", KILLED, str(moment), *command)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = run(project, "-m", "icemigrate.cli", *command, "--format", "json")
    assert done.returncode == ExitCode.ERROR, done.stderr
    result = json.loads(done.stdout)
    problems = {table["tenant"]: table["problem"] for table in result["tables"] if table["problem"]}
    assert problems == {"initech": "there is no table `otel.initech_traces`"}
    assert result["deferred"] == 20
    # The entries that wait are in segments of their own.
    assert result["removed_segments"] > 1
    assert not list(log.glob("*.wal"))
    for name, first in (("acme", 0), ("globex", 1)):
        assert counts(project, f"otel.{name}_traces") == Counter(range(first, 60, 3))

    # The table of the third tenant is created; its entries were in the log.
    project.migrate(2, SPANS % "initech")
    done = run(project, "-m", "icemigrate.cli", *command)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "Ingested 20 entries as 20 rows into 1 table." in done.stdout
    assert not list(log.rglob("*.wal*"))
    assert counts(project, "otel.initech_traces") == Counter(range(2, 60, 3))
    assert counts(project, "otel.acme_traces") == Counter(range(0, 60, 3))
    with project.tables() as session:
        (bad,) = query_table(session, "otel.quarantine").to_pylist()
    assert (bad["tenant"], bad["payload"]) == ("acme", b"nonsense")


LOGS = """\
tables:
  - name: "otel.${tenant}_logs"
    for_each: {tenant: seen}
    columns: [{name: body, type: string}]
"""


def test_a_new_tenant_gets_its_tables(tmp_path: Path) -> None:
    project = TableProject.create(tmp_path)
    pipeline = '{log: log, quarantine: otel.quarantine, tables: {logs: "otel.${tenant}_logs"}}'
    (tmp_path / "icemigrate.yaml").write_text(f"project: sales\npipeline: {pipeline}\n", encoding="utf-8")
    record = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "text"}}]}]}]}
    with Writer(tmp_path / "log") as writer:
        writer.append("acme", EntryKind.LOGS, json.dumps(record).encode())
    project.migrate(1, LOGS)
    with Writer(tmp_path / "log") as writer:
        for tenant in ("globex", "initech", "globex"):
            writer.append(tenant, EntryKind.LOGS, json.dumps(record).encode())
        writer.append("globex", EntryKind.TRACES, spans(0))
    done = run(project, "-m", "icemigrate.cli", "ingest", "--format", "json")
    result = json.loads(done.stdout)
    assert done.returncode == ExitCode.ERROR, done.stderr
    assert result["created_tables"] == 2
    assert result["deferred"] == 1
    found = {table["table"]: (table["rows"], table["problem"]) for table in result["tables"]}
    assert found == {
        "": (0, "no table is given for traces"),
        "otel.acme_logs": (1, None),
        "otel.globex_logs": (2, None),
        "otel.initech_logs": (1, None),
    }
