"""The content of one migration file as typed values, before replay.

A key is absent (:data:`UNSET`), ``null`` (``None``), or has a value.  Keys whose absence and emptiness mean
the same (``columns``, ``renames``, …) are plain tuples.  Types, paths, partition and sort terms stay the
strings that the user wrote; replay parses them and gets the position of an error from
:meth:`TableEntry.place_of`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from icemigrate.diagnostics import FilePosition
from icemigrate.files.checksum import checksum
from icemigrate.files.read.data_step_entries import BackfillEntry, CheckEntry, RetypeEntry
from icemigrate.files.read.ignore_comments import IgnoreComment
from icemigrate.files.read.list_sources import ListValues
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, PartlyCompared, field
from icemigrate.iceberg.names import BadName, TableName, format_path, parse_path
from icemigrate.iceberg.snapshot_pins import SnapshotPin

Unset: TypeAlias = msgspec.UnsetType
UNSET = msgspec.UNSET
"""The key was not written at all: unchanged, by the second rule of the replay."""

KeyPath: TypeAlias = tuple[str, ...]
"""The key of a position: ``("columns", "address.zip", "type")``, ``("partition_by", "0")``, …"""

AllowKind: TypeAlias = Literal["destructive", "incompatible", "irreversible"]
DistributionMode: TypeAlias = Literal["none", "hash", "range"]
Scalar: TypeAlias = "str | int | float | bool | None"
Data: TypeAlias = "Scalar | list[Data] | dict[str, Data]"


class AllowEntry(PartlyCompared):
    """A consent: ``destructive`` for the migration, or ``destructive market_data.trades.qualifiers`` for one
    column.
    """

    uncompared = frozenset({"place"})

    kind: AllowKind
    scope: str | None
    place: FilePosition


class DefaultEntry(PartlyCompared):
    """A column's default as written; replay reads it by the column's type.

    :param value: the YAML value (dates and times are strings); ``None`` removes a default.
    :param text: the characters of a scalar as written, without quotes, so that ``1.10`` keeps its zero; JSON
        for a list or a mapping.
    """

    uncompared = frozenset({"place", "value"})

    value: Data
    text: str
    is_null: bool
    place: FilePosition


class ColumnEntry(PartlyCompared):
    """A column, or a part of one: a struct's field, a list's ``element``, a map's ``key`` or ``value``.

    At most one of ``type``, ``fields``, ``element`` and (``key``, ``value``) is given.

    :param name: as written; ``element``, ``key`` and ``value`` for those parts.
    :param place: position of the name.
    :param path: dotted path from the table, as in subjects: ``address.zip``, ``tags.element``.
    """

    uncompared = frozenset({"place"})

    name: str
    path: str
    place: FilePosition
    type: str | Unset = UNSET
    required: bool | Unset = UNSET
    default: DefaultEntry | Unset = UNSET
    description: str | None | Unset = UNSET
    first: bool = False
    after: str | Unset = UNSET
    fields: tuple[ColumnEntry, ...] | Unset = UNSET
    element: ColumnEntry | Unset = UNSET
    key: ColumnEntry | Unset = UNSET
    value: ColumnEntry | Unset = UNSET

    @property
    def is_nested(self) -> bool:
        """Whether the type is written in YAML (``fields``, ``element``, ``key``/``value``)."""
        return not (
            self.fields is UNSET and self.element is UNSET and self.key is UNSET and self.value is UNSET
        )


class DropColumnEntry(PartlyCompared):
    """``drop_columns: [qualifiers, {name: ssn, purge: true}]``; the name may be a path."""

    uncompared = frozenset({"place"})

    name: str
    purge: bool
    place: FilePosition


class SnapshotRetention(Frozen):
    """How long snapshots are kept; ``None`` removes a limit."""

    max_age: timedelta | None | Unset = UNSET
    keep_at_least: int | None | Unset = UNSET


class RowRetention(Frozen):
    """Rows are deleted when their ``column`` is older than ``max_age``."""

    column: str
    max_age: timedelta


class Retention(Frozen):
    """The policy that ``maintain`` carries out; ``None`` takes a part away."""

    snapshots: SnapshotRetention | None | Unset = UNSET
    rows: RowRetention | None | Unset = UNSET


class KeepViewEntry(Frozen):
    """A view with the column names from before the migration.

    :param name: without its namespace; ``UNSET`` for the default.
    """

    max_age: timedelta
    name: str | Unset = UNSET


class Reference(Frozen):
    """A branch or a tag; with ``UNSET`` retention it does not expire.

    :param max_age: of the reference.
    :param snapshots: of the snapshots on a branch; always ``UNSET`` for a tag.
    :param pin: the snapshot that it points to; ``None`` leaves it where it is.
    """

    max_age: timedelta | Unset = UNSET
    snapshots: SnapshotRetention | Unset = UNSET
    pin: SnapshotPin | None = None


class NamespaceEntry(PartlyCompared):
    """A namespace that the migration declares."""

    uncompared = frozenset({"place"})

    name: str
    place: FilePosition


class ReplacesEntry(PartlyCompared):
    """The ``replaces`` of a squash: the versions that it replaces, and the digest of their checksums.

    :param versions: versions with the checksums of their files, in order; empty where they are not listed.
    """

    uncompared = frozenset({"place", "versions"})

    first: Version
    last: Version
    digest: str
    place: FilePosition
    versions: tuple[tuple[Version, str], ...] = ()


class TableEntry(PartlyCompared):
    """The part of a file about one table (``name``) or about all tables that match a pattern (``match``).

    ``for_each`` is expanded. Exactly one of ``name`` and ``match`` is given.

    :param place: position of the name or the pattern.
    :param variables: the values of ``for_each`` in this entry: ``{"tenant": "acme"}``.
    :param sources: by variable, the name of its list, where the values are not in the project file.
    :param refilled: members of ``restore_columns`` whose values are written back from a retained version.
    :param places: key path → position. ``("columns", path)``, ``("columns", path, "type")`` and its other
        keys, ``("renames", old)`` and ``("renames", old, "to")``, ``("drop_columns", name)``,
        ``("restore_columns", name)``, ``("identifier", name)``, ``("partition_by", "0")``, ``("sort_by",
        "0")``, ``("properties", key)``, ``("retention", "rows", "column")``, ``("tags", name)``,
        ``("branches", name)``, ``("backfill", "0", "set", column)``, ``("retype", column)``, ``("checks",
        "0", "after")``, and ``(key,)`` for every key in the entry.
    """

    uncompared = frozenset({"place", "places", "sources", "variables"})

    name: str | None
    match: str | None
    place: FilePosition
    variables: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    description: str | None | Unset = UNSET
    renamed_from: str | Unset = UNSET
    renames: tuple[tuple[str, str], ...] = ()
    keep_view: KeepViewEntry | None | Unset = UNSET
    columns: tuple[ColumnEntry, ...] = ()
    drop_columns: tuple[DropColumnEntry, ...] = ()
    restore_columns: tuple[str, ...] = ()
    refilled: tuple[str, ...] = ()
    identifier: tuple[str, ...] | Unset = UNSET
    partition_by: tuple[str, ...] | Unset = UNSET
    sort_by: tuple[str, ...] | Unset = UNSET
    write_distribution: DistributionMode | Unset = UNSET
    properties: Mapping[str, str | None] = field(default_factory=dict)
    retention: Retention | Unset = UNSET
    branches: Mapping[str, Reference | None] = field(default_factory=dict)
    tags: Mapping[str, Reference | None] = field(default_factory=dict)
    format_version: int | Unset = UNSET
    location: str | Unset = UNSET
    adopt: bool = False
    drop: bool = False
    retype: tuple[RetypeEntry, ...] = ()
    backfill: tuple[BackfillEntry, ...] = ()
    checks: tuple[CheckEntry, ...] = ()
    rewrites_old: bool = False
    places: Mapping[KeyPath, FilePosition] = field(default_factory=dict)

    @property
    def pins_references(self) -> bool:
        """Whether it declares the snapshot of a branch or a tag."""
        named = (*self.branches.values(), *self.tags.values())
        return any(reference is not None and reference.pin is not None for reference in named)

    def fits(self, table: TableName) -> bool:
        """Whether the entry's pattern matches a declared table; ``*`` matches any text, dots included."""
        return self.match is not None and fnmatchcase(str(table), self.match)

    def place_of(self, subject: KeyPath) -> FilePosition:
        """The position of a subject, of its longest known prefix, or of the entry.

        A column that the entry only renames or restores has the position of that.
        """
        for known in self._names_of(subject):
            for length in range(len(known), 1, -1):
                if known[:length] in self.places:
                    return self.places[known[:length]]
        return self.places.get(subject[:1], self.place)

    def _names_of(self, subject: KeyPath) -> Iterator[KeyPath]:
        yield subject
        if len(subject) > 1 and subject[0] == "columns":
            yield ("restore_columns", subject[1])
            for old, new in self.renames:
                if _renamed(old, new) == subject[1]:
                    yield ("renames", old, "to")


def _renamed(old: str, new: str) -> str | None:
    """The path that a rename leads to; ``None`` where a side of it is no path."""
    try:
        return format_path((*parse_path(old)[:-1], parse_path(new)[-1]))
    except BadName:
        return None


class TemplateEntry(Frozen):
    """An entry for the values of lists that are no part of the project file.

    :param entry: with a placeholder for each such value.
    :param sources: what the values come from, by variable; see :attr:`ListSource.counted`.
    """

    entry: TableEntry
    sources: Mapping[str, str]


class MigrationFile(PartlyCompared):
    """One valid migration file.

    :param path: as shown to the user, relative to the working directory where possible.
    :param name: the file name's part after the version, without the extension: ``rename_volume``.
    :param fingerprint: of the file's bytes, see :func:`icemigrate.files.checksum.fingerprint`.
    :param size: of the file, in bytes.
    :param allow_place: position for a missing ``allow``: that of ``allow``, or else of the first key.
    :param ignores: its comments for icemigrate, which are not part of its content.
    :param time_zone: the zone in which its data steps run.
    :param templates: its entries for lists that are no part of the project file; ``tables`` has their copies.
    :param lists: the values that ``tables`` has of such lists; none where they are unknown.
    :param whole_checksum: of the whole file, where this is the part of it for new values of lists.
    """

    uncompared = frozenset(
        {"allow_place", "fingerprint", "ignores", "lists", "place", "size", "whole_checksum"}
    )

    version: Version
    path: str
    name: str
    place: FilePosition
    description: str | None = None
    allow: tuple[AllowEntry, ...] = ()
    because: str | None = None
    namespaces: tuple[NamespaceEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()
    replaces: ReplacesEntry | None = None
    allow_place: FilePosition | None = None
    fingerprint: str = ""
    size: int = 0
    ignores: tuple[IgnoreComment, ...] = ()
    time_zone: str | None = None
    templates: tuple[TemplateEntry, ...] = ()
    lists: tuple[ListValues, ...] = ()
    whole_checksum: str = ""

    @property
    def checksum(self) -> str:
        """SHA-256 in hex over the content that counts; computed at every call, since ``check`` needs none."""
        return self.whole_checksum or checksum(self)

    def entry_of(self, table: TableName) -> TableEntry | None:
        """The entry about a table, by its name after the migration.

        :raises BadName: an entry has an invalid name, which replay reports.
        """
        named = (e for e in self.tables if e.name is not None and TableName.parse(e.name) == table)
        return next(named, None) or next((e for e in self.tables if e.fits(table)), None)


class UnreadFile(Frozen):
    """A migration file that is not read, because its bytes are those that were applied.

    :param path: as shown to the user.
    :param checksum: the checksum that was applied.
    """

    version: Version
    path: str
    name: str
    checksum: str
    description: str | None = None

    @property
    def place(self) -> FilePosition:
        """The position of the file as a whole."""
        return FilePosition(self.path)


AnyFile: TypeAlias = MigrationFile | UnreadFile
