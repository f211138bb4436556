"""A table as the history records it, as files declare it, and as the catalog has it.

A table may have a thousand of them, and each of its migrations asks several times for the same two mappings.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from icemigrate.frozen import Frozen, PartlyCompared, field, replace
from icemigrate.iceberg.lookup import equal_ends
from icemigrate.iceberg.names import FieldPath, TableName
from icemigrate.iceberg.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.snapshot_pins import SnapshotLog, SnapshotPin
from icemigrate.iceberg.snapshot_writers import Writer
from icemigrate.iceberg.table_properties import OWNER_PROPERTY
from icemigrate.iceberg.types import Field

DEFAULT_FORMAT_VERSION = 2
DESCRIPTION_PROPERTY = "comment"
"""The property with which Spark and Iceberg store a table's description."""
CURRENT_SNAPSHOT = -1
"""Snapshot id of a declared reference: the current one when the reference is made."""
DISTRIBUTION_PROPERTY = "write.distribution-mode"
MAIN_BRANCH = "main"
"""The branch that every table has once it has a snapshot."""


class Ref(Frozen, rename="kebab", omit_defaults=True):
    """A branch or a tag (specification, "Snapshot References"); ages in milliseconds."""

    kind: str = field(name="type")
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether it sets a retention for itself or its snapshots."""
        return self != Ref(self.kind, self.snapshot_id)

    def at_snapshot_of(self, other: Ref | None) -> Ref:
        """This reference on the snapshot of another of its kind; unchanged without one."""
        if other is None or other.kind != self.kind:
            return self
        return replace(self, snapshot_id=other.snapshot_id)


DEFAULT_MAIN_BRANCH = Ref("branch", CURRENT_SNAPSHOT)
"""The main branch of a table without settings for it."""


class Snapshot(Frozen, rename="kebab"):
    """The facts about a table's current snapshot that need no manifest.

    :param total_records: live rows by the summary, ``None`` where the writer omitted it.
    :param operation: by the summary: ``append``, ``replace``, ``overwrite`` or ``delete``.
    :param notes: icemigrate's entries in the summary, without its prefix; empty for other clients' snapshots.
    """

    id: int
    timestamp_ms: int
    total_records: int | None = None
    operation: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


class BranchHead(Frozen):
    """The head of a branch that is neither main nor icemigrate's own.

    :param schema: that of its newest snapshot: its files lack fields that were added later, and may contain
        fields that were dropped before; ``None`` where the metadata does not have it.
    :param is_behind: whether main has had that snapshot, so that the branch can be moved forward to main.
    """

    snapshot: Snapshot
    schema: Schema | None = None
    is_behind: bool = False

    @property
    def has_rows(self) -> bool:
        """Whether rows may exist; a writer that gave no count counts as rows."""
        return self.snapshot.total_records != 0

    @property
    def rows_text(self) -> str:
        """How many rows it has, in words."""
        count = self.snapshot.total_records
        return "rows" if count is None else "1 row" if count == 1 else f"{count} rows"


class DroppedField(Frozen):
    """A dropped field: enough to restore it under its own ids.

    :param parent: id of its struct, ``None`` for a column.
    :param after: id of the field before it, ``None`` when it was first.
    """

    field: Field
    parent: int | None
    path: FieldPath
    after: int | None = None


class Table(PartlyCompared):
    """Everything that a migration can declare about a table, and what is needed to predict Iceberg's result.

    :param properties: as in the metadata, reserved ones left out; description, write distribution and
        retention are properties too.
    :param older_specs: all other specs of the table: Iceberg reuses their field ids.
    :param last_column_id: highest field id ever given; only grows.
    :param last_partition_id: highest partition field id ever given.
    :param dropped: fields that migrations dropped; empty on the actual side.
    :param writers: its recent writers; only on the actual side, and not part of a table's state.
    :param owner: the project that owns it; only on the actual side, like ``writers``.
    :param heads: heads of others' branches, by name; only on the actual side, like ``writers``.
    :param pins: the declared snapshots of branches and tags, by name; only on the declared side.
    :param snapshot_log: its snapshots, where a plan needs them; only on the actual side, like ``writers``.
    """

    uncompared = frozenset({"writers", "heads", "owner", "snapshot_log"})

    name: TableName
    schema: Schema
    spec: PartitionSpec = UNPARTITIONED
    sort_order: SortOrder = UNSORTED
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int = DEFAULT_FORMAT_VERSION
    location: str | None = None
    refs: Mapping[str, Ref] = field(default_factory=dict)
    uuid: str | None = None
    last_column_id: int = 0
    last_partition_id: int = 999
    older_specs: tuple[PartitionSpec, ...] = ()
    older_orders: tuple[SortOrder, ...] = ()
    snapshot: Snapshot | None = None
    dropped: tuple[DroppedField, ...] = ()
    writers: tuple[Writer, ...] = ()
    heads: Mapping[str, BranchHead] = field(default_factory=dict)
    owner: str | None = None
    pins: Mapping[str, SnapshotPin] = field(default_factory=dict)
    snapshot_log: SnapshotLog | None = None

    @property
    def snapshot_id(self) -> int | None:
        """The current snapshot's id; ``None`` without one."""
        return None if self.snapshot is None else self.snapshot.id

    @property
    def has_rows(self) -> bool:
        """Whether rows may exist; a snapshot without a count counts as rows."""
        return self.snapshot is not None and self.snapshot.total_records != 0


_Key = TypeVar("_Key")

_FEW = 64
"""The keys of two mappings that are compared one by one: faster than a look for equal ends."""
_REMEMBERED = 8
_recent: dict[tuple[int, int], tuple[Mapping[Any, Any], Mapping[Any, Any], tuple[Any, ...]]] = {}
"""The results of recent comparisons. The mappings are stored too, so that no other object gets their ids."""


def differing_keys(old: Mapping[_Key, Any], new: Mapping[_Key, Any]) -> tuple[_Key, ...]:
    """The keys that only one of two values' mappings has, or both with other values; of no certain order.

    The mappings belong to values that do not change.
    """
    if old is new:
        return ()
    known = _recent.get((id(old), id(new)))
    if known is None:
        if len(_recent) >= _REMEMBERED:
            _recent.clear()
        is_small = len(old) + len(new) <= _FEW
        keys = _differing_of_few(old, new) if is_small else tuple(_differing(old, new))
        known = _recent[id(old), id(new)] = (old, new, keys)
    return known[2]


def _differing_of_few(old: Mapping[_Key, Any], new: Mapping[_Key, Any]) -> tuple[_Key, ...]:
    if old == new:
        return ()
    changed = [key for key in new if key not in old or old[key] != new[key]]
    return (*changed, *[key for key in old if key not in new])


def _differing(old: Mapping[_Key, Any], new: Mapping[_Key, Any]) -> Iterator[_Key]:
    if old == new:
        return
    # A migration changes a few of thousands of keys, and the others stay in order and the same objects.
    ends = equal_ends(tuple(old), tuple(new)), equal_ends(tuple(old.values()), tuple(new.values()))
    start, end = map(min, zip(*ends, strict=True))
    yield from (key for key in islice(old, start, len(old) - end) if key not in new)
    for key in islice(new, start, len(new) - end):
        if key not in old or old[key] != new[key]:
            yield key


_VERSION_AND_MORE = re.compile(r"(__[0-9]{1,18})__[0-9a-f]{8}\Z")

CREATED_BY_PROPERTY = "icemigrate.created-by"
"""On a table that a migration created: :func:`made_by`.

A run that died between the creation and its record finds its own table by it and continues, instead of
refusing an unknown table.
"""
TRASH_NAMESPACE = "icemigrate_trash"
"""Where dropped tables wait until ``maintain`` empties it."""


def made_by(project: str, version: str) -> str:
    """The value of :data:`CREATED_BY_PROPERTY` on a table that a migration creates."""
    return f"{project}/{version}"


def creator_of(table: Table) -> str | None:
    """The value that :func:`made_by` set on a table; ``None`` where no migration created it."""
    return table.properties.get(CREATED_BY_PROPERTY)


def project_of(table: Table) -> str | None:
    """The project whose migration created a table; ``None`` without one."""
    return _creating_project(table.properties)


def _creating_project(properties: Mapping[str, str]) -> str | None:
    creator = properties.get(CREATED_BY_PROPERTY)
    return None if creator is None else creator.rpartition("/")[0]


def owner_of(table: Table) -> str | None:
    """The project that owns a table; ``None`` without one.

    Older releases recorded only the creator of a table.
    """
    return table.owner or project_of(table)


def recorded_owner(properties: Mapping[str, str]) -> str | None:
    """The same as :func:`owner_of`, from all properties in a table's metadata."""
    return properties.get(OWNER_PROPERTY) or _creating_project(properties)


def trash_name(name: TableName, project: str, version: str) -> TableName:
    """The name of a table in the trash.

    :param version: of the migration that dropped it, or that created it and was undone.
    """
    first = shortened(
        "__".join((*name.namespace, name.name, project)), MAX_NAME_BYTES - 2 - len(version) - 10
    )
    return TableName((TRASH_NAMESPACE,), f"{first}__{version}")


def unique_trash_name(trash: TableName, uuid: str | None) -> TableName:
    """A name in the trash that no other table gets, also if the same version is applied again."""
    return TableName(trash.namespace, f"{trash.name}__{(uuid or '')[:8]}")


def trash_names(name: TableName, project: str, version: str) -> tuple[TableName, ...]:
    """All names that a table may have in the trash.

    The second one is of releases that left the project out of the name, the third of those that did not
    shorten it.
    """
    older = ((*name.namespace, name.name, version), (*name.namespace, name.name, project, version))
    names = (
        trash_name(name, project, version),
        *(TableName((TRASH_NAMESPACE,), "__".join(o)) for o in older),
    )
    return tuple(dict.fromkeys(names))


def aside_name(name: TableName, project: str, version: str) -> TableName:
    """The name under which a table waits while another table of the migration takes its old name.

    :param name: its name before the migration.
    """
    first = shortened(f"icemigrate_aside__{name.name}", MAX_NAME_BYTES - 4 - len(project) - len(version))
    return TableName(name.namespace, f"{first}__{project}__{version}")


MAX_NAME_BYTES = 255
"""Limit of each part of a table's name, in bytes of UTF-8: file systems and SQL catalogs have it."""
_DIGEST_LENGTH = 16


def shortened(name: str, limit: int) -> str:
    """A name of at most ``limit`` bytes in UTF-8; a longer one is cut, and ends in a digest of the whole."""
    content = name.encode("utf-8", "surrogatepass")
    if len(content) <= limit:
        return name
    digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LENGTH]
    start = content[: limit - 2 - _DIGEST_LENGTH].decode("utf-8", "ignore")
    return f"{start}__{digest}"


def purge_name(name: TableName, run: str) -> TableName:
    """The name under which one run of ``maintain`` drops a table of the trash: no other process uses it.

    :param run: the run's id.
    """
    first = _VERSION_AND_MORE.sub(r"\1", name.name)
    return TableName(name.namespace, f"{first}__{run[:8]}")
