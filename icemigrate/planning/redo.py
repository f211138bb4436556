"""Plans a rolled-back migration again: its columns get the field ids that they had before the rollback.

So values that were written into them before the rollback are readable again.  A field gets its recorded id
only where its type still reads these values (the recorded type, or a promotion of it), and where Iceberg
accepts the id beside the current columns; see :func:`blocked_recorded_fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from icemigrate.data_steps.retype import Retype
from icemigrate.diagnostics import format_count, has_errors
from icemigrate.errors import ConflictError
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.replay.replay_migration import ReplayedMigration
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState, TableTarget
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_promotions import is_promotion, is_read_back
from icemigrate.iceberg.types import Field, Type, children, is_nested
from icemigrate.iceberg.undo_record import LastCopy, TableUndo, UndoRecord, declared_record
from icemigrate.planning.merge import rebind_field_ids
from icemigrate.planning.planning_context import PlanningContext, RedoInputs
from icemigrate.planning.undo import (
    BlockingMigration,
    candidate_names,
    find_blocking_migrations,
    find_undo_table,
    recorded_uuid,
)


def redo_targets(
    replayed: ReplayedMigration,
    file: MigrationFile,
    redo: RedoInputs,
    state: DeclaredState,
    actual: Mapping[TableName, Table | None],
    context: PlanningContext,
) -> tuple[TableTarget, ...]:
    """The targets of a redone migration, new fields with their recorded ids.

    :param state: the declared state before the redo.
    :param actual: the current tables, by their name in the catalog.
    :raises ConflictError: another migration changed the same facts; the file does not name a table in which
        the rollback left values; or values would be lost.
    """
    version, record = file.version.text, redo.record
    is_broken = has_errors(replayed.diagnostics)
    # A file with errors does not show its changes; the record of its first run does.
    _require_independent(version, redo, state, replayed.wanted, record if is_broken else None)
    if not is_broken:
        _require_tables_with_values(version, redo, replayed.wanted, state)
    if record is None:
        return replayed.wanted
    return tuple(_redo_target(t, version, redo, record, state, actual, context) for t in replayed.wanted)


def _redo_target(
    target: TableTarget,
    version: str,
    redo: RedoInputs,
    record: UndoRecord,
    state: DeclaredState,
    actual: Mapping[TableName, Table | None],
    context: PlanningContext,
) -> TableTarget:
    if target.formerly is None:
        return with_recorded_ids(target, record, None)
    current = actual.get(context.physical(target.formerly))
    if _is_another_table(target, record, current):
        return target  # the field ids of the first run belong to other columns there
    blocked = dict(blocked_recorded_fields(target, record, current))
    for retype in blocked.values():
        assert current is not None, "the current table blocks the field"
        _require_values_in_current_field(version, redo, current, retype)
    base = state.tables.get(target.formerly)
    unavailable = {
        *blocked,
        *under_other_names(target, record, current),
        *never_assigned(target, record, current),
    }
    return with_recorded_ids(target, record, base, unavailable)


def _is_another_table(target: TableTarget, record: UndoRecord, current: Table | None) -> bool:
    """Whether the table was created again since the first run, as its uuid shows."""
    undo = next((u for u in record.tables if u.declared_after == target.name), None)
    uuid = None if undo is None else recorded_uuid(undo)
    return current is not None and None not in (uuid, current.uuid) and uuid != current.uuid


# Field ids


def blocked_recorded_fields(
    target: TableTarget, record: UndoRecord, current: Table | None
) -> Iterator[tuple[int, Retype]]:
    """Ids of recorded fields that cannot return beside the field that they replace, each with the retype that
    fills it.

    During a retype the old column has the name. Iceberg accepts no column with a name that the table was ever
    partitioned by while the source of that partition field exists, whatever the source is called
    (``PartitionSpec.Builder``: "Cannot create identity partition sourced from different field").
    """
    recorded = _recorded(target, record)
    if recorded is None or current is None:
        return
    named = _partition_names(current)
    for step in target.data:
        if isinstance(step, Retype) and current.schema.by_id(step.field_id) is not None:
            was = recorded.schema.find(step.path)
            if was is not None and (was.id, ".".join(step.path)) in named:
                yield was.id, step


def _partition_names(table: Table) -> set[tuple[int, str]]:
    """Source field id and name of each partition field that the table has or had."""
    return {(f.source_ids[0], f.name) for spec in (table.spec, *table.older_specs) for f in spec.fields}


def redo_questions(
    record: UndoRecord,
    state: DeclaredState,
    actual: Mapping[TableName, Table | None],
    physical: Callable[[TableName], TableName],
) -> dict[TableName, dict[int, frozenset[int]]]:
    """The fields for which a redo needs the number of rows with a value, by the table's name in the catalog.

    Each field has the fields inside it that have metrics.

    :param actual: the current tables, by their name in the catalog.
    """
    questions: dict[TableName, dict[int, frozenset[int]]] = {}
    for undo in record.tables:
        if undo.after is None:
            continue
        tables = [find_undo_table(undo, actual), *map(actual.get, candidate_names(undo, state, physical))]
        for current in tables:
            if current is None or current.name in questions:
                continue
            named = _partition_names(current)
            paths = {
                e.path for i, e in schema_index(undo.after.schema).items() if (i, ".".join(e.path)) in named
            }
            if paths:
                known = schema_index(undo.after.schema)
                questions[current.name] = {
                    i: current.schema.leaves(i)
                    for i, entry in schema_index(current.schema).items()
                    if i not in known or entry.path in paths
                }
    return questions


def under_other_names(target: TableTarget, record: UndoRecord, current: Table | None) -> Iterator[int]:
    """Ids of recorded fields that the current table has under another name: an interrupted redo restored
    them, and fills them under a temporary name."""
    recorded = _recorded(target, record)
    if recorded is None or current is None:
        return
    entries = schema_index(recorded.schema)
    for field_id, entry in schema_index(current.schema).items():
        if field_id in entries and entries[field_id].path != entry.path:
            yield field_id


def never_assigned(target: TableTarget, record: UndoRecord, current: Table | None) -> Iterator[int]:
    """Ids of recorded fields that the table never had: the first run was to assign them, and ended before."""
    recorded = _recorded(target, record)
    if recorded is not None and current is not None:
        yield from (i for i in schema_index(recorded.schema) if i > current.last_column_id)


def _recorded(target: TableTarget, record: UndoRecord) -> Table | None:
    """The table after the first run."""
    return next((u.after for u in record.tables if u.declared_after == target.name), None)


def with_recorded_ids(
    target: TableTarget, record: UndoRecord, base: Table | None, unavailable: Collection[int] = ()
) -> TableTarget:
    """The target, its new fields with the ids of the undo record where these fit.

    :param base: the declared table before the redo; ``None`` at a first mention: a table that returns from
        the trash still has its ids, and its recorded form shows changes by others since.
    :param unavailable: recorded ids that no field gets.
    """
    recorded = _recorded(target, record)
    if target.table is None or recorded is None:
        return target
    if base is None:
        return replace(target, made=recorded)
    free = {f.id for _, f in recorded.schema.walk()} - set(schema_index(base.schema)) - set(unavailable)
    ids = dict(_matching_ids(target.table, recorded, free))
    positions = tuple(
        replace(
            p,
            field_id=ids.get(p.field_id, p.field_id),
            after=None if p.after is None else ids.get(p.after, p.after),
        )
        for p in target.positions
    )
    return replace(target, table=rebind_field_ids(target.table, ids), positions=positions)


def _matching_ids(table: Table, recorded: Table, free: set[int]) -> Iterator[tuple[int, int]]:
    """Ids of each new field and of the recorded field at its path; nested fields only with their parent."""
    known: Mapping[FieldPath, Field] = dict(recorded.schema.walk())
    refused: list[FieldPath] = []
    for path, field in table.schema.walk():
        if field.id > 0 or any(path[: len(r)] == r for r in refused):
            continue
        was = known.get(path)
        if was is not None and was.id in free and _can_read(was.type, field.type, table.format_version):
            yield field.id, was.id
        else:
            refused.append(path)


def _can_read(old: Type, new: Type, format_version: int) -> bool:
    if is_nested(old) or is_nested(new):
        return type(old) is type(new) and (bool(children(old)) or not children(new))
    return old == new or (is_promotion(old, new, format_version) and is_read_back(old, new))


# Refusals


def _require_values_in_current_field(version: str, redo: RedoInputs, current: Table, retype: Retype) -> None:
    """Refuse to create a field anew where some rows have values under its recorded id only.

    These values would become unreadable.

    :raises ConflictError: with the number of rows, as far as manifests have it.
    """
    share = redo.value_shares.get((current.name, retype.field_id))
    if share is not None and share.held == share.total:
        return
    column = retype.column
    if share is None or share.unknown or share.total_unsure:
        rows = f"the manifests do not say how many rows have no value of the current `{column}`"
    else:
        verb = "has" if share.total - share.held == 1 else "have"
        total = format_count(share.total, "row")
        rows = f"{share.total - share.held} of {total} {verb} no value of the current `{column}`"
    raise ConflictError(
        f"{version} cannot be redone: `{current.name}` was partitioned by `{column}` as {retype.to}, and "
        f"Iceberg accepts that column again only after the current `{column}` is dropped; but {rows}, and "
        f"values written to it as {retype.to} would be lost",
        f"set `{column}` in these rows (a snapshot from before the rollback still has their values), then "
        "redo: the new column is filled from it",
    )


def _require_independent(
    version: str,
    redo: RedoInputs,
    state: DeclaredState,
    targets: Sequence[TableTarget],
    first_run: UndoRecord | None,
) -> None:
    """Refuse a redo where another migration changed the same facts.

    That is a later applied one, which was written for a state without this one, or an earlier rolled-back
    one, which this one's file builds on.

    :param first_run: the changes of the first run, used where the file has errors now.
    :raises ConflictError: with the other migrations and the facts.
    """
    mine = declared_record(version, targets, state)
    found = find_blocking_migrations(mine, redo.later_applied)
    if found:
        raise ConflictError(
            f"{version} cannot be redone: later migrations changed the same: {_listed(found)}",
            "write what is still needed of it into a new migration",
        )
    found = find_blocking_migrations(first_run or mine, redo.earlier_rolled_back)
    if found:
        rest = ", ".join(b.version for b in found[1:])
        error = ConflictError(
            f"{version} cannot be redone yet: earlier migrations that changed the same are rolled back: "
            f"{_listed(found)}",
            f"run `icemigrate apply --redo {found[0].version}` first{f', then {rest}' if rest else ''}",
        )
        error.redo_first = tuple(b.version for b in found)
        raise error


def _listed(found: Iterable[BlockingMigration]) -> str:
    return "; ".join(f"{b.version} ({', '.join(b.facts)})" for b in found)


def _require_tables_with_values(
    version: str, redo: RedoInputs, targets: Sequence[TableTarget], state: DeclaredState
) -> None:
    """Refuse a redo whose file no longer names a table of which only a tag has some values.

    The record of the redo has the tables of its file, and only the record protects the tag.

    :raises ConflictError: with the values, and how to restore them or give them up.
    """
    for table in () if redo.record is None else redo.record.tables:
        if table.last_copies and not _is_named(table, targets, state):
            current = redo.tables_with_remaining_values.get(table.declared)
            if current is not None:
                raise _remaining_values_error(version, table, current, state)


def _is_named(table: TableUndo, targets: Sequence[TableTarget], state: DeclaredState) -> bool:
    """Whether the record of the redo has the same table under the same name."""
    for target in targets:
        name = target.formerly or target.name if target.table is None else target.name
        known = None if target.formerly is None else state.tables.get(target.formerly)
        if name == table.declared and known is not None:
            return known.uuid is None or known.uuid == recorded_uuid(table)
    return False


def _remaining_values_error(
    version: str, table: TableUndo, current: Table, state: DeclaredState
) -> ConflictError:
    values = "; ".join(
        f"{copy.version} alone has values of {', '.join(f'`{c}`' for c in last_copy_columns(table, copy))}"
        for copy in table.last_copies
    )
    name = next((name for name, t in state.tables.items() if t.uuid == current.uuid), None)
    renamed = "" if name == table.declared else f" (now `{name or current.name}`)"
    hint = (
        f"`icemigrate rollback --only {version} --refill` restores the values, `--no-refill` instead of "
        f"`--refill` gives them up; then run `icemigrate apply --redo {version}`"
    )
    if name is None:
        hint = (
            f"roll back the migration that dropped or renamed the table; then {hint}; or leave {version} "
            "rolled back, and write what is still needed of it into a new migration"
        )
    return ConflictError(
        f"{version} cannot be redone from this file, which no longer names table `{table.declared}`"
        f"{renamed}: the rollback of {version} left values of that table, and {values}",
        hint,
    )


def last_copy_columns(table: TableUndo, copy: LastCopy) -> tuple[str, ...]:
    """The columns of which only an earlier snapshot has values, as paths."""
    sides = (table.actual_after, table.after, table.before, table.actual_before)
    paths = {i: e.path for side in sides if side is not None for i, e in schema_index(side.schema).items()}
    return tuple(format_path(paths[i]) if i in paths else f"field id {i}" for i in copy.fields)


def restored_field_ids(record: UndoRecord) -> dict[TableName, frozenset[int]]:
    """Ids of the fields that a run restored under earlier ids, by declared name.

    Data files can have values of them.
    """
    found = {}
    for undo in record.tables:
        before = undo.actual_before
        if before is None or undo.after is None:
            continue
        known = schema_index(before.schema)
        ids = {*undo.creates, *schema_index(undo.after.schema)}
        found[undo.declared] = frozenset(i for i in ids if 0 < i <= before.last_column_id and i not in known)
    return found
