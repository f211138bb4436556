"""A checkpoint elsewhere than its log: both ways work, and one is not taken for the other."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.log_folder import sealed_segments
from tests.servers.conftest import ACCESS_KEY, SECRET_KEY
from tests.servers.lake import rest_kind
from tests.servers.pipelines import INGEST, LOG, PipelineProject, spans
from tests.servers.seaweedfs import SeaweedFS, create_bucket, seaweedfs

CHECKPOINT = "s3://telemetry/progress"
ENTRIES = 40


def write_entries(project: PipelineProject, folder: Path, first: int, *, is_remote: bool) -> None:
    """Append entries of two tenants to a log, in several segments."""
    options = {"spool": folder / "spool", "storage": project.storage()} if is_remote else {}
    log = LOG if is_remote else folder / "log"
    with Writer(log, segment_bytes=1200, **options) as writer:  # type: ignore[arg-type]
        for number in range(first, first + ENTRIES):
            writer.append(("acme", "globex")[number % 2], EntryKind.TRACES, spans(number))


def check_place(folder: Path, server: SeaweedFS, *, log_is_remote: bool) -> PipelineProject:
    """Kill a run, and let another one go on, also with new entries."""
    log = LOG if log_is_remote else "log"
    checkpoint = "progress" if log_is_remote else CHECKPOINT
    project = PipelineProject(folder / "project", server, log=log, checkpoint=checkpoint)
    project.apply()
    base = project.folder
    write_entries(project, base, 0, is_remote=log_is_remote)
    killed = project.ingest_and_kill(0, 3)  # of the second batch, after one of two tables
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    waiting = json.loads(project.command("ingest", "status", "--format", "json").stdout)
    assert 0 < waiting["waiting"] <= ENTRIES
    write_entries(project, base, ENTRIES, is_remote=log_is_remote)
    done = project.command(*INGEST)
    assert done.returncode == ExitCode.OK, done.stderr
    for number, name in enumerate(("acme", "globex")):
        assert project.counts(f"otel.{name}_traces") == Counter(range(number, 2 * ENTRIES, 2))
    status = json.loads(project.command("ingest", "status", "--format", "json").stdout)
    assert (status["waiting"], status["ingested"]) == (0, 2 * ENTRIES)
    assert not sealed_segments(project.log() if log_is_remote else base / "log")
    return project


def check_refusal(project: PipelineProject, log: str, checkpoint: str, problem: str) -> None:
    """A checkpoint of the other kind of log is refused, and nothing is drained."""
    for command in ("ingest", "ingest status"):
        refused = project.command(*command.split(), log, "--checkpoint", checkpoint)
        assert refused.returncode == ExitCode.USAGE, refused.stderr
        assert f"the checkpoint {checkpoint} is of {problem}" in refused.stderr
        assert "give another folder with `--checkpoint`" in refused.stderr


@pytest.mark.parametrize("log_is_remote", [False, True])
def test_a_checkpoint_elsewhere_than_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, log_is_remote: bool
) -> None:
    with seaweedfs(ACCESS_KEY, SECRET_KEY) as server:
        create_bucket(server, "telemetry")
        for name, value in rest_kind(server).variables.items():
            monkeypatch.setenv(name, value)
        project = check_place(tmp_path, server, log_is_remote=log_is_remote)
        folder = project.folder
        if log_is_remote:
            write_entries(project, folder, 100, is_remote=False)
            progress, log = str(folder / "progress"), str(folder / "log")
            check_refusal(
                project, log, progress, f"a log on a storage, and the log {log} is in a local folder"
            )
            assert len(sealed_segments(folder / "log")) > 1
        else:
            write_entries(project, folder, 100, is_remote=True)
            problem = f"a local log, and the log {LOG} is on a storage"
            check_refusal(project, LOG, CHECKPOINT, problem)
            assert len(sealed_segments(project.log())) > 1
