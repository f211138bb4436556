"""The documents in ``cases/<kind>/``: read, planned, and told as text; see ``cases/README.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path as File
from typing import Any

import yaml

from icemigrate.diagnostics import Diagnostic, has_errors
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.files.write.yaml_text import to_yaml
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, MAIN_BRANCH, BranchHead, Ref, Snapshot, Table
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.replay import reused_names
from tests.support.case_texts import diagnostics_text

FOLDER = File(__file__).parents[1] / "cases"
OTHERS = ("mistakes",)
"""Folders of documents of another format."""
NAME = "db.t"
"""What a table is called where a document does not say it."""
CATALOG = "lake"
FIRST_SNAPSHOT = 7

Entry = Mapping[str, Any]


class Case(Frozen):
    """One document.

    :param before: table entries, each a migration of its own.
    :param by_hand: table entries that somebody carried out on the catalog, past the history.
    :param rows: whether the tables have been written to.
    :param branch_rows: how many rows branches have.
    :param says: the document itself, for what it expects.
    """

    folder: str
    file: str
    title: str
    before: tuple[Entry, ...]
    by_hand: tuple[Entry, ...]
    rows: bool
    branch_rows: Mapping[str, int]
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
    for says in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        yield Case(
            path.parent.name,
            path.stem,
            says["case"],
            entries(says.get("before")),
            entries(says.get("by_hand")),
            says.get("rows", False),
            says.get("branch_rows") or {},
            says["migration"],
            says,
        )


def all_cases() -> tuple[Case, ...]:
    """All documents, by folder and file."""
    files = sorted(p for p in FOLDER.glob("*/*.yaml") if p.parent.name not in OTHERS)
    return tuple(case for path in files for case in read_file(path))


# the world


class World(Frozen):
    """What a migration is planned on.

    :param base: what the history says.
    :param actual: the catalog's tables, by their name there.
    """

    base: DeclaredState = EMPTY_STATE
    actual: Mapping[TableName, Table | None] = field(default_factory=dict)
    namespaces: frozenset[tuple[str, ...]] = frozenset()


class Planned(Frozen):
    """A migration as it is planned on a world; ``plan`` is ``None`` where the file cannot be read."""

    diagnostics: tuple[Diagnostic, ...]
    plan: MigrationPlan | None = None
    base: DeclaredState = EMPTY_STATE


class Place(Frozen):
    """Where declared tables live in a catalog.

    :param namespace: in which namespace of the catalog ``db`` is; others begin with its name.
    :param location: where the catalog puts a table.
    """

    catalog: str = CATALOG
    namespace: str = "db"
    location: Callable[[TableName], str | None] = lambda name: f"/lake/{'/'.join(name.namespace)}/{name.name}"

    def physical_namespace(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        if self.namespace == "db":
            return namespace
        first = self.namespace if namespace[0] == "db" else f"{self.namespace}_{namespace[0]}"
        return (first, *namespace[1:])

    def physical(self, name: TableName) -> TableName:
        return replace(name, namespace=self.physical_namespace(name.namespace))

    def declared(self, name: TableName) -> TableName:
        """The other way round."""
        first, *rest = name.namespace
        own = "db" if first == self.namespace else first.removeprefix(f"{self.namespace}_")
        return replace(name, namespace=(own, *rest))

    def surroundings(self, world: World, file: MigrationFile) -> PlanningContext:
        names = map(self.physical, reused_names([file], world.base))
        locations = ((name, self.location(name)) for name in names)
        return PlanningContext(
            "market",
            self.catalog,
            self.physical,
            self.physical_namespace,
            world.namespaces,
            default_locations={name: place for name, place in locations if place is not None},
        )


HERE = Place()


def make_plan(world: World, version: str, text: str, place: Place = HERE) -> Planned:
    """Plan the text of one migration file."""
    read = read_migration(SourceText("m.yaml", text), Version.parse(version), "m")
    if read.migration is None:
        return Planned(read.diagnostics)
    around = place.surroundings(world, read.migration)
    planned = plan_migrations([read.migration], world.base, world.actual, around)
    diagnostics = (*read.diagnostics, *planned.diagnostics(planned.migrations))
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
    assert not has_errors(planned.diagnostics), diagnostics_text(planned.diagnostics)
    assert planned.plan is not None
    assert not planned.plan.conflicts, planned.plan.conflicts
    return planned


def world_before(case: Case, place: Place = HERE) -> World:
    """The world that a document's migration meets, without Spark."""
    world = World()
    for number, entry in enumerate(case.before, 1):
        world = _written(case, after(world, plan_entry(world, f"000{number}", entry, place)))
    return by_hand(case, world, place)


def by_hand(case: Case, world: World, place: Place = HERE) -> World:
    """The world after changes of another client, which the history does not record."""
    for entry in case.by_hand:
        others = knowing_everything(world, place)
        done = after(others, plan_entry(others, "0900", entry, place))
        world = _written(case, replace(world, actual=without_marks(done.actual), namespaces=done.namespaces))
    return world


def knowing_everything(world: World, place: Place = HERE) -> World:
    """The world as one sees it for whom what is there is what shall be there."""
    tables = {place.declared(n): t for n, t in world.actual.items() if t is not None}
    return replace(world, base=DeclaredState({n: replace(t, name=n) for n, t in tables.items()}))


def without_marks(actual: Mapping[TableName, Table | None]) -> dict[TableName, Table | None]:
    """Tables without the property that says which migration made them."""
    return {n: None if t is None else replace(t, properties=_unmarked(t)) for n, t in actual.items()}


def _unmarked(table: Table) -> dict[str, str]:
    return {key: value for key, value in table.properties.items() if key != CREATED_BY_PROPERTY}


def _written(case: Case, world: World) -> World:
    if not case.rows:
        return world
    tables = {n: None if t is None else _with_heads(_with_snapshot(t), case) for n, t in world.actual.items()}
    return replace(world, actual=tables)


def _with_heads(table: Table, case: Case) -> Table:
    """The table with heads of its branches, and the rows that the document gives them.

    Each was made right now, unless it is known.
    """
    now = BranchHead(Snapshot(FIRST_SNAPSHOT, 0), table.schema, is_behind=True)
    heads = {
        name: table.heads.get(name, now)
        for name, ref in table.refs.items()
        if ref.kind == "branch" and name != MAIN_BRANCH
    }
    rows = {n: replace(h.snapshot, total_records=case.branch_rows.get(n, 0)) for n, h in heads.items()}
    return replace(table, heads={n: replace(h, snapshot=rows[n]) for n, h in heads.items()})


def declared(after_entries: Iterable[Entry]) -> dict[TableName, Table]:
    """Tables as a document declares them: by entries, folded one after another."""
    world = World()
    for number, entry in enumerate(_tagged_later(after_entries), 1):
        version = f"000{number}"
        there = replace(world, actual={n: t and _with_snapshot(t) for n, t in world.actual.items()})
        world = after(there, plan_entry(there, version, entry))
    return {n: t for n, t in world.actual.items() if t is not None}


def _tagged_later(given: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, tags in one of their own: a new table has no rows to tag."""
    for entry in given:
        yield {key: value for key, value in entry.items() if key != "tags"}
        if "tags" in entry:
            yield {"name": entry["name"], "tags": entry["tags"]}


def _with_snapshot(table: Table) -> Table:
    refs = {MAIN_BRANCH: Ref("branch", FIRST_SNAPSHOT), **table.refs}
    return replace(table, snapshot=table.snapshot or Snapshot(FIRST_SNAPSHOT, 0, 0), refs=refs)
