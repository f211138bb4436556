"""Compares the types of restored columns with the types of existing files.

A column may have had a wider type between its first migration and its drop: a later migration, now rolled
back, or another client widened it.  If files were written under that type, no reader could read them under
the narrower one.  An undo needs no such check: it restores a column with the type that it had when it was
dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.diagnostics import format_count
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.iceberg.file_evidence_values import WiderFiles
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_promotions import promotion_since
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Type, is_nested, walk_fields
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.planning.rename_tracker import RenameTracker

if TYPE_CHECKING:
    from icemigrate.catalog.catalog_port import Catalog


def with_narrow_type_problems(
    migrations: Iterable[MigrationPlan],
    actual: Mapping[TableName, Table | None],
    catalog: Catalog,
    history: History,
    redone: Collection[str] = (),
) -> tuple[MigrationPlan, ...]:
    """The plans, with a problem for each column that is restored with a narrower type than its files.

    Manifests are read only for tables with a restored column.

    :param actual: the catalog's tables by their name there.
    :param redone: the versions that are redone.
    """
    followed, checked = RenameTracker(), list[MigrationPlan]()
    for migration in migrations:
        problems = list[PlanProblem]()
        again = migration.version if migration.version in redone else None
        for plan in migration.tables:
            now = followed.now(plan)
            there = None if now is None else actual.get(now)
            if there is not None and (there.snapshot is not None or there.heads):
                problems += _problems(plan, there, catalog, history, again)
        checked.append(replace(migration, problems=(*migration.problems, *problems)))
    return tuple(checked)


def _problems(
    plan: TablePlan, there: Table, catalog: Catalog, history: History, redone: str | None
) -> Iterator[PlanProblem]:
    back = {
        field_id: (path, type_)
        for planned in plan.changes()
        if isinstance(planned.change, RestoreColumn)
        for field_id, path, type_ in _leaf_fields(planned.change)
    }
    found = catalog.wider_files(there.name, {i: type_ for i, (_, type_) in back.items()}) if back else None
    for field_id, one in (found or {}).items():
        path, narrow = back[field_id]
        widest = _widest(one.widest or narrow, field_id, there, history)
        wider = None if widest == narrow else widest
        reason = _reason(one, wider)
        if reason is not None:
            yield PlanProblem(
                "narrow-type",
                plan.declared,
                ("columns", format_path(path), "type"),
                f"`{format_path(path)}` cannot be restored as `{format_type(narrow)}`: {reason}",
                _hint(format_path(path), wider, redone),
            )


def _leaf_fields(change: RestoreColumn) -> Iterator[tuple[int, FieldPath, Type]]:
    """The restored leaf fields."""
    if not is_nested(change.field.type):
        yield change.field.id, change.path, change.field.type
    for path, field in walk_fields(change.field.type):
        if not is_nested(field.type):
            yield field.id, (*change.path, *path), field.type


def _widest(known: Type, field_id: int, there: Table, history: History) -> Type:
    """The widest type of the field in the history: the table may have lost the schema."""
    for applied in history.applied:
        record = history.undo_record(applied.version)
        for undo in () if record is None else record.tables:
            for table in (undo.actual_before, undo.actual_after):
                if table is None or table.uuid != there.uuid:
                    continue
                field = table.schema.by_id(field_id)
                if field is not None and promotion_since(known, field.type) is not None:
                    known = field.type
    return known


def _reason(found: WiderFiles, widest: Type | None) -> str | None:
    """Why the column cannot be restored; ``None`` where it can."""
    cannot = "a reader fails on such a file, whatever the values"
    if found.files:
        verb = "was" if found.files == 1 else "were"
        under = "a wider type" if widest is None else f"`{format_type(widest)}`"
        return f"{format_count(found.files, 'data file')} {verb} written under {under}, and {cannot}"
    if widest is None or found.unknown == 0:
        return None
    files = "data files" if found.unknown is None else format_count(found.unknown, "data file")
    why = "the manifests do not say" if found.unknown is None else "the snapshots have expired"
    return f"{files} may have been written under `{format_type(widest)}` ({why}), and {cannot}"


def _hint(name: str, type_: Type | None, redone: str | None) -> str:
    """A hint for the problem.

    :param type_: the wider type; ``None`` where it is unknown.
    :param redone: the version, where it is redone.
    """
    if redone is not None:
        wide = "the wider type" if type_ is None else f"`{format_type(type_)}`"
        return f"write {wide} as the type of `{name}` in the file of {redone}, and redo it then"
    wide = "WIDER_TYPE" if type_ is None else format_type(type_)
    return f"write `columns: [{{name: {name}, type: {wide}}}]` beside it"
