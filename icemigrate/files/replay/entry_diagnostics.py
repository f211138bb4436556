"""Diagnostics of one table entry, collected during replay."""

from __future__ import annotations

from icemigrate.diagnostics import Diagnostic, FilePosition, Replacement, Severity
from icemigrate.files.parse.term_text import PartitionTerm, TermSyntaxError, parse_partition, parse_sort
from icemigrate.files.read.migration_file import KeyPath, TableEntry
from icemigrate.frozen import replace
from icemigrate.iceberg.names import BadName, FieldPath, TableName, parse_path
from icemigrate.iceberg.partitioning import SortTerm
from icemigrate.iceberg.type_text import TypeSyntaxError, parse_type
from icemigrate.iceberg.types import Type


class EntryDiagnostics:
    """Diagnostics about one entry and its table, each with its position in the file."""

    def __init__(self, entry: TableEntry, table: str) -> None:
        self.entry = entry
        self.table = table
        self.found: list[Diagnostic] = []

    def error(
        self,
        code: str,
        subject: KeyPath,
        message: str,
        hint: str | None = None,
        replacement: Replacement | None = None,
    ) -> None:
        """Add an error, which makes the table invalid.

        :param replacement: the correction, where only one is possible.
        """
        found = self._diagnostic(code, subject, message, hint, Severity.ERROR)
        self.found.append(found if replacement is None else replace(found, replacement=replacement))

    def warn(self, code: str, subject: KeyPath, message: str, hint: str | None = None) -> None:
        """Add a warning."""
        self.found.append(self._diagnostic(code, subject, message, hint, Severity.WARNING))

    def path(self, text: str, subject: KeyPath) -> FieldPath | None:
        """A dotted path, or ``None``, which is reported."""
        try:
            return parse_path(text)
        except BadName as e:
            self.error("bad-name", subject, str(e))
            return None

    def name(self, text: str, subject: KeyPath) -> TableName | None:
        """A table's name, or ``None``, which is reported."""
        try:
            return TableName.parse(text)
        except BadName as e:
            self.error("bad-name", subject, str(e))
            return None

    def type(self, text: str, of: str, subject: KeyPath) -> Type | None:
        """A type, or ``None``, which is reported.

        :param of: the column's path, for the message.
        """
        try:
            return parse_type(text)
        except TypeSyntaxError as e:
            where = f", at character {e.offset + 1}" if e.offset else ""
            self.error("bad-type", subject, f"the type of `{of}`: {e}{where}", e.hint, e.replacement)
            return None

    def partition(self, text: str, subject: KeyPath) -> PartitionTerm | None:
        """A term of ``partition_by``, or ``None``, which is reported."""
        try:
            return parse_partition(text)
        except TermSyntaxError as e:
            self.error("bad-term", subject, str(e), e.hint, e.replacement)
            return None

    def sort(self, text: str, subject: KeyPath) -> SortTerm | None:
        """A term of ``sort_by``, or ``None``, which is reported."""
        try:
            return parse_sort(text)
        except TermSyntaxError as e:
            self.error("bad-term", subject, str(e), e.hint, e.replacement)
            return None

    @property
    def broken(self) -> bool:
        """Whether the diagnostics contain an error."""
        return any(d.severity is Severity.ERROR for d in self.found)

    def place(self, subject: KeyPath) -> FilePosition:
        """The position of the subject in the file."""
        return self.entry.place_of(subject)

    def _diagnostic(
        self, code: str, subject: KeyPath, message: str, hint: str | None, severity: Severity
    ) -> Diagnostic:
        # One entry may expand to many tables, so the position alone does not name the table.
        about = f"{self.table}: " if self.entry.match is not None else ""
        return Diagnostic(code, about + message, self.place(subject), hint, severity)
