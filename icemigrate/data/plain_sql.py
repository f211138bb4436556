"""What is plainly no expression, or no query, of Spark SQL; whether the rest can run is Spark's to say.

An expression is put into a statement beside others.  One that ends early, or goes on behind its end, would
change what the others do: ``1 -- half`` takes the condition away that stands behind it.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Fault: TypeAlias = "tuple[str, str]"
"""What is wrong, to stand behind the name of the text, and what to write instead."""

COMMENT = r"--[^\n]*|/\*.*?\*/"
"""Looked for together with texts: a comment may have a quote in it, and a text what begins a comment."""
TEXT = r"""(?i:\br)(?:'[^']*'|"[^"]*")|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
"""In a raw text (``r'…'``) a backslash is one."""
_NOT_BARE = re.compile(f"(?P<comment>{COMMENT})|{TEXT}|`[^`]*`", re.S)
_PAIRS = {")": "(", "]": "["}
_QUERIES = ("select", "with", "values", "table", "from")


def expression_fault(text: str) -> Fault | None:
    """What is wrong with an expression by its signs alone; ``None`` where nothing is."""
    if not text.strip():
        return "is empty", "write an SQL expression, or `null`"
    bare = _NOT_BARE.sub(lambda found: "--" if found["comment"] else "x", text)
    if fault := _of_signs(bare):
        return fault
    if "--" in bare or "/*" in bare:
        return "has a comment in it, which could hide what stands behind it", "comment in YAML, by `#`"
    return _of_brackets(bare, is_one=True)


def query_fault(text: str) -> Fault | None:
    """What is wrong with a query by its signs alone; ``None`` where nothing is."""
    bare = _NOT_BARE.sub(lambda found: " " if found["comment"] else "x", text)
    if fault := _of_signs(bare):
        return fault
    first = re.match(r"[\s(]*(\w*)", bare)
    assert first is not None, "it matches nothing too"
    if first[1].lower() not in _QUERIES:
        said = f"begins with `{first[1]}`" if first[1] else "has no words"
        return f"{said}: a check asks, and changes nothing", "write a query: `select count(*) from {table}`"
    return _of_brackets(bare, is_one=False)


def _of_signs(bare: str) -> Fault | None:
    """A quote that is left over, or a second statement."""
    if left := re.search(r"['\"`]", bare):
        return f"opens a {left[0]} that it does not close", "close it; within a text write it twice"
    if ";" in bare:
        return "has a `;` in it, and is one statement's part", "leave it out"
    return None


def _of_brackets(bare: str, is_one: bool) -> Fault | None:
    """Brackets that do not fit, and what stands outside of them.

    :param is_one: whether it is one expression alone.
    """
    depth: list[str] = []
    for sign in re.findall(r"[()\[\],]|\bwhere\b", bare, re.I):
        if sign in _PAIRS.values():
            depth.append(sign)
        elif sign in _PAIRS:
            if not depth or depth.pop() != _PAIRS[sign]:
                return f"closes a `{sign}` that it does not open", "take it out, or open it"
        elif is_one and not depth and sign == ",":
            return "is more than one: a comma stands in it outside of brackets", "write one for each column"
        elif is_one and not depth:
            return "has a condition in it", "write the condition under `where`"
    if depth:
        return f"opens a `{depth[-1]}` that it does not close", "close it, or take it out"
    return None
