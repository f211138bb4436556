"""A table as all three sides see it: base from history, wanted from files, actual from the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.frozen import Frozen, PartlyCompared, field
from icemigrate.model.names import Path, TableName
from icemigrate.model.partitioning import UNPARTITIONED, PartitionSpec
from icemigrate.model.schema import Schema
from icemigrate.model.sorting import UNSORTED, SortOrder
from icemigrate.model.types import Field
from icemigrate.model.writers import Writer

DEFAULT_FORMAT_VERSION = 2
DESCRIPTION_PROPERTY = "comment"
"""Where Spark and Iceberg keep a table's description."""
CURRENT_SNAPSHOT = -1
"""Snapshot id of a declared reference: the current one when the reference is made."""
DISTRIBUTION_PROPERTY = "write.distribution-mode"
MAIN_BRANCH = "main"
"""The branch that every table has once it has a snapshot."""


class Ref(Frozen):
    """A branch or a tag (specification, "Snapshot References"); ages in milliseconds."""

    kind: str
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether it says anything of how long it, or the snapshots on it, are kept."""
        return self != Ref(self.kind, self.snapshot_id)


UNSAID_MAIN = Ref("branch", CURRENT_SNAPSHOT)
"""The main branch of a table that says nothing of it: as every table has it."""


class Snapshot(Frozen):
    """What is known of a table's current snapshot without reading a manifest.

    :param total_records: live rows by the summary, ``None`` where the writer did not say.
    :param operation: by the summary: ``append``, ``replace``, ``overwrite`` or ``delete``.
    :param notes: what icemigrate wrote into the summary, without its prefix; empty for others' snapshots.
    """

    id: int
    timestamp_ms: int
    total_records: int | None = None
    operation: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


class Head(Frozen):
    """Where a branch stands that is neither main nor icemigrate's own.

    :param schema: that of its newest snapshot: a field that was added later is in no file of it, and one that
        was dropped before may be; ``None`` where the metadata do not say.
    :param is_behind: whether main has come by that snapshot, so that the branch can be moved on to main.
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


class Dropped(Frozen):
    """A field that a migration dropped: enough to bring it back under its own ids.

    :param parent: id of the struct it stood in, ``None`` for a column.
    :param after: id of the field it stood behind, ``None`` when it was first.
    """

    field: Field
    parent: int | None
    path: Path
    after: int | None = None


class Table(PartlyCompared):
    """Everything a migration can speak of, and what is needed to predict what Iceberg will do.

    :param properties: as in the metadata, reserved ones left out; description, write distribution
        and retention are properties too.
    :param older_specs: all other specs of the table: Iceberg takes field ids from them again.
    :param last_column_id: highest field id ever given; only grows.
    :param last_partition_id: highest partition field id ever given.
    :param dropped: fields that migrations dropped; empty on the actual side.
    :param writers: who wrote it of late; known of the actual side alone, and no part of what a table is.
    :param owner: the project that owns it; known of the actual side alone, like ``writers``.
    :param heads: where others' branches stand, by name; known of the actual side alone, like ``writers``.
    """

    uncompared = frozenset({"writers", "heads", "owner"})

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
    dropped: tuple[Dropped, ...] = ()
    writers: tuple[Writer, ...] = ()
    heads: Mapping[str, Head] = field(default_factory=dict)
    owner: str | None = None

    @property
    def snapshot_id(self) -> int | None:
        """The current snapshot's id; ``None`` where there is none."""
        return None if self.snapshot is None else self.snapshot.id

    @property
    def has_rows(self) -> bool:
        """Whether rows may exist; a snapshot whose writer gave no count counts as rows."""
        return self.snapshot is not None and self.snapshot.total_records != 0
