"""Counts the work of replaying and planning migrations, and limits it before it is done.

A migration compares all parts of its tables, so the work is the sum of their sizes over all migrations.
Files of less than a megabyte could ask for hours of it.  The unit is about half a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.read.for_each import LIMITED_BYTES
from icemigrate.files.read.migration_file import UNSET, KeyPath, MigrationFile, TableEntry
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.partitioning import FIRST_FIELD_ID
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table

WORK_LIMIT = 40_000_000
"""The limit for files of up to :data:`LIMITED_BYTES` together; above, it grows with their size.

3,000 tables of telemetry (1,000 tenants) take 11 million, and each further column in all of them 3 million.
"""
_OF_A_MIGRATION = 300
_OF_A_TABLE = 500
_OF_A_KEY = 60
_OF_A_NEW_KEY = 25
"""The work of a key of an entry that creates a table: nothing is compared with it."""
_OF_PROPERTIES = 80
"""The work of an entry that changes only properties: the columns and the layout are not compared."""
_OF_A_PROPERTY = 15
_ONLY_PROPERTIES = frozenset({"match", "name", "properties"})
_AT_ONCE = 5
"""How many fields of a table are compared with one key of an entry in a unit of work."""
_NAMES_AT_ONCE = 20
"""How many names of tables are copied in a unit of work."""
_SEPARATE = frozenset({"properties", "branches", "tags"})
"""Keys of an entry that are not compared with fields."""
_ONE_BY_ONE = frozenset({"restore_columns", "retype"})
"""Keys of an entry for which fields are compared one at a time."""


class ReplayWork:
    """What is left of the work that the migrations of one replay may take."""

    __slots__ = ("_left",)

    def __init__(self, files: Iterable[MigrationFile]) -> None:
        size = sum(file.size for file in files)
        self._left: float = WORK_LIMIT * max(size, LIMITED_BYTES) // LIMITED_BYTES

    @classmethod
    def unlimited(cls) -> ReplayWork:
        """Work without a limit."""
        work = cls(())
        work._left = float("inf")
        return work

    @property
    def is_exceeded(self) -> bool:
        """Whether the migrations so far take more work than they may, so that no further one is replayed."""
        return self._left < 0

    def take(self, work: int) -> None:
        """Count work that is about to be done."""
        self._left -= work


def work_of_state(state: DeclaredState) -> int:
    """The work of one migration, whatever is in it: the state is copied."""
    return _OF_A_MIGRATION + (len(state.tables) + len(state.namespaces) + len(state.former)) // _NAMES_AT_ONCE


def work_of_entry(entry: TableEntry, before: Table | None) -> int:
    """The work of replaying and planning an entry, without that of nested fields in types.

    :param before: the declared table; ``None`` at its first mention.
    """
    if before is not None and all(key[0] in _ONLY_PROPERTIES for key in entry.places):
        return _OF_PROPERTIES + _OF_A_PROPERTY * len(entry.places) + len(before.properties) + len(before.refs)
    gone = len(entry.renames) + len(entry.drop_columns)
    expressions = sum(len(step.sets) + 1 for step in entry.backfill)
    of_a_key = _OF_A_NEW_KEY if before is None else _OF_A_KEY
    work = _OF_A_TABLE + of_a_key * (len(entry.places) + gone * expressions)
    fields = len(entry.columns)
    if before is None:
        placed = sum(column.first or column.after is not UNSET for column in entry.columns)
        return work + fields * placed // _AT_ONCE
    # All fields and partition fields that the table ever had: dropped ones are compared too.
    fields += before.last_column_id + before.last_partition_id - FIRST_FIELD_ID + 1
    changes = sum(map(_weight, entry.places))
    references = len(entry.branches) + len(entry.tags)
    work += fields + len(before.properties) + (len(before.refs) + references) * (1 + references)
    return work + (fields * changes + len(before.properties) * gone) // _AT_ONCE


def _weight(key: KeyPath) -> int:
    """How often the fields of a table are compared with a key of an entry."""
    if len(key) < 2 or key[0] in _SEPARATE:
        return 0
    # The fields of a struct are compared one at a time too.
    return _AT_ONCE if key[0] in _ONE_BY_ONE or "." in key[1] else 1


def work_of_new_fields(table: Table) -> int:
    """The work of planning the new fields of a table: a nested one is looked up in each struct above it."""
    return _OF_A_NEW_KEY * sum(len(entry.path) for _, entry in schema_index(table.schema).new())


def too_much_work(place: FilePosition) -> Diagnostic:
    """The error of the migration that exceeds the limit."""
    return Diagnostic(
        "too-much-work",
        "the migrations up to this one compare too many columns, properties, branches and tags of tables",
        place,
        "run `icemigrate squash --through VERSION` for older migrations, or split this one",
    )
