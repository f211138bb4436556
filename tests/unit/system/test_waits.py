"""Waits are announced while they last."""

from __future__ import annotations

import threading
import time

import pytest

from icemigrate.system import waits
from icemigrate.system.deadline import call_with_deadline
from icemigrate.system.waits import announce_if_slow, show_waits


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


def test_blocks_that_end_at_once_start_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "_watch", waits._Watch())
    started: list[threading.Thread] = []
    original = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        started.append(thread)
        original(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with show_waits(lambda text: None):
        for _ in range(50):
            with announce_if_slow("Waiting …"):
                pass
    assert len(started) == 1


def test_a_block_that_is_due_earlier_than_others_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    is_seen = threading.Event()

    def listen(text: str) -> None:
        seen.append(text)
        is_seen.set()

    monkeypatch.setattr(waits, "_watch", waits._Watch())
    with show_waits(listen):
        monkeypatch.setattr(waits, "SLOW_S", 3600.0)
        with announce_if_slow("Waiting long …"):
            monkeypatch.setattr(waits, "SLOW_S", 0.01)
            with announce_if_slow("Waiting …"):
                assert is_seen.wait(60)
    assert seen == ["Waiting …"]
