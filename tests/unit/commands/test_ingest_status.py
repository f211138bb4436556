"""`ingest status`: what waits, what is drained and what has a problem, without Spark and the catalog."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icemigrate.cli import main
from icemigrate.commands.ingest_status import ingest_status
from icemigrate.errors import ExitCode
from icemigrate.pipeline import drained_totals
from icemigrate.pipeline import waiting_entries as waiting
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.collected_segments import collect
from icemigrate.pipeline.drained_totals import DrainedTotals, read_totals, record_totals
from icemigrate.project.telemetry_sources import FileSource, parse_source
from icemigrate.render.ingest_status_text import ingest_status_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.log_folder import read_segment
from tests.support.log_streams import LATER, TENANTS, LogStream, count_steps, payload, write_log

SECOND = 10**9


def test_entries_of_open_and_sealed_segments_wait(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.append("acme", EntryKind.LOGS, b"{}", time_ns=5 * SECOND)
        writer.append("acme", EntryKind.LOGS, b"{}", time_ns=3 * SECOND)
        writer.flush()
        writer.append("acme", EntryKind.TRACES, b"{}", time_ns=90 * SECOND)
        status = ingest_status(tmp_path, None, 63 * SECOND)
    assert [(one.kind, one.waiting, one.oldest_age_s, one.ingested) for one in status.tenants] == [
        ("logs", 2, 60, 0),
        ("traces", 1, 0, 0),  # an entry from the future
    ]
    assert (status.waiting, status.oldest_age_s, status.batches) == (3, 60, 0)


def test_damaged_bytes_and_half_an_entry(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.append("acme", EntryKind.LOGS, b"{}", time_ns=1)
        writer.append("acme", EntryKind.LOGS, b"{}", time_ns=1)
        (path,) = tmp_path.glob("*.open")
        content = bytearray(path.read_bytes())
        content[content.index(b"{}")] ^= 1
        path.write_bytes(content[:-1])
        status = ingest_status(tmp_path, None, 1)
        # The first is damaged; the second is being written.
        assert [(one.tenant, one.waiting, one.oldest_age_s) for one in status.tenants] == [(None, 1, None)]


def test_a_tenant_with_a_problem(tmp_path: Path) -> None:
    stream = write_log(tmp_path)
    stream.retention_s = 2 * LATER
    stream.run()
    status = ingest_status(stream.log, None, LATER * SECOND)
    assert (status.batches, status.ingested, status.quarantined, status.drained_segments) == (4, 6, 2, 4)
    text = ingest_status_text(status, PLAIN_STYLE)
    assert re.search(r"deferred  initech, logs: there is no table \(4 batches, for .*\)\n", text)
    (failed,) = (one for one in status.tenants if one.problem)
    assert (failed.failures, failed.problem_age_s) == (4, LATER - 1_700_000_010)
    assert "4 entries wait, the oldest one for" in text
    assert text.splitlines()[-1].partition("; ")[2].startswith("6 ingested, 2 quarantined in 4 batches")
    stream.tables["initech"] = {}
    stream.run()
    assert "deferred" not in ingest_status_text(ingest_status(stream.log, None, LATER), PLAIN_STYLE)


def test_entries_of_a_batch_that_completes_meanwhile_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = write_log(tmp_path)
    stream.retention_s = 2 * LATER

    def complete_batches(path: Path) -> bytes:
        monkeypatch.undo()
        stream.run()
        return read_segment(path)

    monkeypatch.setattr(waiting, "read_segment", complete_batches)
    status = ingest_status(stream.log, None, LATER)
    assert (status.batches, status.waiting, status.ingested, status.drained_segments) == (0, 12, 0, 0)


class Beside:
    """A stream in a thread of its own, which goes on by some steps whenever a reader reads."""

    def __init__(self, stream: LogStream, steps: int) -> None:
        self._steps, self._left, self._is_ended = steps, 0, False
        self._turn = threading.Condition()
        stream.process.step = self._wait  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._run, args=[stream])
        self._thread.start()

    def _run(self, stream: LogStream) -> None:
        try:
            stream.run()
        finally:
            with self._turn:
                self._is_ended = True
                self._turn.notify_all()

    def _wait(self) -> None:
        if threading.current_thread() is not self._thread:
            return
        with self._turn:
            self._turn.wait_for(lambda: self._left > 0)
            self._left -= 1
            self._turn.notify_all()

    def go_on(self) -> None:
        """Let the stream do its next steps."""
        if threading.current_thread() is self._thread:
            return
        with self._turn:
            self._left = self._steps
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._is_ended or self._left == 0)

    def end(self) -> None:
        """Let the stream do all steps."""
        while self._thread.is_alive():
            self._steps = 10**6
            with self._turn:
                self._left = self._steps
                self._turn.notify_all()
            self._thread.join(0.01)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13, 21, 34, 55])
@pytest.mark.parametrize("retention_s", [0, 2 * LATER])
def test_beside_a_stream_each_entry_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, retention_s: int
) -> None:
    stream = write_log(tmp_path)
    stream.retention_s = retention_s
    if steps % 2:
        stream.run()  # entries of the third tenant are deferred, and move into the log
        with Writer(tmp_path) as writer:
            for number in range(12, 24):
                writer.append(TENANTS[number % 3], EntryKind.LOGS, payload(number))
                writer.flush()
    expected = 24 if steps % 2 else 12
    count_steps(monkeypatch, stream)
    beside = Beside(stream, steps)
    try:
        for module, name in (
            (drained_totals, "last_complete"),
            (drained_totals, "read_totals"),
            (waiting, "last_complete"),
            (waiting, "waiting_segments"),
            (waiting, "open_segments"),
            (waiting, "drained_segments"),
            (waiting, "sealed_segments"),
            (waiting, "read_segment"),
        ):
            real = getattr(module, name)

            def read(*args: Any, real: Callable[..., Any] = real) -> Any:
                beside.go_on()
                found = real(*args)
                beside.go_on()
                return found

            monkeypatch.setattr(module, name, read)
        for _ in range(40):
            status = ingest_status(tmp_path, None, LATER)
            assert status.waiting + status.ingested + status.quarantined == expected
    finally:
        beside.end()


def test_rates_are_of_the_last_minutes(tmp_path: Path) -> None:
    totals = DrainedTotals()
    for number, began_s in enumerate((1000, 1100, 1290, 1310, 1350, 9000)):
        done = [TableBatch("t", "acme", "logs", 60, 120)]
        record_totals(tmp_path, number, done, began_s, began_s + 10)
        found = read_totals(tmp_path, number)
        assert found is not None
        totals = found
        (acme,) = totals.tenants
        entries = {1000: 60, 1100: 120, 1290: 180, 1310: 240, 1350: 300, 9000: 60}[began_s]
        since_s = {9000: 9000}.get(began_s, 1000)
        assert totals.rate(acme.recent + acme.before, began_s + 20) == entries / (began_s + 20 - since_s)
    assert totals.recent_rows == 120
    # Without batches, the rate goes down.
    assert totals.rate(60, 9600) == 0.1


def test_of_many_tenants_the_text_shows_those_that_wait(tmp_path: Path) -> None:
    stream = LogStream(tmp_path)
    tables = [TableBatch("t", f"t{number}", "logs", 1, 1) for number in range(1000)]
    (stream.checkpoint / "commits").mkdir(parents=True)
    (stream.checkpoint / "offsets").mkdir()
    (stream.checkpoint / "sources/0").mkdir(parents=True)
    (stream.checkpoint / "commits/0").touch()
    (stream.checkpoint / "offsets/0").write_text('v1\n{}\n{"logOffset":0}', encoding="utf-8")
    record_totals(stream.checkpoint, 0, tables, 1.0, 2.0)
    with Writer(tmp_path) as writer:
        writer.append("t7", EntryKind.LOGS, b"{}", time_ns=1)
    lines = ingest_status_text(ingest_status(tmp_path, None, 1), PLAIN_STYLE).splitlines()
    assert lines[1:3] == [
        "t7      logs  1        0.0 s   1         1.0/s  0",
        "and 999 more, which `--format json` lists",
    ]
    assert lines[-1] == "1 entry waits, the oldest one for 0.0 s; 1,000 ingested in 1 batch, 1,000 rows/s."


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path)
    assert main(["ingest", "status", str(tmp_path), "--format", "json"]) == ExitCode.OK
    status = json.loads(capsys.readouterr().out)
    assert (status["waiting"], status["ingested"]) == (12, 0)
    assert main(["ingest", "status", str(tmp_path / "no")]) == ExitCode.ERROR
    assert "cannot be read: no such file or directory" in capsys.readouterr().err


def test_a_folder_with_other_files_is_no_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: otel\n", encoding="utf-8")
    folder = tmp_path / "docs"
    (folder / "lost+found").mkdir(parents=True)
    (folder / ".hidden").touch()
    assert main(["ingest", "status", "docs"]) == ExitCode.OK, "a new volume"
    (folder / "notes.txt").touch()
    for command in (["ingest", "status", "docs"], ["ingest", "docs", "--table", "logs=otel.${tenant}_logs"]):
        capsys.readouterr()
        assert main(command) == ExitCode.ERROR
        assert capsys.readouterr().err == (
            f"error: the folder {folder} is no log: it has other files, such as `notes.txt`, and no "
            "segments\n"
            "    give the folder to which `icemigrate.wal.Writer` writes\n"
        )
    assert {path.name for path in folder.iterdir()} == {"lost+found", ".hidden", "notes.txt"}
    (folder / "deferred").mkdir()
    assert main(["ingest", "status", "docs"]) == ExitCode.OK


def test_files_of_the_collector_that_have_more_than_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text(
        "project: otel\npipeline: {log: log, from: ['file:otel/*/logs.json']}\n", encoding="utf-8"
    )
    sources = (parse_source("file:otel/*/logs.json", tmp_path),)
    path = tmp_path / "otel" / "acme" / "logs.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"resourceLogs": []}\n' * 3, encoding="utf-8")
    os.utime(path, ns=(0, 40 * SECOND))

    def unread() -> list[tuple[str, str | None, int, float]]:
        found = ingest_status(tmp_path / "log", None, 100 * SECOND, (), sources).unread_files
        return [(one.path, one.tenant, one.unread_bytes, one.written_age_s) for one in found]

    (tmp_path / "log").mkdir()
    assert unread() == [(str(path), "acme", 63, 60)]
    assert isinstance(sources[0], FileSource)
    collect((sources[0],), tmp_path / "log")
    assert unread() == []
    with path.open("a", encoding="utf-8") as file:
        file.write('{"resou')
    os.utime(path, ns=(0, 99 * SECOND))
    assert unread() == [(str(path), "acme", 7, 1)]
    assert main(["ingest", "status"]) == ExitCode.OK
    assert f"unread    {path} of acme: 7 B, written " in capsys.readouterr().out
    assert main(["ingest", "status", "--format", "json", "--from", "file:otel/*/none.json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["unread_files"] == []
