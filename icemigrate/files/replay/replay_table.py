"""Replays one table entry."""

from __future__ import annotations

from icemigrate.data_steps.retype import Retype
from icemigrate.files.read.migration_file import UNSET, TableEntry
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.replay_columns import ColumnReplay
from icemigrate.files.replay.replay_data_steps import replay_data_steps
from icemigrate.files.replay.replay_keep_view import replay_keep_view
from icemigrate.files.replay.replay_layout import (
    replay_identifier,
    replay_partition_spec,
    replay_sort_order,
    source_finder,
)
from icemigrate.files.replay.replay_names import ColumnNameChanges, FieldPurge, replay_column_names
from icemigrate.files.replay.replay_positions import replay_positions
from icemigrate.files.replay.replay_retype import replay_retypes
from icemigrate.files.replay.replay_settings import replay_pins, replay_properties, replay_refs
from icemigrate.files.replay.schema_draft import SchemaDraft
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import FieldPosition, TableTarget
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import DEFAULT_FORMAT_VERSION, Table


class ReplayedTable(Frozen):
    """The table that an entry produces, and the values that it erases."""

    wanted: TableTarget
    purges: tuple[FieldPurge, ...] = ()


def replay_table(
    entry: TableEntry,
    name: TableName,
    before: Table | None,
    diagnostics: EntryDiagnostics,
    version: str = "",
) -> ReplayedTable:
    """Replay an entry; the result is valid only without errors.

    :param name: the table's name after the migration.
    :param before: the declared table, under its declared name; ``None`` at its first mention.
    :param version: of the migration.
    """
    if entry.drop:
        return _drop(entry, name, before, diagnostics)
    if before is None:
        _check_first_mention(entry, name, diagnostics)
    table = before or Table(name, Schema(), format_version=DEFAULT_FORMAT_VERSION)
    schema, renaming, positions, retyped = _replay_schema(entry, table, diagnostics)
    source = source_finder(schema, renaming.renamed, diagnostics)
    spec, order = table.spec, table.sort_order
    if entry.identifier is not UNSET:
        schema = replace(schema, identifier_ids=replay_identifier(entry.identifier, source, diagnostics))
    if entry.partition_by is not UNSET:
        spec = replay_partition_spec(entry.partition_by, spec, source, diagnostics)
    if entry.sort_by is not UNSET:
        order = replay_sort_order(entry.sort_by, order, source, diagnostics)
    refs = replay_refs(entry, table.refs, diagnostics)
    after = replace(
        table,
        name=name,
        schema=schema,
        spec=spec,
        sort_order=order,
        properties=replay_properties(entry, table.properties, renaming, diagnostics),
        format_version=table.format_version if entry.format_version is UNSET else entry.format_version,
        location=_location(entry, before, diagnostics),
        refs=refs,
        pins=replay_pins(entry, table, refs, diagnostics),
        dropped=renaming.dropped,
    )
    kept = replay_keep_view(entry, before, after, renaming, version, diagnostics)
    after = replace(after, properties=kept)
    if entry.adopt and before is not None:
        diagnostics.warn("adopt-known", ("adopt",), f"`{name}` is already declared and cannot be adopted")
    wanted = TableTarget(
        name,
        after,
        None if before is None else before.name,
        positions,
        entry.adopt and before is None,
        _unsaid(entry) if before is None else frozenset(),
        data=replay_data_steps(entry, before, after, retyped, diagnostics),
        refilled=frozenset(renaming.refilled),
    )
    return ReplayedTable(wanted, renaming.purges)


def _unsaid(entry: TableEntry) -> frozenset[str]:
    keys = {
        "identifier": entry.identifier,
        "partition_by": entry.partition_by,
        "sort_by": entry.sort_by,
        "format_version": entry.format_version,
    }
    return frozenset(key for key, value in keys.items() if value is UNSET)


def _drop(
    entry: TableEntry, name: TableName, before: Table | None, diagnostics: EntryDiagnostics
) -> ReplayedTable:
    alone = TableEntry(entry.name, entry.match, entry.place, drop=True)
    if entry != alone:
        message = f"`drop: true` drops `{name}`, so its entry can contain nothing else"
        diagnostics.error("conflicting-keys", ("drop",), message, "remove one of the two")
    return ReplayedTable(TableTarget(name, None, before.name if before else None))


def _check_first_mention(entry: TableEntry, name: TableName, diagnostics: EntryDiagnostics) -> None:
    """Report keys that need an existing table; the caller has already looked for a similar name."""
    for key, given in (
        ("renames", entry.renames),
        ("keep_view", entry.keep_view is not UNSET),
        ("drop_columns", entry.drop_columns),
        ("restore_columns", entry.restore_columns),
        ("retype", entry.retype),
    ):
        if given:
            message = f"`{key}` is not allowed in the first entry of `{name}`"
            diagnostics.error("first-mention", (key,), message, "a new table has nothing to change")


def _replay_schema(
    entry: TableEntry, table: Table, diagnostics: EntryDiagnostics
) -> tuple[Schema, ColumnNameChanges, tuple[FieldPosition, ...], tuple[Retype, ...]]:
    if not (entry.renames or entry.drop_columns or entry.restore_columns or entry.columns or entry.retype):
        return table.schema, ColumnNameChanges(dropped=table.dropped), (), ()
    draft = SchemaDraft(table.schema, (d.field for d in table.dropped))
    renaming = replay_column_names(draft, entry, table.dropped, diagnostics)
    version = table.format_version if entry.format_version is UNSET else entry.format_version
    retyped = replay_retypes(draft, entry.retype if table.schema.fields else (), version, diagnostics)
    renaming.dropped = (*renaming.dropped, *retyped.dropped)
    columns = ColumnReplay(draft, diagnostics, renaming.renamed)
    columns.merge(entry.columns)
    positions = replay_positions(columns.asserted, diagnostics)
    positions = (*retyped.positions, *positions)
    fields = draft.fields
    draft.close()
    return replace(table.schema, fields=fields), renaming, positions, retyped.works


def _location(entry: TableEntry, before: Table | None, diagnostics: EntryDiagnostics) -> str | None:
    if entry.location is UNSET:
        return before.location if before else None
    if before is not None and before.location != entry.location:
        diagnostics.error(
            "location-fixed",
            ("location",),
            f"`{before.name}` already exists, and a table's location cannot be changed",
            "remove `location`",
        )
    return entry.location
