"""Templates of dbt → SQL that can be parsed, without running anything.

``{{ ref('x') }}`` and ``{{ source('a', 'b') }}`` become names that the search knows, other expressions a name
that stands for something unknown, and statements nothing.  What depends on a condition is read twice: once as
if every condition held, and once as if none did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from icemigrate.impact.text import Building, Fragment

REF = "__ref__"
SOURCE = "__source__"
THIS = "__this__"
UNKNOWN = "__jinja__"
"""How the SQL calls what templates stand for; a dot and names follow the first two."""

_TAG = re.compile(r"\{[#%{]")
_CLOSING = {"{#": "#}", "{%": "%}", "{{": "}}"}
_DEEPEST = 200
"""How many blocks may be open at once; what is in deeper ones is read as it stands."""
_LONGEST_EXPRESSION = 10_000
"""A longer expression stands for something unknown; in characters."""
_STRING = r"""\s*(?:'([^']*)'|"([^"]*)")\s*"""
_REF = re.compile(rf"\bref\s*\({_STRING}(?:,{_STRING})?(?:,\s*\w+\s*=.*)?\)", re.DOTALL)
_SOURCE = re.compile(rf"\bsource\s*\({_STRING},{_STRING}\)", re.DOTALL)
_CONFIG = re.compile(r"\s*(?:config|log|print|return)\s*\(|\s*do\b")
_STAR = re.compile(r"\s*(?:\w+\.)?star\s*\(")
_STATEMENT = re.compile(r"[{]%[-+]?\s*(\w+)")
_SET = re.compile(r"[{]%[-+]?\s*set\b[^=]*%[}]", re.DOTALL)
_HIDDEN = frozenset({"macro", "set", "call", "filter", "test", "materialization"})
"""Blocks whose content is no SQL of this file."""
_END = "end"


@dataclass(slots=True)
class _Open:
    """A block that is open: whether its content is SQL of this reading, and whether a branch was taken."""

    word: str
    is_read: bool
    was_taken: bool = False


def is_template(text: str) -> bool:
    """Whether there is anything of a template in a text."""
    return "{{" in text or "{%" in text or "{#" in text


def readings(text: str) -> Iterator[Fragment]:
    """The SQL of a template, once or twice; see above."""
    yield _read(text, holds=True)
    if re.search(r"\{%[-+]?\s*if\b", text):
        yield _read(text, holds=False)


def _tags(text: str) -> Iterator[tuple[int, int]]:
    """Where tags begin and end; one that is never closed is text.  Each closing is looked for once."""
    unclosed: set[str] = set()
    at = 0
    while (found := _TAG.search(text, at)) is not None:
        kind = found[0]
        end = -1 if kind in unclosed else text.find(_CLOSING[kind], found.end())
        if end < 0:
            unclosed.add(kind)
            at = found.start() + 1
        else:
            at = end + 2
            yield found.start(), at


def _read(text: str, *, holds: bool) -> Fragment:
    out = Building()
    blocks: list[_Open] = []
    is_read, at = True, 0
    for start, end in _tags(text):
        if is_read:
            out.copy(text[at:start], at)
        at = end
        said = text[start:end]
        if said.startswith("{%"):
            _statement(said, blocks, holds=holds)
            if len(blocks) > _DEEPEST:
                break
            is_read = all(block.is_read for block in blocks)
            out.put(" ", start)
        elif said.startswith("{{") and is_read:
            if len(said) > _LONGEST_EXPRESSION:
                out.put(UNKNOWN, start + 2)
            else:
                _expression(said[2:-2].strip("-+"), start + 2, out)
    out.copy(text[at:], at)
    return out.built()


def _statement(said: str, blocks: list[_Open], *, holds: bool) -> None:
    found = _STATEMENT.match(said)
    word = found[1] if found else ""
    if word == "if":
        blocks.append(_Open(word, is_read=holds, was_taken=holds))
    elif word in {"elif", "else"} and blocks and blocks[-1].word == "if":
        # As if no condition held, only what `else` says is read.
        is_read = not blocks[-1].was_taken and word == "else"
        blocks[-1] = _Open("if", is_read=is_read, was_taken=blocks[-1].was_taken or is_read)
    elif word in {"for", "snapshot", "raw", "block"}:
        blocks.append(_Open(word, is_read=True))
    elif word == "else" and blocks:
        blocks[-1] = _Open(blocks[-1].word, is_read=False)
    elif word in _HIDDEN and (word != "set" or _SET.match(said)):
        blocks.append(_Open(word, is_read=False))
    elif word.startswith(_END) and blocks:
        blocks.pop()


def _expression(said: str, at: int, out: Building) -> None:
    if _CONFIG.match(said):
        return
    if _STAR.match(said):
        out.put("*", at)
    elif (ref := _REF.search(said)) is not None:
        group = 3 if ref[3] is not None else 4 if ref[4] is not None else 1 if ref[1] is not None else 2
        out.put(f"{REF}.", at + ref.start(group))
        out.copy(ref[group], at + ref.start(group))
    elif (source := _SOURCE.search(said)) is not None:
        schema = 1 if source[1] is not None else 2
        table = 3 if source[3] is not None else 4
        out.put(f"{SOURCE}.", at + source.start(schema))
        out.copy(source[schema], at + source.start(schema))
        out.put(".", at + source.start(table))
        out.copy(source[table], at + source.start(table))
    elif said.strip() == "this":
        out.put(THIS, at)
    else:
        out.put(UNKNOWN, at)
