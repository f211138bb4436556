"""Spark's daemon of Python workers, started by Spark on this machine, that ``SIGTERM`` does not end.

A stop of a service sends the signal to all of its processes, by default, and the command completes its batch
then, for which it needs the workers.  The daemon ends when the JVM closes its standard input.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Run PySpark's daemon, in which it and its workers set no handler of ``SIGTERM``."""
    from pyspark import daemon

    set_handler: Callable[[int, Any], Any] = signal.signal

    def keep_ignored(number: int, handler: Any) -> Any:
        return set_handler(number, signal.SIG_IGN if number == signal.SIGTERM else handler)

    signal.signal = keep_ignored  # type: ignore[assignment]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
