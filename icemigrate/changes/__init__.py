"""Kinds of change, listed in the order in which they run."""

from __future__ import annotations

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.add_partition_field import AddPartitionField
from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.change import Change
from icemigrate.changes.change_reference import ChangeReference
from icemigrate.changes.create_reference import CreateReference
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.descriptions import DescribeColumn, DescribeTable
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_partition_field import DropPartitionField
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.end_refill import EndRefill
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.identifier_fields import FreeIdentifier, SetIdentifier
from icemigrate.changes.keep_view import DropKeptView, KeepView, ReplaceKeptView
from icemigrate.changes.make_optional import MakeOptional
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.move_column import MoveColumn
from icemigrate.changes.property_changes import SetProperty, UnsetProperty
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.rename_partition_field import RenamePartitionField
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.changes.rewind_rows import RewindRows
from icemigrate.changes.set_default import SetDefault
from icemigrate.changes.sort_order import FreeSortOrder, SetSortOrder
from icemigrate.changes.upgrade_format import UpgradeFormat
from icemigrate.changes.widen_type import WidenType
from icemigrate.changes.write_distribution import WriteDistribution

__all__ = ["CHANGE_KINDS", "UNDO_CHANGE_KINDS", "find_change_kind"]

CHANGE_KINDS: tuple[type[Change], ...] = (
    CreateTable,
    AdoptTable,
    RenameTable,
    DropKeptView,
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
    KeepView,
    ReplaceKeptView,
    DropTable,
)
"""Every kind that a difference of two tables can contain, by phase, and within a phase in running order."""

UNDO_CHANGE_KINDS: tuple[type[Change], ...] = (ExpectSnapshot, RewindRows, RefillColumns, EndRefill)
"""Kinds that only an undo plans."""

_BY_NAME = {kind.kind: kind for kind in (*CHANGE_KINDS, *UNDO_CHANGE_KINDS)}


def find_change_kind(name: str) -> type[Change]:
    """The kind with a name.

    :raises KeyError: there is none, as in a plan that a newer release has written.
    """
    return _BY_NAME[name]
