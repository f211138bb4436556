"""Names of files in the folder of a log, errors of its segments, and signals, in runs of whole processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from icemigrate.wal import EntryKind, Writer
from tests.spark.test_ingest import ROOT, SPANS, TRACES, counts, run, spans
from tests.spark.test_ingest_operation import service
from tests.support.table_project import TableProject

NAMES = ("a[1]", "*", "?", "{a,b}", "[", "b\\c", "x:y", "c d%20e", "#", "[0-9]*", "\\")
"""Names that are patterns, or that a URL writes in another way."""


def write_as(log: Path, name: str, number: int) -> None:
    """A sealed segment of one entry, whose file gets a name while a run lists the folder."""
    folder = log.with_name("elsewhere")
    with Writer(folder) as writer:
        writer.append("acme", EntryKind.TRACES, spans(number))
    (path,) = folder.glob("*.wal")
    path.rename(log / f"{name}.wal")


def test_names_of_segments_are_taken_literally(tmp_path: Path) -> None:
    project = TableProject.create(tmp_path, (SPANS % "acme").replace("start_time", "begin_time"))
    log = tmp_path / "log"
    with Writer(log) as writer:
        writer.append("acme", EntryKind.TRACES, spans(0))
    command = [str(log), "--table", TRACES, "--quarantine", "otel.quarantine", "--continuous", "1s"]
    with service(project, *command, "--log-format", "json") as running:
        unfilled = running.wait_for("unfilled_columns")
        assert (unfilled["level"], unfilled["columns"]) == ("warning", "begin_time")
        running.wait_for_entries(1)
        for number, name in enumerate(NAMES, 1):
            write_as(log, name, number)
        running.wait_for_entries(len(NAMES))
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(300) == ExitCode.OK
        running.read_all()
    assert not [event for event in running.events if event["level"] == "error"]
    assert counts(project, "otel.acme_traces") == Counter(range(len(NAMES) + 1))


BROKEN_DISK = """
import errno, os, pathlib, sys
real = pathlib.Path.read_bytes
def read_bytes(path):
    if path.suffix == ".wal":
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return real(path)
if "icemigrate.spark.worker_daemon" in sys.orig_argv:
    pathlib.Path.read_bytes = read_bytes
"""
"""Python imports it in the processes of tasks, which then cannot read segments."""


def test_an_error_of_a_task_is_the_error_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = TableProject.create(tmp_path, SPANS % "acme")
    log = tmp_path / "log"
    with Writer(log) as writer:
        writer.append("acme", EntryKind.TRACES, spans(0))
    (path,) = log.glob("*.wal")
    (tmp_path / "sitecustomize.py").write_text(BROKEN_DISK, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = ["ingest", str(log), "--table", TRACES, "--quarantine", "otel.quarantine", "--quiet"]
    failed = run(project, "-m", "icemigrate.cli", *words)
    assert (failed.returncode, failed.stdout) == (ExitCode.ERROR, "")
    assert failed.stderr == (
        f"error: the segment {path} cannot be read: input/output error\n"
        "    run the command as a user who can read the log\n"
    )
    # The batch has begun, and is repeated; Spark leaves out a segment that is gone meanwhile.
    path.rename(tmp_path / path.name)
    failed = run(project, "-m", "icemigrate.cli", *words)
    assert (failed.returncode, failed.stdout) == (ExitCode.ERROR, "")
    assert failed.stderr == (
        f"error: the segment {path} is missing or empty\n"
        "    restore the segment: the next run repeats its batch\n"
    )
    monkeypatch.delenv("PYTHONPATH")
    (tmp_path / path.name).rename(path)
    assert project.run(*words) == ExitCode.OK
    assert counts(project, "otel.acme_traces") == Counter([0])


def test_a_signal_while_spark_starts_ends_the_command(tmp_path: Path) -> None:
    project = TableProject.create(tmp_path, SPANS % "acme")
    with Writer(tmp_path / "log") as writer:
        writer.append("acme", EntryKind.TRACES, spans(0))
    command = ["ingest", str(tmp_path / "log"), "--table", TRACES, "--project", str(project.folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "icemigrate.cli", *command],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "Starting Spark …\n"
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, out) == (ExitCode.TERMINATED, "")
    assert errors == (
        "error: stopped by SIGTERM while Spark started\n"
        "    no batch began, and all entries stay in the log; run the command again to drain it\n"
    )
