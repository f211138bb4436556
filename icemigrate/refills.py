"""What stands around a refill: the settings that it needs, and their end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from icemigrate.changes.end_refill import EndRefill, begun, is_refilling
from icemigrate.changes.fields import default_text
from icemigrate.changes.refill_columns import RefillColumns, Refilled
from icemigrate.changes.set_property import SetProperty
from icemigrate.diff import Found
from icemigrate.frozen import Frozen
from icemigrate.model.evidence import Kept
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.types import JsonValue, Primitive, walk
from icemigrate.sql.names import path_sql, table_sql
from icemigrate.sql.refilling import version_sql
from icemigrate.sql.types import spark_loads

ROW_LINEAGE_VERSION = 3
"""The first format version whose rows have ids."""
NO_COPIES: Mapping[int, Sequence[str]] = MappingProxyType({})
_VARIANT = Primitive("variant")


class Refill(Frozen):
    """A refill of one table.

    :param before: belongs to the commit that brings the columns back.
    :param after: follows it; each is a step of its own.
    """

    before: tuple[Found, ...] = ()
    after: tuple[Found, ...] = ()


def around(table: Table, version: str, refills: Sequence[RefillColumns]) -> Refill:
    """The refills of a table with what they need; with none, the end of one that was begun.

    :param table: with its columns back.
    :param version: of the migration.
    """
    if not refills:
        return Refill(after=(Found(EndRefill(table.name), table),)) if is_refilling(table) else Refill()
    needed = any(refill.by_row_id or refill.by_lineage for refill in refills)
    merges_on_read = needed and table.format_version >= ROW_LINEAGE_VERSION
    found, current = list[Found](), table
    for key, value in begun(table, version, merges_on_read).items():
        change = SetProperty(table.name, key, value, current.properties.get(key))
        found.append(Found(change, current))
        current = change.apply(current)
    last = (*refills, EndRefill(table.name))
    return Refill(tuple(found), tuple(Found(change, current) for change in last))


def deferred(
    table: Table,
    owner: tuple[str, str],
    field_ids: frozenset[int],
    copies: Mapping[int, Sequence[str]] = NO_COPIES,
) -> Refill:
    """The refill of fields whose values are looked for when it runs.

    :param table: with its columns back; without rows there is nothing to bring back.
    :param owner: the project and the version of the migration.
    :param copies: by field, the versions that are known to keep values which a rollback did not bring back.
    """
    there = index(table.schema) if field_ids else {}
    fields = tuple(_refilled(table, i) for i in there if i in field_ids)
    is_due = bool(fields) and table.has_rows and spark_loads(table.schema)
    among = dict.fromkeys(name for i in sorted(field_ids) for name in copies.get(i, ()))
    project, version = owner
    refills = [RefillColumns(table.name, "", fields, (), tuple(among), project)] if is_due else []
    return around(table, version, refills)


def fitting(table: Table, kept: Mapping[int, Kept]) -> dict[int, Kept]:
    """The fields whose values can be brought back, of those that a version keeps."""
    if not spark_loads(table.schema) or _has_variant(table, kept):
        return {}
    found = {field_id: kept for field_id, kept in kept.items() if kept.can_be_matched}
    # What is written holds every default, and was written just now: who lacked the next field is not told.
    first = next((_group(k) for i, k in found.items() if _default(table, i) is not None), None)
    return {i: k for i, k in found.items() if _default(table, i) is None or _group(k) == first}


def _group(kept: Kept) -> tuple[str, bool]:
    """What is brought back at once."""
    return kept.version, kept.by_row_id


def _default(table: Table, field_id: int) -> JsonValue:
    """What is read in files that do not hold the field."""
    return index(table.schema)[field_id].field.initial_default


def _refilled(table: Table, field_id: int, then: Path = ()) -> Refilled:
    is_read = _default(table, field_id) is not None
    return Refilled(index(table.schema)[field_id].path, then, field_id if is_read else None)


def _has_variant(table: Table, field_ids: Iterable[int]) -> bool:
    """Whether one of the fields is a variant or holds one.

    Spark reads no row of a table with a variant that the schema of its newest snapshot does not have
    (Iceberg 1.12, ``BaseScan.includeColumnStats``), as it is when one has just come back.
    """
    fields = [index(table.schema)[i].field for i in field_ids]
    return any(f.type == _VARIANT for top in fields for f in (top, *(below for _, below in walk(top.type))))


def refills_of(table: Table, kept: Mapping[int, Kept], project: str) -> Iterator[RefillColumns]:
    """One for each version that keeps values, by the one or the other way of telling rows."""
    there = index(table.schema)
    groups: dict[tuple[str, bool], list[int]] = {}
    # Where rows are asked when they were written, that comes first, as long as none was for the others.
    for field_id, found in sorted(kept.items(), key=lambda pair: _default(table, pair[0]) is None):
        groups.setdefault(_group(found), []).append(field_id)
    for (version, by_row_id), ids in groups.items():
        identifier = {} if by_row_id else kept[ids[0]].identifier
        yield RefillColumns(
            table.name,
            version,
            tuple(_refilled(table, i, kept[i].path) for i in ids),
            tuple(Refilled(there[i].path, path) for i, path in identifier.items()),
            project=project,
        )


class Chosen(Frozen):
    """Which values that versions keep can be brought back.

    :param refills: what brings them back, the newest version first.
    :param fitting: the fields that it is about, each with a version.
    :param others: fields whose values of a version cannot be brought back.
    """

    refills: tuple[RefillColumns, ...]
    fitting: tuple[tuple[int, Kept], ...]
    others: tuple[tuple[int, Kept], ...]


def choose(
    table: Table, kept: Mapping[int, Kept], more: Mapping[int, Sequence[Kept]], project: str
) -> Chosen:
    """Choose what is brought back: rows get the newest value, and an older one only where there is none.

    :param kept: by field, the version that keeps most.
    :param more: by field, further versions, the newest first.
    :param project: whose refill it is.
    """
    refills, fit, others = list[RefillColumns](), list[tuple[int, Kept]](), list[tuple[int, Kept]]()
    layers = [kept, *({i: ks[at] for i, ks in more.items() if at < len(ks)} for at in range(_depth(more)))]
    for number, layer in enumerate(layers):
        here = fitting(table, layer)
        if number:
            # What is written holds every default, so who lacked the value of another version is not told.
            here = {i: k for i, k in here.items() if _default(table, i) is None}
        refills += refills_of(table, here, project)
        fit += here.items()
        others += ((i, k) for i, k in layer.items() if i not in here)
    return Chosen(tuple(refills), tuple(fit), tuple(others))


def _depth(more: Mapping[int, Sequence[Kept]]) -> int:
    return max(map(len, more.values()), default=0)


def offered(table: Table, field_id: int, kept: Kept, catalog: str) -> str:
    """That values could be brought back."""
    return (
        f"{_lost(table, field_id, kept)}, and {kept.version} keeps it: `--refill` brings it back; "
        f"or look: {_query(table, kept, catalog)}"
    )


def queryable(table: Table, field_id: int, kept: Kept, catalog: str) -> str:
    """Where values can still be read, where nothing brings them back."""
    return f"{_lost(table, field_id, kept)}; {kept.version} keeps it: {_query(table, kept, catalog)}"


def promised(table: Table, field_id: int, kept: Kept) -> str:
    """That values are brought back."""
    name = format_path(index(table.schema)[field_id].path)
    verb = "gets" if kept.rows == 1 else "get"
    unless = "" if kept.by_row_id else ", unless an identifier stands for several rows"
    return (
        f"{_rows(kept)} {verb} the value of {name} back from {kept.version}{unless}; "
        "no other value is touched"
    )


def elsewhere(table: Table, field_id: int, kept: Kept, catalog: str) -> str:
    """That values cannot be brought back, why, and where they are."""
    if not kept.in_structs:
        why = "what is in a list or a map cannot be brought back"
    elif not spark_loads(table.schema):
        why = "Spark cannot load this table"
    elif kept.can_be_matched and _default(table, field_id) is not None:
        why = "its default is written once values of another version are back: restore it by itself"
    elif kept.can_be_matched:
        why = "Spark cannot read a variant that has just come back"
    elif table.format_version < ROW_LINEAGE_VERSION:
        why = "without identifier fields, the same then and now, nothing tells which row was which"
    else:
        why = "rows had no row ids then, and no identifier fields that are the same now"
    query = _query(table, kept, catalog)
    return f"{_lost(table, field_id, kept)}, and {why}; {kept.version} keeps it: {query}"


def _lost(table: Table, field_id: int, kept: Kept) -> str:
    name, default = format_path(index(table.schema)[field_id].path), _default(table, field_id)
    read = "" if default is None else f" and read its default {default_text(default)} instead"
    return f"{_rows(kept)} lost the value of {name} when their files were written anew{read}"


def _rows(kept: Kept) -> str:
    return "up to 1 row" if kept.rows == 1 else f"up to {kept.rows} rows"


def _query(table: Table, kept: Kept, catalog: str) -> str:
    columns = ", ".join(map(path_sql, (*kept.identifier.values(), kept.path)))
    name = table_sql(catalog, table.name)
    return f"SELECT {columns} FROM {name} VERSION AS OF {version_sql(kept.version)}"
