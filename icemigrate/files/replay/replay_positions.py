"""Replays the positions that a table entry asserts.

``after: venue`` means *right after*; so two columns after the same one contradict each other, and a column
that others follow is moved before they are. That makes all positions hold at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.diagnostics import did_you_mean
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.replay_columns import AssertedPosition
from icemigrate.files.replay.schema_draft import DraftField
from icemigrate.iceberg.declared_sides import FieldPosition


def replay_positions(
    asserted: Iterable[AssertedPosition], diagnostics: EntryDiagnostics
) -> tuple[FieldPosition, ...]:
    """Move the nodes; returns the positions in an order in which the statements can run."""
    by_parent: dict[int, list[AssertedPosition]] = {}
    for one in asserted:
        assert one.node.parent is not None
        by_parent.setdefault(id(one.node.parent), []).append(one)
    return tuple(p for siblings in by_parent.values() for p in _among_siblings(siblings, diagnostics))


def _among_siblings(asserted: list[AssertedPosition], diagnostics: EntryDiagnostics) -> list[FieldPosition]:
    parent = asserted[0].node.parent
    assert parent is not None
    wanted: dict[str, AssertedPosition] = {}
    taken: dict[str | None, AssertedPosition] = {}
    for one in asserted:
        if _is_possible(one, parent, diagnostics) and _is_free(one, taken, diagnostics):
            wanted[one.node.name] = one
    ordered = _in_order(wanted, diagnostics)
    for one in ordered:
        parent.children.move(one.node, None if one.after is None else parent.children[one.after])
    return [
        FieldPosition(one.node.id, None if one.after is None else parent.children[one.after].id)
        for one in ordered
    ]


def _is_possible(one: AssertedPosition, parent: DraftField, diagnostics: EntryDiagnostics) -> bool:
    if one.after is None:
        return True
    if one.after == one.node.name:
        diagnostics.error("bad-position", one.subject, f"`{one.after}` cannot be after itself")
        return False
    if one.after not in parent.children:
        hint = did_you_mean(one.after, parent.children)
        diagnostics.error(
            "unknown-column", one.subject, f"there is no column `{one.after}` to put it after", hint
        )
        return False
    return True


def _is_free(
    one: AssertedPosition, taken: dict[str | None, AssertedPosition], diagnostics: EntryDiagnostics
) -> bool:
    other = taken.setdefault(one.after, one)
    if other is one:
        return True
    where = "first" if one.after is None else f"directly after `{one.after}`"
    diagnostics.error(
        "bad-position",
        one.subject,
        f"`{other.node.name}` and `{one.node.name}` cannot both be {where}",
        f"write `after: {other.node.name}`",
    )
    return False


def _in_order(wanted: dict[str, AssertedPosition], diagnostics: EntryDiagnostics) -> list[AssertedPosition]:
    """Sort positions so that each comes after the one of the column that it names; report a cycle."""
    ordered: dict[str, AssertedPosition] = {}
    for start in wanted:
        chain: dict[str, AssertedPosition] = {}
        name: str | None = start
        while name is not None and name in wanted and name not in ordered:
            if name in chain:
                circle = " → ".join(f"`{n}`" for n in (*chain, name))
                diagnostics.error(
                    "bad-position",
                    wanted[name].subject,
                    f"these columns follow each other in a circle: {circle}",
                )
                return []
            chain[name] = wanted[name]
            name = wanted[name].after
        ordered.update(reversed(chain.items()))
    return list(ordered.values())
