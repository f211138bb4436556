"""What one migration file says, as typed values that nothing was folded into yet.

Three things can be said of a key: it is absent (:data:`UNSET`), it is given as ``null`` (``None``),
or it has a value.  Keys whose absence and emptiness mean the same (``columns``, ``renames``, …) are
plain tuples.  Types, paths, partition and sort terms stay the strings that the user wrote; the fold
parses them and asks :meth:`TableEntry.place_of` where to point when one is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from icemigrate.declare.checksum import checksum
from icemigrate.declare.data_entries import BackfillEntry, CheckEntry, RetypeEntry
from icemigrate.declare.ignores import Ignore
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Place
from icemigrate.frozen import Frozen, PartlyCompared, field
from icemigrate.model.names import BadName, TableName, format_path, parse_path


class Unset(Enum):
    """The type of :data:`UNSET`; an enum, since type checkers narrow ``x is UNSET`` then."""

    UNSET = "unset"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The key was not written at all: unchanged, by the second rule of the fold."""

Subject: TypeAlias = tuple[str, ...]
"""What a place is asked for: ``("columns", "address.zip", "type")``, ``("partition_by", "0")``, …"""

AllowKind: TypeAlias = Literal["destructive", "incompatible", "irreversible"]
WriteDistribution: TypeAlias = Literal["none", "hash", "range"]
Scalar: TypeAlias = "str | int | float | bool | None"
Data: TypeAlias = "Scalar | list[Data] | dict[str, Data]"


class Allow(PartlyCompared):
    """A consent: ``destructive``, or ``destructive market_data.trades.qualifiers`` for that alone."""

    uncompared = frozenset({"place"})

    kind: AllowKind
    scope: str | None
    place: Place


class Default(PartlyCompared):
    """A column's default as written; the fold reads it by the column's type.

    :param value: what YAML makes of it (a date or a time is a string here); ``None`` takes a default away.
    :param text: the characters of a scalar as written, without quotes, so that ``1.10`` keeps its zero;
        JSON for a list or a mapping.
    """

    uncompared = frozenset({"place", "value"})

    value: Data
    text: str
    is_null: bool
    place: Place


class ColumnEntry(PartlyCompared):
    """A column, or a part of one: a struct's field, a list's ``element``, a map's ``key`` or ``value``.

    At most one of ``type``, ``fields``, ``element`` and (``key``, ``value``) is given.

    :param name: as written; ``element``, ``key`` and ``value`` for those parts.
    :param place: of the name.
    :param path: dotted from the table down, as in subjects: ``address.zip``, ``tags.element``.
    """

    uncompared = frozenset({"place"})

    name: str
    path: str
    place: Place
    type: str | Unset = UNSET
    required: bool | Unset = UNSET
    default: Default | Unset = UNSET
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


class DropColumn(PartlyCompared):
    """``drop_columns: [qualifiers, {name: ssn, purge: true}]``; the name may be a path."""

    uncompared = frozenset({"place"})

    name: str
    purge: bool
    place: Place


class SnapshotRetention(Frozen):
    """How long snapshots are kept; ``None`` takes a limit away."""

    max_age: timedelta | None | Unset = UNSET
    keep_at_least: int | None | Unset = UNSET


class RowRetention(Frozen):
    """Rows whose ``column`` is older than ``max_age`` go."""

    column: str
    max_age: timedelta


class Retention(Frozen):
    """The policy that ``maintain`` carries out; ``None`` takes a part away."""

    snapshots: SnapshotRetention | None | Unset = UNSET
    rows: RowRetention | None | Unset = UNSET


class Reference(Frozen):
    """A branch or a tag; ``UNSET`` retention keeps it for ever.

    :param max_age: of the reference itself.
    :param snapshots: of the snapshots on a branch; always ``UNSET`` for a tag.
    """

    max_age: timedelta | Unset = UNSET
    snapshots: SnapshotRetention | Unset = UNSET


class NamespaceEntry(PartlyCompared):
    """A namespace to be there."""

    uncompared = frozenset({"place"})

    name: str
    place: Place


class Replaces(PartlyCompared):
    """``replaces`` of a squashed file: the versions it stands for, and the digest over their checksums.

    :param versions: each of them with its file's checksum, in order; empty where they are not listed.
    """

    uncompared = frozenset({"place", "versions"})

    first: Version
    last: Version
    digest: str
    place: Place
    versions: tuple[tuple[Version, str], ...] = ()


class TableEntry(PartlyCompared):
    """What a file says about one table (``name``) or about all that fit a pattern (``match``).

    ``for_each`` is expanded already. Exactly one of ``name`` and ``match`` is given.

    :param place: of the name or the pattern.
    :param variables: what ``for_each`` put in for this entry: ``{"tenant": "acme"}``.
    :param refilled: those of ``restore_columns`` whose values come back from a version that keeps them.
    :param places: subject → place. ``("columns", path)``, ``("columns", path, "type")`` and its other keys,
        ``("renames", old)`` and ``("renames", old, "to")``, ``("drop_columns", name)``,
        ``("restore_columns", name)``, ``("identifier", name)``, ``("partition_by", "0")``,
        ``("sort_by", "0")``, ``("properties", key)``, ``("retention", "rows", "column")``,
        ``("tags", name)``, ``("branches", name)``, ``("backfill", "0", "set", column)``,
        ``("retype", column)``, ``("checks", "0", "after")``, and ``(key,)`` for every key that was written.
    """

    uncompared = frozenset({"place", "places", "variables"})

    name: str | None
    match: str | None
    place: Place
    variables: Mapping[str, str] = field(default_factory=dict)
    description: str | None | Unset = UNSET
    renamed_from: str | Unset = UNSET
    renames: tuple[tuple[str, str], ...] = ()
    columns: tuple[ColumnEntry, ...] = ()
    drop_columns: tuple[DropColumn, ...] = ()
    restore_columns: tuple[str, ...] = ()
    refilled: tuple[str, ...] = ()
    identifier: tuple[str, ...] | Unset = UNSET
    partition_by: tuple[str, ...] | Unset = UNSET
    sort_by: tuple[str, ...] | Unset = UNSET
    write_distribution: WriteDistribution | Unset = UNSET
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
    places: Mapping[Subject, Place] = field(default_factory=dict)

    def fits(self, table: TableName) -> bool:
        """Whether its pattern, where it has one, fits a declared table; ``*`` stands for anything, dots
        included."""
        return self.match is not None and fnmatchcase(str(table), self.match)

    def place_of(self, subject: Subject) -> Place:
        """The place of a subject, of its longest known prefix, or of the entry.

        A column that the entry only renames or brings back is placed there.
        """
        for known in self._names_of(subject):
            for length in range(len(known), 1, -1):
                if known[:length] in self.places:
                    return self.places[known[:length]]
        return self.places.get(subject[:1], self.place)

    def _names_of(self, subject: Subject) -> Iterator[Subject]:
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


class MigrationFile(PartlyCompared):
    """One migration file without mistakes of its own.

    :param path: as shown to the user, relative to the working directory where possible.
    :param name: the file name's part after the version, without the extension: ``rename_volume``.
    :param fingerprint: of the file's bytes, see :func:`icemigrate.declare.checksum.fingerprint`.
    :param allow_place: where a missing ``allow`` is to be told: of ``allow``, else of the first key.
    :param ignores: its comments for icemigrate, which are no part of its content.
    """

    uncompared = frozenset({"allow_place", "fingerprint", "ignores", "place"})

    version: Version
    path: str
    name: str
    place: Place
    description: str | None = None
    allow: tuple[Allow, ...] = ()
    because: str | None = None
    namespaces: tuple[NamespaceEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()
    replaces: Replaces | None = None
    allow_place: Place | None = None
    fingerprint: str = ""
    ignores: tuple[Ignore, ...] = ()

    @property
    def checksum(self) -> str:
        """SHA-256 in hex over the content that counts; computed at every call, since ``check`` needs none."""
        return checksum(self)

    def entry_of(self, table: TableName) -> TableEntry | None:
        """The entry that is about a table, by its name after the migration.

        :raises BadName: an entry's name is none, which the fold says as a mistake.
        """
        named = (e for e in self.tables if e.name is not None and TableName.parse(e.name) == table)
        return next(named, None) or next((e for e in self.tables if e.fits(table)), None)


class UnreadFile(Frozen):
    """A migration file whose bytes are those that were applied, so that reading it tells nothing new.

    :param path: as shown to the user.
    :param checksum: of what was applied, and so of the file.
    """

    version: Version
    path: str
    name: str
    checksum: str
    description: str | None = None

    @property
    def place(self) -> Place:
        """The file as a whole."""
        return Place(self.path)


AnyFile: TypeAlias = MigrationFile | UnreadFile
