"""The search for the next record behind damaged bytes, with a bound on its work.

Each place that looks like the beginning of a record is tried.  Bytes can be made so that each of millions of
places takes as long as a record of 64 MiB, so the work that leads to no record is counted: it can be
:data:`_MOST_WORK` bytes, and some more for each byte that is passed.  A place whose record is longer than
what is left is not tried; its bytes are reported like other damaged ones, and no byte is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from heapq import heappop, heappush

_MOST_WORK = 256 * 1024 * 1024
_WORK_PER_BYTE = 8
_LENGTH = 4
_RECORD_BEGINS = re.compile(rb"(?=[\x00-\x04][\x00-\xff]{3}[\x0a\x28])")
"""The length of a record, and the first byte of Protocol Buffers or of a frame."""


class SearchBudget:
    """The work without a result that reading a file may take, in bytes that are parsed."""

    def __init__(self) -> None:
        self._left = _MOST_WORK

    def earn(self, count: int) -> None:
        """Pass some bytes of the file."""
        self._left = min(_MOST_WORK, self._left + _WORK_PER_BYTE * count)

    def allows(self, size: int) -> bool:
        """Whether bytes may be parsed that may be no record."""
        return size <= self._left

    def spend(self, size: int) -> None:
        """Count bytes that were no record."""
        self._left -= size


class RecordSearch:
    """Finds the next record behind damaged bytes, while bytes are added to them.

    :param is_record: whether a record begins at an offset.
    """

    def __init__(self, is_record: Callable[[int], bool], budget: SearchBudget) -> None:
        self._is_record, self._budget = is_record, budget
        self._searched = 1
        self._waiting = list[tuple[int, int]]()

    def find(self, data: bytearray) -> int | None:
        """Where the next record begins; ``None`` where there is none yet.

        :param data: the damaged bytes and those behind them: those of the last call, and more.
        """
        while self._waiting and self._waiting[0][0] <= len(data):
            _, begin = heappop(self._waiting)
            if self._is_record(begin):
                return begin
        begin = self._searched
        self._searched = max(begin, len(data) - _LENGTH)
        self._budget.earn(self._searched - begin)
        for match in _RECORD_BEGINS.finditer(data, begin):
            at = match.start()
            length = int.from_bytes(data[at : at + _LENGTH], "big")
            if not self._budget.allows(length):
                continue
            # What waits for its last bytes is counted, too: it bounds how many places wait.
            self._budget.spend(length)
            end = at + _LENGTH + length
            if end > len(data):
                heappush(self._waiting, (end, at))
            elif self._is_record(at):
                return at
        return None
