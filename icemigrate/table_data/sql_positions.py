"""Positions in the SQL that a user wrote, for a statement that was made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from icemigrate.frozen import Frozen

if TYPE_CHECKING:
    from sqlglot.errors import ParseError


class EditedSql(Frozen):
    """A statement for DuckDB, made from a text by replacing parts of it.

    :param text: with the part that the user wrote.
    :param edits: in order: where a part of the text begins and ends, and what replaces it.
    :param label: names the user's part in messages, such as ``--where``.
    :param start: of the user's part.
    :param end: of the user's part; ``None`` for the end of the text.
    """

    text: str
    edits: tuple[tuple[int, int, str], ...] = ()
    label: str = "the query"
    start: int = 0
    end: int | None = None

    @property
    def sql(self) -> str:
        """The statement."""
        text = self.text
        for start, end, new in reversed(self.edits):
            text = text[:start] + new + text[end:]
        return text

    def place(self, position: int | None) -> str | None:
        """The place of a problem in what the user wrote, such as ``--where:1:6``.

        :param position: in the statement, in bytes.
        :returns: ``None`` where there is no position, or it is in a part that the user did not write.
        """
        if position is None:
            return None
        at = _before(self.edits, len(self.sql.encode()[:position].decode(errors="ignore")))
        end = len(self.text) if self.end is None else self.end
        if not self.start <= at < end:
            return None
        before = self.text[self.start : at]
        return f"{self.label}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def syntax_problem(error: ParseError, skipped_lines: int = 0) -> tuple[str, str]:
    """Where sqlglot stops to read a text, such as ``1:6``, and why, without the names of its classes.

    :param skipped_lines: lines before those that the user wrote.
    """
    at: Mapping[str, Any] = error.errors[0] if error.errors else {}
    line, word = max(1, int(at.get("line") or 1) - skipped_lines), str(at.get("highlight") or "")
    column = max(1, int(at.get("col") or 1) - len(word) + 1)
    reason = str(at.get("description") or "").rstrip(".") or "it is no SQL"
    if reason.startswith("Required keyword"):
        reason = "something is missing"
    return f"{line}:{column}", f"{reason[:1].lower()}{reason[1:]} near `{word}`"


def _before(edits: Iterable[tuple[int, int, str]], at: int) -> int:
    """The position before the edits of a character after them; the start of a part that was replaced."""
    shift = 0
    for start, end, new in edits:
        if at < start + shift:
            break
        if at < start + shift + len(new):
            return start
        shift += len(new) - (end - start)
    return at - shift
