"""One table entry folded over one table."""

from __future__ import annotations

from icemigrate.data.retype import Retype
from icemigrate.declare.complaints import Complaints
from icemigrate.declare.draft import Draft
from icemigrate.declare.fold_columns import ColumnFold
from icemigrate.declare.fold_data import fold_data
from icemigrate.declare.fold_layout import fold_identifier, fold_order, fold_partition, source_finder
from icemigrate.declare.fold_names import Purge, Renaming, fold_names
from icemigrate.declare.fold_positions import fold_positions
from icemigrate.declare.fold_retype import fold_retypes
from icemigrate.declare.fold_settings import fold_properties, fold_refs
from icemigrate.declare.migration import UNSET, TableEntry
from icemigrate.frozen import Frozen, replace
from icemigrate.model.names import TableName
from icemigrate.model.schema import Schema
from icemigrate.model.sides import Position, Wanted
from icemigrate.model.table import DEFAULT_FORMAT_VERSION, Table


class FoldedTable(Frozen):
    """What an entry makes of a table, and the values it wants erased."""

    wanted: Wanted
    purges: tuple[Purge, ...] = ()


def fold_table(
    entry: TableEntry, name: TableName, before: Table | None, complaints: Complaints
) -> FoldedTable:
    """Fold an entry over a table; of use only when nothing but warnings was complained about.

    :param name: the table's name after the migration.
    :param before: the table as it is declared so far, under the name it has so far; ``None`` at its
        first mention.
    """
    if entry.drop:
        return _drop(entry, name, before, complaints)
    if before is None:
        _check_first_mention(entry, name, complaints)
    table = before or Table(name, Schema(), format_version=DEFAULT_FORMAT_VERSION)
    schema, renaming, positions, retyped = _fold_schema(entry, table, complaints)
    source = source_finder(schema, renaming.renamed, complaints)
    spec, order = table.spec, table.sort_order
    if entry.identifier is not UNSET:
        schema = replace(schema, identifier_ids=fold_identifier(entry.identifier, source, complaints))
    if entry.partition_by is not UNSET:
        spec = fold_partition(entry.partition_by, spec, source, complaints)
    if entry.sort_by is not UNSET:
        order = fold_order(entry.sort_by, order, source, complaints)
    after = replace(
        table,
        name=name,
        schema=schema,
        spec=spec,
        sort_order=order,
        properties=fold_properties(entry, table.properties, renaming, complaints),
        format_version=table.format_version if entry.format_version is UNSET else entry.format_version,
        location=_location(entry, before, complaints),
        refs=fold_refs(entry, table.refs, complaints),
        dropped=renaming.dropped,
    )
    if entry.adopt and before is not None:
        complaints.warn(
            "adopt-known", ("adopt",), f"`{name}` is declared already, so there is nothing to adopt"
        )
    wanted = Wanted(
        name,
        after,
        None if before is None else before.name,
        positions,
        entry.adopt and before is None,
        _unsaid(entry) if before is None else frozenset(),
        data=fold_data(entry, before, after, retyped, complaints),
        refilled=frozenset(renaming.refilled),
    )
    return FoldedTable(wanted, renaming.purges)


def _unsaid(entry: TableEntry) -> frozenset[str]:
    keys = {
        "identifier": entry.identifier,
        "partition_by": entry.partition_by,
        "sort_by": entry.sort_by,
        "format_version": entry.format_version,
    }
    return frozenset(key for key, value in keys.items() if value is UNSET)


def _drop(entry: TableEntry, name: TableName, before: Table | None, complaints: Complaints) -> FoldedTable:
    alone = TableEntry(entry.name, entry.match, entry.place, drop=True)
    if entry != alone:
        message = f"`drop: true` takes `{name}` away, so nothing else can be said of it here"
        complaints.error("conflicting-keys", ("drop",), message, "remove one of the two")
    return FoldedTable(Wanted(name, None, before.name if before else None))


def _check_first_mention(entry: TableEntry, name: TableName, complaints: Complaints) -> None:
    """Complain about keys that need a table that is there; whoever calls has looked for a near name."""
    for key, given in (
        ("renames", entry.renames),
        ("drop_columns", entry.drop_columns),
        ("restore_columns", entry.restore_columns),
        ("retype", entry.retype),
    ):
        if given:
            message = f"`{key}` cannot stand where `{name}` is mentioned for the first time"
            complaints.error("first-mention", (key,), message, "a new table has nothing to change yet")


def _fold_schema(
    entry: TableEntry, table: Table, complaints: Complaints
) -> tuple[Schema, Renaming, tuple[Position, ...], tuple[Retype, ...]]:
    if not (entry.renames or entry.drop_columns or entry.restore_columns or entry.columns or entry.retype):
        return table.schema, Renaming(dropped=table.dropped), (), ()
    draft = Draft(table.schema, (d.field for d in table.dropped))
    renaming = fold_names(draft, entry, table.dropped, complaints)
    version = table.format_version if entry.format_version is UNSET else entry.format_version
    retyped = fold_retypes(draft, entry.retype if table.schema.fields else (), version, complaints)
    renaming.dropped = (*renaming.dropped, *retyped.dropped)
    columns = ColumnFold(draft, complaints, renaming.renamed)
    columns.merge(entry.columns)
    positions = fold_positions(columns.asserted, complaints)
    positions = (*retyped.positions, *positions)
    fields = draft.fields
    draft.close()
    return replace(table.schema, fields=fields), renaming, positions, retyped.works


def _location(entry: TableEntry, before: Table | None, complaints: Complaints) -> str | None:
    if entry.location is UNSET:
        return before.location if before else None
    if before is not None and before.location != entry.location:
        complaints.error(
            "location-fixed",
            ("location",),
            f"`{before.name}` exists already, and a table's location is chosen when it is created",
            "leave `location` out",
        )
    return entry.location
