"""Actions for the declared retention of snapshots and rows, and for orphan files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.diagnostics import format_count
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg import retention
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.retention import retained_by_references, retained_since, snapshot_ids_to_expire
from icemigrate.iceberg.table import Table, owner_of
from icemigrate.iceberg.table_properties import GC_ENABLED_PROPERTY, is_gc_enabled
from icemigrate.iceberg.type_text import format_type
from icemigrate.maintenance.context import (
    NO_JVM,
    ActionOrSkipped,
    MaintenanceAction,
    MaintenanceContext,
)
from icemigrate.planning.drift.recreated_table import recreated_table_hint
from icemigrate.results.maintain_results import ActionSummary, SkippedTable
from icemigrate.spark.commit_ports import require_jvm

if TYPE_CHECKING:
    from icemigrate.spark.commit_ports import CommittingEngine

_SNAPSHOTS = (retention.SNAPSHOT_AGE, retention.SNAPSHOT_COUNT)
_ROWS = (retention.ROW_COLUMN, retention.ROW_AGE)
_NAMED = 3
_DATED = ("date", "timestamp", "timestamptz")


class DeclaredTable(Frozen):
    """A declared table and its current state in the catalog.

    :param recorded: its recorded state, under its declared name.
    :param policy: declared properties of retention, from a migration or the environment.
    """

    table: Table
    recorded: Table
    policy: dict[str, set[str]]

    @property
    def name(self) -> TableName:
        return self.table.name

    def altered(self, keys: tuple[str, ...]) -> str | None:
        """Why a policy is not applied: the current one is not the declared one."""
        for key in keys:
            known, now = self.policy.get(key, set()), self.table.properties.get(key)
            if (known or now is not None) and now not in known:
                said = " or ".join(sorted(known)) or "nothing"
                return f"`{key}` is {now or 'gone'} in the catalog, and {said} is declared"
        return None


def declared_tables(look: MaintenanceContext, part: str) -> Iterator[DeclaredTable | SkippedTable]:
    """The declared tables that the catalog has."""
    names = look.session.names
    state = look.history.state.tables
    wanted = [names.table(name) for name in sorted(state)]
    there = look.tables(wanted)
    yield from look.unreadable_among(wanted, part)
    for declared, base in sorted(state.items()):
        name = names.table(declared)
        if name not in there:
            continue
        table, waiting = there[name], look.interrupted_reason(declared)
        if table is None:
            yield SkippedTable(part, str(name), "the catalog has no such table")
        elif waiting is not None:
            yield SkippedTable(part, str(name), waiting)
        elif base.uuid is not None and table.uuid not in (None, base.uuid):
            why = f"another table has this name: {recreated_table_hint(declared)}"
            yield SkippedTable(part, str(name), why, is_refused=True)
        elif (owner := owner_of(table)) not in (None, look.session.project.name):
            yield SkippedTable(part, str(name), f"it belongs to project `{owner}`", is_refused=True)
        else:
            yield DeclaredTable(table, base, _policy((base, names.adjust(replace(base, name=name)))))


def _policy(sides: Iterable[Table]) -> dict[str, set[str]]:
    """The declared retention, by property: from the files, with the environment's overrides."""
    policy: dict[str, set[str]] = {}
    for side in sides:
        for key in retention.PROPERTIES:
            if key in side.properties:
                policy.setdefault(key, set()).add(side.properties[key])
    return policy


def find_expiring_snapshots(look: MaintenanceContext) -> Iterator[ActionOrSkipped]:
    """The actions for ``retention.snapshots``."""
    from icemigrate.spark.maintenance_calls import expire_text

    part = "snapshots"
    for found in declared_tables(look, part):
        if isinstance(found, SkippedTable):
            yield found
            continue
        name = found.name
        if not any(key in found.policy for key in _SNAPSHOTS):
            continue
        metadata = look.metadata(name)
        if metadata is None:
            # It may have gone just now.
            yield from look.unreadable_among([name], part)
            continue
        wrong = found.altered(_SNAPSHOTS)
        if wrong is None and not is_gc_enabled(found.table.properties):
            wrong = f"`{GC_ENABLED_PROPERTY}` is false: its files may not be deleted"
        if wrong is not None:
            yield SkippedTable(part, str(name), wrong, is_refused=True)
            continue
        gone = snapshot_ids_to_expire(metadata, look.at_ms)
        if wrong := needed_snapshot_reason(look, found.table, gone):
            yield SkippedTable(part, str(name), wrong, is_refused=True)
            continue
        if gone and (wrong := look.shared_files(name)) is not None:
            yield SkippedTable(part, str(name), wrong, is_refused=True)
        elif gone:
            total = len(metadata.get("snapshots") or ())
            text = f"expire {len(gone)} of {total} snapshots: {_retention_text(found.table)}"
            before = retained_since(metadata, look.at_ms)
            shown = ActionSummary(
                part, str(name), text, expire_text(name, before), _lost(look, found.table, gone)
            )
            uuid = found.table.uuid
            yield MaintenanceAction(shown, name, uuid, partial(_expire, name, uuid, before, gone), gone)
        count, names = retained_by_references(metadata, look.at_ms)
        if count:
            yield SkippedTable(part, str(name), _referenced_snapshots_text(count, names))


def needed_snapshot_reason(look: MaintenanceContext, table: Table, gone: frozenset[int]) -> str | None:
    """Why snapshots must stay: they have values that a rollback left there."""
    for needed in look.snapshots_with_last_copies(table.uuid):
        if needed.snapshot_id in gone:
            version = needed.version
            return (
                f"snapshot {needed.snapshot_id} has values that the rollback of {version} left "
                f"there: `icemigrate rollback --only {version} --refill` restores them, "
                f"`--no-refill` gives them up"
            )
    return None


def _referenced_snapshots_text(count: int, names: Sequence[str]) -> str:
    are = (
        "1 snapshot that is old enough to expire is"
        if count == 1
        else f"{count} snapshots that are old enough to expire are"
    )
    return f"{are} retained by tags or branches: {some_names(names)}"


def some_names(names: Sequence[str]) -> str:
    """The first few names, and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _retention_text(table: Table) -> str:
    said = retention.from_properties(table.properties).get("snapshots", {})
    age, count = said.get("max_age"), said.get("keep_at_least")
    parts = [f"kept for {age}" if age else "", f"at least {count}" if count else ""]
    return ", ".join(part for part in parts if part)


def _lost(look: MaintenanceContext, table: Table, gone: frozenset[int]) -> tuple[str, ...]:
    """Versions that changed rows and could not be undone any more: no tag keeps the snapshot."""
    return tuple(
        f"an undo of {needed.version} can no longer restore rows"
        for needed in look.snapshots_before_row_changes(table.uuid)
        if needed.snapshot_id in gone
    )


def _expire(
    name: TableName, uuid: str | None, before: datetime, shown: frozenset[int], engine: CommittingEngine
) -> str:
    from icemigrate.spark.maintenance_calls import expire_snapshots

    spark = require_jvm(engine, f"expiring snapshots of table `{name}`")
    return f"snapshots expired, {expire_snapshots(spark, name, uuid, before, shown)}"


def find_expired_rows(look: MaintenanceContext) -> Iterator[ActionOrSkipped]:
    """The actions for ``retention.rows``."""
    from icemigrate.spark.row_retention import delete_sql, old_rows

    part = "rows"
    for found in declared_tables(look, part):
        if isinstance(found, SkippedTable):
            yield found
            continue
        name, table = found.name, found.table
        if not any(key in found.policy for key in _ROWS):
            continue
        column, age = retention.row_column(table.properties), table.properties.get(retention.ROW_AGE, "")
        type_ = _type(table, column)
        wrong = found.altered(_ROWS)
        if wrong is None and (column is None or not (age.isascii() and age.isdigit()) or type_ not in _DATED):
            wrong = (
                f"rows cannot be deleted by `{table.properties.get(retention.ROW_COLUMN)}` of type {type_}"
            )
        if wrong is not None or column is None or type_ is None:
            yield SkippedTable(part, str(name), wrong or "", is_refused=True)
            continue
        before = (look.at - timedelta(milliseconds=int(age))).replace(microsecond=0)
        if not _may_have_old_rows(look, table, column, type_, before):
            continue
        files, rows = old_rows(look.engine(), name, column, type_, before)
        if files:
            text = (
                f"delete rows whose {format_path(column)} is before {before:%Y-%m-%d %H:%M:%S} (UTC): "
                f"at most {rows} in {files} file{'' if files == 1 else 's'}"
            )
            sql = delete_sql(look.session.environment.catalog.name, name, column, type_, before)
            act = partial(_delete, name, table.uuid, column, type_, before)
            yield MaintenanceAction(ActionSummary(part, str(name), text, sql), name, table.uuid, act)


def _may_have_old_rows(
    look: MaintenanceContext, table: Table, column: FieldPath, type_: str, before: datetime
) -> bool:
    """Whether Spark has to look for old rows: the bounds in the manifests do not exclude them."""
    from icemigrate.catalog.older_values import may_have_older_values

    field, metadata = table.schema.find(column), look.metadata(table.name)
    if field is None or metadata is None:
        return True
    return may_have_older_values(metadata, look.session.catalog.read_file, field.id, type_, before)


def _type(table: Table, column: FieldPath | None) -> str | None:
    field = None if column is None else table.schema.find(column)
    return None if field is None else format_type(field.type)


def _delete(
    name: TableName,
    uuid: str | None,
    column: FieldPath,
    type_: str,
    before: datetime,
    engine: CommittingEngine,
) -> str:
    from icemigrate.spark.row_retention import delete_rows

    spark = engine.in_jvm(f"deleting rows of table `{name}`")
    number = delete_rows(spark or engine, name, uuid, column, type_, before)
    return "rows deleted" if number is None else f"{format_count(number, 'row')} deleted"


def find_orphan_files(look: MaintenanceContext, older_than: timedelta) -> Iterator[ActionOrSkipped]:
    """The actions for orphan files in the folders of declared tables.

    :param older_than: newer files may belong to a running write.
    """
    from icemigrate.spark.maintenance_calls import orphans_sql, remove_orphan_files

    part = "orphans"
    before = (look.at - older_than).replace(microsecond=0)
    for found in declared_tables(look, part):
        if isinstance(found, SkippedTable):
            yield found
            continue
        name, table = found.name, found.table
        if not look.has_jvm:
            yield SkippedTable(part, str(name), NO_JVM, is_refused=True)
            continue
        wrong = None
        if not is_gc_enabled(table.properties):
            wrong = f"`{GC_ENABLED_PROPERTY}` is false: its files may not be deleted"
        else:
            wrong = look.shared_folder(name)
        if wrong is not None or table.location is None:
            yield SkippedTable(part, str(name), wrong or "its location is unknown", is_refused=True)
            continue
        spark = require_jvm(look.engine(), f"finding orphan files of table `{name}`")
        there = remove_orphan_files(spark, name, before, table.location)
        if there:
            files = format_count(len(there), "file")
            text = f"remove {files} that no snapshot uses, from before {before:%Y-%m-%d %H:%M:%S}"
            sql = orphans_sql(look.session.environment.catalog.name, name, before, table.location)
            act = partial(_remove, name, table.uuid, before, table.location, there)
            yield MaintenanceAction(ActionSummary(part, str(name), text, sql), name, table.uuid, act)


def _remove(
    name: TableName,
    uuid: str | None,
    before: datetime,
    location: str,
    found: Sequence[str],
    engine: CommittingEngine,
) -> str:
    from icemigrate.spark.maintenance_calls import remove_orphans

    spark = require_jvm(engine, f"removing orphan files of table `{name}`")
    return remove_orphans(spark, name, uuid, before, location, found)
