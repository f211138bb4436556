"""Types of option values: numbers, and words of a list.  A message says which value to write instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from icemigrate.diagnostics import did_you_mean

if TYPE_CHECKING:
    _Choice: TypeAlias = click.Choice[str]
    _ParamType: TypeAlias = click.ParamType[Any]
else:
    # Older releases of Click have no parameter here.
    _Choice, _ParamType = click.Choice, click.ParamType

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_LONGEST = 40
"""How many characters a number has at most, and how many of a value a message shows."""


class WholeNumber(_ParamType):
    """A whole number on the command line.

    :param minimum: the smallest one; ``None`` for no limit.
    :param maximum: the largest one; ``None`` for no limit.
    :param example: what to write, such as ``10``.
    """

    name = "number"

    def __init__(self, minimum: int | None = None, maximum: int | None = None, *, example: str) -> None:
        self._minimum, self._maximum, self._example = minimum, maximum, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or wrong usage."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        advice = f"write {self._expected()}, such as `{self._example}`"
        if not _WHOLE.fullmatch(text):
            self.fail(f"`{_shown(text)}` is not a whole number: {advice}", param, ctx)
        if len(text) > _LONGEST or not self._has(number := int(text)):
            self.fail(f"`{_shown(text)}` is out of range: {advice}", param, ctx)
        return number

    def _has(self, number: int) -> bool:
        is_low = self._minimum is not None and number < self._minimum
        return not is_low and (self._maximum is None or number <= self._maximum)

    def _expected(self) -> str:
        if self._minimum is None:
            return "a whole number"
        to = "or more" if self._maximum is None else f"to {self._maximum:,}"
        return f"a whole number, {self._minimum} {to}"


class DecimalNumber(_ParamType):
    """A number on the command line, also with a fraction; its command checks the range.

    :param example: what to write, such as ``a number of days, such as `7```.
    """

    name = "number"

    def __init__(self, example: str) -> None:
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or wrong usage."""
        if isinstance(value, (int, float)):
            return value
        text = str(value).strip()
        if len(text) > _LONGEST or not _DECIMAL.fullmatch(text):
            self.fail(f"`{_shown(text)}` is not a decimal number: write {self._example}", param, ctx)
        return float(text)


class OneOf(_Choice):
    """One word of a list on the command line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word, or wrong usage."""
        word, words = str(value), tuple(map(str, self.choices))
        if word not in words:
            hint = did_you_mean(word, words) or f"write one of {', '.join(f'`{one}`' for one in words)}"
            self.fail(f"`{_shown(word)}` is unknown: {hint}", param, ctx)
        return word


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
