"""The check that quoted values of CSV and TSV files end (RFC 4180).

DuckDB refuses a value without a closing quote.  Arrow, which numbers the records then, takes the rest of the
file for the value.
"""

from __future__ import annotations

import codecs
import io
import re
from array import array
from bisect import bisect_right
from typing import cast

from icemigrate.errors import UsageError
from icemigrate.system.inflate import MIB
from icemigrate.table_data.input_files import InputFile

MOST_RECORD_BYTES = 256 * MIB
"""The longest record; a reader has it in memory several times."""
_QUOTE = b'"'


class RecordLines:
    """Where the records of a file begin; the first one, which is the header, is record 1.

    :ivar longest: the length of the longest record, in bytes.
    :ivar first: the line of the first record.
    """

    def __init__(self) -> None:
        self.longest, self.first, self._count, self._length = 0, 1, 0, 0
        self._records, self._shifts = array("q"), array("q")

    def add_line(self, line: bytes, number: int, *, is_continued: bool) -> None:
        """Count a line.

        :param is_continued: whether it belongs to the record of the line before it.
        """
        if not is_continued:
            if not line.strip(b"\r\n"):
                return
            self._count, self._length = self._count + 1, 0
            shift = number - self._count
            if not self._records:
                self.first = number
            if not self._shifts or self._shifts[-1] != shift:
                self._records.append(self._count)
                self._shifts.append(shift)
        self._length += len(line)
        self.longest = max(self.longest, self._length)

    def line(self, record: int) -> int:
        """The line where a record begins."""
        position = bisect_right(self._records, record) - 1
        return record + (self._shifts[position] if position >= 0 else 0)


def require_closed_quotes(file: InputFile) -> RecordLines:
    """Check that each quoted value ends with a quote, before a delimiter or the end of its line.

    :returns: the lines of the records.
    :raises UsageError: a quoted value does not end, or a record is too long.
    """
    quotes, lines = _Quotes(file.shown, file.delimiter), RecordLines()
    with file.content() as stream:
        # A decompressing stream of Arrow has no lines.
        for number, line in enumerate(io.BufferedReader(cast("io.RawIOBase", stream)), 1):
            plain = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            lines.add_line(plain, number, is_continued=quotes.opened is not None)
            if lines.longest > MOST_RECORD_BYTES:
                raise UsageError(
                    f"{file.shown}:{number}: the row that ends here or later has more than "
                    f"{MOST_RECORD_BYTES // MIB} MiB",
                    "load this row from a Parquet file",
                )
            quotes.read_line(plain, number)
    if quotes.opened is not None:
        raise quotes.error("does not end")
    return lines


class _Quotes:
    """The quotes of a file, read line by line.

    :ivar opened: line and column of the open quote; ``None`` between quoted values.
    """

    def __init__(self, shown: str, delimiter: str) -> None:
        self._shown, self._ends = shown, re.compile(f"[{re.escape(delimiter)}\r\n]".encode())
        self.opened: tuple[int, int] | None = None
        self._last = (1, 1)

    def read_line(self, line: bytes, number: int) -> None:
        """Go on to the end of a line."""
        if _QUOTE not in line:
            return
        position = 0
        while True:
            if self.opened is None:
                if not line.startswith(_QUOTE, position):
                    end = self._ends.search(line, position)
                    if end is None:
                        return
                    position = end.end()
                    continue
                column = len(line[:position].decode("utf-8", errors="replace")) + 1
                self.opened = self._last = (number, column)
                position += 1
            position = line.find(_QUOTE, position)
            if position < 0:
                return
            if line.startswith(_QUOTE * 2, position):
                position += 2
                continue
            self.opened, position = None, position + 1
            if position < len(line) and not self._ends.match(line, position):
                raise self.error("has text after its closing quote")

    def error(self, problem: str) -> UsageError:
        """An error that names the last opening quote."""
        line, column = self._last
        return UsageError(
            f"{self._shown}:{line}:{column}: the quoted value that begins here {problem}",
            "close the value with a quote; within the value, write each quote twice",
        )
