"""The kinds of change of a column, for tests that are about them alone."""

from __future__ import annotations

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.base import Change
from icemigrate.changes.describe_column import DescribeColumn
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.make_optional import MakeOptional
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.move_column import MoveColumn
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.changes.set_default import SetDefault
from icemigrate.changes.widen_type import WidenType

COLUMN_KINDS: tuple[type[Change], ...] = (
    DropColumn,
    RenameColumn,
    WidenType,
    MakeOptional,
    MakeRequired,
    DescribeColumn,
    SetDefault,
    RestoreColumn,
    AddColumn,
    MoveColumn,
)
