"""The documents in ``cases/<kind>/``: read, planned, and told as text.  ``cases/README.md`` has the format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import zip_longest
from pathlib import Path as File
from typing import Any

import yaml

from icemigrate.app.folding import Folding
from icemigrate.catalog.capabilities import SPARK_ADDS
from icemigrate.changes import KINDS
from icemigrate.changes.base import Sql, Statement
from icemigrate.declare.author import document
from icemigrate.declare.reading import read_migration
from icemigrate.declare.source import Source
from icemigrate.declare.version import Version
from icemigrate.declare.yaml_text import to_yaml
from icemigrate.diagnostics import Diagnostic, has_errors
from icemigrate.diff import difference
from icemigrate.engine.port import TAG_PREFIX
from icemigrate.merge import merge
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import Schema
from icemigrate.model.sides import EMPTY_STATE, Position, State
from icemigrate.model.table import Snapshot, Table
from icemigrate.model.types import Field, children, is_nested, with_children
from icemigrate.plan import MigrationPlan, TablePlan
from icemigrate.plan_table import CREATED_BY_PROPERTY, Surroundings
from icemigrate.planner import plan_migrations
from icemigrate.render.words import reversal_text

FOLDER = File(__file__).parent / "cases"
OTHERS = ("mistakes",)
"""Folders of documents of another format."""
NAME = "db.t"
"""What a table is called where a document does not say it."""
CATALOG = "lake"
FIRST_SNAPSHOT = 7

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One document.

    :param before: table entries, each a migration of its own.
    :param by_hand: table entries that somebody carried out on the catalog, past the history.
    :param rows: whether the tables have been written to.
    :param says: the document itself, for what it expects.
    """

    folder: str
    file: str
    title: str
    before: tuple[Entry, ...]
    by_hand: tuple[Entry, ...]
    rows: bool
    migration: str
    says: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.folder}/{self.file}: {self.title}"

    @property
    def is_positive(self) -> bool:
        """Whether the migration can be applied."""
        return not self.says.keys() & {"error", "conflicts"}

    @property
    def after(self) -> tuple[Entry, ...]:
        return entries(self.says["after"])

    def text(self, key: str) -> str:
        """What the document says under a key, without the last line's end."""
        return str(self.says.get(key) or "").rstrip("\n")


def entries(value: Any) -> tuple[Entry, ...]:
    """Table entries as a document has them: one, several, or none."""
    listed = value if isinstance(value, list) else [] if value is None else [value]
    return tuple({"name": NAME, **entry} for entry in listed)


def read_file(path: File) -> Iterator[Case]:
    """The documents of one file."""
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        yield Case(
            path.parent.name,
            path.stem,
            document["case"],
            entries(document.get("before")),
            entries(document.get("by_hand")),
            document.get("rows", False),
            document["migration"],
            document,
        )


def all_cases() -> tuple[Case, ...]:
    """All documents, by folder and file."""
    files = sorted(p for p in FOLDER.glob("*/*.yaml") if p.parent.name not in OTHERS)
    return tuple(case for path in files for case in read_file(path))


# the world


@dataclass(frozen=True, slots=True)
class World:
    """What a migration is planned on.

    :param base: what the history says.
    :param actual: the catalog's tables, by their name there.
    """

    base: State = EMPTY_STATE
    actual: Mapping[TableName, Table | None] = field(default_factory=dict)
    namespaces: frozenset[tuple[str, ...]] = frozenset()


@dataclass(frozen=True, slots=True)
class Planned:
    """A migration as it is planned on a world; ``plan`` is ``None`` where the file cannot be read."""

    diagnostics: tuple[Diagnostic, ...]
    plan: MigrationPlan | None = None
    base: State = EMPTY_STATE


@dataclass(frozen=True, slots=True)
class Place:
    """Where declared tables live in a catalog.

    :param namespace: in which namespace of the catalog ``db`` is; others begin with its name.
    """

    catalog: str = CATALOG
    namespace: str = "db"

    def physical_namespace(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        if self.namespace == "db":
            return namespace
        first = self.namespace if namespace[0] == "db" else f"{self.namespace}_{namespace[0]}"
        return (first, *namespace[1:])

    def physical(self, name: TableName) -> TableName:
        return replace(name, namespace=self.physical_namespace(name.namespace))

    def surroundings(self, world: World) -> Surroundings:
        return Surroundings(
            "market",
            self.catalog,
            self.physical,
            self.physical_namespace,
            world.namespaces,
            default_location=lambda name: f"/lake/{'/'.join(name.namespace)}/{name.name}",
        )


HERE = Place()


def make_plan(world: World, version: str, text: str, place: Place = HERE) -> Planned:
    """Plan the text of one migration file."""
    read = read_migration(Source("m.yaml", text), Version.parse(version), "m")
    if read.migration is None:
        return Planned(read.diagnostics)
    folding = Folding()
    planned = plan_migrations(
        folding.pending([read.migration]), world.base, world.actual, place.surroundings(world)
    )
    diagnostics = (*read.diagnostics, *folding.diagnostics(planned.migrations))
    return Planned(diagnostics, planned.migrations[0], planned.state)


def as_migration(entry: Entry) -> str:
    """A migration file of one entry, which consents to everything."""
    return to_yaml({"allow": ["destructive", "incompatible", "irreversible"], "tables": [dict(entry)]})


def after(world: World, planned: Planned) -> World:
    """The world when a plan has been carried out, its changes folded over the tables."""
    assert planned.plan is not None, planned.diagnostics
    actual = dict(world.actual)
    for table in planned.plan.tables:
        there = actual.get(table.name)
        made = reduce(lambda t, c: c.change.apply(t), table.changes(), there or blank(table))
        actual[table.name] = None
        if table.wanted is not None or table.steps:
            actual[made.name] = made
    namespaces = world.namespaces | frozenset(planned.plan.create_namespaces)
    return World(planned.base, actual, namespaces)


def blank(plan: TablePlan) -> Table:
    """What a new table is made from."""
    version = 2 if plan.wanted is None else plan.wanted.format_version
    return Table(plan.name, Schema(), format_version=version)


def plan_entry(world: World, version: str, entry: Entry, place: Place = HERE) -> Planned:
    """Plan an entry that is known to be right."""
    planned = make_plan(world, version, as_migration(entry), place)
    assert not has_errors(planned.diagnostics), [str(d) for d in planned.diagnostics]
    assert planned.plan is not None
    assert not planned.plan.conflicts, planned.plan.conflicts
    return planned


def world_before(case: Case) -> World:
    """The world that a document's migration meets, without Spark."""
    world = World()
    for number, entry in enumerate(case.before, 1):
        world = _written(case, after(world, plan_entry(world, f"000{number}", entry)))
    return by_hand(case, world)


def by_hand(case: Case, world: World) -> World:
    """The world after what somebody did by hand: the history knows nothing of it."""
    for entry in case.by_hand:
        others = knowing_everything(world)
        done = after(others, plan_entry(others, "0900", entry))
        world = _written(case, replace(world, actual=without_marks(done.actual), namespaces=done.namespaces))
    return world


def knowing_everything(world: World) -> World:
    """The world as one sees it for whom what is there is what shall be there."""
    return replace(world, base=State({n: t for n, t in world.actual.items() if t is not None}))


def without_marks(actual: Mapping[TableName, Table | None]) -> dict[TableName, Table | None]:
    """Tables without the property that says which migration made them."""
    return {n: None if t is None else replace(t, properties=_unmarked(t)) for n, t in actual.items()}


def _unmarked(table: Table) -> dict[str, str]:
    return {k: v for k, v in table.properties.items() if k != CREATED_BY_PROPERTY}


def _written(case: Case, world: World) -> World:
    if not case.rows:
        return world
    snapshot = Snapshot(FIRST_SNAPSHOT, 0, 0)
    tables = {
        n: None if t is None else replace(t, snapshot=t.snapshot or snapshot) for n, t in world.actual.items()
    }
    return replace(world, actual=tables)


def declared(after_entries: Iterable[Entry]) -> dict[TableName, Table]:
    """Tables as a document declares them: by entries, folded one after another."""
    world = World()
    for number, entry in enumerate(_tagged_later(after_entries), 1):
        version = f"000{number}"
        there = replace(world, actual={n: _with_snapshot(t) for n, t in world.actual.items()})
        world = after(there, plan_entry(there, version, entry))
    return {n: t for n, t in world.actual.items() if t is not None}


def _tagged_later(given: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, tags in one of their own: a new table has no rows to tag."""
    for entry in given:
        yield {key: value for key, value in entry.items() if key != "tags"}
        if "tags" in entry:
            yield {"name": entry["name"], "tags": entry["tags"]}


def _with_snapshot(table: Table | None) -> Table | None:
    return None if table is None else replace(table, snapshot=Snapshot(FIRST_SNAPSHOT, 0, 0))


# as text


def plan_text(plan: MigrationPlan) -> str:
    """What a plan does, change by change: with what it costs, and whether there is a way back."""
    lines = [f"+ create namespace {format_path(n)}" for n in plan.create_namespaces if n != ("db",)]
    for table in plan.tables:
        changes = list(table.changes())
        for change, following in zip_longest(changes, changes[1:]):
            lines += [f"{change.change.symbol} {change.text}"]
            lines += [f"    {h.kind.value} {h.scope}: {h.reason}" for h in change.hazards]
            # Neighbours that share a way back say it once, below the last of them.
            if following is None or following.reversal != change.reversal:
                lines += [f"    {reversal_text(change.reversal)}"]
        lines += [f"note: {note}" for note in table.notes]
    return "\n".join(lines)


def statements_text(plan: MigrationPlan) -> str:
    """The statements, each ended by a semicolon."""
    statements = [s for t in plan.tables for step in t.steps for s in step.statements]
    return "\n".join(f"{statement_text(s)};" for s in statements)


def statement_text(statement: Statement) -> str:
    """A statement as a document has it."""
    return statement.text if isinstance(statement, Sql) else f"metadata commit: {statement.summary}"


def told(diagnostic: Diagnostic) -> str:
    """``line:column code: message; hint``."""
    place, hint = diagnostic.place, f"; {diagnostic.hint}" if diagnostic.hint else ""
    assert place is not None
    return f"{place.line}:{place.column} {diagnostic.code}: {diagnostic.message}{hint}"


def diagnostics_text(diagnostics: Iterable[Diagnostic]) -> str:
    """All that is told, a line each."""
    return "\n".join(map(told, diagnostics))


def conflicts_text(plan: MigrationPlan) -> str:
    """The conflicts with their three values."""
    return "\n".join(f"{c.fact}: base {c.base}; wanted {c.wanted}; actual {c.actual}" for c in plan.conflicts)


# comparing


def comparable(table: Table, *, with_ids: bool, place: Place = HERE) -> dict[str, Any]:
    """What a declaration says of a table, in a form that shows a difference well.

    What a catalog adds by itself is left out, and the marks of migrations.
    """
    paths = {f.id: format_path(p) for p, f in table.schema.walk()}
    properties = {k: v for k, v in _unmarked(table).items() if k not in SPARK_ADDS}
    return {
        "columns": [_column(f, with_ids) for f in table.schema.fields],
        "identifier": sorted(paths[i] for i in table.schema.identifier_ids),
        "partition_by": [f"{f.transform}({paths[f.source_ids[0]]}) as {f.name}" for f in table.spec.live],
        "sort_by": [
            f"{f.transform}({paths[f.source_ids[0]]}) {f.direction} {f.null_order}"
            for f in table.sort_order.fields
        ],
        "properties": properties,
        "format_version": table.format_version,
        "refs": {n: replace(r, snapshot_id=0) for n, r in table.refs.items() if _is_ours(n)},
    }


def _is_ours(reference: str) -> bool:
    return reference != "main" and not reference.startswith(TAG_PREFIX)


def _column(f: Field, with_ids: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": f.name, "required": f.required, "description": f.doc}
    out["defaults"] = (f.initial_default, f.write_default)
    out["type"] = with_children(f.type, ()) if not is_nested(f.type) else type(f.type).__name__
    out["below"] = [_column(child, with_ids) for child in children(f.type)]
    return out | ({"id": f.id} if with_ids else {})


def ids_of(table: Table) -> dict[str, int]:
    """Field ids by path."""
    return {format_path(path): f.id for path, f in table.schema.walk()}


def undone(declared_before: Table, declared_after: Table, there: Table) -> Table:
    """The table when a migration of it is undone: its difference the other way round, on what is there.

    Every position is asserted, so that a field comes back where it was.
    """
    wanted = replace(declared_before, name=there.name)
    base = replace(declared_after, name=there.name)
    target = merge(base, wanted, there, tuple(_positions(wanted.schema.fields))).target
    return difference(there, target, KINDS).after


def _positions(fields: tuple[Field, ...]) -> Iterator[Position]:
    previous = None
    for f in fields:
        yield Position(f.id, previous)
        previous = f.id
        if is_nested(f.type) and type(f.type).__name__ == "Struct":
            yield from _positions(children(f.type))
        else:
            for below in children(f.type):
                yield from _positions_below(below)


def _positions_below(f: Field) -> Iterator[Position]:
    if type(f.type).__name__ == "Struct":
        yield from _positions(children(f.type))
    else:
        for below in children(f.type):
            yield from _positions_below(below)


def document_of(table: Table) -> Entry:
    """The entry that declares the table."""
    return document(table)
