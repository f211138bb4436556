"""Findings about tables, such as those of tenants: equal ones once, with the names of the others.

A template or a pattern has one position in its file, and a finding for each of its tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import Frozen
from icemigrate.render import display
from icemigrate.render.alike_tables import FEWEST_ALIKE, others_text
from icemigrate.render.markdown_text import diagnostic_line, inline_code
from icemigrate.render.terminal_style import TerminalStyle

_PART = r"(?:`(?:[^`]|``)+`|[\w$-]+)"
_DOTTED = re.compile(rf"{_PART}(?:\.{_PART})+")
"""A name with a namespace: of a table, or of something in a table."""


class AlikeFindings(Frozen):
    """Findings that differ in the name of their table only.

    :param others: the names in all but the first one.
    """

    findings: tuple[Diagnostic, ...]
    others: tuple[str, ...] = ()


def finding_lines(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Findings as items of a Markdown list, equal ones once."""
    yield from map(finding_line, alike_findings(found))


def finding_line(group: AlikeFindings) -> str:
    """The first finding as an item of a Markdown list, with the names of the others."""
    others = f" <br>{others_text(group.others, 'other', inline_code)}" if group.others else ""
    return f"{diagnostic_line(group.findings[0])}{others}"


def note_lines(notes: Iterable[str], style: TerminalStyle) -> Iterator[str]:
    """Notes, each on a line; of equal ones the first, with the names of the others."""
    found = [Diagnostic("", note) for note in notes]
    for group in alike_findings(found, shows_all=style.details):
        others = f" ({others_text(group.others, 'other', display.one_line)})" if group.others else ""
        yield f"{display.note_line(group.findings[0].message)}{others}"


def without_names(text: str) -> str:
    """A text without its dotted names; a literal `#` in it stays one."""
    return _DOTTED.sub("\0", text)


def alike_findings(found: Iterable[Diagnostic], *, shows_all: bool = False) -> tuple[AlikeFindings, ...]:
    """Group findings, each group in the position of its first one.

    :param shows_all: whether each finding is shown.
    """
    found = tuple(found)
    if shows_all or len(found) < FEWEST_ALIKE:
        return tuple(AlikeFindings((one,)) for one in found)
    shapes: dict[tuple[object, ...], list[int]] = {}
    for at, one in enumerate(found):
        shapes.setdefault(_shape(one), []).append(at)
    groups: dict[tuple[object, ...], list[tuple[int, str]]] = {}
    for shape, members in shapes.items():
        names = [_DOTTED.findall(found[at].message) for at in members]
        column = _most_different(names) if len(members) >= FEWEST_ALIKE else None
        for at, own in zip(members, names, strict=True):
            key = (at,) if column is None else (shape, _rest(found[at], own[column]))
            groups.setdefault(key, []).append((at, "" if column is None else own[column]))
    shown: dict[int, AlikeFindings] = {}
    for group in groups.values():
        if len(group) < FEWEST_ALIKE:
            shown.update((at, AlikeFindings((found[at],))) for at, _ in group)
        else:
            alike = tuple(found[at] for at, _ in group)
            shown[group[0][0]] = AlikeFindings(alike, tuple(name for _, name in group[1:]))
    return tuple(shown[at] for at in sorted(shown))


def _shape(one: Diagnostic) -> tuple[object, ...]:
    """What findings of equal tables share."""
    return (
        one.place,
        one.code,
        one.severity,
        len(_DOTTED.findall(one.message)),
        without_names(one.message),
        without_names(one.hint or ""),
    )


def _most_different(names: Sequence[Sequence[str]]) -> int | None:
    """Which name of the messages is the one of the table; ``None`` where no message has a name."""
    counts = [len(set(column)) for column in zip(*names, strict=True)]
    return counts.index(max(counts)) if counts else None


def _rest(one: Diagnostic, name: str) -> str:
    """The finding without the name of its table."""
    text = f"{one.message}\n{one.hint or ''}"
    return text.replace(name, "\0").replace(name.rpartition(".")[2], "\0")
