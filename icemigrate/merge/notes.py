"""What was found done already, as notes."""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.merge.fields import ASPECTS


def done_notes(facts: Iterable[str]) -> tuple[str, ...]:
    """One note for each column or other fact, e.g. ``done already: db.t:columns.c3 (type, required)``.

    :param facts: as in :attr:`~icemigrate.merge.tables.Merged.done`.
    """
    return tuple(f"done already: {fact}" for fact in grouped(facts))


def grouped(facts: Iterable[str]) -> tuple[str, ...]:
    """Facts with the aspects of a column together.

    :returns: ``db.t:columns.c3 (type, required)``, in the order of first mention; a fact that stands alone is
        named as it is.
    """
    groups: dict[str, list[str]] = {}
    for fact in facts:
        head, _, aspect = fact.rpartition(".")
        # `t:columns.name` is a whole column called `name`.
        is_aspect = aspect in ASPECTS and not head.endswith(":columns") and ":columns." in head
        groups.setdefault(head if is_aspect else fact, []).extend([aspect] if is_aspect else [])
    return tuple(_named(head, found) for head, found in groups.items())


def _named(head: str, found: list[str]) -> str:
    if len(found) < 2:
        return ".".join([head, *found])
    return f"{head} ({', '.join(found)})"
