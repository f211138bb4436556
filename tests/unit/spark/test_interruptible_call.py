"""Ctrl-C and SIGTERM during a call to Spark: its jobs are cancelled, and the call is awaited."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from icemigrate.errors import Stopped, Terminated
from icemigrate.spark.interruptible_call import call_interruptibly


class Jobs:
    """A Spark whose jobs run until they are cancelled."""

    def __init__(self) -> None:
        self.started, self.cancelled, self.cleaned_up = threading.Event(), threading.Event(), False

    def cancelAllJobs(self) -> None:  # noqa: N802 (PySpark's name)
        self.cancelled.set()

    def fail(self) -> str:
        self.started.set()
        self.cancelled.wait()
        self.cleaned_up = True
        raise RuntimeError("a job was cancelled")

    def complete(self) -> str:
        self.started.set()
        self.cancelled.wait()
        return "committed"


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    def end(_number: int, _frame: FrameType | None) -> None:
        raise Terminated("stopped by SIGTERM")

    before = signal.signal(signal.SIGTERM, end), signal.signal(signal.SIGINT, signal.default_int_handler)
    found = Jobs()
    yield found
    signal.signal(signal.SIGTERM, before[0])
    signal.signal(signal.SIGINT, before[1])


def _sends(jobs: Jobs, number: signal.Signals) -> None:
    def send() -> None:
        jobs.started.wait()
        # Python drops the exception of a signal that arrives while a callback of the garbage collector runs.
        while not jobs.cancelled.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, number)
            jobs.cancelled.wait(5)

    threading.Thread(target=send, daemon=True).start()


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_cancels_the_jobs_and_waits_for_the_call(
    jobs: Any, number: signal.Signals, error: type[BaseException]
) -> None:
    _sends(jobs, number)
    with pytest.raises(error):
        call_interruptibly(jobs, "Rewriting", jobs.fail)
    assert jobs.cleaned_up


def test_a_commit_that_has_begun_is_completed(jobs: Any) -> None:
    _sends(jobs, signal.SIGINT)
    assert call_interruptibly(jobs, "Rewriting", jobs.complete) == "committed"


def test_an_error_of_the_call_is_raised_as_it_is(jobs: Any) -> None:
    def fails() -> None:
        raise Stopped("from Spark")

    with pytest.raises(Stopped, match="from Spark"):
        call_interruptibly(jobs, "Rewriting", fails)
    assert not jobs.cancelled.is_set()
