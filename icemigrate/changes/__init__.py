"""The kinds of change: one file each, and the one list of them."""

from __future__ import annotations

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.add_partition_field import AddPartitionField
from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.base import Change
from icemigrate.changes.change_reference import ChangeReference
from icemigrate.changes.create_reference import CreateReference
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.describe_column import DescribeColumn
from icemigrate.changes.describe_table import DescribeTable
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_partition_field import DropPartitionField
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.end_refill import EndRefill
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.free_identifier import FreeIdentifier
from icemigrate.changes.free_sort_order import FreeSortOrder
from icemigrate.changes.make_optional import MakeOptional
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.move_column import MoveColumn
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.rename_partition_field import RenamePartitionField
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.changes.rewind_rows import RewindRows
from icemigrate.changes.set_default import SetDefault
from icemigrate.changes.set_identifier import SetIdentifier
from icemigrate.changes.set_property import SetProperty
from icemigrate.changes.set_sort_order import SetSortOrder
from icemigrate.changes.unset_property import UnsetProperty
from icemigrate.changes.upgrade_format import UpgradeFormat
from icemigrate.changes.widen_type import WidenType
from icemigrate.changes.write_distribution import WriteDistribution

__all__ = ["KINDS", "UNDO_KINDS", "kind_named"]

KINDS: tuple[type[Change], ...] = (
    CreateTable,
    AdoptTable,
    RenameTable,
    UpgradeFormat,
    FreeIdentifier,
    FreeSortOrder,
    DropPartitionField,
    DropColumn,
    RenameColumn,
    MakeOptional,
    MakeRequired,
    WidenType,
    SetDefault,
    DescribeColumn,
    RestoreColumn,
    AddColumn,
    MoveColumn,
    RenamePartitionField,
    AddPartitionField,
    SetSortOrder,
    SetIdentifier,
    WriteDistribution,
    DescribeTable,
    SetProperty,
    UnsetProperty,
    DropReference,
    ChangeReference,
    CreateReference,
    DropTable,
)
"""Every kind, in running order: by phase, and inside a phase as they stand here."""

UNDO_KINDS: tuple[type[Change], ...] = (ExpectSnapshot, RewindRows, RefillColumns, EndRefill)
"""Kinds that no difference of two tables tells."""

_BY_NAME = {kind.kind: kind for kind in (*KINDS, *UNDO_KINDS)}


def kind_named(name: str) -> type[Change]:
    """The kind of this name.

    :raises KeyError: there is none, as in a plan that a newer version has written.
    """
    return _BY_NAME[name]
