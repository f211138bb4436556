"""Partition and sort terms as text: ``day(ts) as exchange_date``, ``bucket(16, symbol) desc nulls last``.

Transforms have the names of the specification or Spark's plural forms (``days``); case matters in names only.
Backticks around a column are optional, except where it contains a space, a comma or a bracket.
"""

from __future__ import annotations

import re
from functools import lru_cache

from icemigrate.diagnostics import Replacement, did_you_mean_word, most_similar
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import BadName, FieldPath, parse_path, quote_name
from icemigrate.iceberg.partitioning import (
    ASC,
    DESC,
    IDENTITY,
    NULLS_FIRST,
    NULLS_LAST,
    TIME_TRANSFORMS,
    SortTerm,
    Transform,
    default_null_order,
    term_text,
)

_TRANSFORMS = {name: name for name in ("identity", "bucket", "truncate", *TIME_TRANSFORMS)} | {
    name + "s": name for name in TIME_TRANSFORMS
}
_WIDE = ("bucket", "truncate")
MAX_WIDTH = 2**31 - 1
"""The highest number of buckets and width of a truncation: Iceberg stores it in a Java int."""

_OTHER_TRANSFORMS = {
    "date": "write `day({})`",
    "date_trunc": "write `day({})`, or `year`, `month`, `hour`",
    "date_hour": "write `hour({})`",
    "void": "Iceberg writes `void` for a removed partition field; remove the term",
    "hash": "write `bucket(16, {})`",
    "trunc": "write `truncate(16, {})`",
}
"""Transforms of other tools and of metadata files, and what to write instead, with the column."""
_SAME_TRANSFORMS = {"date": "day", "date_hour": "hour"}
"""Spark's older names of transforms, which mean the same."""
_CALL = re.compile(r"\s*(\w+)\s*\(")
_BRACKETS = re.compile(r"\s*(bucket|truncate)\s*\[\s*([0-9]+)\s*\]\s*\(\s*([^()]*?)\s*\)", re.IGNORECASE)
"""A transform as the specification writes it."""
_NAME = re.compile(r"\s*((?:`(?:[^`]|``)+`|[^\s`(),])+)\s*")
_WIDTH = re.compile(r"\s*([0-9]+)\s*,")
_TURNED = re.compile(r"\s*([^\s,()]+)\s*,\s*([0-9]+)\s*\)")
"""A width after its column, the order of some SQL dialects."""
_CLOSE = re.compile(r"\s*\)\s*")
_AS = re.compile(r"as\s+(`(?:[^`]|``)+`|[^\s`]+)\s*\Z", re.IGNORECASE)
_DIRECTION = re.compile(r"(asc|desc)\b\s*", re.IGNORECASE)
_SPACED = re.compile(
    r"\s*([^\s`(),]+(?: +(?!(?:asc|desc|as|nulls)\b)[^\s`(),]+)+)"
    r"((?: +(?:asc|desc))?(?: +nulls +(?:first|last))?| +as +\S+)\s*",
    re.IGNORECASE,
)
"""A column with a space that is not in backticks, and what follows it."""
_LIKE_DIRECTION = re.compile(r"\s(?:asc|desc|up|down)[a-z]+|\s(?:up|down)\b", re.IGNORECASE)
"""A word that was meant as a direction, such as ``descending``."""
_NULLS = re.compile(r"nulls\s+(first|last)\b\s*", re.IGNORECASE)


class TermSyntaxError(ValueError):
    """An invalid term.

    :ivar hint: the valid text, where it is clear.
    :ivar replacement: the correction, where only one is possible.
    """

    def __init__(self, message: str, hint: str | None = None, replacement: Replacement | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.replacement = replacement


class PartitionTerm(Frozen):
    """One entry of ``partition_by``; ``name`` is ``None`` where it is omitted."""

    source: FieldPath
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
    hint = "declare an order under `sort_by`" if _DIRECTION.match(rest) else "write a name as `as name`"
    if (quoted := _with_quoted_column(text)) is not None:
        hint = f"{hint}; write a column with a space in backticks: {quoted}"
    raise TermSyntaxError(f"unexpected `{rest}` in the partition term `{text}`", hint)


@lru_cache(maxsize=1024)
def parse_sort(text: str) -> SortTerm:
    """Read a sort term; by default nulls come first when ascending and last when descending.

    :raises TermSyntaxError: the text is not a sort term.
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
            "a term is a column or a transform, then `asc` or `desc`, then `nulls first` or `nulls last`"
            if (quoted := _with_quoted_column(text)) is None or _LIKE_DIRECTION.search(text)
            else f"write a column with a space in backticks: {quoted}",
        )
    return SortTerm(source, transform, direction, null_order)


def _with_quoted_column(text: str) -> str | None:
    """A term whose column has a space, with the column in backticks; ``None`` for other terms."""
    found = _SPACED.fullmatch(text)
    return None if found is None else f"`{found[1]}`{found[2]}"


def format_partition(source: FieldPath, transform: Transform, name: str | None = None) -> str:
    """The term as text; :func:`parse_partition` reads it back."""
    text = term_text(transform, source)
    return text if name is None else f"{text} as {quote_name(name)}"


def _transformed(text: str) -> tuple[FieldPath, Transform, int]:
    """Read a column or a transform of one; returns it with the offset after it."""
    call = _CALL.match(text)
    if (spec := _BRACKETS.match(text)) is not None:
        right = f"{spec[1].lower()}({spec[2]}, {spec[3]})"
        meant = Replacement(spec[0].strip(), right, spec.start(1))
        raise TermSyntaxError(f"unexpected `[` in `{text}`", f"write `{right}`", meant)
    if call is None:
        source, at = _column(text, 0)
        return source, IDENTITY, at
    name = _TRANSFORMS.get(call[1].lower())
    if name is None:
        raise _unknown_transform(text, call)
    at, width = call.end(), None
    if name in _WIDE:
        match = _WIDTH.match(text, at)
        if match is None:
            turned = _TURNED.match(text, at)
            right = f"{name}({turned[2]}, {turned[1]})" if turned else f"{name}(16, column)"
            raise TermSyntaxError(
                f"`{name}` needs its width in `{text}`",
                f"write `{right}`: the number first",
                Replacement(text[call.start(1) : turned.end()], right, call.start(1)) if turned else None,
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
            else "write a column with a space, comma or bracket in backticks"
        )
        raise TermSyntaxError(f"expected `)` in `{text}`", hint)
    return source, Transform(name, width), close.end()


def _unknown_transform(text: str, call: re.Match[str]) -> TermSyntaxError:
    word, (column, _, _) = call[1], text[call.end() :].partition(")")
    other = _OTHER_TRANSFORMS.get(word.lower())
    near = _SAME_TRANSFORMS.get(word.lower()) if other else most_similar(word, _TRANSFORMS)
    hint = f"there are {', '.join(_known_transforms())}"
    if other is not None:
        hint = other.format(column.strip())
    elif near is not None:
        hint = did_you_mean_word(near)
    meant = None if near is None else Replacement(word, near, call.start(1))
    return TermSyntaxError(f"unknown transform `{word}` in `{text}`", hint, meant)


def _known_transforms() -> list[str]:
    return sorted(set(_TRANSFORMS.values()))


def _column(text: str, at: int) -> tuple[FieldPath, int]:
    match = _NAME.match(text, at)
    if match is None:
        raise TermSyntaxError(f"expected a column in `{text}`")
    try:
        return parse_path(match[1]), match.end()
    except BadName as e:
        raise TermSyntaxError(str(e)) from None
