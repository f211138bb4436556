"""Ctrl-C and SIGTERM at every step end in one message, the lock given back and nothing half done."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from icemigrate.errors import ExitCode
from tests.crash.client import Blow
from tests.crash.stage import Copies, Stage
from tests.crash.walking import At

_CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_anything_is_done(copies: Copies, number: signal.Signals) -> None:
    stage = copies("project")
    end = stage.world.hit("apply", blow=Blow(0, number))
    assert end.code == _CODES[number], end
    assert "Traceback" not in end.err
    assert end.err.splitlines()[-1] in ("Interrupted.", "error: stopped by SIGTERM")
    assert stage.world.rows() == stage.pending


def test_a_signal_on_the_way_of_an_apply(walk: Callable[[At], int]) -> None:
    def at(stage: Stage, number: int) -> bool:
        world, sent = stage.world, (signal.SIGINT, signal.SIGTERM)[number % 2]
        world.restore(stage.pending)
        end = world.hit("apply", blow=Blow(number, sent))
        assert stage.is_at_rest, end
        if end.code == 0:
            stage.is_done()
            return False
        assert end.code == _CODES[sent], end
        assert end.is_one_message, end
        assert world.facts(trash=False) == stage.before, end
        assert world.standings() == {"0001": "applied"}
        return True

    assert walk(at) >= 6
