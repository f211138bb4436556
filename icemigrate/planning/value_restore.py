"""The settings that a refill needs, and the steps that end it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from icemigrate.changes.end_refill import EndRefill, has_open_refill, refill_properties
from icemigrate.changes.field_changes import default_text
from icemigrate.changes.property_changes import SetProperty
from icemigrate.changes.refill_columns import RefillColumns, RefillField
from icemigrate.frozen import Frozen
from icemigrate.iceberg.file_evidence_values import RetainedValues
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import JsonValue, Primitive, walk_fields
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.spark_sql.identifiers import path_sql, table_sql
from icemigrate.spark_sql.refill_statements import version_sql
from icemigrate.spark_sql.type_sql import spark_loads

ROW_LINEAGE_VERSION = 3
"""The first format version whose rows have ids."""
NO_COPIES: Mapping[int, Sequence[str]] = MappingProxyType({})
_VARIANT = Primitive("variant")


class RefillChanges(Frozen):
    """A refill of one table.

    :param before: changes in the commit that restores the columns.
    :param after: the changes after it; each is its own step.
    """

    before: tuple[DetectedChange, ...] = ()
    after: tuple[DetectedChange, ...] = ()


def with_refill_settings(table: Table, version: str, refills: Sequence[RefillColumns]) -> RefillChanges:
    """The refills of a table with the settings that they need; without refills, the end of one that was
    begun.

    :param table: with its columns restored.
    :param version: of the migration.
    """
    if not refills:
        return (
            RefillChanges(after=(DetectedChange(EndRefill(table.name), table),))
            if has_open_refill(table)
            else RefillChanges()
        )
    needed = any(refill.by_row_id or refill.by_lineage for refill in refills)
    merges_on_read = needed and table.format_version >= ROW_LINEAGE_VERSION
    found, current = list[DetectedChange](), table
    for key, value in refill_properties(table, version, merges_on_read).items():
        change = SetProperty(table.name, key, value, current.properties.get(key))
        found.append(DetectedChange(change, current))
        current = change.apply(current)
    last = (*refills, EndRefill(table.name))
    return RefillChanges(tuple(found), tuple(DetectedChange(change, current) for change in last))


def deferred_refill(
    table: Table,
    owner: tuple[str, str],
    field_ids: frozenset[int],
    copies: Mapping[int, Sequence[str]] = NO_COPIES,
) -> RefillChanges:
    """The refill of fields whose sources are searched when it runs.

    :param table: with its columns restored; without rows there are no values to restore.
    :param owner: the project and the version of the migration.
    :param copies: by field, versions with values that a rollback did not restore.
    """
    there = schema_index(table.schema) if field_ids else {}
    fields = tuple(_refilled(table, i) for i in there if i in field_ids)
    is_due = bool(fields) and table.has_rows and spark_loads(table.schema)
    among = dict.fromkeys(name for i in sorted(field_ids) for name in copies.get(i, ()))
    project, version = owner
    refills = [RefillColumns(table.name, "", fields, (), tuple(among), project)] if is_due else []
    return with_refill_settings(table, version, refills)


def refillable_fields(table: Table, kept: Mapping[int, RetainedValues]) -> dict[int, RetainedValues]:
    """The fields whose values can be written back, of those with a version that keeps values."""
    if not spark_loads(table.schema) or _has_variant(table, kept):
        return {}
    found = {field_id: kept for field_id, kept in kept.items() if kept.can_be_matched}
    # Written files contain every default: rows that lacked the next field could not be distinguished.
    first = next((_group(k) for i, k in found.items() if _default(table, i) is not None), None)
    return {i: k for i, k in found.items() if _default(table, i) is None or _group(k) == first}


def _group(kept: RetainedValues) -> tuple[str, bool]:
    """Fields that are written back together."""
    return kept.version, kept.by_row_id


def _default(table: Table, field_id: int) -> JsonValue:
    """The value that readers get from files without the field."""
    return schema_index(table.schema)[field_id].field.initial_default


def _refilled(table: Table, field_id: int, then: FieldPath = ()) -> RefillField:
    is_read = _default(table, field_id) is not None
    return RefillField(schema_index(table.schema)[field_id].path, then, field_id if is_read else None)


def _has_variant(table: Table, field_ids: Iterable[int]) -> bool:
    """Whether one of the fields is a variant or contains one.

    Spark reads no row of a table with a variant that the schema of its newest snapshot does not have (Iceberg
    1.12, ``BaseScan.includeColumnStats``), as after such a restore.
    """
    fields = [schema_index(table.schema)[i].field for i in field_ids]
    return any(
        f.type == _VARIANT for top in fields for f in (top, *(below for _, below in walk_fields(top.type)))
    )


def refills_of(table: Table, kept: Mapping[int, RetainedValues], project: str) -> Iterator[RefillColumns]:
    """One refill for each version that keeps values, with one way to match rows."""
    there = schema_index(table.schema)
    groups: dict[tuple[str, bool], list[int]] = {}
    # Rows that are matched by their write time come first, because the other refills change it.
    for field_id, found in sorted(kept.items(), key=lambda pair: _default(table, pair[0]) is None):
        groups.setdefault(_group(found), []).append(field_id)
    for (version, by_row_id), ids in groups.items():
        identifier = {} if by_row_id else kept[ids[0]].identifier
        yield RefillColumns(
            table.name,
            version,
            tuple(_refilled(table, i, kept[i].path) for i in ids),
            tuple(RefillField(there[i].path, path) for i, path in identifier.items()),
            project=project,
        )


class RefillSelection(Frozen):
    """The retained values that can be written back.

    :param refills: the refills, the newest version first.
    :param fitting: their fields, each with a version.
    :param others: fields whose values in a version cannot be written back.
    """

    refills: tuple[RefillColumns, ...]
    fitting: tuple[tuple[int, RetainedValues], ...]
    others: tuple[tuple[int, RetainedValues], ...]


def select_refills(
    table: Table,
    kept: Mapping[int, RetainedValues],
    more: Mapping[int, Sequence[RetainedValues]],
    project: str,
) -> RefillSelection:
    """Choose the refills: rows get the newest value, and an older one only without a newer.

    :param kept: by field, the version that keeps most values.
    :param more: by field, further versions, the newest first.
    :param project: the refill's project.
    """
    refills, fit, others = (
        list[RefillColumns](),
        list[tuple[int, RetainedValues]](),
        list[tuple[int, RetainedValues]](),
    )
    layers = [kept, *({i: ks[at] for i, ks in more.items() if at < len(ks)} for at in range(_depth(more)))]
    for number, layer in enumerate(layers):
        here = refillable_fields(table, layer)
        if number:
            # Written files contain every default: rows without the value of another version could not be
            # distinguished.
            here = {i: k for i, k in here.items() if _default(table, i) is None}
        refills += refills_of(table, here, project)
        fit += here.items()
        others += ((i, k) for i, k in layer.items() if i not in here)
    return RefillSelection(tuple(refills), tuple(fit), tuple(others))


def _depth(more: Mapping[int, Sequence[RetainedValues]]) -> int:
    return max(map(len, more.values()), default=0)


def refill_offer_note(table: Table, field_id: int, kept: RetainedValues, catalog: str) -> str:
    """That values could be brought back."""
    return (
        f"{_lost(table, field_id, kept)}, and {kept.version} keeps it: `--refill` restores it; or query it: "
        f"{_query(table, kept, catalog)}"
    )


def lost_value_query_note(table: Table, field_id: int, kept: RetainedValues, catalog: str) -> str:
    """A note with a query for values that cannot be written back."""
    return f"{_lost(table, field_id, kept)}; {kept.version} keeps it: {_query(table, kept, catalog)}"


def refill_note(table: Table, field_id: int, kept: RetainedValues) -> str:
    """That values are brought back."""
    name = format_path(schema_index(table.schema)[field_id].path)
    verb = "gets" if kept.rows == 1 else "get"
    unless = "" if kept.by_row_id else ", unless several rows have the same identifier"
    return (
        f"{_rows(kept)} {verb} the value of {name} back from {kept.version}{unless}; no other value changes"
    )


def no_refill_note(table: Table, field_id: int, kept: RetainedValues, catalog: str) -> str:
    """That values cannot be brought back, why, and where they are."""
    if not kept.in_structs:
        why = "fields in a list or a map cannot be restored"
    elif not spark_loads(table.schema):
        why = "Spark cannot load this table"
    elif kept.can_be_matched and _default(table, field_id) is not None:
        why = "its default is written when values of another version are restored: restore it alone"
    elif kept.can_be_matched:
        why = "Spark cannot read a variant that was just restored"
    elif table.format_version < ROW_LINEAGE_VERSION:
        why = "without identifier fields that are the same then and now, rows cannot be matched"
    else:
        why = "rows had no row ids then, and no identifier fields that are the same now"
    query = _query(table, kept, catalog)
    return f"{_lost(table, field_id, kept)}, and {why}; {kept.version} keeps it: {query}"


def _lost(table: Table, field_id: int, kept: RetainedValues) -> str:
    name, default = format_path(schema_index(table.schema)[field_id].path), _default(table, field_id)
    read = "" if default is None else f" and read its default {default_text(default)} instead"
    return f"{_rows(kept)} lost the value of {name} when their files were rewritten{read}"


def _rows(kept: RetainedValues) -> str:
    return "up to 1 row" if kept.rows == 1 else f"up to {kept.rows} rows"


def _query(table: Table, kept: RetainedValues, catalog: str) -> str:
    columns = ", ".join(map(path_sql, (*kept.identifier.values(), kept.path)))
    name = table_sql(catalog, table.name)
    return f"SELECT {columns} FROM {name} VERSION AS OF {version_sql(kept.version)}"
