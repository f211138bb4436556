"""Comments that ignore a rule: ``# icemigrate: ignore IM104 because …``.

A comment after code applies to its line; a comment on its own line applies to the next line that is not a
comment.  A YAML parser drops comments, so the lines of the text are searched; text inside quotes or blocks
(``|``, ``>``) does not count.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

import yaml

from icemigrate.diagnostics import FilePosition
from icemigrate.files.parse.source_text import SourceText
from icemigrate.frozen import Frozen

_MARK = "icemigrate:"
_COMMENT = re.compile(r"(?:^|(?<=\s))#\s*icemigrate:(?!\S)\s*(.*?)\s*$")
_SQL_COMMENT_STARTS = ("--", "#", "{#")
_SQL_COMMENT = re.compile(
    r"(?:^|(?<=\s))(?P<mark>--|#|\{#)-?\s*icemigrate:(?!\S)\s*(?P<says>.*?)\s*(?:-?#\}.*)?$"
)
_IGNORE = re.compile(r"ignores?\s+(?P<rules>.*?)(?:\s+because\b[\s:]*(?P<reason>.*))?")
_LONGEST = 10_000
"""A longer comment cannot be read; in characters."""
_WORDS = re.compile(r"[\w-]+(?:\s*,\s*[\w-]+)*")


class IgnoreComment(Frozen):
    """One such comment.

    :param rules: ids or names as written; empty where the comment cannot be read.
    :param reason: the text after ``because``; empty without it.
    :param line: the line that it applies to; 0 where no line follows.
    :param place: position of the comment.
    :param mark: the characters that begin a comment.
    """

    rules: tuple[str, ...]
    reason: str
    line: int
    place: FilePosition
    mark: str = "#"


def read_ignores(source: SourceText) -> tuple[IgnoreComment, ...]:
    """All comments that are for icemigrate, in the order of the lines."""
    return tuple(_read(source)) if _MARK in source.text else ()


def _read(source: SourceText) -> Iterator[IgnoreComment]:
    lines = source.text.split("\n")
    starts = source.line_starts()
    following = _next(lines)
    texts: list[tuple[int, int]] | None = None
    for number, line in enumerate(lines, start=1):
        found = _COMMENT.search(_cut(line)) if _MARK in line else None
        if found is None:
            continue
        if texts is None:
            texts = list(_quoted_ranges(source.text))
        at = starts[number - 1] + found.start()
        # Only the last text that begins before it can contain it.
        before = bisect_right(texts, (at, 0)) - 1
        if before >= 0 and at < texts[before][1]:
            continue
        about = number if line[: found.start()].strip() else following[number - 1]
        rules, reason = _parse_ignore(found[1])
        yield IgnoreComment(rules, reason, about, FilePosition(source.path, number, found.start() + 1))


def read_sql_ignores(source: SourceText) -> tuple[IgnoreComment, ...]:
    """All comments for icemigrate in a file of SQL, or of Python with SQL."""
    return tuple(_read_sql(source)) if _MARK in source.text else ()


def _read_sql(source: SourceText) -> Iterator[IgnoreComment]:
    lines = source.text.split("\n")
    following = _next(lines, _SQL_COMMENT_STARTS)
    for number, line in enumerate(lines, start=1):
        found = _SQL_COMMENT.search(_cut(line)) if _MARK in line else None
        if found is not None:
            about = number if line[: found.start()].strip() else following[number - 1]
            rules, reason = _parse_ignore(found["says"])
            place = FilePosition(source.path, number, found.start() + 1)
            yield IgnoreComment(rules, reason, about, place, found["mark"])


def _quoted_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of texts in quotes and in blocks; a comment may follow the header of a block."""
    for token in yaml.scan(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(token, yaml.ScalarToken) and not token.plain:
            begin, end = token.start_mark.index, token.end_mark.index
            yield (text.find("\n", begin) if token.style in {"|", ">"} else begin), end


def _cut(line: str) -> str:
    """The line up to where a comment has to end."""
    return line[: line.find(_MARK) + 2 * _LONGEST]


def _parse_ignore(text: str) -> tuple[tuple[str, ...], str]:
    said = None if len(text) > _LONGEST else _IGNORE.fullmatch(text)
    if said is None or not _WORDS.fullmatch(said["rules"]):
        return (), ""
    return tuple(word.strip() for word in said["rules"].split(",")), (said["reason"] or "").strip()


def _next(lines: list[str], comment_starts: tuple[str, ...] = ("#",)) -> list[int]:
    """For each line the number of the next line that is neither blank nor a comment; 0 without one."""
    following, out = 0, [0] * len(lines)
    for at in range(len(lines) - 1, -1, -1):
        out[at] = following
        text = lines[at].lstrip()
        if text and not text.startswith(comment_starts):
            following = at + 1
    return out
