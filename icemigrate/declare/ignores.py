"""Comments that keep a rule from speaking: ``# icemigrate: ignore IM104 because …``.

One behind a line is about that line, one that stands alone about the next line that is no comment.  YAML's
comments are no part of what is parsed, so the lines of the text are looked at, where it has the word at all,
and what stands within a text in quotes or in a block (``|``, ``>``) is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

import yaml

from icemigrate.declare.source import Source
from icemigrate.diagnostics import Place
from icemigrate.frozen import Frozen

_MARK = "icemigrate:"
_COMMENT = re.compile(r"(?:^|(?<=\s))#\s*icemigrate:(?!\S)\s*(.*?)\s*$")
_SQL_MARKS = ("--", "#", "{#")
_SQL_COMMENT = re.compile(
    r"(?:^|(?<=\s))(?P<mark>--|#|\{#)-?\s*icemigrate:(?!\S)\s*(?P<says>.*?)\s*(?:-?#\}.*)?$"
)
_IGNORE = re.compile(r"ignores?\s+(?P<rules>.*?)(?:\s+because\b[\s:]*(?P<reason>.*))?")
_LONGEST = 10_000
"""A longer comment cannot be read; in characters."""
_WORDS = re.compile(r"[\w-]+(?:\s*,\s*[\w-]+)*")


class Ignore(Frozen):
    """One such comment.

    :param rules: as written: ids or names; empty where the comment cannot be read.
    :param reason: what stands behind ``because``; empty where nothing does.
    :param line: the line that it is about; 0 where none follows.
    :param place: of the comment.
    :param mark: what begins a comment there.
    """

    rules: tuple[str, ...]
    reason: str
    line: int
    place: Place
    mark: str = "#"


def read_ignores(source: Source) -> tuple[Ignore, ...]:
    """All comments that are for icemigrate, in the order of the lines."""
    return tuple(_read(source)) if _MARK in source.text else ()


def _read(source: Source) -> Iterator[Ignore]:
    lines = source.text.split("\n")
    starts = source.line_starts()
    following = _next(lines)
    texts: list[tuple[int, int]] | None = None
    for number, line in enumerate(lines, start=1):
        found = _COMMENT.search(_cut(line)) if _MARK in line else None
        if found is None:
            continue
        if texts is None:
            texts = list(_texts(source.text))
        at = starts[number - 1] + found.start()
        # The last text that begins before it is the only one that it can stand in.
        before = bisect_right(texts, (at, 0)) - 1
        if before >= 0 and at < texts[before][1]:
            continue
        about = number if line[: found.start()].strip() else following[number - 1]
        rules, reason = _said(found[1])
        yield Ignore(rules, reason, about, Place(source.path, number, found.start() + 1))


def read_sql_ignores(source: Source) -> tuple[Ignore, ...]:
    """All comments of a file of SQL, or of Python that holds SQL, that are for icemigrate."""
    return tuple(_read_sql(source)) if _MARK in source.text else ()


def _read_sql(source: Source) -> Iterator[Ignore]:
    lines = source.text.split("\n")
    following = _next(lines, _SQL_MARKS)
    for number, line in enumerate(lines, start=1):
        found = _SQL_COMMENT.search(_cut(line)) if _MARK in line else None
        if found is not None:
            about = number if line[: found.start()].strip() else following[number - 1]
            rules, reason = _said(found["says"])
            place = Place(source.path, number, found.start() + 1)
            yield Ignore(rules, reason, about, place, found["mark"])


def _texts(text: str) -> Iterator[tuple[int, int]]:
    """Where texts in quotes and in blocks begin and end; behind the head of a block may stand a comment."""
    for token in yaml.scan(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(token, yaml.ScalarToken) and not token.plain:
            begin, end = token.start_mark.index, token.end_mark.index
            yield (text.find("\n", begin) if token.style in {"|", ">"} else begin), end


def _cut(line: str) -> str:
    """The line up to where a comment has to end."""
    return line[: line.find(_MARK) + 2 * _LONGEST]


def _said(text: str) -> tuple[tuple[str, ...], str]:
    said = None if len(text) > _LONGEST else _IGNORE.fullmatch(text)
    if said is None or not _WORDS.fullmatch(said["rules"]):
        return (), ""
    return tuple(word.strip() for word in said["rules"].split(",")), (said["reason"] or "").strip()


def _next(lines: list[str], marks: tuple[str, ...] = ("#",)) -> list[int]:
    """For each line the number of the first one behind it that is neither blank nor a comment; 0 for none."""
    following, out = 0, [0] * len(lines)
    for at in range(len(lines) - 1, -1, -1):
        out[at] = following
        text = lines[at].lstrip()
        if text and not text.startswith(marks):
            following = at + 1
    return out
