"""A template's text → its blocks, without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TAG = re.compile(r"\{[#%{]")
_CLOSING = {"{#": "#}", "{%": "%}", "{{": "}}"}
_DEEPEST = 100
"""How many blocks may be open at once; what is in deeper ones is read as it is written."""
_LITERAL = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"", re.DOTALL)
_MOST_CLOSINGS = 5
"""How many closings inside of string literals are passed over in one tag."""
_STATEMENT = re.compile(r"\{%[-+]?\s*(\w+)\s*")
_SET_BLOCK = re.compile(r"\{%[-+]?\s*set\b[^=]*%\}", re.DOTALL)
_BLOCKS = frozenset(
    {
        "if",
        "for",
        "snapshot",
        "raw",
        "block",
        "macro",
        "set",
        "call",
        "filter",
        "test",
        "materialization",
        "docs",
    }
)


@dataclass(slots=True)
class Node:
    """A piece of a template.

    :param kind: ``text``, ``expression``, ``comment``, the word of a statement, or that of a block.
    :param start: the index where its code begins, behind the opening of the tag; of a text, where it begins.
    :param code: what is written between the opening and the closing of its tag; of a text, the text.
    :param branches: the contents of a block, each with the word and the code of the tag that begins it.
    """

    kind: str
    start: int
    code: str
    branches: list[Branch] = field(default_factory=list)


@dataclass(slots=True)
class Branch:
    """A part of a block: of ``if``, what follows one condition."""

    word: str
    start: int
    code: str
    nodes: list[Node] = field(default_factory=list)


def parse_template(text: str) -> list[Node]:
    """The pieces of a template, in order; a block that is never closed ends with the text."""
    top: list[Node] = []
    open_blocks: list[Node] = []
    nodes = top
    at = 0
    for start, end in _tags(text):
        if start > at:
            nodes.append(Node("text", at, text[at:start]))
        at = end
        tag = text[start:end]
        if tag.startswith("{#"):
            nodes.append(Node("comment", start + 2, tag[2:-2]))
            continue
        if tag.startswith("{{"):
            skipped = 3 if tag[2:3] in ("-", "+") and len(tag) > 4 else 2
            nodes.append(Node("expression", start + skipped, tag[skipped:-2].rstrip("-+")))
            continue
        nodes = _statement(tag, start, open_blocks, nodes, top)
        if len(open_blocks) > _DEEPEST:
            break
    if at < len(text):
        nodes.append(Node("text", at, text[at:]))
    return top


def _tags(text: str) -> Iterator[tuple[int, int]]:
    """Where tags begin and end; one that is never closed is text.  Each closing is looked for once."""
    unclosed: set[str] = set()
    at = 0
    while (found := _TAG.search(text, at)) is not None:
        kind = found[0]
        end = -1 if kind in unclosed else _closing(text, found.end(), kind)
        if end < 0:
            unclosed.add(kind)
            at = found.start() + 1
        else:
            at = end + 2
            yield found.start(), at


def _closing(text: str, at: int, kind: str) -> int:
    """Where a tag is closed, outside of the string literals in it; -1 where it is not."""
    first = end = text.find(_CLOSING[kind], at)
    for _ in range(_MOST_CLOSINGS if kind != "{#" else 0):
        if end < 0 or not _LITERAL.sub("", text[at:end]).count("'") + _LITERAL.sub("", text[at:end]).count(
            '"'
        ):
            return first if end < 0 else end
        end = text.find(_CLOSING[kind], end + 2)
    return first


def _statement(
    tag: str, start: int, open_blocks: list[Node], nodes: list[Node], top: list[Node]
) -> list[Node]:
    """Put a statement where it belongs; the list that the next piece goes to."""
    found = _STATEMENT.match(tag)
    word = found[1] if found else ""
    code_at = found.end() if found else 2
    code, place = tag[code_at:-2].rstrip("-+"), start + code_at
    if word.startswith("end") and open_blocks:
        open_blocks.pop()
        return open_blocks[-1].branches[-1].nodes if open_blocks else top
    if word in {"elif", "else"} and open_blocks:
        branch = Branch(word, place, code)
        open_blocks[-1].branches.append(branch)
        return branch.nodes
    node = Node(word or "statement", place, code)
    nodes.append(node)
    if word in _BLOCKS and (word != "set" or _SET_BLOCK.match(tag)):
        node.branches.append(Branch(word, place, code))
        open_blocks.append(node)
        return node.branches[0].nodes
    return nodes
