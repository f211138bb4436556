"""Columns that come back under their own field id, compared with the types that files were written under.

A column may have had a wider type between its first migration and its drop: a later migration, now rolled
back, or another client widened it.  Where files were written under that type, no reader could read them under
the narrower one.  An undo needs no such look: it brings a column back with the type that it had when it was
dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from icemigrate.changes.base import Problem
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.following import Followed
from icemigrate.frozen import replace
from icemigrate.history.properties import History
from icemigrate.model.counting import count
from icemigrate.model.evidence import WiderFiles
from icemigrate.model.names import Path, TableName, format_path
from icemigrate.model.promotions import promotion_since
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Type, is_nested, walk
from icemigrate.plan import MigrationPlan, TablePlan

if TYPE_CHECKING:
    from icemigrate.catalog.port import Catalog


def with_wider_files(
    migrations: Iterable[MigrationPlan],
    actual: Mapping[TableName, Table | None],
    catalog: Catalog,
    history: History,
    redone: Collection[str] = (),
) -> tuple[MigrationPlan, ...]:
    """The plans, with a problem for each column that comes back narrower than its files.

    Manifests are read for tables to which a column comes back, and for none of the others.

    :param actual: the catalog's tables by their name there.
    :param redone: the versions that are redone.
    """
    followed, checked = Followed(), list[MigrationPlan]()
    for migration in migrations:
        problems = list[Problem]()
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
) -> Iterator[Problem]:
    back = {
        field_id: (path, type_)
        for planned in plan.changes()
        if isinstance(planned.change, RestoreColumn)
        for field_id, path, type_ in _leaves(planned.change)
    }
    found = catalog.wider_files(there.name, {i: type_ for i, (_, type_) in back.items()}) if back else None
    for field_id, one in (found or {}).items():
        path, narrow = back[field_id]
        widest = _widest(one.widest or narrow, field_id, there, history)
        wider = None if widest == narrow else widest
        reason = _reason(one, wider)
        if reason is not None:
            yield Problem(
                "narrow-type",
                plan.declared,
                ("columns", format_path(path), "type"),
                f"`{format_path(path)}` cannot come back as `{format_type(narrow)}`: {reason}",
                _hint(format_path(path), wider, redone),
            )


def _leaves(change: RestoreColumn) -> Iterator[tuple[int, Path, Type]]:
    """The fields that come back and have no fields below them."""
    if not is_nested(change.field.type):
        yield change.field.id, change.path, change.field.type
    for path, field in walk(change.field.type):
        if not is_nested(field.type):
            yield field.id, (*change.path, *path), field.type


def _widest(known: Type, field_id: int, there: Table, history: History) -> Type:
    """The widest type that the history knows the field by: the table may have forgotten the schema."""
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
    """Why the column cannot come back; ``None`` where it can."""
    cannot = "a reader fails on such a file, whatever the values"
    if found.files:
        verb = "was" if found.files == 1 else "were"
        under = "a wider type" if widest is None else f"`{format_type(widest)}`"
        return f"{count(found.files, 'data file')} {verb} written under {under}, and {cannot}"
    if widest is None or found.unknown == 0:
        return None
    files = "data files" if found.unknown is None else count(found.unknown, "data file")
    why = "the table's manifests do not tell" if found.unknown is None else "the snapshots have expired"
    return f"{files} may have been written under `{format_type(widest)}` ({why}), and {cannot}"


def _hint(name: str, type_: Type | None, redone: str | None) -> str:
    """What to do.

    :param type_: the wider type; ``None`` where it is not known.
    :param redone: the version, where it is redone.
    """
    if redone is not None:
        wide = "the wider type" if type_ is None else f"`{format_type(type_)}`"
        return f"write {wide} as the type of `{name}` in the file of {redone}, and redo it then"
    wide = "WIDER_TYPE" if type_ is None else format_type(type_)
    return f"write `columns: [{{name: {name}, type: {wide}}}]` beside it"
