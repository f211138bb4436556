"""Waits are announced while they last."""

from __future__ import annotations

import time

import pytest

from icemigrate.system import waits
from icemigrate.system.deadline import call_with_deadline
from icemigrate.system.waits import show_waits


def test_a_slow_answer_is_announced_once_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "SLOW_S", 0.02)
    seen: list[str] = []
    with show_waits(seen.append):
        for _ in range(2):
            call_with_deadline(30, lambda: time.sleep(0.2))
        call_with_deadline(30, lambda: None)
    assert seen == ["Waiting for an answer from the catalog, at most 30 s …"]


def test_without_a_listener_nothing_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "SLOW_S", 0.0)
    assert call_with_deadline(30, lambda: 1) == 1
