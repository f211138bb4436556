"""Rows that do not fit a table: counted, shown, and kept in a file."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.diagnostics import Diagnostic, FilePosition, format_count
from icemigrate.errors import Mistakes
from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import escaped_json
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.types import Field, Primitive, Type, is_nested

SHOWN_ROWS = 10
"""How many rows a message shows."""
_SHOWN_PROBLEMS = 40
"""With so many problems, a message shows no further row."""
_LONGEST_VALUE = 60
_FORMATS = {"float": "f", "double": "d"}
"""The format of each floating-point type in :mod:`struct`."""
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,40}(\.0*)?\s*")


class BadRow(Frozen):
    """A row that does not fit.

    :param file: as the user named it; empty for rows of this process.
    :param row: its number; in a CSV or JSON file the line where it begins.
    :param problems: all that does not fit.
    :param values: of the row, or its text.
    :param source: the row as it was given, as a JSON object on one line; ``None`` where `values` are that.
    """

    file: str
    row: int
    problems: tuple[str, ...]
    values: Mapping[str, Any]
    source: str | None = None

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The row as messages, one for each problem."""
        if not self.file:
            return tuple(Diagnostic("bad-row", f"row {self.row:,}: {one}") for one in self.problems)
        place = FilePosition(self.file, self.row)
        return tuple(Diagnostic("bad-row", one, place) for one in self.problems)


class BadRows:
    """All rows that do not fit, in the order in which they were found.

    :param are_kept: whether all of them are kept as JSON lines, and not only the first ones.
    :ivar count: of all.
    """

    def __init__(self, *, are_kept: bool = False) -> None:
        self.are_kept, self.count = are_kept, 0
        self.lines: list[str] = []
        self.first: list[BadRow] = []
        self._shown = 0

    def add(self, rows: Sequence[BadRow]) -> None:
        """Count rows."""
        self.count += len(rows)
        for row in rows[: max(0, SHOWN_ROWS - len(self.first))]:
            if self._shown < _SHOWN_PROBLEMS:
                self.first.append(row)
                self._shown += len(row.problems)
        if self.are_kept:
            self.lines.extend(_line(row) for row in rows)

    def replace(self, other: BadRows) -> None:
        """Have the rows of another attempt."""
        self.count, self.first, self.lines = other.count, other.first, other.lines

    def content(self) -> bytes:
        """The rows as JSON lines: file, row, problem and values."""
        return "".join(f"{line}\n" for line in self.lines).encode()

    def error(self, table: str, hint: str | None) -> Mistakes:
        """The error that names the first rows, and counts all."""
        rows = format_count(self.count, "row does not fit", "rows do not fit")
        shown = f" (the first {len(self.first)} are shown)" if self.count > len(self.first) else ""
        error = Mistakes(
            tuple(one for row in self.first for one in row.diagnostics),
            f"{rows} table `{table}`, and nothing is loaded{shown}",
        )
        error.hint = hint
        return error


def _line(row: BadRow) -> str:
    problem = "; ".join(row.problems)
    found = {"file": row.file, "row": row.row, "problem": problem}
    values = row.source or json.dumps(dict(row.values), ensure_ascii=False, default=str)
    return escaped_json(f'{json.dumps(found, ensure_ascii=False)[:-1]}, "values": {values}}}')


def value_problem(column: Field, value: Any) -> str:
    """Why a value that does not fit is none of a column: a sentence with both."""
    type_ = "" if is_nested(column.type) else f" ({primitive_text(column.type)})"
    if value is None or (value == "" and column.required):
        return f"column `{column.name}`{type_} is required, and there is no value"
    problem = f"column `{column.name}`{type_} cannot have the value `{shown_value(value)}`"
    nearest = _nearest_number(column.type, str(value))
    return problem if nearest is None else f"{problem}: the nearest {nearest}"


def _nearest_number(type_: Type, text: str) -> str | None:
    """The type and the nearest value for a whole number that a floating-point type lacks."""
    name = type_.name if isinstance(type_, Primitive) else ""
    if name not in _FORMATS or not _WHOLE.fullmatch(text):
        return None
    code = _FORMATS[name]
    try:
        return f"{name} is {int(struct.unpack(code, struct.pack(code, float(text)))[0])}"
    except OverflowError:
        return None


def shown_value(value: Any) -> str:
    """A value as a message shows it."""
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
