"""Columns for counted attributes: which ones a migration adds, and why the others stay in the map."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from icemigrate.frozen import Frozen
from icemigrate.iceberg.table import Table
from icemigrate.otlp.attribute_columns import AttributeSource, attribute_sources, column_name, column_type
from icemigrate.pipeline.attribute_counts import AttributeCount, KindAttributes
from icemigrate.wal.entries import EntryKind


class AttributeColumn(Frozen):
    """A column that an attribute fills.

    :param type: in Iceberg's notation.
    """

    name: str
    type: str
    count: AttributeCount


class UnchangedAttribute(Frozen):
    """An attribute that gets no column.

    :param reason: a clause.
    """

    source: AttributeSource
    reason: str


class ColumnChoice(Frozen):
    """The columns that the tables of a kind get, and the attributes that get none."""

    columns: tuple[AttributeColumn, ...]
    unchanged: tuple[UnchangedAttribute, ...]


def choose_columns(
    kind: EntryKind,
    counted: KindAttributes,
    tables: Collection[Table],
    limit: int,
    is_wanted: frozenset[AttributeSource] | None = None,
) -> ColumnChoice:
    """Choose the columns of a kind.

    :param tables: all declared ones of the kind.
    :param limit: of the columns; the attributes of most tenants and rows are first.
    :param is_wanted: the attributes to choose from; ``None`` for all.
    """
    sources = [frozenset(attribute_sources(table.properties).values()) for table in tables]
    filled = frozenset[AttributeSource].intersection(*sources) if sources else frozenset[AttributeSource]()
    columns, unchanged = list[AttributeColumn](), list[UnchangedAttribute]()
    for one in counted.attributes:
        if one.source in filled or (is_wanted is not None and one.source not in is_wanted):
            continue
        if (type_ := column_type(one.types)) is None:
            unchanged.append(UnchangedAttribute(one.source, _no_type(one.types)))
        else:
            columns.append(AttributeColumn(column_name(one.source, kind), type_, one))
    free, taken = _without_taken(columns, tables)
    unique, shared = _without_shared(free)
    first, others = unique[:limit], unique[limit:]
    unchanged += (*taken, *shared)
    unchanged += [
        UnchangedAttribute(one.count.source, "`--limit` leaves it for a later migration") for one in others
    ]
    return ColumnChoice(tuple(sorted(first, key=lambda one: one.name)), tuple(unchanged))


def _no_type(types: Iterable[str]) -> str:
    found = " and ".join(sorted(set(types) - {"empty"}))
    return f"no column has its values of type {found}" if found else "all its values are empty"


def _without_taken(
    columns: Sequence[AttributeColumn], tables: Collection[Table]
) -> tuple[list[AttributeColumn], list[UnchangedAttribute]]:
    """The columns whose name no table has, but for a column that the same attribute fills."""
    taken = dict[str, tuple[str, set[AttributeSource | None]]]()
    for table in tables:
        sources = attribute_sources(table.properties)
        for field in table.schema.fields:
            # Spark compares names without regard to case.
            _, found = taken.setdefault(field.name.lower(), (str(table.name), set()))
            found.add(sources.get(field.name))
    free, refused = list[AttributeColumn](), list[UnchangedAttribute]()
    for one in columns:
        table_name, found = taken.get(one.name, ("", set()))
        if found <= {one.count.source}:
            free.append(one)
        else:
            reason = f"table `{table_name}` has another column `{one.name}`"
            refused.append(UnchangedAttribute(one.count.source, f"{reason}; {_BY_HAND}"))
    return free, refused


def _without_shared(
    columns: Sequence[AttributeColumn],
) -> tuple[list[AttributeColumn], list[UnchangedAttribute]]:
    """The columns whose name is that of one attribute."""
    by_name = dict[str, list[AttributeColumn]]()
    for one in columns:
        by_name.setdefault(one.name, []).append(one)
    unique = [one for one in columns if len(by_name[one.name]) == 1]
    refused = [
        UnchangedAttribute(
            one.count.source,
            f"{' and '.join(f'`{other.count.source}`' for other in same)} give the same column name "
            f"`{name}`; choose one of them with `--attribute`, or {_BY_HAND}",
        )
        for name, same in by_name.items()
        if len(same) > 1
        for one in same[:1]
    ]
    return unique, refused


_BY_HAND = "write the column in a migration, with a name of its own"
