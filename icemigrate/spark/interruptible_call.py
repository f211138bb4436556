"""A call to Spark that Ctrl-C and ``SIGTERM`` end, and not only the wait for it.

Spark would go on writing after an exception in Python, and its files would stay.  So its jobs are cancelled,
and the call is awaited: Iceberg deletes the files of a rewrite or a write whose jobs fail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from icemigrate.errors import Stopped
from icemigrate.spark.job_progress import job_activity
from icemigrate.system.activity import activity

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
_LONGEST_WAIT_S = 30.0
_CANCEL_INTERVAL_S = 0.5


def call_interruptibly(context: SparkContext, what: str, call: Callable[[], T]) -> T:
    """The result of a call, with the progress of its jobs; a commit that has begun is completed.

    Python calls the handlers of signals in the main thread only, so the call runs in another one.

    :param what: shown meanwhile, such as ``Rewriting data files of a.b``.
    :param call: changes a table in one commit.
    :raises KeyboardInterrupt: Ctrl-C ended the call; the table is as it was.
    :raises Stopped: ``SIGTERM`` did.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    results, failures = list[T](), list[BaseException]()
    # An exception in `Thread.join()` makes a thread seem to have ended.
    ended = threading.Event()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # raised again in the main thread
            failures.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=run, name="icemigrate-spark-call", daemon=True)
    try:
        with job_activity(context, what):
            thread.start()
            ended.wait()
    except (KeyboardInterrupt, Stopped):
        _cancel(context, ended)
        if not results:
            raise
    if failures:
        raise failures[0]
    return results[0]


def _cancel(context: SparkContext, ended: threading.Event) -> None:
    """Cancel all jobs, also those that begin later, until the call has ended.

    A second Ctrl-C ends the wait.
    """
    end = time.monotonic() + _LONGEST_WAIT_S
    with activity("Waiting until Spark has deleted the files that it wrote"):
        while not ended.is_set() and time.monotonic() < end:
            with suppress(Exception):  # the JVM may have ended
                context.cancelAllJobs()
            ended.wait(_CANCEL_INTERVAL_S)
