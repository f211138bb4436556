"""Which fields keep their position when the order of a struct changes, so that as few as possible move.

Those of a longest subsequence that has the new order already.  Often there are several: a plan and a written
migration each choose theirs in one way always, because a saved plan must fit the one that is made again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def fields_in_order(ids: Sequence[int], ranks: Sequence[int], *, prefer_first: bool = False) -> set[int]:
    """The ids of a longest subsequence with rising ranks (patience sorting, n log n).

    :param ids: of the fields, in their order now.
    :param ranks: the position that each of them is to have, each once.
    :param prefer_first: choose the first fields of several such subsequences, and not the last ones.
    """
    if prefer_first:
        return fields_in_order(ids[::-1], [-rank for rank in reversed(ranks)])
    tops: list[int] = []
    tails: list[int] = []
    previous: list[int] = []
    for i, rank in enumerate(ranks):
        at = bisect_left(tops, rank)
        previous.append(tails[at - 1] if at else -1)
        if at == len(tops):
            tops.append(rank)
            tails.append(i)
        else:
            tops[at] = rank
            tails[at] = i
    stay: set[int] = set()
    i = tails[-1] if tails else -1
    while i >= 0:
        stay.add(ids[i])
        i = previous[i]
    return stay
