"""Compares the current table with its target, and returns changes in running order.

Each kind detects its own changes (:meth:`Change.detect`); this module names no kind. Detection goes phase by
phase, and every change is applied to the table at once, so that a later phase sees the result of the earlier
ones, including the properties that a rename moves.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import TypeAlias

from icemigrate.changes.change import ALL_PARTS, Change, ChangePhase, TablePair, TablePart
from icemigrate.frozen import Frozen
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import rebind_by_path


class DetectedChange(Frozen):
    """A change and the table as it is when the change runs."""

    change: Change
    before: Table


class Difference(Frozen):
    """The changes that lead from one state to another.

    :param after: the table after all changes, with the ids that Iceberg gives.
    :param target: the requested table, its new fields under their final ids.
    """

    found: tuple[DetectedChange, ...]
    after: Table
    target: Table


def find_difference(before: Table, target: Table, kinds: Iterable[type[Change]]) -> Difference:
    """The changes of ``kinds`` that lead from ``before`` to ``target``."""
    current, found = before, list[DetectedChange]()
    if current == target:
        return Difference((), current, target)
    kinds, pair = tuple(kinds), TablePair(current, target)
    phases = _needed_kinds(kinds, pair.differing_parts)
    while phases:
        # A kind detects changes once, in its phase: it sees the result of the earlier phases.
        (phase, in_phase), *phases = phases
        detected = [change for kind in in_phase for change in kind.detect(pair)]
        for kind, group in itertools.groupby(detected, lambda change: type(change)):
            changes = tuple(group)
            *states, current = kind.apply_all(changes, current)
            found += map(DetectedChange, changes, states)
        if detected:
            target = rebind_by_path(target, current, above=before.last_column_id)
            pair = TablePair(current, target)
            # The changes can make other parts equal, or different.
            phases = [one for one in _needed_kinds(kinds, pair.differing_parts) if one[0] > phase]
    return Difference(tuple(found), current, target)


_KindsOfPhase: TypeAlias = "tuple[ChangePhase, tuple[type[Change], ...]]"


def _needed_kinds(kinds: tuple[type[Change], ...], parts: frozenset[TablePart]) -> list[_KindsOfPhase]:
    """The kinds that can detect a change where only these parts differ, by phase in running order."""
    return list(_needed_kinds_by_phase(kinds, parts))


@functools.cache
def _needed_kinds_by_phase(
    kinds: tuple[type[Change], ...], parts: frozenset[TablePart]
) -> tuple[_KindsOfPhase, ...]:
    needed = [kind for kind in kinds if kind.compares is ALL_PARTS or not kind.compares.isdisjoint(parts)]
    phases = ((phase, tuple(k for k in needed if k.phase == phase)) for phase in ChangePhase)
    return tuple(one for one in phases if one[1])


def remaining_differences(outcome: Difference, kinds: Iterable[type[Change]]) -> tuple[str, ...]:
    """The differences between the result and the target; empty, unless a kind has a bug.

    This verifies a plan before it is shown: its changes, applied to the table, give the target, and detecting
    changes once more finds none.
    """
    pair = TablePair(outcome.after, outcome.target)
    parts = pair.differing_parts
    needed = _needed_kinds(tuple(kinds), parts)
    detected = (c for _, in_phase in needed for kind in in_phase for c in kind.detect(pair))
    return (*(change.describe() for change in detected), *(_PARTS[part] for part in _PARTS if part in parts))


_PARTS: dict[TablePart, str] = {
    "fields": "schema",
    "identifier": "identifier fields",
    "spec": "partition spec",
    "sort_order": "sort order",
    "properties": "properties",
    "format_version": "format version",
}
"""The parts that the changes must make equal, in words; where a reference is, others decide too."""
