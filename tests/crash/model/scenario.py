"""Random worlds, migrations, commands and disturbances, all from one seed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from tests.crash.model.declared import Column, Effect, Migration, fold

NAMESPACE = "shop"
FIRST = "0001"
_BASE_COLUMNS = (
    Column("region", "string"),
    Column("name", "string"),
    Column("n", "int"),
    Column("price", "double"),
)
_ALL_WAYS_UNTIL = 5
_CALLS_IN_PYTHON = 90
FIRST_NAMES = frozenset(column.name for column in _BASE_COLUMNS)
"""The columns of every table of the first migration, besides `id`."""
_PARTITIONS: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (),
    (("identity", "region"),),
    (("bucket[4]", "name"),),
    (("truncate[2]", "name"),),
    (("identity", "region"), ("bucket[2]", "id")),
)
_NEW_TYPES = ("string", "int", "double")
_CHANGES = (
    *("add", "add", "drop", "drop", "rename", "widen", "retype", "fill_new", "fill_old"),
    *("property", "partition", "restore", "rename_table"),
)


@dataclass(frozen=True)
class BaseTable:
    """A table of the first migration.

    :param has_identifier: whether `id` identifies its rows, so that a refill can match them.
    :param merge_on_read: whether Spark's updates and deletes write delete files.
    """

    name: str
    format_version: int
    partition: tuple[tuple[str, str], ...]
    has_identifier: bool
    merge_on_read: bool
    appends: int
    expires: bool


@dataclass(frozen=True)
class Base:
    """What a world is before anything happens."""

    seed: int
    tables: tuple[BaseTable, ...]

    @property
    def apply_with(self) -> str:
        """What commits the first migration."""
        return ("spark", "metadata")[self.seed % 2]

    @property
    def migration(self) -> Migration:
        """The first migration, which makes the tables."""
        lines = ["tables:"]
        effects = []
        for table in self.tables:
            columns = (Column("id", "long"), *_BASE_COLUMNS)
            lines += [f"  - name: {NAMESPACE}.{table.name}", f"    format_version: {table.format_version}"]
            lines += ["    columns:"]
            for column in columns:
                required = ", required: true" if table.has_identifier and column.name == "id" else ""
                lines.append(f"      - {{name: {column.name}, type: {column.type}{required}}}")
            if table.has_identifier:
                lines.append("    identifier: [id]")
            if table.partition:
                lines.append(f"    partition_by: [{_terms(table.partition)}]")
            if table.merge_on_read:
                modes = ", ".join(f"write.{k}.mode: merge-on-read" for k in ("update", "delete", "merge"))
                lines.append(f"    properties: {{{modes}}}")
            if table.expires:
                lines.append("    retention: {snapshots: {max_age: 1s, keep_at_least: 1}}")
            effects.append(
                Effect("create", f"{NAMESPACE}.{table.name}", columns=columns, terms=table.partition)
            )
        return Migration(FIRST, tuple(effects), "\n".join(lines) + "\n")


@dataclass(frozen=True)
class ForeignAct:
    """What another client does.

    :param kind: a method of :class:`~tests.crash.model.foreign.OtherClients`, such as ``append``.
    :param seed: what decides about the table and the rest.
    """

    kind: str
    seed: int


@dataclass(frozen=True)
class Blow:
    """What happens to a command on its way.

    :param kind: ``kill``, ``pause`` or ``foreign``.
    :param at: the number of the catalog's change, or of the call to the JVM, behind which it happens.
    :param by: ``change`` or ``call``.
    :param acts: of other clients; while the process is paused, where it is.
    :param meanwhile: the command of the client that takes over from a paused process; empty for none.
    :param unlocks: whether that client takes the lock by `unlock`, else it waits for the lease.
    """

    kind: str
    at: int
    by: str
    acts: tuple[ForeignAct, ...] = ()
    meanwhile: tuple[str, ...] = ()
    unlocks: bool = False


@dataclass(frozen=True)
class Step:
    """One command, what happens on its way, and what others do before it.

    :param unlocks: whether a lock that a killed process left is taken away by `unlock` before.
    """

    command: tuple[str, ...]
    before: tuple[ForeignAct, ...] = ()
    blows: tuple[Blow, ...] = ()
    unlocks: bool = False

    def blows_with(self, apply_with: str) -> tuple[Blow, ...]:
        """What happens on the way of a command that commits metadata so: in Python, it takes fewer calls."""
        if apply_with == "spark":
            return self.blows
        return tuple(replace(b, at=b.at % _CALLS_IN_PYTHON) if b.by == "call" else b for b in self.blows)


@dataclass(frozen=True)
class Scenario:
    """All of a run.

    :param migrations: without the first one.
    :param publish: ``atomic`` or ``direct``.
    :param own_files: whether the world needs files of its own, as some are deleted.
    """

    seed: int
    base: Base
    migrations: tuple[Migration, ...]
    publish: str
    steps: tuple[Step, ...]
    own_files: bool

    def apply_with(self, number: int) -> str:
        """What commits the metadata of a command.

        :param number: of the command in the run, from 0.  Later ones bring the run to rest, so that they use
            Spark where they need it.
        """
        random = Random(f"apply with {self.seed} {number}")
        if number < _ALL_WAYS_UNTIL and random.random() < (0.1 if self.changes_rows else 0.35):
            return "metadata"
        return random.choice(("spark", "auto", "auto"))

    @property
    def changes_rows(self) -> bool:
        """Whether a migration needs Spark."""
        kinds = {effect.kind for migration in self.migrations for effect in migration.effects}
        return bool(kinds & {"fill", "retype"}) or any("refill" in m.text for m in self.migrations)

    @property
    def untouched(self) -> frozenset[str]:
        """The initial columns that no migration speaks of."""
        texts = "".join(migration.text for migration in self.migrations)
        return frozenset(name for name in FIRST_NAMES if re.search(rf"\b{name}\b", texts) is None)


def base_of(seed: int, expires: bool = False) -> Base:
    """The base of a number."""
    random = Random(f"base {seed}")
    tables = []
    for number in range(random.choice((1, 2, 2, 3))):
        version = random.choice((1, 2, 2, 3))
        merge_on_read = version > 1 and random.random() < 0.5
        # Format 1 knows no required field that identifies less than format 2 does: any may have one.
        tables.append(
            BaseTable(
                f"t{number}",
                version,
                random.choice(_PARTITIONS),
                random.random() < 0.5,
                merge_on_read,
                random.choice((1, 2, 2)),
                expires,
            )
        )
    return Base(seed, tuple(tables))


def scenario_of(seed: int, bases: int) -> Scenario:
    """The scenario of a seed.

    :param bases: how many different bases there are.
    """
    random = Random(f"run {seed}")
    own_files = random.random() < 0.04
    base = base_of(seed % bases, own_files)
    migrations = tuple(_migrations(random, base))
    publish = random.choice(("atomic", "atomic", "atomic", "direct"))
    steps = tuple(_steps(random, migrations, own_files))
    return Scenario(seed, base, migrations, publish, steps, own_files)


def _terms(terms: tuple[tuple[str, str], ...]) -> str:
    texts = []
    for transform, source in terms:
        name, _, number = transform.partition("[")
        texts.append(source if name == "identity" else f'"{name}({number.rstrip("]")}, {source})"')
    return ", ".join(texts)


def _migrations(random: Random, base: Base) -> Iterator[Migration]:
    done = [base.migration]
    for version in ("0002", "0003")[: random.choice((1, 1, 2))]:
        migration = _migration(random, base, done, version)
        done.append(migration)
        yield migration


def _migration(random: Random, base: Base, done: list[Migration], version: str) -> Migration:
    effects: list[Effect] = []
    entries: list[str] = []
    there = {k: t for k, t in fold(done, [m.version for m in done]).items() if not t.gone}
    tables = list(there.values())
    first = fold(done[:1], (FIRST,))
    bases = {(FIRST, f"{NAMESPACE}.{t.name}"): t for t in base.tables}
    dropped = {(e.table, e.column) for m in done for e in m.effects if e.kind == "drop"}
    chosen = random.sample(tables, k=random.randint(1, len(tables)))
    fails, remaining = False, len(tables)
    for table in chosen:
        key = next(k for k, t in there.items() if t is table)
        # Elsewhere the product refuses to drop what a table was ever partitioned by.
        keeps = key in bases and (bases[key].merge_on_read or bases[key].format_version == 1)
        was = first[key].partition if keeps else frozenset()
        own = _Entry(
            random, version, table.name, {table.columns[s].name for _, s in was if s in table.columns}
        )
        if random.random() < 0.08 and remaining > 1:
            remaining -= 1
            effects.append(Effect("drop_table", table.name))
            entries.append(f"  - {{name: {table.name}, drop: true}}")
            continue
        partitioned = {source for _, source in table.partition}
        names = {c.name: (key, c.type) for key, c in table.columns.items() if c.name != "id"}
        for _ in range(random.randint(1, 3)):
            own.add(names, {table.columns[s].name for s in partitioned if s in table.columns}, dropped)
        if random.random() < 0.08:
            fails = True
            own.checks.append('{after: "select count(*) - count(*) from {table}", gives: 1}')
        elif random.random() < 0.1:
            own.checks.append('{after: "select count(*) from {table} where id is null", gives: 0}')
        entries.append(own.text())
        effects += own.effects
    if random.random() < 0.15:
        name = f"{NAMESPACE}.c{version[-1]}"
        effects.append(Effect("create", name, columns=(Column("id", "long"), Column("note", "string"))))
        entries.append(
            f"  - {{name: {name}, columns: [{{name: id, type: long}}, {{name: note, type: string}}]}}"
        )
    text = "allow: [destructive, incompatible, irreversible]\ntables:\n" + "\n".join(entries) + "\n"
    return Migration(version, tuple(effects), text, fails)


class _Entry:
    """The entry of one table in a migration file, and its effects.

    :param keeps: columns that it neither drops nor changes.
    """

    def __init__(self, random: Random, version: str, table: str, keeps: set[str]) -> None:
        self.random, self.version, self.table, self.keeps = random, version, table, keeps
        self.effects: list[Effect] = []
        self.checks: list[str] = []
        self._touched: set[str] = set()
        self._parts: dict[str, list[str]] = {}
        self._partition: str | None = None
        self._name = table

    def add(
        self, names: Mapping[str, tuple[object, str]], sources: set[str], dropped: set[tuple[str, str]]
    ) -> None:
        """Add one random change.

        :param names: the columns, with their types; ``sources``, those that partition the table.
        """
        free = [n for n in names if n not in self._touched]
        kind = self.random.choice(_CHANGES)
        back = [c for t, c in dropped if t == self.table and c not in names and c not in self._touched]
        if kind == "restore" and back:
            column = self.random.choice(back)
            refill = self.random.random() < 0.5
            self._part("restore_columns", f"{{name: {column}, refill: true}}" if refill else column)
            self._effect("restore", column)
        elif kind in ("add", "fill_new", "restore"):
            self._add(kind, free)
        elif kind == "property":
            self._part("properties", f"owner.v{self.version[-1]}: {self.version}x")
            self._effect("property", f"owner.v{self.version[-1]}", to=f"{self.version}x")
        elif kind == "partition" and self._partition is None:
            terms = self.random.choice(((), (("bucket[3]", "id"),)))
            self._repartition(terms)
        elif kind == "rename_table" and self._name == self.table and self.random.random() < 0.5:
            self._name = f"{NAMESPACE}.r{self.version[-1]}{self.table[-1]}"
        elif free:
            self._change(kind, self.random.choice(free), names, sources)

    def _change(
        self, kind: str, column: str, names: Mapping[str, tuple[object, str]], sources: set[str]
    ) -> None:
        type_ = names[column][1]
        is_source = column in sources
        if column in self.keeps and kind != "rename":
            return
        if kind == "drop" or (kind in ("retype", "widen") and type_ != "int"):
            if is_source and self._partition is not None and self._partition != "":
                return
            if is_source:
                self._repartition(())
            self._part("drop_columns", column)
            self._effect("drop", column)
        elif kind == "rename":
            new = f"{column}_{self.version[-1]}"
            self._part("renames", f"{column}: {new}")
            self._effect("rename", column, to=new)
            self._touched.add(new)
        elif kind == "widen":
            self._part("columns", f"{{name: {column}, type: long}}")
            self._effect("widen", column, type="long")
        elif kind == "retype":
            self._part("retype", f"{column}: {{to: string, using: cast({column} as string)}}")
            self._effect("retype", column, type="string")
        elif kind == "fill_old" and type_ == "string" and not is_source:
            self._part("backfill", f"{{set: {{{column}: \"concat({column}, '!')\"}}}}")
            self._effect("fill", column, fill="shout")

    def _add(self, kind: str, free: list[str]) -> None:
        column = f"a{self.version[-1]}{len(self._touched)}"
        type_ = "string" if kind == "fill_new" else self.random.choice(_NEW_TYPES)
        after = f", after: {self.random.choice(free)}" if free and self.random.random() < 0.3 else ""
        if after:
            self._touched.add(after.rpartition(" ")[2])  # it stays
        self._part("columns", f"{{name: {column}, type: {type_}{after}}}")
        self._effect("add", column, type=type_)
        if kind == "fill_new":
            only_nulls = self.random.random() < 0.5
            where = f", where: {column} is null" if only_nulls else ""
            value = f"\"concat('filled-{self.version}-', cast(id as string))\""
            self._part("backfill", f"{{set: {{{column}: {value}}}{where}}}")
            self._effect("fill", column, fill="label", only_nulls=only_nulls)

    def _repartition(self, terms: tuple[tuple[str, str], ...]) -> None:
        self._partition = _terms(terms)
        self.effects.append(Effect("partition", self.table, terms=terms))

    def _part(self, key: str, text: str) -> None:
        self._parts.setdefault(key, []).append(text)

    def _effect(self, kind: str, column: str, **more: object) -> None:
        self._touched.add(column)
        self.effects.append(Effect(kind, self.table, column, **more))  # type: ignore[arg-type]

    def text(self) -> str:
        """The entry as YAML."""
        lines = [f"  - name: {self._name}"]
        if self._name != self.table:
            lines.append(f"    renamed_from: {self.table}")
            self.effects.append(Effect("rename_table", self.table, to=self._name))
        for key, texts in self._parts.items():
            opening, closing = "{}" if key in ("renames", "retype", "properties") else "[]"
            lines.append(f"    {key}: {opening}{', '.join(dict.fromkeys(texts))}{closing}")
        if self._partition is not None:
            lines.append(f"    partition_by: [{self._partition}]")
        if self.checks:
            lines.append(f"    checks: [{', '.join(self.checks)}]")
        if len(lines) == 1:
            lines.append("    properties: {owner.nothing: none}")
            self.effects.append(Effect("property", self.table, "owner.nothing", to="none"))
        return "\n".join(lines)


_ACTS = (
    *("add", "add", "add", "property", "rename", "drop", "rename_first", "squat"),
    *("append", "append", "append", "append", "delete", "update", "compact"),
)


def _acts(random: Random, least: int = 0) -> tuple[ForeignAct, ...]:
    number = max(least, random.choice((0, 0, 1, 1, 2)))
    return tuple(ForeignAct(random.choice(_ACTS), random.getrandbits(30)) for _ in range(number))


def _steps(random: Random, migrations: tuple[Migration, ...], maintains: bool) -> Iterator[Step]:
    last = migrations[-1].version
    undo: tuple[tuple[str, ...], ...] = (
        ("rollback",),
        ("rollback",),
        ("rollback", "--refill"),
        ("rollback", "--refill"),
        ("rollback", "--partial"),
        ("rollback", "--metadata-only"),
        ("rollback", "--to", FIRST),
    )
    redo: tuple[tuple[str, ...], ...] = (
        ("apply", "--redo", migrations[0].version),
        ("apply", "--redo", last),
        ("apply",),
    )
    commands: list[tuple[str, ...]] = [("apply",)]
    for _ in range(random.choice((1, 2, 2, 3))):
        following = undo if commands[-1][0] == "apply" and random.random() < 0.8 else redo
        if random.random() < 0.1:
            following = (("plan",), ("maintain",)) if maintains else (("plan",),)
        commands.append(random.choice(following))
    if maintains:
        commands.insert(random.randint(1, len(commands)), ("maintain",))
    for number, command in enumerate(commands):
        blows = tuple(_blows(random, undo, redo)) if command[0] != "plan" else ()
        acts = _acts(random) if number or random.random() < 0.3 else ()
        yield Step(command, acts, blows, unlocks=random.random() < 0.6)


def _blows(
    random: Random, undo: tuple[tuple[str, ...], ...], redo: tuple[tuple[str, ...], ...]
) -> Iterator[Blow]:
    chance = random.random()
    if random.random() < 0.35:
        yield Blow("foreign", random.randint(0, 9), "change", _acts(random, 1))
    by = "call" if random.random() < 0.35 else "change"
    at = random.randint(5, 500) if by == "call" else random.randint(1, 9)
    if chance < 0.35:
        yield Blow("kill", at, by)
    elif chance < 0.6:
        meanwhile = random.choice((("apply",), ("apply",), random.choice(undo), random.choice(redo), ()))
        yield Blow("pause", at, by, _acts(random), meanwhile, random.random() < 0.5)
