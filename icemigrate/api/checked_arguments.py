"""Arguments of the Python API that have wrong types, as errors of the project."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from datetime import date
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen

_Class = TypeVar("_Class", bound=type)


class _Kind(Frozen):
    """The values of an annotation.

    :param words: what to give, for a hint.
    """

    words: str
    accepts: Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _has_texts(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes)) and all(map(_is_text, value))


_TEXT = _Kind("a text", _is_text)
_WHOLE = _Kind("a whole number", _is_whole)
_TEXTS = _Kind("a list of texts", _has_texts)
_MAPPING = _Kind("a mapping", lambda value: isinstance(value, Mapping) and all(map(_is_text, value)))
_KINDS: Mapping[str, _Kind] = {
    "str": _TEXT,
    "int": _WHOLE,
    "float": _Kind("a number", _is_number),
    "bool": _Kind("`True` or `False`", lambda value: isinstance(value, bool)),
    "int | str": _Kind("a whole number or a text", lambda value: _is_whole(value) or _is_text(value)),
    "date | str": _Kind("a date, a time or a text", lambda value: isinstance(value, (date, str))),
    "Sequence[str]": _TEXTS,
    "str | Sequence[str]": _Kind(
        "a text or a list of texts", lambda value: _is_text(value) or _has_texts(value)
    ),
    "Iterable[str]": _Kind("a text or a list of texts", lambda value: _is_text(value) or _has_texts(value)),
    "Mapping[str, Any]": _MAPPING,
    "Mapping[str, object]": _MAPPING,
    "Mapping[str, str]": _MAPPING,
}
"""The annotations whose values are checked; `Any` and types of other libraries are not."""


def check_arguments(class_: _Class) -> _Class:
    """Make the public methods of a class check their arguments by their annotations.

    Python ignores annotations: without a check, the text ``"ab"`` would be the columns ``a`` and ``b``.
    """
    for name, method in list(vars(class_).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(class_, name, _checked(method))
    return class_


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def checked(*args: Any, **options: Any) -> Any:
        for name, value in signature.bind(*args, **options).arguments.items():
            annotation = str(signature.parameters[name].annotation)
            kind = _KINDS.get(annotation.removesuffix(" | None"))
            if kind is None or (value is None and annotation.endswith(" | None")) or kind.accepts(value):
                continue
            raise UsageError(
                f"`{method.__name__}`: `{name}` has a wrong value of type {type(value).__name__}",
                f"give {kind.words}",
            )
        return method(*args, **options)

    return checked


def given_path(value: object, name: str) -> Path:
    """The path that an argument names.

    :param name: of the argument.
    :raises UsageError: it is no path.
    """
    if not isinstance(value, (str, PathLike)) or isinstance(os.fspath(value), bytes):
        raise UsageError(f"`{name}` has a wrong value of type {type(value).__name__}", "give a path")
    if "\0" in os.fspath(value):
        raise UsageError(f"`{name}` has the character U+0000, which no path has", "give a path")
    return Path(value)
