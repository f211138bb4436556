"""Every case and every real schema, as its file has it, on real tables: judged, and where it may be, applied.

What is refused is refused by the plan against the real table, whatever is allowed; what needs a consent is
refused without it and done with it.  The first state is made by a plan of our own, the states of its history
by further ones, each based on what the one before it left.  In the end the metadata is read without Spark and
held against the case: ids, names, types, descriptions, defaults, layout, properties, references.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.capabilities import SPARK_ADDS
from icemigrate.changes.change import HazardKind
from icemigrate.execution.run import run_plan
from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.history.journal import Journal
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState, TableTarget
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_icemigrate_ref
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, Table, owner_of
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark_sql.identifiers import table_sql
from tests.support.imported_tables import imported
from tests.support.memory_journal import journal_in_memory
from tests.support.planned_migrations import make_plan
from tests.support.shared_cases import (
    Case,
    Json,
    created,
    evolution_cases,
    evolved,
    in_migrations,
    real_schema_steps,
    settled,
)
from tests.support.shared_plans import (
    AROUND,
    BY_COMMIT,
    CANNOT_BE_WRITTEN,
    REFUSED_BY,
    Judged,
    entry,
    outcome,
    plan_text,
    plan_value,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

CASES = evolution_cases()
APPLIED = [c for c in CASES if c.verdict != "refused"]
REFUSED = [c for c in CASES if c.verdict == "refused" and c.id not in BY_COMMIT]
REAL = real_schema_steps()
FILES = sorted({c.id[:2] for c in REAL})


@dataclass
class Walk:
    """One table on its way through migrations."""

    engine: SparkEngine
    warehouse: Warehouse
    name: TableName
    journal: Journal = field(default_factory=journal_in_memory)
    state: DeclaredState = EMPTY_STATE
    versions: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def declared(self) -> Table:
        """The table as the last migration recorded it."""
        return self.state.tables[self.name]

    def table(self) -> Table:
        """The table as the catalog's reader finds it."""
        settings = CatalogSettings(
            self.warehouse.catalog,
            "sqlite",
            f"sqlite:///{self.warehouse.database}",
            str(self.warehouse.path),
        )
        there = open_catalog(settings).load([self.name])[self.name]
        assert there is not None
        return there

    def create(self, state: Json, format_version: int) -> None:
        """Make the table in this state."""
        made = replace(created(state, format_version), name=self.name)
        self.migrate(creation_entry(made), {})

    def go(self, state: Json, case: Case | None = None) -> None:
        """Lead the table to this state."""
        for step in in_migrations(state):
            renames, recreate = (case.renames, case.recreate) if case else ((), ())
            target = evolved(self.declared, step, renames, recreate)
            self.migrate(entry_between(self.declared, target), {self.name: self.table()})

    def judge(self, case: Case, allow: Iterable[str] = ()) -> Judged:
        """What planning the case against the table comes to."""
        there, table = self.table(), self.name
        if case.id in CANNOT_BE_WRITTEN:
            target = evolved(self.declared, case.raw["after"], case.renames, case.recreate)
            return plan_value(TableTarget(table, target, table), allow, self.state, there)
        text = format_migration_file(
            [{**entry(case), "name": str(table)}], description=case.title, allow=allow
        )
        return plan_text(text, self.state, {table: there}, project=owner_of(there) or AROUND.project)

    def require_verdict(self, case: Case) -> None:
        """Hold what is planned against the verdict of the case; nothing is touched by it."""
        before = self.engine.metadata_location(self.name)
        plain, allowed = self.judge(case), self.judge(case, [kind.value for kind in HazardKind])
        if case.verdict == "refused":
            assert plain.rules == allowed.rules == {REFUSED_BY[case.id]}
            assert not plain.ready
        else:
            assert plain.needed == ({case.flag_kind} if case.verdict == "needs-flag" else set())
            assert plain.rules == frozenset()
            assert plain.ready is (case.verdict == "allowed")
        assert allowed.ready is (case.verdict != "refused")
        assert self.engine.metadata_location(self.name) == before

    def migrate(self, entry_: Mapping[str, Any], actual: Mapping[TableName, Table]) -> None:
        """Apply one migration."""
        text = format_migration_file([entry_], allow=["destructive", "incompatible", "irreversible"])
        files = {f"{next(self.versions):04}": text}
        plan = make_plan(files, actual, self.warehouse.catalog, self.state, [self.name.namespace])
        run_plan(plan, self.engine, self.journal)
        self.state = self.journal.writer.read().state


@pytest.fixture(scope="module")
def namespace(spark: SparkSession, warehouse: Warehouse) -> str:
    spark.sql(f"CREATE NAMESPACE {warehouse.catalog}.cases")
    return "cases"


@pytest.fixture
def walk(spark: SparkSession, warehouse: Warehouse, namespace: str, request: pytest.FixtureRequest) -> Walk:
    case = request.node.callspec.id.replace("-", "_")
    return Walk(SparkEngine(spark, warehouse.catalog), warehouse, TableName((namespace,), f"t_{case}"))


def _insert(spark: SparkSession, walk: Walk, times: int) -> None:
    for _ in range(times):
        spark.sql(f"INSERT INTO {table_sql(walk.warehouse.catalog, walk.name)} VALUES (1)")


def begin(spark: SparkSession, walk: Walk, case: Case) -> None:
    """Lead the table through its history to where the case begins."""
    states = [*case.raw.get("history", ()), case.raw["before"]]
    walk.create(states[0], case.raw["format_version"])
    for state in states[1:]:
        walk.go(state)
    _insert(spark, walk, case.raw["before"].get("snapshots", 0))


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c.id)
def test_a_case_is_refused(spark: SparkSession, walk: Walk, case: Case) -> None:
    begin(spark, walk, case)
    walk.require_verdict(case)


@pytest.mark.parametrize("case", APPLIED, ids=lambda c: c.id)
def test_a_case_ends_as_it_should(spark: SparkSession, walk: Walk, case: Case) -> None:
    begin(spark, walk, case)
    walk.require_verdict(case)
    walk.go(case.raw["after"], case)

    assert case.after is not None
    after = walk.table()
    compare(after, settled(case.after, case.before))
    assert {key: outcome(key, after, case) for key in case.expect} == case.expect
    assert walk.declared.schema == replace(after.schema, id=walk.declared.schema.id)
    imported(after)


@pytest.mark.parametrize("file", FILES)
def test_a_real_schema_evolves_as_it_did(walk: Walk, file: str) -> None:
    steps = [c for c in REAL if c.id.startswith(file)]
    walk.migrate(creation_entry(replace(steps[0].before, name=walk.name)), {})
    for case in steps:
        walk.require_verdict(case)
        if case.verdict != "refused":
            assert case.after is not None
            walk.go(case.raw["after"], case)
            compare(walk.table(), settled(case.after, case.before))
            imported(walk.table())


def compare(there: Table, wanted: Table) -> None:
    """Hold a table that was read back against what a case says of it."""
    assert there.schema.fields == wanted.schema.fields
    assert there.schema.identifier_ids == wanted.schema.identifier_ids
    assert there.spec.fields == wanted.spec.fields
    assert there.sort_order == wanted.sort_order
    assert there.last_column_id == wanted.last_column_id
    assert there.last_partition_id == wanted.last_partition_id
    assert there.format_version == wanted.format_version
    ours = {*SPARK_ADDS, CREATED_BY_PROPERTY} - wanted.properties.keys()
    assert {k: v for k, v in there.properties.items() if k not in ours} == dict(wanted.properties)
    refs = {n: r for n, r in there.refs.items() if n != "main" and not is_icemigrate_ref(n, r)}
    assert {n: replace(r, snapshot_id=0) for n, r in refs.items()} == {
        n: replace(r, snapshot_id=0) for n, r in wanted.refs.items()
    }
