"""`ingest status`: what waits, what is drained and what has a problem, without Spark and the catalog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.ingest_status import ingest_status
from icemigrate.errors import ExitCode
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.drained_totals import TenantTotals, read_totals, record_totals
from icemigrate.render.ingest_status_text import ingest_status_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.wal import EntryKind, Writer
from tests.support.log_streams import LATER, LogStream, write_log

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
    assert "deferred  initech, logs: there is no table\n" in text
    assert "4 entries wait, the oldest one for" in text
    assert text.endswith("6 ingested, 2 quarantined in 4 batches.\n")
    stream.tables["initech"] = {}
    stream.run()
    assert "deferred" not in ingest_status_text(ingest_status(stream.log, None, LATER), PLAIN_STYLE)


def test_entries_of_a_batch_that_completes_meanwhile_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = write_log(tmp_path)
    stream.retention_s = 2 * LATER

    def complete_batches(checkpoint: Path, number: int) -> tuple[TenantTotals, ...]:
        found = read_totals(checkpoint, number)
        stream.run()
        return found

    monkeypatch.setattr("icemigrate.commands.ingest_status.read_totals", complete_batches)
    status = ingest_status(stream.log, None, LATER)
    assert (status.batches, status.waiting, status.ingested, status.drained_segments) == (0, 12, 0, 0)


def test_of_many_tenants_the_text_shows_those_that_wait(tmp_path: Path) -> None:
    stream = LogStream(tmp_path)
    tables = [TableBatch("t", f"t{number}", "logs", 1, 1) for number in range(1000)]
    (stream.checkpoint / "commits").mkdir(parents=True)
    (stream.checkpoint / "offsets").mkdir()
    (stream.checkpoint / "sources/0").mkdir(parents=True)
    (stream.checkpoint / "commits/0").touch()
    (stream.checkpoint / "offsets/0").write_text('v1\n{}\n{"logOffset":0}', encoding="utf-8")
    record_totals(stream.checkpoint, 0, tables)
    with Writer(tmp_path) as writer:
        writer.append("t7", EntryKind.LOGS, b"{}", time_ns=1)
    lines = ingest_status_text(ingest_status(tmp_path, None, 1), PLAIN_STYLE).splitlines()
    assert lines[1:3] == [
        "t7      logs  1        0.0 s   1         0",
        "and 999 more, which `--format json` lists",
    ]
    assert lines[-1] == "1 entry waits, the oldest one for 0.0 s; 1,000 ingested in 1 batch."


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path)
    assert main(["ingest", "status", str(tmp_path), "--format", "json"]) == ExitCode.OK
    status = json.loads(capsys.readouterr().out)
    assert (status["waiting"], status["ingested"]) == (12, 0)
    assert main(["ingest", "status", str(tmp_path / "no")]) == ExitCode.ERROR
    assert "cannot be read: no such file or directory" in capsys.readouterr().err
