"""What is wrong with one table entry, collected while it is folded."""

from __future__ import annotations

from icemigrate.declare.migration import Subject, TableEntry
from icemigrate.declare.terms import PartitionTerm, TermSyntaxError, parse_partition, parse_sort
from icemigrate.diagnostics import Diagnostic, Place, Severity
from icemigrate.model.names import BadName, Path, TableName, parse_path
from icemigrate.model.terms import SortTerm
from icemigrate.model.type_text import TypeSyntaxError, parse_type
from icemigrate.model.types import Type


class Complaints:
    """Diagnostics about one entry and the table it is folded over; each at its place in the file."""

    def __init__(self, entry: TableEntry, table: str) -> None:
        self.entry = entry
        self.table = table
        self.found: list[Diagnostic] = []

    def error(self, code: str, subject: Subject, message: str, hint: str | None = None) -> None:
        """Note a mistake; the table is broken by it."""
        self.found.append(self._diagnostic(code, subject, message, hint, Severity.ERROR))

    def warn(self, code: str, subject: Subject, message: str, hint: str | None = None) -> None:
        """Note what may be a mistake."""
        self.found.append(self._diagnostic(code, subject, message, hint, Severity.WARNING))

    def path(self, text: str, subject: Subject) -> Path | None:
        """A dotted path, or ``None`` after a complaint."""
        try:
            return parse_path(text)
        except BadName as e:
            self.error("bad-name", subject, str(e))
            return None

    def name(self, text: str, subject: Subject) -> TableName | None:
        """A table's name, or ``None`` after a complaint."""
        try:
            return TableName.parse(text)
        except BadName as e:
            self.error("bad-name", subject, str(e))
            return None

    def type(self, text: str, of: str, subject: Subject) -> Type | None:
        """A type, or ``None`` after a complaint.

        :param of: the column's path, for the message.
        """
        try:
            return parse_type(text)
        except TypeSyntaxError as e:
            where = f", at character {e.offset + 1}" if e.offset else ""
            self.error("bad-type", subject, f"the type of `{of}`: {e}{where}", e.hint)
            return None

    def partition(self, text: str, subject: Subject) -> PartitionTerm | None:
        """A term of ``partition_by``, or ``None`` after a complaint."""
        try:
            return parse_partition(text)
        except TermSyntaxError as e:
            self.error("bad-term", subject, str(e), e.hint)
            return None

    def sort(self, text: str, subject: Subject) -> SortTerm | None:
        """A term of ``sort_by``, or ``None`` after a complaint."""
        try:
            return parse_sort(text)
        except TermSyntaxError as e:
            self.error("bad-term", subject, str(e), e.hint)
            return None

    @property
    def broken(self) -> bool:
        """Whether there is an error among them."""
        return any(d.severity is Severity.ERROR for d in self.found)

    def place(self, subject: Subject) -> Place:
        """Where the subject stands in the file."""
        return self.entry.place_of(subject)

    def _diagnostic(
        self, code: str, subject: Subject, message: str, hint: str | None, severity: Severity
    ) -> Diagnostic:
        # One entry may stand for many tables, and then the place alone does not tell which is meant.
        about = f"{self.table}: " if self.entry.match is not None else ""
        return Diagnostic(code, about + message, self.place(subject), hint, severity)
