"""The check that quoted values of CSV and TSV files end (RFC 4180).

DuckDB refuses a value without a closing quote.  Arrow, which numbers the records then, takes the rest of the
file for the value.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import cast

from icemigrate.errors import UsageError
from icemigrate.table_data.input_files import InputFile

_QUOTE = b'"'


def require_closed_quotes(file: InputFile, delimiter: str) -> None:
    """Check that each quoted value ends with a quote, before a delimiter or the end of its line.

    :raises UsageError: one does not.
    """
    quotes = _Quotes(file.shown, delimiter)
    with file.content() as stream:
        # A decompressing stream of Arrow has no lines.
        for number, line in enumerate(io.BufferedReader(cast("io.RawIOBase", stream)), 1):
            quotes.read_line(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line, number)
    if quotes.opened is not None:
        raise quotes.error("does not end")


class _Quotes:
    """The quotes of a file, read line by line.

    :ivar opened: line and column of the open quote; ``None`` between quoted values.
    """

    def __init__(self, shown: str, delimiter: str) -> None:
        self._shown, self._ends = shown, re.compile(f"[{delimiter}\r\n]".encode())
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
