"""However the end of Spark's JVM shows itself, it is reported as that, and never as a bug."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TypeAlias

import py4j.protocol
import pyspark
import pytest

from icemigrate.errors import EngineError
from icemigrate.spark.java_errors import (
    convert_java_errors,
    convert_jvm_exit_errors,
    jvm_exit_error,
    to_engine_error,
)
from icemigrate.wal.log_folder import LogError

Process: TypeAlias = "subprocess.Popen[bytes]"
SHOWN = [
    py4j.protocol.Py4JNetworkError("Answer from Java side is empty"),
    py4j.protocol.Py4JError("An error occurred while calling o25.sql"),
    ConnectionRefusedError(111, "Connection refused"),
    ConnectionResetError(104, "Connection reset by peer"),
    BrokenPipeError(32, "Broken pipe"),
    TypeError("'JavaPackage' object is not callable"),
    AttributeError("'NoneType' object has no attribute 'sc'"),
    AssertionError(),
    ValueError("not enough values to unpack"),
    EOFError(),
]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """What passes for the JVM."""
    made = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr(pyspark.SparkContext, "_gateway", SimpleNamespace(proc=made))
    yield made
    made.kill()
    made.wait()


@pytest.mark.parametrize("error", SHOWN, ids=lambda e: type(e).__name__)
def test_what_the_end_of_the_jvm_leads_to_is_reported_as_its_end(process: Process, error: Exception) -> None:
    process.kill()
    process.wait()
    for block in (convert_java_errors, convert_jvm_exit_errors):
        with pytest.raises(EngineError, match="Spark's JVM exited"), block():
            raise error


def test_a_call_that_gets_no_answer_waits_until_the_process_has_ended(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()  # it is about to end
    fault = jvm_exit_error(py4j.protocol.Py4JError("An error occurred while calling o25.sql"))
    assert fault is not None
    assert fault.message == "Spark's JVM exited"


@pytest.mark.parametrize("error", [TypeError("a bug"), KeyError("a bug")])
def test_a_bug_stays_a_bug_while_the_jvm_runs(process: Process, error: Exception) -> None:
    with pytest.raises(type(error)), convert_java_errors():
        raise error
    assert process.poll() is None


def test_a_spark_that_was_stopped_is_reported_as_such(process: Process) -> None:
    assert process.poll() is None
    with pytest.raises(EngineError, match="Spark stopped"), convert_jvm_exit_errors():
        raise RuntimeError("Cannot call methods on a stopped SparkContext.")


def test_a_jvm_of_another_process_is_asked_by_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = SimpleNamespace(address="127.0.0.1", port=1)
    monkeypatch.setattr(pyspark.SparkContext, "_gateway", SimpleNamespace(gateway_parameters=nowhere))
    with pytest.raises(EngineError, match="Spark's JVM exited"), convert_jvm_exit_errors():
        raise AttributeError("'NoneType' object has no attribute 'sc'")


class PythonException(Exception):
    """As PySpark names the error of a task."""


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (LogError("the segment 1.wal is missing or empty"), "the segment 1.wal is missing or empty"),
        (KeyError("payload"), "a task of Spark failed: KeyError: 'payload'"),
    ],
)
def test_an_error_in_a_task_of_spark_is_one_sentence(raised: Exception, message: str) -> None:
    try:
        raise raised
    except Exception:
        stack = traceback.format_exc()
    error = PythonException(f"An exception was thrown from the Python worker.\n{stack}\n\tat Spark.run(1)")
    found = to_engine_error(error)
    assert (found.message, found.hint) == (message, "remove the cause, and run the command again")
