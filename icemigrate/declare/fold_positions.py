"""Positions that a table entry asserts, folded over a draft (the fold, rule 8).

``after: venue`` says *right behind*; so two columns behind the same one contradict each other, and a
column that others stand behind goes to its place before them.  That makes all positions hold at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.declare.complaints import Complaints
from icemigrate.declare.draft import Node
from icemigrate.declare.fold_columns import Asserted
from icemigrate.diagnostics import did_you_mean
from icemigrate.model.sides import Position


def fold_positions(asserted: Iterable[Asserted], complaints: Complaints) -> tuple[Position, ...]:
    """Move the nodes; the positions come back in an order in which each can be carried out."""
    by_parent: dict[int, list[Asserted]] = {}
    for one in asserted:
        assert one.node.parent is not None
        by_parent.setdefault(id(one.node.parent), []).append(one)
    return tuple(p for siblings in by_parent.values() for p in _among_siblings(siblings, complaints))


def _among_siblings(asserted: list[Asserted], complaints: Complaints) -> list[Position]:
    parent = asserted[0].node.parent
    assert parent is not None
    wanted: dict[str, Asserted] = {}
    taken: dict[str | None, Asserted] = {}
    for one in asserted:
        if _is_possible(one, parent, complaints) and _is_free(one, taken, complaints):
            wanted[one.node.name] = one
    ordered = _in_order(wanted, complaints)
    for one in ordered:
        parent.children.move(one.node, None if one.after is None else parent.children[one.after])
    return [
        Position(one.node.id, None if one.after is None else parent.children[one.after].id) for one in ordered
    ]


def _is_possible(one: Asserted, parent: Node, complaints: Complaints) -> bool:
    if one.after is None:
        return True
    if one.after == one.node.name:
        complaints.error("bad-position", one.subject, f"`{one.after}` cannot stand behind itself")
        return False
    if one.after not in parent.children:
        hint = did_you_mean(one.after, parent.children)
        complaints.error(
            "unknown-column", one.subject, f"there is no column `{one.after}` to stand behind", hint
        )
        return False
    return True


def _is_free(one: Asserted, taken: dict[str | None, Asserted], complaints: Complaints) -> bool:
    other = taken.setdefault(one.after, one)
    if other is one:
        return True
    where = "first" if one.after is None else f"right behind `{one.after}`"
    complaints.error(
        "bad-position",
        one.subject,
        f"`{other.node.name}` and `{one.node.name}` cannot both stand {where}",
        f"write `after: {other.node.name}`",
    )
    return False


def _in_order(wanted: dict[str, Asserted], complaints: Complaints) -> list[Asserted]:
    """Every position behind the one of the column that it names; a circle is a mistake."""
    ordered: dict[str, Asserted] = {}
    for start in wanted:
        chain: dict[str, Asserted] = {}
        name: str | None = start
        while name is not None and name in wanted and name not in ordered:
            if name in chain:
                circle = " → ".join(f"`{n}`" for n in (*chain, name))
                complaints.error(
                    "bad-position", wanted[name].subject, f"these stand behind each other: {circle}"
                )
                return []
            chain[name] = wanted[name]
            name = wanted[name].after
        ordered.update(reversed(chain.items()))
    return list(ordered.values())
