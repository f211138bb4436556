"""Compares the current table with its target, and returns changes in running order.

Each kind detects its own changes (:meth:`Change.detect`); this module names no kind. Detection goes phase by
phase, and every change is applied to the table at once, so that a later phase sees the result of the earlier
ones, including the properties that a rename moves.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

from icemigrate.changes.change import ALL_PARTS, Change, ChangePhase, TablePair
from icemigrate.frozen import Frozen
from icemigrate.iceberg.table import Table, differing_keys
from icemigrate.planning.merge import rebind_by_path, spec_key


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
    pair = TablePair(current, target)
    for in_phase in _by_phase(tuple(kinds)):
        # A kind detects changes once, in its phase: it sees the result of the earlier phases.
        detected = _detect(in_phase, pair)
        for kind, group in itertools.groupby(detected, lambda change: type(change)):
            changes = tuple(group)
            *states, current = kind.apply_all(changes, current)
            found += map(DetectedChange, changes, states)
        if detected:
            target = rebind_by_path(target, current, above=before.last_column_id)
            pair = TablePair(current, target)
    return Difference(tuple(found), current, target)


@functools.cache
def _by_phase(kinds: tuple[type[Change], ...]) -> tuple[tuple[type[Change], ...], ...]:
    """The kinds of each phase that has any, in running order."""
    phases = (tuple(k for k in kinds if k.phase == phase) for phase in ChangePhase)
    return tuple(filter(None, phases))


def _detect(kinds: Iterable[type[Change]], pair: TablePair) -> list[Change]:
    parts = pair.differing_parts
    needed = (kind for kind in kinds if kind.compares is ALL_PARTS or not kind.compares.isdisjoint(parts))
    return [change for kind in needed for change in kind.detect(pair)]


def remaining_differences(outcome: Difference, kinds: Iterable[type[Change]]) -> tuple[str, ...]:
    """The differences between the result and the target; empty, unless a kind has a bug.

    This verifies a plan before it is shown: its changes, applied to the table, give the target, and detecting
    changes once more finds none.
    """
    left = [c.describe() for c in _detect(kinds, TablePair(outcome.after, outcome.target))]
    after, target = outcome.after, outcome.target
    for name, same in (
        ("schema", after.schema.fields == target.schema.fields),
        ("identifier fields", after.schema.identifier_ids == target.schema.identifier_ids),
        ("partition spec", spec_key(after.spec) == spec_key(target.spec)),
        ("sort order", after.sort_order.fields == target.sort_order.fields),
        ("properties", not differing_keys(after.properties, target.properties)),
        ("format version", after.format_version == target.format_version),
    ):
        if not same:
            left.append(name)
    return tuple(left)
