"""Names of tables and paths of fields, and their text form.

A path is dotted; a name that is not a plain word is in backticks, and a backtick inside is doubled:
``address.`zip.code`.element``.  Inside lists and maps the path continues with the field names of the
specification: ``element``, ``key``, ``value``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from icemigrate.frozen import Frozen

FieldPath: TypeAlias = tuple[str, ...]
"""Names from the top-level column down to the field."""

_CACHE_SIZE = 4096
"""How many names are remembered with their texts: the same columns are named again and again."""
_PLAIN = re.compile(r"[^\W\d]\w*\Z")


class BadName(ValueError):
    """A dotted name that cannot be read: :attr:`offset` (0-based) is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class TableName(Frozen, order=True):
    """Full name of a table inside a catalog, without the catalog's name."""

    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return format_path((*self.namespace, self.name))

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read ``namespace.table``.

        :raises BadName: the text is no dotted name, or has no namespace.
        """
        *namespace, name = parse_path(text)
        if not namespace:
            raise BadName(f"`{text}` has no namespace: write `namespace.{text}`", 0)
        return cls(tuple(namespace), name)


RETYPE_SUFFIX = "__icemigrate"
"""Suffix of the name of the new column of a retype while it is filled.

It does not name the project: only the project that owns a table changes it, and the column of an interrupted
run is found by its field id."""


def passing_name(field_id: int) -> str:
    """The temporary name of a swap or a case-only rename; a table with it is in the middle of one."""
    return f"__icemigrate_{field_id}"


def quote_name(name: str) -> str:
    """The name as it is written inside a path: in backticks unless it is a plain word."""
    return name if _PLAIN.match(name) else "`" + name.replace("`", "``") + "`"


def format_path(path: FieldPath) -> str:
    """The path as text; :func:`parse_path` reads it back."""
    return _formatted(path)


@lru_cache(_CACHE_SIZE)
def _formatted(path: FieldPath) -> str:
    return ".".join(map(quote_name, path))


def parse_path(text: str) -> FieldPath:
    """Read a dotted path.

    Outside backticks, only dots and backticks are special, so ``café 1.x`` is two names.

    :raises BadName: an empty name, an unclosed backtick, or text after a closing one.
    """
    return _parsed(text)


@lru_cache(_CACHE_SIZE)
def _parsed(text: str) -> FieldPath:
    names: list[str] = []
    at = 0
    while True:
        if text[at : at + 1] == "`":
            name, at = _quoted(text, at)
            if at < len(text) and text[at] != ".":
                raise BadName(f"expected `.` after the closing backtick in `{text}`", at)
        else:
            end = at
            while end < len(text) and text[end] != ".":
                if text[end] == "`":
                    raise BadName(f"a backtick inside a name in `{text}`: quote the whole name", end)
                end += 1
            name, at = text[at:end], end
        if not name:
            raise BadName(f"empty name in `{text}`", at)
        names.append(name)
        if at >= len(text):
            return tuple(names)
        at += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    at, out = start + 1, []
    while at < len(text):
        if text[at] != "`":
            out.append(text[at])
        elif text[at + 1 : at + 2] == "`":
            out.append("`")
            at += 1
        else:
            return "".join(out), at + 1
        at += 1
    raise BadName(f"unclosed backtick in {_between_quotes(text)}", start)


def _between_quotes(text: str) -> str:
    """The text between backticks, or between double quotes where it would end in a row of backticks."""
    return f'"{text}"' if text.startswith("`") or text.endswith("`") else f"`{text}`"
