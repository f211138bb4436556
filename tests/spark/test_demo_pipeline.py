"""``make demo-pipeline`` with a small load: it checks itself, and its last line has the counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo import pipeline
from demo.telemetry_load import TelemetryLoad
from icemigrate.wal import EntryKind


def test_it_loses_no_entry_while_migrations_change_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    load = TelemetryLoad(requests=90, items=4, tenants=4, seed=3)
    monkeypatch.setattr(pipeline, "LOAD", load)
    assert pipeline.main(tmp_path / "otel") is None
    shown = capsys.readouterr().out.splitlines()
    *checked, last = [line for line in shown if line.startswith("✓")]
    entries = list(load.entries())
    kinds = [entry.kind.value for entry in entries]

    def logs(begin: int, end: int) -> int:
        return 4 * sum((one.tenant, one.kind) == ("tenant_3", EntryKind.LOGS) for one in entries[begin:end])

    assert checked == [
        f"✓ the {logs(30, 60)} logs since then have the number",
        "✓ the table has no column `body`",
        f"✓ all {logs(0, 60)} bodies from before are back",
        f"✓ the {logs(60, 75)} logs in between have none",
        "✓ no entry waits, and none is in quarantine",
    ]
    assert last == shown[-1]
    assert last.startswith("✓ Checked: 90 entries appended, 90 ingested; ")
    for kind in ("traces", "logs", "metrics"):
        assert f"{4 * kinds.count(kind)} rows of {kind}" in last
    assert last.endswith(" in 12 tables, none missing and none twice.")
