"""From a table as it is and as it shall be to changes in running order.

Each kind finds itself (:meth:`Change.detect`); nothing here knows a kind by name.  Detection goes
phase by phase and every found change is folded over the table at once, so that a later phase sees
what the earlier ones left, property moves by a rename included.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from icemigrate.changes.base import Change, Pair, Phase
from icemigrate.frozen import Frozen
from icemigrate.merge import rebind_by_path, spec_key
from icemigrate.model.table import Table


class Found(Frozen):
    """A change and the table as it is when the change runs."""

    change: Change
    before: Table


class Difference(Frozen):
    """The changes that lead from one state to another.

    :param after: the table when all have run, ids as Iceberg gives them.
    :param target: what was asked for, its new fields under the ids they got.
    """

    found: tuple[Found, ...]
    after: Table
    target: Table


def difference(before: Table, target: Table, kinds: Iterable[type[Change]]) -> Difference:
    """The changes of ``kinds`` that lead from ``before`` to ``target``."""
    current, found = before, list[Found]()
    if current == target:
        return Difference((), current, target)
    pair = Pair(current, target)
    for in_phase in _by_phase(tuple(kinds)):
        # A kind is asked once, when its phase comes: what it sees is what the earlier phases left.
        detected = _detect(in_phase, pair)
        for change in detected:
            found.append(Found(change, current))
            current = change.apply(current)
        if detected:
            target = rebind_by_path(target, current, above=before.last_column_id)
            pair = Pair(current, target)
    return Difference(tuple(found), current, target)


@functools.cache
def _by_phase(kinds: tuple[type[Change], ...]) -> tuple[tuple[type[Change], ...], ...]:
    """The kinds of each phase that has any, in running order."""
    phases = (tuple(k for k in kinds if k.phase == phase) for phase in Phase)
    return tuple(filter(None, phases))


def _detect(kinds: Iterable[type[Change]], pair: Pair) -> list[Change]:
    return [change for kind in kinds for change in kind.detect(pair)]


def unproved(outcome: Difference, kinds: Iterable[type[Change]]) -> tuple[str, ...]:
    """What still separates the outcome from what was asked for; nothing, unless a kind is wrong.

    This is the proof that a plan is given before it is shown: the fold of its changes gives the
    target, and detecting once more finds nothing.
    """
    left = [c.describe() for c in _detect(kinds, Pair(outcome.after, outcome.target))]
    after, target = outcome.after, outcome.target
    for name, same in (
        ("schema", after.schema.fields == target.schema.fields),
        ("identifier fields", after.schema.identifier_ids == target.schema.identifier_ids),
        ("partition spec", spec_key(after.spec) == spec_key(target.spec)),
        ("sort order", after.sort_order.fields == target.sort_order.fields),
        ("properties", dict(after.properties) == dict(target.properties)),
        ("format version", after.format_version == target.format_version),
    ):
        if not same:
            left.append(name)
    return tuple(left)
