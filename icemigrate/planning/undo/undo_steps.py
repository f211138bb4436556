"""The steps of an undo of one table: as few commits as possible, and the statements of kept views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.change import ChangePhase, MetadataCommit
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.keep_view import DropKeptView, KeepView, KeptViewChange
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.widen_type import WidenType
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.kept_views import kept_views
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Primitive
from icemigrate.planning.plan import RECONCILE_VERSION, PlannedChange, Step
from icemigrate.planning.steps import as_steps, planned_change
from icemigrate.planning.table_difference import DetectedChange

_DATE = Primitive("date")


class UndoSteps(Frozen):
    """The steps of one table.

    :param before: those that drop kept views: they read names that the commits take away.
    :param commits: those that change the table.
    :param after: those that create or replace kept views.
    """

    before: tuple[Step, ...]
    commits: tuple[Step, ...]
    after: tuple[Step, ...]


def undo_steps(version: str, found: Sequence[DetectedChange], catalog: str) -> UndoSteps:
    """The steps of the changes that undo a migration of one table.

    :param version: of the migration that is undone.
    :param catalog: the catalog's name in Spark SQL.
    """
    views = [f for f in found if isinstance(f.change, KeptViewChange)]
    others = [f for f in found if not isinstance(f.change, KeptViewChange)]
    dropped = [f for f in views if isinstance(f.change, DropKeptView)]
    return UndoSteps(
        tuple(as_steps(dropped, catalog)),
        tuple(single_commit_step(version, part) for part in _commits(others)),
        tuple(as_steps([f for f in views if f not in dropped], catalog)),
    )


def restored_table(
    rename: RenameTable, trashed: Table, before: Table | None
) -> tuple[list[DetectedChange], Table]:
    """The changes that restore a dropped table with its kept views, and the table after them.

    :param before: the table as it was dropped; ``None`` where it is unknown.
    """
    found, after = [DetectedChange(rename, trashed)], rename.apply(trashed)
    for view in kept_views({} if before is None else before.properties):
        keep = KeepView(after.name, view)
        found.append(DetectedChange(keep, after))
        after = keep.apply(after)
    return found, after


def _commits(found: Sequence[DetectedChange]) -> Iterator[list[DetectedChange]]:
    """All changes in one commit, except for a date that returns together with its partitions or its order.

    Iceberg's library still has these, made for the other type, and accepts them when they are added
    (:func:`~icemigrate.iceberg.partitioning.can_promote_source`); once the type has changed, it reads them
    anew.
    """
    is_date = any(isinstance(f.change, WidenType) and _DATE in (f.change.old, f.change.new) for f in found)
    behind = [f for f in found if is_date and f.change.phase in (ChangePhase.PARTITION, ChangePhase.ORDER)]
    first = [f for f in found if f not in behind]
    return (commit for commit in (first, behind) if commit)


def single_commit_step(version: str, found: list[DetectedChange]) -> Step:
    """Changes of one table that are committed together.

    :param version: of the migration that is undone.
    """
    changes = tuple(_until_redone(planned_change(f), version) for f in found)
    title = version if version == RECONCILE_VERSION else f"undo {version}"
    return Step(changes, (MetadataCommit(f"{title}: {_summary(changes)}"),))


def _until_redone(planned: PlannedChange, version: str) -> PlannedChange:
    """A change with its loss in words of an undo: a column that the migration added returns with a redo."""
    if not isinstance(planned.change, DropColumn):
        return planned
    name = format_path(planned.change.path)
    reason = f"the values of `{name}` can be read again only after `apply --redo {version}`"
    return replace(planned, hazards=tuple(replace(h, reason=reason) for h in planned.hazards))


def _summary(changes: tuple[PlannedChange, ...]) -> str:
    shown = (c for c in changes if not isinstance(c.change, ExpectSnapshot))
    return "; ".join(f"{c.change.symbol} {c.text}" for c in shown)
