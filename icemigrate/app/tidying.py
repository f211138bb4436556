"""Retention of snapshots and rows as it was declared, and files that no table knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.app.upkeep import COLLECTED, Act, Found, Look, is_collected
from icemigrate.frozen import Frozen, replace
from icemigrate.model import retention
from icemigrate.model.expiry import expiring, kept_by_references, kept_since
from icemigrate.model.names import Path, TableName, format_path
from icemigrate.model.table import MAIN_BRANCH, Table
from icemigrate.model.type_text import format_type
from icemigrate.model.upkeep import Kept, Upkeep

if TYPE_CHECKING:
    from icemigrate.engine.spark import SparkEngine

_SNAPSHOTS = (retention.SNAPSHOT_AGE, retention.SNAPSHOT_COUNT)
_ROWS = (retention.ROW_COLUMN, retention.ROW_AGE)
_NAMED = 3
_DATED = ("date", "timestamp", "timestamptz")


class _Declared(Frozen):
    """A declared table and what the catalog has of it.

    :param policy: properties of retention that are declared: in a migration, or by the environment now.
    """

    table: Table
    policy: dict[str, set[str]]

    @property
    def name(self) -> TableName:
        return self.table.name

    def altered(self, keys: tuple[str, ...]) -> str | None:
        """Why a policy is not followed: it is not the one that was declared."""
        for key in keys:
            known, now = self.policy.get(key, set()), self.table.properties.get(key)
            if (known or now is not None) and now not in known:
                said = " or ".join(sorted(known)) or "nothing"
                return f"`{key}` is {now or 'gone'} in the catalog, and {said} is declared"
        return None


def _declared(look: Look, part: str) -> Iterator[_Declared | Kept]:
    """The declared tables that the catalog has."""
    names = look.world.names
    state = look.history.state.tables
    there = look.tables([names.table(name) for name in sorted(state)])
    for declared, base in sorted(state.items()):
        name = names.table(declared)
        table, waiting = there[name], look.waiting(declared)
        if table is None:
            yield Kept(part, str(name), "the catalog has no such table")
        elif waiting is not None:
            yield Kept(part, str(name), waiting)
        elif base.uuid is not None and table.uuid not in (None, base.uuid):
            yield Kept(part, str(name), "another table stands under this name", is_refused=True)
        else:
            yield _Declared(table, _policy((base, names.adjust(replace(base, name=name)))))


def _policy(sides: Iterable[Table]) -> dict[str, set[str]]:
    """What of retention is declared, by property: once by the files, and as an environment adjusts it."""
    policy: dict[str, set[str]] = {}
    for side in sides:
        for key in retention.PROPERTIES:
            if key in side.properties:
                policy.setdefault(key, set()).add(side.properties[key])
    return policy


def expiring_snapshots(look: Look) -> Iterator[Found]:
    """What ``retention.snapshots`` comes to."""
    from icemigrate.engine.upkeep import expire_sql

    part = "snapshots"
    for found in _declared(look, part):
        if isinstance(found, Kept):
            yield found
            continue
        name = found.name
        if not any(key in found.policy for key in _SNAPSHOTS):
            continue
        metadata = look.metadata(name)
        if metadata is None:
            continue  # it went just now
        wrong = found.altered(_SNAPSHOTS)
        if wrong is None and not is_collected(found.table.properties):
            wrong = f"`{COLLECTED}` is false: its files may not be deleted"
        if wrong is not None:
            yield Kept(part, str(name), wrong, is_refused=True)
            continue
        gone = expiring(metadata, look.at_ms)
        if wrong := needed(look, found.table, gone):
            yield Kept(part, str(name), wrong, is_refused=True)
            continue
        if gone and (wrong := look.shared_files(name)) is not None:
            yield Kept(part, str(name), wrong, is_refused=True)
        elif gone:
            total = len(metadata.get("snapshots") or ())
            text = f"expire {len(gone)} of {total} snapshots: {_kept_for(found.table)}"
            before = kept_since(metadata, look.at_ms)
            sql = expire_sql(look.world.environment.catalog.name, name, before)
            shown = Upkeep(part, str(name), text, sql, _lost(look, found.table, gone))
            yield Act(shown, name, found.table.uuid, partial(_expire, name, before))
        count, names = kept_by_references(metadata, look.at_ms)
        if count:
            yield Kept(part, str(name), _kept_by(count, names))


def needed(look: Look, table: Table, gone: frozenset[int]) -> str | None:
    """Why snapshots may not go: values depend on them that a rollback left there."""
    for applied in look.history.applied:
        record = look.history.undo_record(applied.version)
        for undo in record.tables if record is not None else ():
            before = undo.actual_before
            if before is None or before.uuid is None or before.uuid != table.uuid:
                continue
            for copy in undo.last_copies:
                if copy.snapshot_id in gone:
                    version = applied.version
                    return (
                        f"snapshot {copy.snapshot_id} has values that the rollback of {version} left "
                        f"there: `icemigrate rollback --only {version} --refill` brings them back, "
                        f"`--no-refill` gives them up"
                    )
    return None


def _kept_by(count: int, names: Sequence[str]) -> str:
    some = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    are = "1 snapshot that is old enough is" if count == 1 else f"{count} snapshots that are old enough are"
    return f"{are} kept by tags or branches: {some}"


def _kept_for(table: Table) -> str:
    said = retention.from_properties(table.properties).get("snapshots", {})
    age, count = said.get("max_age"), said.get("keep_at_least")
    parts = [f"kept for {age}" if age else "", f"at least {count}" if count else ""]
    return ", ".join(part for part in parts if part)


def _lost(look: Look, table: Table, gone: frozenset[int]) -> tuple[str, ...]:
    """Versions that changed rows, and whose way back goes: only where no tag keeps it."""
    lost = []
    for applied in look.history.applied:
        record = look.history.undo_record(applied.version)
        for undo in record.tables if record is not None else ():
            before = undo.actual_before
            if not undo.rows_changed or before is None or before.uuid is None or before.uuid != table.uuid:
                continue
            if before.snapshot is not None and before.snapshot.id in gone:
                lost.append(f"an undo of {applied.version} can then not bring rows back")
    return tuple(lost)


def _expire(name: TableName, before: datetime, engine: SparkEngine) -> str:
    from icemigrate.engine.upkeep import expire

    files = expire(engine, name, before)
    return f"snapshots expired, {files} files deleted"


def deleting_rows(look: Look) -> Iterator[Found]:
    """What ``retention.rows`` comes to."""
    from icemigrate.engine.upkeep import delete_sql, old_rows

    part = "rows"
    for found in _declared(look, part):
        if isinstance(found, Kept):
            yield found
            continue
        name, table = found.name, found.table
        if not any(key in found.policy for key in _ROWS):
            continue
        column, age = retention.row_column(table.properties), table.properties.get(retention.ROW_AGE, "")
        type_ = _type(table, column)
        wrong = found.altered(_ROWS)
        if wrong is None and (column is None or not age.isdigit() or type_ not in _DATED):
            wrong = (
                f"rows cannot be deleted by `{table.properties.get(retention.ROW_COLUMN)}` of type {type_}"
            )
        if wrong is not None or column is None or type_ is None:
            yield Kept(part, str(name), wrong or "", is_refused=True)
            continue
        before = (look.at - timedelta(milliseconds=int(age))).replace(microsecond=0)
        files, rows = old_rows(look.engine(), name, column, type_, before)
        if files:
            text = (
                f"delete rows whose {format_path(column)} is before {before:%Y-%m-%d %H:%M:%S} (UTC): "
                f"at most {rows} in {files} file{'' if files == 1 else 's'}"
            )
            sql = delete_sql(look.world.environment.catalog.name, name, column, type_, before)
            yield Act(Upkeep(part, str(name), text, sql), name, table.uuid, partial(_delete, name, sql))


def _type(table: Table, column: Path | None) -> str | None:
    field = None if column is None else table.schema.find(column)
    return None if field is None else format_type(field.type)


def _delete(name: TableName, sql: str, engine: SparkEngine) -> str:
    engine.write(name, MAIN_BRANCH, sql, {})
    return "rows deleted"


def removing_orphans(look: Look, older_than: timedelta) -> Iterator[Found]:
    """Files in declared tables' folders that no table knows.

    :param older_than: files that are younger may belong to a write that goes on.
    """
    from icemigrate.engine.upkeep import orphans, orphans_sql

    part = "orphans"
    before = (look.at - older_than).replace(microsecond=0)
    for found in _declared(look, part):
        if isinstance(found, Kept):
            yield found
            continue
        name, table = found.name, found.table
        wrong = None
        if not is_collected(table.properties):
            wrong = f"`{COLLECTED}` is false: its files may not be deleted"
        else:
            wrong = look.shared_folder(name)
        if wrong is not None or table.location is None:
            yield Kept(part, str(name), wrong or "nobody knows where it is", is_refused=True)
            continue
        there = orphans(look.engine(), name, before, table.location, dry_run=True)
        if there:
            text = f"remove {len(there)} files that no snapshot knows, from before {before:%Y-%m-%d %H:%M:%S}"
            sql = orphans_sql(
                look.world.environment.catalog.name, name, before, table.location, dry_run=False
            )
            act = partial(_remove, name, before, table.location)
            yield Act(Upkeep(part, str(name), text, sql), name, table.uuid, act)


def _remove(name: TableName, before: datetime, location: str, engine: SparkEngine) -> str:
    from icemigrate.engine.upkeep import orphans

    gone = orphans(engine, name, before, location, dry_run=False)
    return f"{len(gone)} files removed"
