"""Signals that come while Spark's session is made."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from icemigrate.errors import Terminated
from icemigrate.spark.gateway import defer_signals


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """As they are while a command runs."""

    def end(*_: object) -> None:
        raise Terminated("asked to end")

    before = [
        (number, signal.signal(number, handler))
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, end))
    ]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_is_delivered_behind_the_block(number: signal.Signals, raised: type[BaseException]) -> None:
    told: list[str] = []

    def making() -> None:
        with defer_signals(lambda: told.append("asked to end")):
            signal.raise_signal(number)
            told.append("gone on with")

    with pytest.raises(raised):
        making()
    assert told == ["asked to end", "gone on with"]


def test_it_counts_more_than_the_error_that_came_of_it() -> None:
    def making() -> None:
        with defer_signals(lambda: None):
            signal.raise_signal(signal.SIGINT)
            raise OSError("the JVM has ended")

    with pytest.raises(KeyboardInterrupt):
        making()


def test_a_handler_that_is_set_within_is_set_aside() -> None:
    def theirs(*_: object) -> None:
        raise AssertionError("it would call the JVM")

    def making() -> None:
        with defer_signals(lambda: None) as held:
            signal.signal(signal.SIGINT, theirs)
            held.hold()
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        making()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with defer_signals(lambda: pytest.fail("nobody asked")):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_errors_pass_where_nothing_was_heard_and_other_threads_hold_nothing() -> None:
    with pytest.raises(OSError, match="full"), defer_signals(lambda: None):
        raise OSError("full")
    held = []

    def elsewhere() -> None:
        with defer_signals(lambda: None) as here:
            held.append(here.handlers)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert held == [{}]
