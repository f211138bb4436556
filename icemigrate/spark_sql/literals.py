"""String literals and lists of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from icemigrate.hidden_characters import HIDDEN

_SPECIAL = re.compile(rf"[\\']|\$(?=\{{)|{HIDDEN.pattern}")
_LONGEST = 80
"""Longer texts are written on several lines; in characters."""
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def string_sql(text: str) -> str:
    r"""A text as a string literal under Spark's default rules for backslashes.

    Hidden characters are written as ``\uXXXX``: the statement that is shown is the one that runs.  So is the
    ``$`` of ``${``, which Spark would otherwise replace by a setting of that name before it reads the
    statement (``spark.sql.variable.substitute``).
    """
    return f"'{_SPECIAL.sub(_escape, text)}'"


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}")


def properties_sql(properties: Mapping[str, str]) -> str:
    """Properties for ``SET TBLPROPERTIES``: ``('a' = '1', 'b' = '2')``, in the order given.

    In a long list, each is on its own line.
    """
    pairs = [f"{string_sql(k)} = {string_sql(v)}" for k, v in properties.items()]
    return f"({', '.join(pairs)})" if _fit(pairs) else "(\n  " + ",\n  ".join(pairs) + "\n)"


def listed_sql(items: Sequence[str]) -> str:
    """Items after a word: `` a, b``; in a long list, each on its own line."""
    return f" {', '.join(items)}" if _fit(items) else "\n  " + ",\n  ".join(items)


def _fit(items: Sequence[str]) -> bool:
    """Whether items fit on one line; a single one does not become shorter on another line."""
    return len(items) == 1 or sum(len(item) + 2 for item in items) <= _LONGEST


def keys_sql(keys: Iterable[str]) -> str:
    """Keys as ``UNSET TBLPROPERTIES`` takes them: ``('a', 'b')``."""
    return "(" + ", ".join(string_sql(key) for key in keys) + ")"
