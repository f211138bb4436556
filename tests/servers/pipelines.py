"""A project with a pipeline whose parts are on S3, and processes of it that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icemigrate.errors import ExitCode
from icemigrate.project import choose_environment, open_project, storage_properties
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.table_session import open_tables
from icemigrate.wal.storage_path import StoragePath, open_path
from tests.servers.lake import rest_kind
from tests.servers.seaweedfs import SeaweedFS

ROOT = Path(__file__).parents[2]
LOG = "s3://telemetry/log"
INGEST = ("ingest", "--retention", "0s")
PIPELINE = """\
pipeline:
  tables: {traces: "otel.${tenant}_traces"}
  quarantine: otel.quarantine
  segments_per_batch: 4
"""
SPANS = """\
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: [acme, globex]}
    columns:
      - {name: span_id, type: "fixed[8]"}
      - {name: start_time, type: timestamptz}
"""
KILLING = """
import os, signal, sys
from icemigrate.cli import main
from icemigrate.pipeline import iceberg_sink, parquet_sink
pid, left = int(sys.argv[1]) or os.getpid(), [int(sys.argv[2])]
owner, name = {"table": (iceberg_sink, "commit_table"), "file": (parquet_sink, "publish_file")}[sys.argv[3]]
real = getattr(owner, name)
def publish(*args, **options):
    if not left[0]:
        os.kill(pid, signal.SIGKILL)
    left[0] -= 1
    return real(*args, **options)
setattr(owner, name, publish)
sys.exit(main(sys.argv[4:]))
"""


def spans(number: int) -> bytes:
    span = {"spanId": f"{number + 1:016x}", "startTimeUnixNano": 1}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


class PipelineProject:
    """A project whose tables are on S3.

    :param timeout: of the catalog.
    :param keys: of `pipeline`, such as the log.
    """

    def __init__(self, folder: Path, server: SeaweedFS, timeout: str = "60s", **keys: str) -> None:
        kind = rest_kind(server)
        self.folder, self.server, self.variables = folder, server, kind.variables
        (folder / "migrations").mkdir(parents=True)
        (folder / "migrations/0001_traces.yaml").write_text(SPANS, encoding="utf-8")
        given = "".join(f"  {key}: {value}\n" for key, value in keys.items())
        text = kind.project_file("market", "otel.history") + PIPELINE + given
        text = text.replace("credential:", f"timeout: {timeout}\n      credential:")
        (folder / "icemigrate.yaml").write_text(text, encoding="utf-8")

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """A process of Python."""
        return subprocess.run(
            [sys.executable, *args, "--project", str(self.folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **self.variables},
        )

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        """A command of icemigrate."""
        return self.run("-m", "icemigrate.cli", *args)

    def ingest_and_kill(
        self, pid: int, published: int, what: str = "table"
    ) -> subprocess.CompletedProcess[str]:
        """Drain the log, and kill a process after some commits of tables, or some Parquet files.

        :param pid: 0 for the one that drains.
        :param what: `table` or `file`.
        """
        return self.run("-c", KILLING, str(pid), str(published), what, *INGEST)

    def apply(self) -> None:
        """Create the tables."""
        done = self.command("apply", "--auto-approve", "--apply-with", "metadata")
        assert done.returncode == ExitCode.OK, done.stderr

    def storage(self) -> Mapping[str, str]:
        """How to sign in to S3."""
        environ = {**os.environ, **self.variables}
        return storage_properties(choose_environment(open_project(self.folder), None, environ))

    def log(self) -> StoragePath:
        """The folder of the log."""
        found = open_path(LOG, self.storage())
        assert isinstance(found, StoragePath)
        return found

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        with open_tables(open_project(self.folder), None) as session:
            found: list[dict[str, Any]] = query_table(session, name).to_pylist()
            return found

    def counts(self, name: str) -> Counter[int]:
        """How often a table has each number."""
        return Counter(int.from_bytes(row["span_id"], "big") - 1 for row in self.rows(name))
