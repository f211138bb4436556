"""The command line with a JVM of its own, which is killed in the middle of a statement.

    python -m tests.crash.dying_jvm FOLDER STATEMENT COMMAND ...

Writes ``answered`` into the folder where the JVM answered the statement before it was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from py4j.clientserver import JavaClient

from icemigrate.cli import main

_MIDDLE_S = 0.005
"""How long after a statement is sent the JVM is killed: no statement of Spark is done by then."""


def _kill_in(statement: str) -> None:
    """Kill the JVM right after a statement with this text was sent to it."""
    send = JavaClient.send_command

    def kill() -> None:
        from pyspark import SparkContext

        time.sleep(_MIDDLE_S)
        gateway = SparkContext._gateway
        assert gateway is not None
        os.kill(gateway.proc.pid, signal.SIGKILL)

    def sending(self: Any, command: str, *args: Any, **named: Any) -> Any:
        if "\nsql\n" not in command or statement not in command:
            return send(self, command, *args, **named)
        JavaClient.send_command = send
        threading.Thread(target=kill).start()
        answer = send(self, command, *args, **named)
        Path("answered").touch()
        return answer

    JavaClient.send_command = sending


if __name__ == "__main__":
    folder, statement, *command = sys.argv[1:]
    os.chdir(folder)
    _kill_in(statement)
    sys.exit(main(command))
