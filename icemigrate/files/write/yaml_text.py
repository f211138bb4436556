"""Migration entries as readable YAML: a column on one line, quotes only where a reader needs them.

Texts that YAML 1.1 reads differently from YAML 1.2 are quoted too, because editors and other tools differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from icemigrate.hidden_characters import HIDDEN, escape_hidden_characters

WIDTH = 110
"""A mapping or list that fits into this width is written on one line."""

_LONGEST_KEY = 1_000
"""YAML reads a key without ``?`` up to 1,024 characters, with blanks and colon (YAML 1.2.2, section 7.4)."""

_INLINE_KEYS = frozenset(
    {
        *("allow", "namespaces", "renames", "drop_columns", "restore_columns"),
        *("identifier", "partition_by", "sort_by", "retention", "branches", "tags"),
    }
)
"""Keys whose value is written on the key's own line if it fits."""
_DURATION = r"[0-9]{1,9}[smhdw]"
_FLOW = re.compile(_DURATION + r"|[A-Za-z_/](?:[ !-+\--9;-Z\\^-z|~\xa1-\u2027]|:(?=[^\s,\[\]{}]))*")
"""Texts that every YAML reader accepts without quotes."""
_BLOCK = re.compile(_DURATION + r"|[A-Za-z_/](?:[ !-9;-~\xa1-\u2027]|:(?=[^\s,\[\]{}]))*")
"""The same, outside of brackets and braces."""
_RESERVED = re.compile(r"(?:true|false|yes|no|on|off|null|none|y|n|~)\Z", re.IGNORECASE)


def to_yaml(value: Mapping[str, Any]) -> str:
    """The mapping as a YAML document."""
    return "".join(f"{line}\n" for line in _block(value, 0))


def _block(value: Mapping[str, Any], indent: int) -> list[str]:
    lines: list[str] = []
    pad = " " * indent
    for key, item in value.items():
        head = f"{pad}{_key(key, pad)}"
        if isinstance(item, str):
            lines.append(f"{head} {_scalar(item, _BLOCK)}")
        elif not isinstance(item, (Mapping, list, tuple)) or not item:
            lines.append(f"{head} {to_flow_yaml(item)}")
        elif _is_inline(key, item) and len(line := f"{head} {to_flow_yaml(item)}") <= WIDTH:
            lines.append(line)
        elif isinstance(item, Mapping):
            lines += [head, *_block(item, indent + 2)]
        else:
            lines += [head, *_items(item, indent + 2, is_inline=key != "tables")]
    return lines


def _is_inline(key: str, item: Any) -> bool:
    if key in _INLINE_KEYS:
        return True
    return isinstance(item, Mapping) and len(item) == 1 and not _is_deep(item)


def _is_deep(item: Mapping[str, Any]) -> bool:
    return any(isinstance(v, (Mapping, list, tuple)) and v for v in item.values())


def _items(items: Sequence[Any], indent: int, is_inline: bool) -> list[str]:
    lines: list[str] = []
    pad = " " * indent
    for item in items:
        is_block = isinstance(item, Mapping) and item and not is_inline
        # The line of a table would contain all lines below it, so it is not even built.
        line = None if is_block else f"{pad}- {to_flow_yaml(item)}"
        if line is not None and (len(line) <= WIDTH or not isinstance(item, Mapping) or not item):
            lines.append(line)
        else:
            first, *rest = _block(item, indent + 2)
            lines += [f"{pad}- {first.lstrip()}", *rest]
    return lines


def to_flow_yaml(value: Any) -> str:
    """A value on one line, in flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} {to_flow_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(to_flow_yaml(v) for v in value) + "]"
    return _scalar(value)


def _key(key: str, pad: str | None = None) -> str:
    """A key with its colon; a long one begins with ``?``, as YAML requires.

    :param pad: the blanks before a key of a block, whose colon is on the next line.
    """
    text = _scalar(key)
    if len(text) <= _LONGEST_KEY:
        return f"{text}:"
    return f"? {text} :" if pad is None else f"? {text}\n{pad}:"


def _scalar(value: Any, plain: re.Pattern[str] = _FLOW) -> str:
    if isinstance(value, str):
        return _text(value, plain)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    assert isinstance(value, float), value
    return _float(value)


@lru_cache(maxsize=2048)
def _text(value: str, plain: re.Pattern[str]) -> str:
    """A text, in quotes where a reader needs them; tables share most of their names and types."""
    if (
        plain.fullmatch(value)
        and not HIDDEN.search(value)
        and not value.endswith(" ")
        and " #" not in value
        and not _RESERVED.match(value)
    ):
        return value
    # JSON's strings are YAML's double-quoted ones, but for characters that YAML or a reader cannot see.
    return escape_hidden_characters(json.dumps(value, ensure_ascii=False))


def _float(value: float) -> str:
    text = repr(value)
    # YAML 1.1 and 1.2 both want a dot and a sign in an exponent.
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    sign = "" if exponent.startswith(("+", "-")) else "+"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{sign}{exponent}"
