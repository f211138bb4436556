"""Errors of our own that tasks of Spark raise, with their class and their hint.

Spark passes on the text of an exception in Python, and nothing else.  So a task writes the error into the
text, and the driver finds it there, in whichever exceptions of Java it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from icemigrate.errors import IcemigrateError

_MARK = "icemigrate-error"
_CARRIED = re.compile(rf"{_MARK}(\{{.*?\}}){_MARK}")


class TaskError(Exception):
    """An error of a task, in the form that :func:`carried_error` reads."""


@contextmanager
def carry_errors() -> Iterator[None]:
    """A block of a task whose own errors the driver raises again.

    :raises TaskError: an :class:`~icemigrate.errors.IcemigrateError` was raised.
    """
    try:
        yield
    except IcemigrateError as error:
        # In ASCII, and without line ends: Spark may show the text in one.
        parts = json.dumps({"error": type(error).__name__, "message": error.message, "hint": error.hint})
        raise TaskError(f"{_MARK}{parts}{_MARK}") from error


def carried_error(text: str) -> IcemigrateError | None:
    """The error in the text of an exception of Spark; ``None`` where it has none.

    A class that this process does not have, or whose arguments are not a message and a hint, is a base class.
    """
    if (found := _CARRIED.search(text)) is None:
        return None
    try:
        parts = json.loads(found[1])
        name, message, hint = parts["error"], parts["message"], parts["hint"]
    except (ValueError, KeyError, TypeError):
        return None
    known = next((one for one in _classes(IcemigrateError) if one.__name__ == name), IcemigrateError)
    return _with_plain_arguments(known)(message, hint)


def _with_plain_arguments(class_: type[IcemigrateError]) -> type[IcemigrateError]:
    """The nearest base class that has the constructor of all errors; `Mistakes` takes diagnostics."""
    while any("__init__" in vars(one) for one in _below_root(class_)):
        class_ = next(one for one in class_.__bases__ if issubclass(one, IcemigrateError))
    return class_


def _below_root(class_: type[IcemigrateError]) -> Sequence[type]:
    return class_.__mro__[: class_.__mro__.index(IcemigrateError)]


def _classes(base: type[IcemigrateError]) -> Iterator[type[IcemigrateError]]:
    yield base
    for one in base.__subclasses__():
        yield from _classes(one)
