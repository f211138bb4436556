"""`ingest` on a standalone cluster of two workers: the executors of both do the work."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from icemigrate.errors import ExitCode
from icemigrate.table_data.query_tables import query_table
from icemigrate.wal import EntryKind, Writer
from tests.servers.spark_cluster import spark_cluster
from tests.support.table_project import TableProject

ROOT = Path(__file__).parents[2]
TENANTS = tuple(f"t{number}" for number in range(8))
SPANS = f"""\
tables:
  - name: "otel.${{tenant}}_traces"
    for_each: {{tenant: [{", ".join(TENANTS)}]}}
    columns:
      - {{name: span_id, type: "fixed[8]"}}
      - {{name: start_time, type: timestamptz}}
"""
PROJECT = """\
project: sales
environments:
  local:
    catalog: {{type: sqlite, uri: .icemigrate/catalog.db, warehouse: .icemigrate/warehouse}}
    spark:
      master: {master}
      conf:
        spark.pyspark.python: {python}
        spark.driver.host: 127.0.0.1
        spark.driver.bindAddress: 127.0.0.1
        spark.executor.memory: 512m
        spark.executor.cores: "1"
        spark.scheduler.minRegisteredResourcesRatio: "1.0"
        spark.scheduler.maxRegisteredResourcesWaitingTime: 120s
        spark.sql.shuffle.partitions: "4"
        spark.eventLog.enabled: "true"
        spark.eventLog.dir: file://{events}
        spark.eventLog.rolling.enabled: "false"
        spark.eventLog.compress: "false"
pipeline:
  log: log
  tables: {{traces: "otel.${{tenant}}_traces"}}
"""


def spans(number: int) -> bytes:
    span = {"spanId": f"{number + 1:016x}", "startTimeUnixNano": 1}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def executors_of_tasks(events: Path) -> Counter[str]:
    """How many tasks each executor ran, according to the event log of Spark."""
    found = Counter[str]()
    for path in events.iterdir():
        if path.name.endswith(".crc"):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
                found[event["Task Info"]["Executor ID"]] += 1
    return found


def test_the_executors_of_a_cluster_drain_a_log(tmp_path: Path) -> None:
    project, events = TableProject.create(tmp_path, SPANS), tmp_path / "events"
    events.mkdir()
    with Writer(tmp_path / "log", segment_bytes=2000) as log:
        for number in range(200):
            log.append(TENANTS[number % len(TENANTS)], EntryKind.TRACES, spans(number))
    with spark_cluster(tmp_path, workers=2) as master:
        text = PROJECT.format(master=master, python=sys.executable, events=events)
        (tmp_path / "icemigrate.yaml").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "icemigrate.cli", "ingest", "--project", str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == ExitCode.OK, done.stderr
    assert "Ingested 200 entries as 200 rows into 8 tables." in done.stdout
    with project.tables() as session:
        for first, tenant in enumerate(TENANTS):
            found = query_table(session, f"otel.{tenant}_traces").column("span_id").to_pylist()
            numbers = Counter(int.from_bytes(span, "big") - 1 for span in found)
            assert numbers == Counter(range(first, 200, len(TENANTS)))
    assert executors_of_tasks(events).keys() == {"0", "1"}
