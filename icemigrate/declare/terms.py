"""Partition and sort terms as text: ``day(ts) as exchange_date``, ``bucket(16, symbol) desc nulls last``.

Transforms are called as in the specification or in Spark's plural (``days``); case matters in names
only.  A column may always stand in backticks, and must where it holds a space, a comma or a bracket.
"""

from __future__ import annotations

import re
from functools import lru_cache

from icemigrate.diagnostics import did_you_mean
from icemigrate.frozen import Frozen
from icemigrate.model.names import BadName, Path, parse_path, quote_name
from icemigrate.model.partitioning import IDENTITY, TIME_TRANSFORMS, Transform
from icemigrate.model.sorting import ASC, DESC, NULLS_FIRST, NULLS_LAST, default_null_order
from icemigrate.model.terms import SortTerm, term_text

_TRANSFORMS = {name: name for name in ("identity", "bucket", "truncate", *TIME_TRANSFORMS)} | {
    name + "s": name for name in TIME_TRANSFORMS
}
_WIDE = ("bucket", "truncate")
MAX_WIDTH = 2**31 - 1
"""Of buckets or of a truncation: Iceberg keeps it in a Java int."""

_CALL = re.compile(r"\s*(\w+)\s*\(")
_NAME = re.compile(r"\s*((?:`(?:[^`]|``)+`|[^\s`(),])+)\s*")
_WIDTH = re.compile(r"\s*(\d+)\s*,")
_TURNED = re.compile(r"\s*([^\s,()]+)\s*,\s*(\d+)\s*\)")
"""A width behind its column, as some dialects have it."""
_CLOSE = re.compile(r"\s*\)\s*")
_AS = re.compile(r"as\s+(`(?:[^`]|``)+`|[^\s`]+)\s*\Z", re.IGNORECASE)
_DIRECTION = re.compile(r"(asc|desc)\b\s*", re.IGNORECASE)
_NULLS = re.compile(r"nulls\s+(first|last)\b\s*", re.IGNORECASE)


class TermSyntaxError(ValueError):
    """A text that is no term; :attr:`hint` says what to write instead, where that is known."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class PartitionTerm(Frozen):
    """One entry of ``partition_by``; ``name`` is ``None`` where it is not said."""

    source: Path
    transform: Transform
    name: str | None = None


@lru_cache(maxsize=1024)
def parse_partition(text: str) -> PartitionTerm:
    """Read a partition term.

    :raises TermSyntaxError: it is none.
    """
    source, transform, at = _transformed(text)
    rest = text[at:]
    if not rest:
        return PartitionTerm(source, transform)
    if match := _AS.fullmatch(rest):
        name = match[1]
        return PartitionTerm(
            source, transform, name[1:-1].replace("``", "`") if name.startswith("`") else name
        )
    hint = "`sort_by` is where an order is said" if _DIRECTION.match(rest) else "a name is given by `as name`"
    raise TermSyntaxError(f"unexpected `{rest}` in the partition term `{text}`", hint)


@lru_cache(maxsize=1024)
def parse_sort(text: str) -> SortTerm:
    """Read a sort term; nulls stand first when ascending and last when descending, unless it is said.

    :raises TermSyntaxError: it is none.
    """
    source, transform, at = _transformed(text)
    direction = ASC
    if match := _DIRECTION.match(text, at):
        direction, at = (DESC if match[1].lower() == "desc" else ASC), match.end()
    null_order = default_null_order(direction)
    if match := _NULLS.match(text, at):
        null_order, at = (NULLS_FIRST if match[1].lower() == "first" else NULLS_LAST), match.end()
    if text[at:]:
        raise TermSyntaxError(
            f"unexpected `{text[at:]}` in the sort term `{text}`",
            "a term is a column or a transform, then `asc` or `desc`, then `nulls first` or `nulls last`",
        )
    return SortTerm(source, transform, direction, null_order)


def format_partition(source: Path, transform: Transform, name: str | None = None) -> str:
    """The term as text; :func:`parse_partition` reads it back."""
    text = term_text(transform, source)
    return text if name is None else f"{text} as {quote_name(name)}"


def _transformed(text: str) -> tuple[Path, Transform, int]:
    """A column or a transform of one, and where the text goes on."""
    call = _CALL.match(text)
    if call is None:
        source, at = _column(text, 0)
        return source, IDENTITY, at
    name = _TRANSFORMS.get(call[1].lower())
    if name is None:
        known = did_you_mean(call[1], _TRANSFORMS)
        raise TermSyntaxError(
            f"unknown transform `{call[1]}` in `{text}`",
            known or f"there are {', '.join(_known_transforms())}",
        )
    at, width = call.end(), None
    if name in _WIDE:
        match = _WIDTH.match(text, at)
        if match is None:
            turned = _TURNED.match(text, at)
            right = f"{name}({turned[2]}, {turned[1]})" if turned else f"{name}(16, column)"
            raise TermSyntaxError(
                f"`{name}` needs its width in `{text}`", f"write `{right}`: the number first"
            )
        width, at = int(match[1][:12]), match.end()
        if not 1 <= width <= MAX_WIDTH:
            raise TermSyntaxError(f"the width in `{text}` is not between 1 and {MAX_WIDTH}")
    source, at = _column(text, at)
    close = _CLOSE.match(text, at)
    if close is None:
        more = text[at : at + 1] == ","
        hint = (
            f"`{name}` takes one column"
            if more
            else "a column with a space, comma or bracket stands in backticks"
        )
        raise TermSyntaxError(f"expected `)` in `{text}`", hint)
    return source, Transform(name, width), close.end()


def _known_transforms() -> list[str]:
    return sorted(set(_TRANSFORMS.values()))


def _column(text: str, at: int) -> tuple[Path, int]:
    match = _NAME.match(text, at)
    if match is None:
        raise TermSyntaxError(f"expected a column in `{text}`")
    try:
        return parse_path(match[1]), match.end()
    except BadName as e:
        raise TermSyntaxError(str(e)) from None
