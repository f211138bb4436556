"""What migration files declare: a second implementation, written from the documentation.

Nothing here imports the product.  A migration is a list of effects; the effects of the applied migrations,
in order, give the tables as `docs/migration-files.md` promises them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, TypeAlias

TableKey: TypeAlias = tuple[str, str]
"""The version that creates a table and the name that it is created under."""
ColumnKey: TypeAlias = tuple[str, str]
"""The version that creates a column and the name that it is created under."""


@dataclass(frozen=True)
class Column:
    """A top-level column, by name and by type (as Iceberg's JSON writes it: "Appendix C", Schemas)."""

    name: str
    type: str


@dataclass(frozen=True)
class Fill:
    """Values that a migration writes.

    :param kind: ``label`` (a text from the row's id), ``shout`` (the value before and ``!``) or ``text`` (the
        value of the column ``source`` as a text).
    :param only_nulls: whether a value that is there stays.
    """

    version: str
    column: ColumnKey
    kind: str
    source: ColumnKey | None = None
    only_nulls: bool = False

    def value(self, row_id: int, before: Any, source: Any) -> Any:
        """The value of a row after the fill.

        :param before: its value in the column itself; ``source``, in the source column.
        """
        if self.only_nulls and before is not None:
            return before
        if self.kind == "label":
            return label(self.version, row_id)
        given = before if self.kind == "shout" else source
        return None if given is None else f"{given}!" if self.kind == "shout" else str(given)


def label(version: str, row_id: int) -> str:
    """The text that a ``label`` fill gives to a row."""
    return f"filled-{version}-{row_id}"


@dataclass(frozen=True)
class DeclaredTable:
    """A table as the applied migrations declare it.

    :param dropped: columns that were dropped and may come back under their field ids.
    :param partition: terms, as pairs of a transform (as Iceberg's JSON writes it) and its source column.
    :param gone: whether it is dropped, and so waits in the trash (`docs/maintaining.md`, The trash).
    """

    name: str
    columns: Mapping[ColumnKey, Column]
    dropped: Mapping[ColumnKey, Column] = field(default_factory=dict)
    partition: frozenset[tuple[str, ColumnKey]] = frozenset()
    properties: Mapping[str, str] = field(default_factory=dict)
    fills: tuple[Fill, ...] = ()
    gone: bool = False

    def key_of(self, name: str) -> ColumnKey | None:
        """The column that has a name."""
        return next((key for key, column in self.columns.items() if column.name == name), None)


@dataclass(frozen=True)
class Effect:
    """One thing that a migration does to one table.

    :param kind: ``create``, ``drop_table``, ``rename_table``, ``add``, ``drop``, ``rename``, ``widen``,
        ``retype``, ``fill``, ``property``, ``partition`` or ``restore``.
    :param table: its name in the file; of a table that is renamed, its name before.
    """

    kind: str
    table: str
    column: str = ""
    to: str = ""
    type: str = ""
    fill: str = ""
    only_nulls: bool = False
    columns: tuple[Column, ...] = ()
    terms: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Migration:
    """A version and its effects.

    :param fails: whether one of its checks does not hold, so that all of it is undone (`docs/applying.md`).
    """

    version: str
    effects: tuple[Effect, ...]
    text: str
    fails: bool = False

    @property
    def writes_rows(self) -> bool:
        """Whether it changes values of rows."""
        return any(effect.kind in ("fill", "retype") for effect in self.effects)


Tables: TypeAlias = Mapping[TableKey, DeclaredTable]


def fold(migrations: Iterable[Migration], applied: Iterable[str]) -> dict[TableKey, DeclaredTable]:
    """The tables that the applied migrations declare."""
    versions, tables = set(applied), dict[TableKey, DeclaredTable]()
    for migration in migrations:
        if migration.version in versions:
            for effect in migration.effects:
                _do(tables, migration.version, effect)
    return tables


def subsets(migrations: Sequence[Migration]) -> list[tuple[str, ...]]:
    """All sets of applied versions that hold the first one."""
    first, *others = [m.version for m in migrations]
    return [(first, *some) for n in range(len(others) + 1) for some in combinations(others, n)]


def _do(tables: dict[TableKey, DeclaredTable], version: str, effect: Effect) -> None:
    if effect.kind == "create":
        columns = {(version, c.name): c for c in effect.columns}
        made = DeclaredTable(effect.table, columns, properties={})
        terms = frozenset((transform, (version, source)) for transform, source in effect.terms)
        tables[(version, effect.table)] = replace(made, partition=terms)
        return
    at = next((k for k, t in tables.items() if t.name == effect.table and not t.gone), None)
    if at is not None:
        tables[at] = _changed(tables[at], version, effect)


def _changed(table: DeclaredTable, version: str, effect: Effect) -> DeclaredTable:
    key = table.key_of(effect.column)
    if effect.kind == "drop_table":
        return replace(table, gone=True)
    if effect.kind == "rename_table":
        return replace(table, name=effect.to)
    if effect.kind == "property":
        return replace(table, properties={**table.properties, effect.column: effect.to})
    if effect.kind == "partition":
        sources = [(transform, table.key_of(source)) for transform, source in effect.terms]
        return replace(table, partition=frozenset((t, s) for t, s in sources if s is not None))
    if effect.kind == "add":
        new = {(version, effect.column): Column(effect.column, effect.type)}
        return replace(table, columns={**table.columns, **new})
    if effect.kind == "restore":
        back = next((k for k, c in table.dropped.items() if c.name == effect.column), None)
        if back is None:
            return table
        dropped = {k: c for k, c in table.dropped.items() if k != back}
        return replace(table, columns={**table.columns, back: table.dropped[back]}, dropped=dropped)
    if key is None:
        return table
    column, others = table.columns[key], {k: c for k, c in table.columns.items() if k != key}
    if effect.kind == "drop":
        return replace(table, columns=others, dropped={**table.dropped, key: column})
    if effect.kind == "rename":
        return replace(table, columns={**table.columns, key: replace(column, name=effect.to)})
    if effect.kind == "widen":
        return replace(table, columns={**table.columns, key: replace(column, type=effect.type)})
    if effect.kind == "retype":
        new_key = (version, effect.column)
        return replace(
            table,
            columns={**others, new_key: Column(effect.column, effect.type)},
            dropped={**table.dropped, key: column},
            fills=(*table.fills, Fill(version, new_key, "text", key)),
        )
    assert effect.kind == "fill", effect
    fill = Fill(version, key, effect.fill, only_nulls=effect.only_nulls)
    return replace(table, fills=(*table.fills, fill))


@dataclass(frozen=True)
class Legal:
    """What any set of applied migrations allows, for judging commits in the middle of a command.

    :param columns: the states that a column may have; ``None`` where it may be absent.
    """

    columns: Mapping[TableKey, Mapping[ColumnKey, frozenset[Column | None]]]
    fills: Mapping[TableKey, tuple[Fill, ...]]


def legal(migrations: Sequence[Migration]) -> Legal:
    """All that is legal at some moment of some run."""
    columns: dict[TableKey, dict[ColumnKey, set[Column | None]]] = {}
    fills: dict[TableKey, dict[Fill, None]] = {}
    folds = [fold(migrations, applied) for applied in subsets(migrations)]
    for tables in folds:
        for at, table in tables.items():
            for key, column in (*table.columns.items(), *((k, None) for k in table.dropped)):
                columns.setdefault(at, {}).setdefault(key, set()).add(column)
            fills.setdefault(at, {}).update(dict.fromkeys(table.fills))
    for at, states in columns.items():
        for tables in folds:
            if at in tables:
                for key in states:
                    if key not in tables[at].columns:
                        states[key].add(None)
    frozen = {at: {k: frozenset(s) for k, s in states.items()} for at, states in columns.items()}
    return Legal(frozen, {at: tuple(f) for at, f in fills.items()})
