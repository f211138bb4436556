"""`ingest` from a broker of Kafka: each record is in a table exactly once, whenever a process is killed."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

from icemigrate.errors import ExitCode
from icemigrate.table_data.query_tables import query_table
from tests.servers.kafka import kafka
from tests.spark.test_ingest import KILLED, SPANS, TRACES, counts, run
from tests.support.collector_exporter import json_request, protobuf_request
from tests.support.table_project import TableProject


def test_each_record_is_in_a_table_exactly_once(tmp_path: Path) -> None:
    project = TableProject.create(tmp_path, SPANS % "acme, globex")
    with kafka() as broker:
        broker.create_topic("otlp", 2)
        encodings = (json_request, protobuf_request)
        tenants = ("acme", "globex", "initech")
        broker.send(
            "otlp",
            [
                (encodings[number % 2]((None, number + 1)), [("tenant", tenants[number % 3].encode())])
                for number in range(60)
            ],
        )
        broker.send("otlp", [(b"nonsense", [("tenant", b"acme")]), (json_request((None, 99)), [])])
        source = f"kafka://{broker.server}/otlp?kind=traces&tenant_header=tenant"
        command = ["ingest", str(tmp_path / "log"), "--from", source, "--table", TRACES]
        command += ["--quarantine", "otel.quarantine"]
        killed = run(project, "-c", KILLED, "1", *command)  # between two commits
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        # The killed batch is repeated with its records; these are in a batch of their own.
        broker.send("otlp", [(json_request((None, n + 1)), [("tenant", b"acme")]) for n in (60, 61)])
        done = run(project, "-m", "icemigrate.cli", *command)
        assert done.returncode == ExitCode.ERROR, done.stderr
        assert "there is no table `otel.initech_traces`" in done.stdout
        project.migrate(2, SPANS % "initech")
        done = run(project, "-m", "icemigrate.cli", *command)
        assert done.returncode == ExitCode.OK, done.stderr
        assert "Ingested 20 entries as 20 rows into 1 table." in done.stdout
        mixed = run(project, "-m", "icemigrate.cli", "ingest", str(tmp_path / "log"), "--table", TRACES)
        assert mixed.returncode == ExitCode.USAGE, mixed.stderr
        assert "is of runs with 1 addresses of Kafka, and this run has 0" in mixed.stderr
    for number, tenant in enumerate(tenants):
        wanted = [*range(number, 60, 3), *((60, 61) if tenant == "acme" else ())]
        assert counts(project, f"otel.{tenant}_traces") == Counter(wanted)
    with project.tables() as session:
        found = query_table(session, "otel.quarantine").to_pylist()
    assert sorted((bad["problem"].partition(":")[0], bad["segment"][:5]) for bad in found) == [
        ("the record has no header `tenant`", "otlp-"),
        ("the request is no JSON object", "otlp-"),
    ]
