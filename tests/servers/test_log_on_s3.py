"""A log, its checkpoint and its tables on S3: killed servers and processes lose and repeat nothing."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.log_folder import LogError, read_segment, sealed_segments
from icemigrate.wal.log_lock import lock_log
from icemigrate.wal.storage_path import StoragePath
from tests.servers.conftest import ACCESS_KEY, SECRET_KEY
from tests.servers.pipelines import INGEST, LOG, PipelineProject, spans
from tests.servers.seaweedfs import create_bucket, seaweedfs_at, seaweedfs_ports


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
        project = PipelineProject(tmp_path / "project", server, "5s", log=LOG)
        for name, value in project.variables.items():
            monkeypatch.setenv(name, value)
        project.apply()
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
