"""Fields that keep their position: a longest part that is in order, found in n log n."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.iceberg.field_order import fields_in_order


@pytest.mark.parametrize("prefer_first", [False, True])
@given(ranks=st.permutations(range(9)))
def test_a_longest_part_that_is_in_order_stays(ranks: list[int], prefer_first: bool) -> None:
    found = fields_in_order(list(range(9)), ranks, prefer_first=prefer_first)
    in_order = [ranks[i] for i in sorted(found)]
    assert in_order == sorted(in_order)
    best = [1] * 9
    for i in range(9):
        best[i] += max((best[j] for j in range(i) if ranks[j] < ranks[i]), default=0)
    assert len(found) == max(best)


@pytest.mark.parametrize(
    ("ranks", "last", "first"),
    [
        ([], set(), set()),
        ([1, 2, 3], {1, 2, 3}, {1, 2, 3}),
        ([3, 1, 2], {1, 2}, {1, 2}),
        ([5, 1, 4, 2, 3], {1, 2, 3}, {1, 2, 3}),
        ([2, 1], {1}, {2}),
        ([3, 4, 1, 2], {1, 2}, {3, 4}),
        ([1, 4, 2, 3, 0], {1, 2, 3}, {1, 2, 3}),
    ],
)
def test_of_several_longest_parts_the_last_or_the_first_stays(
    ranks: list[int], last: set[int], first: set[int]
) -> None:
    assert fields_in_order(ranks, ranks) == last
    assert fields_in_order(ranks, ranks, prefer_first=True) == first


class _Rank(int):
    """A rank that counts its comparisons."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        _Rank.compared += 1
        return int(self) < other

    def __neg__(self) -> _Rank:
        return _Rank(-int(self))


@pytest.mark.parametrize("prefer_first", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_twice_as_many_fields_take_about_twice_as_many_comparisons(
    shuffled: bool, prefer_first: bool
) -> None:
    counts = []
    for size in (1000, 2000):
        ranks = [_Rank(i) for i in range(size)]
        if shuffled:
            random.Random(1).shuffle(ranks)
        _Rank.compared = 0
        fields_in_order(ranks, ranks, prefer_first=prefer_first)
        counts.append(_Rank.compared)
    few, many = counts
    assert few
    assert many / few < 2.4
