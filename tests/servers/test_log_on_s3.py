"""A log, its checkpoint and its tables on S3: killed servers and processes lose and repeat nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import ExitCode
from icemigrate.project import choose_environment, open_project, storage_properties
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.table_session import open_tables
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.log_folder import LogError, read_segment, sealed_segments
from icemigrate.wal.log_lock import lock_log
from icemigrate.wal.storage_path import StoragePath, open_path
from tests.servers.conftest import ACCESS_KEY, SECRET_KEY
from tests.servers.lake import rest_kind
from tests.servers.seaweedfs import SeaweedFS, create_bucket, seaweedfs_at, seaweedfs_ports

ROOT = Path(__file__).parents[2]
LOG = "s3://telemetry/log"
INGEST = ("ingest", "--retention", "0s")
PIPELINE = """\
pipeline:
  log: s3://telemetry/log
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
from icemigrate.pipeline import iceberg_sink
real, pid, left = iceberg_sink.commit_table, int(sys.argv[1]) or os.getpid(), [int(sys.argv[2])]
def commit(*args, **options):
    if not left[0]:
        os.kill(pid, signal.SIGKILL)
    left[0] -= 1
    return real(*args, **options)
iceberg_sink.commit_table = commit
sys.exit(main(sys.argv[3:]))
"""


def spans(number: int) -> bytes:
    span = {"spanId": f"{number + 1:016x}", "startTimeUnixNano": 1}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


class PipelineProject:
    """A project whose log, checkpoint and tables are on S3."""

    def __init__(self, folder: Path, server: SeaweedFS) -> None:
        kind = rest_kind(server)
        self.folder, self.variables = folder, kind.variables
        (folder / "migrations").mkdir(parents=True)
        (folder / "migrations/0001_traces.yaml").write_text(SPANS, encoding="utf-8")
        text = kind.project_file("market", "otel.history") + PIPELINE
        (folder / "icemigrate.yaml").write_text(text.replace("credential:", "timeout: 5s\n      credential:"))

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

    def ingest_and_kill(self, pid: int, commits: int) -> subprocess.CompletedProcess[str]:
        """Drain the log, and kill a process after some commits.

        :param pid: 0 for the one that drains.
        """
        return self.run("-c", KILLING, str(pid), str(commits), *INGEST)

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


def check_storage(log: StoragePath) -> None:
    """What a log needs of a storage: whole files, lists, copies, and a lock."""
    one, two = log / "deferred" / "1.x", log / "2.x"
    one.write_bytes(b"first")
    one.write_bytes(b"x" * 9_000_000)
    one.rename(two)
    assert [(file.path, file.size) for file in log.files() if file.path == two] == [(two, 9_000_000)]
    assert not list((log / "deferred").files())
    two.unlink()
    with pytest.raises(FileNotFoundError):
        two.read_bytes()
    holders = list[int]()

    def drain() -> None:
        try:
            with lock_log(log):
                holders.append(1)
                both.wait(20)
        except LogError:
            both.set()

    both = threading.Event()
    threads = [threading.Thread(target=drain) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(holders) == 1


def test_each_entry_is_in_a_table_exactly_once_after_kills_of_the_server_and_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ports, spool = tmp_path / "server", seaweedfs_ports(), tmp_path / "spool"
    folder.mkdir()
    with seaweedfs_at(folder, ports, ACCESS_KEY, SECRET_KEY) as server:
        project = PipelineProject(tmp_path / "project", server)
        for name, value in project.variables.items():
            monkeypatch.setenv(name, value)
        done = project.command("apply", "--auto-approve", "--apply-with", "metadata")
        assert done.returncode == ExitCode.OK, done.stderr
        with pytest.raises(LogError, match=r"cannot be created: bucket .telemetry. not found"):
            Writer(LOG, spool=spool, storage=project.storage())
        create_bucket(server, "telemetry")
        with Writer(LOG, spool=spool, storage=project.storage(), segment_bytes=1200) as writer:
            for number in range(60):
                writer.append(("acme", "globex", "initech")[number % 3], EntryKind.TRACES, spans(number))
            writer.append("acme", EntryKind.TRACES, b"nonsense")
        check_storage(project.log())

        # The server ends between two commits; its log is written all the same.
        writer = Writer(LOG, spool=spool, storage=project.storage())
        failed = project.ingest_and_kill(server.pid, 1)
        assert failed.returncode not in (ExitCode.OK, -signal.SIGKILL)
        assert "Traceback" not in failed.stderr
        writer.append("acme", EntryKind.TRACES, spans(60))
        with pytest.raises(LogError, match="cannot be written"):
            writer.close()

    with seaweedfs_at(folder, ports, ACCESS_KEY, SECRET_KEY):
        Writer(LOG, spool=spool, storage=project.storage()).close()
        # The process ends between two commits of a later batch.
        killed = project.ingest_and_kill(0, 5)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        waiting = json.loads(project.command("ingest", "status", "--format", "json").stdout)
        assert waiting["waiting"] > 20

        done = project.command(*INGEST, "--format", "json")
        assert done.returncode == ExitCode.ERROR, done.stderr
        result = json.loads(done.stdout)
        assert result["deferred"] == 20
        assert result["removed_segments"] > 1
        for name, first in (("acme", 0), ("globex", 1)):
            last = 61 if name == "acme" else 60
            assert project.counts(f"otel.{name}_traces") == Counter(range(first, last, 3))
        (bad,) = project.rows("otel.quarantine")
        assert (bad["tenant"], bad["payload"]) == ("acme", b"nonsense")
        log = project.log()
        assert sealed_segments(log) == ()
        deferred = b"".join(map(read_segment, sealed_segments(log / "deferred")))
        assert all(spans(number) in deferred for number in range(2, 60, 3))
        status = json.loads(project.command("ingest", "status", "--format", "json").stdout)
        assert (status["waiting"], status["ingested"], status["quarantined"]) == (20, 41, 1)
        assert SECRET_KEY not in failed.stderr + killed.stderr + done.stderr + done.stdout
