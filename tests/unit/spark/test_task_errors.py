"""Errors of tasks, as Spark passes on their texts."""

from __future__ import annotations

import traceback

import pytest

from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import CheckFailed, EngineError, IcemigrateError, MissingExtra, Mistakes
from icemigrate.spark.task_errors import TaskError, carried_error, carry_errors
from icemigrate.wal.log_folder import LogError


@pytest.mark.parametrize(
    "error",
    [
        LogError("the segment /a\nb/ä.wal}:x is missing", "restore the segment"),
        MissingExtra('no "package"', None),
        IcemigrateError("{}", "hint"),
    ],
)
def test_the_driver_gets_the_error_of_a_task(error: IcemigrateError) -> None:
    with pytest.raises(TaskError) as raised, carry_errors():
        raise error
    shown = "".join(traceback.format_exception(raised.value))
    found = carried_error(f"org.apache.spark.SparkException: Job aborted:\n{shown}\n\tat Java")
    assert (type(found), found and found.message, found and found.hint) == (
        type(error),
        error.message,
        error.hint,
    )


@pytest.mark.parametrize(
    ("error", "class_", "message"),
    [
        (
            Mistakes((Diagnostic("bad-row", "x"),), "1 row does not fit"),
            IcemigrateError,
            "1 row does not fit",
        ),
        (CheckFailed("the check failed"), EngineError, "the check failed"),
    ],
)
def test_an_error_with_other_arguments_is_of_a_base_class(
    error: IcemigrateError, class_: type[IcemigrateError], message: str
) -> None:
    with pytest.raises(TaskError) as raised, carry_errors():
        raise error
    found = carried_error(str(raised.value))
    assert (type(found), found and found.message, found and found.hint) == (class_, message, error.hint)


def test_other_texts_carry_none() -> None:
    for text in ("", "ValueError: x", "icemigrate-error{}icemigrate-error", "icemigrate-error{x}"):
        assert carried_error(text) is None
    with pytest.raises(ValueError, match="a bug"), carry_errors():
        raise ValueError("a bug")
