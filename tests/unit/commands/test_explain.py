from __future__ import annotations

import pytest

from icemigrate.errors import EngineError
from icemigrate.spark.java_errors import (
    JavaCause,
    cause_chain,
    is_commit_conflict,
    start_failure,
    to_engine_error,
)


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", None),
        ("26/11/27 WARN Utils: Your hostname resolves to a loopback address\n", None),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Could not parse it\n\tat x\n',
            "Could not parse it",
        ),
        ("Error: Unable to initialize main class\n", "Error: Unable to initialize main class"),
        ("class: line 71: /j/java: Permission denied\n", "class: line 71: /j/java: Permission denied"),
        ("26/11/27 23:51:06 ERROR SparkContext: Cannot bind\n", "Cannot bind"),
    ],
)
def test_why_spark_did_not_start(output: str, why: str | None) -> None:
    assert start_failure(output) == why


def test_a_python_error_is_its_own_only_cause() -> None:
    assert cause_chain(ValueError("no")) == (JavaCause("builtins.ValueError", "no"),)
    assert to_engine_error(ValueError("no\nsecond line")).message == "no"
    assert to_engine_error(ValueError()).message == "builtins.ValueError"
    assert not is_commit_conflict(ValueError("no"))


@pytest.mark.parametrize(
    "message",
    [
        "can't add snapshot with sequence number 3, must be > than last sequence number 3",
        "Cannot add snapshot with sequence number 2 older than last sequence number 2",
        "Invalid first-row-id: 1 is behind table next-row-id 2",
    ],
)
def test_rows_that_came_first_are_a_conflict_whatever_a_server_calls_them(message: str) -> None:
    assert is_commit_conflict(ValueError(f"Malformed request: {message}"))


def test_what_is_explained_already_stays_as_it_is() -> None:
    error = EngineError("said", "do this")
    assert to_engine_error(error) is error
