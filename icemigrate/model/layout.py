"""How a table's data files are spread over the ways it was partitioned, and which of them lie an old way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icemigrate.frozen import Frozen
from icemigrate.model.partitioning import PartitionSpec
from icemigrate.model.table import Table


class Portion(Frozen):
    """Live data files.

    :param bytes: their size; ``None`` where finding out would have taken too long.
    """

    files: int
    bytes: int | None


class Layout(Frozen):
    """The live data files of a table's current snapshot by the id of the spec they were written under."""

    by_spec: Mapping[int, Portion]


class OldShare(Frozen):
    """How much of a table lies another way than it is, or shall be, partitioned.

    :param files: data files that do, of the ``all_files`` of the current snapshot.
    :param bytes: their size; ``None`` where it is not known, as of ``all_bytes``.
    """

    files: int
    all_files: int
    bytes: int | None = None
    all_bytes: int | None = None

    def __str__(self) -> str:
        text = f"{self.files} of {self.all_files} files"
        if self.bytes is None or self.all_bytes is None:
            return f"{text}, of unknown size,"
        return f"{text}, {size_text(self.bytes)} of {size_text(self.all_bytes)},"


def old_share(layout: Layout, table: Table, wanted: PartitionSpec) -> OldShare:
    """What lies another way than by the wanted spec.

    By which fields and transforms files are parted counts, not how the partition fields are called, nor
    their order: files that only lack a new name lie as they shall.

    :param table: the table as it is, with all its specs.
    """
    same = same_way(table, wanted)
    old = [portion for spec_id, portion in layout.by_spec.items() if spec_id not in same]
    every = list(layout.by_spec.values())
    return OldShare(_files(old), _files(every), _bytes(old), _bytes(every))


def same_way(table: Table, wanted: PartitionSpec) -> frozenset[int]:
    """The ids of a table's specs by which files are parted as by the wanted one."""
    goal = _parts(wanted)
    return frozenset(spec.id for spec in (table.spec, *table.older_specs) if _parts(spec) == goal)


def is_one_way(table: Table) -> bool:
    """Whether all of a table's specs part files alike."""
    return len(same_way(table, table.spec)) == len({s.id for s in (table.spec, *table.older_specs)})


def was_another_way(recorded: Table) -> bool:
    """Whether a table, as a history keeps it (without its older specs), was ever partitioned otherwise.

    Specs are counted from 0, and kept is the highest id.  Histories of before kept none; there it shows where
    more field ids were given, from 1000 on, than there are fields.
    """
    return recorded.spec.id != 0 or recorded.last_partition_id >= 1000 + len(recorded.spec.fields)


def _parts(spec: PartitionSpec) -> frozenset[tuple[tuple[int, ...], str]]:
    return frozenset((f.source_ids, str(f.transform)) for f in spec.live)


def _files(portions: Iterable[Portion]) -> int:
    return sum(p.files for p in portions)


def _bytes(portions: Iterable[Portion]) -> int | None:
    total = 0
    for portion in portions:
        if portion.bytes is None:
            return None
        total += portion.bytes
    return total


_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def size_text(size: int) -> str:
    """``640 bytes``, ``3.4 GB``: units of a thousand."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} bytes" if unit == 0 else f"{value:.{1 if value < 99.95 else 0}f} {_UNITS[unit]}"
