"""``make demo``, played in the suite's Spark: it holds itself to its promises, and says what it is to say."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo import demo, stage, way_back
from tests.support.played_documents import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Path:
    """Where the demo is played; it changes the working directory, which is set back."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "market"


def test_it_goes_forward_and_back_and_forward(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {p.name: p.read_bytes() for p in (ROOT / "migrations").iterdir()}
    demo.play(folder)
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("✓")] == [
        "✓ the price is gone: the table has no such column any more",
        "✓ all 6000 prices are back, each as it was",
        "✓ the 2000 trades that came without a price are still there",
        "✓ the price is still there",
        "✓ all 2000 currencies are back, each as it was",
        "✓ and the 6000 prices have stayed",
    ]
    plan = shown.index("undo 0008  Record the currency, and drop the price")
    assert (
        plan < shown.index("+ price decimal(18,6), under its own field id 5") < shown.index("Rolled back 1")
    )
    assert "Nothing to apply: 0008 is rolled back" in shown
    assert "+ currency string, under its own field id 13" in shown
    days = re.findall(r"\|(2026-03-0\d)\|2000  \|(\d+) +\|(\S+) *\|", shown)
    assert [(day, prices) for day, prices, _ in days] == 2 * [
        ("2026-03-02", "2000"),
        ("2026-03-03", "2000"),
        ("2026-03-04", "2000"),
        ("2026-03-05", "0"),
    ]
    assert [currencies for *_, currencies in days[4:]] == ["0", "0", "0", "2000"]
    assert len(shown.splitlines()) < 150, "it is read in a few minutes"
    assert {p.name: p.read_bytes() for p in (ROOT / "migrations").iterdir()} == files


def test_it_fails_where_a_promise_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(day: datetime, count: int) -> None:
        stage.load_trades(day, count - 1)

    monkeypatch.setattr(demo, "_begin", _begin_small)
    monkeypatch.setattr(way_back, "load_trades", lose)
    assert demo.main(folder) == "✗ the 2000 trades that came without a price are still there"


def _begin_small() -> None:
    stage.icemigrate("apply", "--auto-approve")
    stage.load_trades(datetime(2026, 3, 4), 10)


def test_it_ends_with_the_code_of_a_command_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        stage.icemigrate("plan", "--nowhere")
    assert ended.value.code == 64
