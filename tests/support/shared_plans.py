"""The cases beside the project as migrations: written as YAML, read, folded and planned as by the product."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from icemigrate.diagnostics import Severity
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.files.write.migration_entries import entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState, TableTarget
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref, Snapshot, Table, owner_of
from icemigrate.planning.plan import Consent, MigrationPlan, TablePlan
from icemigrate.planning.planner import hazards_without_consent, plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.table_plan import plan_table
from tests.support.shared_cases import Case

AROUND = PlanningContext("cases", "lake", namespaces=frozenset({("db",)}), begun=frozenset({"0002"}))
CANNOT_BE_WRITTEN = frozenset({"TY-26"})
"""A changed initial default has no words in a migration; it is put to the planner as a value."""
_BY_HAND: Mapping[str, Mapping[str, Any]] = {
    "RN-10": {"name": "db.t", "renames": {"a": "b"}},
    "RN-22": {"name": "db.t", "renames": {"addr.city": "city"}},
}
"""No state is where these lead, so nothing can be written by comparing states."""

BY_COMMIT = frozenset({"RF-03"})
"""What Spark SQL refuses and a metadata commit does: the tag of a table without a snapshot."""
REFUSED_BY: Mapping[str, str] = {
    "AC-14": "names-differ-by-case",
    "AC-18": "type-needs-newer-format",
    "AC-21": "unknown-is-required",
    "AC-23": "metadata-column-name",
    "RN-10": "name-in-use",
    "RN-14": "partition-name-is-a-column",
    "RN-22": "rename-to-itself",
    "TY-03": "no-promotion",
    "TY-07": "no-promotion",
    "TY-09": "promotion-needs-v3",
    "TY-11": "no-promotion",
    "TY-20": "map-key",
    "TY-26": "initial-default-is-final",
    "ID-03": "identifier-optional",
    "ID-05": "identifier-in-list-or-map",
    "PT-04": "redundant-partitions",
    "PT-08": "partition-name-is-a-column",
    "PT-10": "partition-transform",
    "FV-03": "format-downgrade",
    "PR-02": "reserved-property",
    "RF-05": "reference-kind",
    "01/6": "no-promotion",
    "05/3": "no-promotion",
    "05/5": "partition-source-missing",
    "07/1": "no-promotion",
    "09/1": "no-promotion",
    "09/6": "no-promotion",
    "11/1": "no-promotion",
}
"""What forbids each refused case, a mistake of its file or a rule over its plan."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What planning a case came to.

    :param said: codes of the mistakes that reading and folding found.
    :param plan: ``None`` where those left nothing to plan.
    :param before: the table as it is in the catalog.
    """

    said: frozenset[str]
    plan: MigrationPlan | None
    before: Table

    @property
    def rules(self) -> frozenset[str]:
        """What forbids it, mistakes of the file included."""
        return self.said | {p.rule for p in (self.plan.problems if self.plan else ())}

    @property
    def ready(self) -> bool:
        """Whether it may run."""
        return not self.said and self.plan is not None and self.plan.ready

    @property
    def needed(self) -> frozenset[str]:
        """Kinds of hazard that the file does not consent to."""
        return frozenset(h.kind.value for h in self.plan.unconsented) if self.plan else frozenset()

    @property
    def table(self) -> TablePlan:
        """The plan of the one table."""
        assert self.plan is not None
        (one,) = self.plan.tables
        return one

    @property
    def after(self) -> Table:
        """The table when the plan has run."""
        return run(self.table, self.before)


def run(plan: TablePlan, before: Table | None) -> Table:
    """Fold a plan over the table that it begins with; ``None`` where it makes it."""
    blank = before or Table(plan.name, Schema())
    return reduce(lambda t, c: c.change.apply(t), plan.changes(), blank)


def text(case: Case, allow: Iterable[str] = ()) -> str:
    """The migration file of a case."""
    return format_migration_file([entry(case)], description=case.title, allow=allow)


def entry(case: Case) -> Mapping[str, Any]:
    """Its one table."""
    if case.id in _BY_HAND:
        return _BY_HAND[case.id]
    assert case.after is not None
    return entry_between(case.before, case.after)


def judge(case: Case, allow: Iterable[str] = ()) -> Judged:
    """Plan a case against the table that it begins with."""
    actual = catalogs(case)
    base = DeclaredState({case.before.name: case.before}, frozenset({case.before.name.namespace}))
    if case.id in CANNOT_BE_WRITTEN:
        assert case.after is not None
        return plan_value(TableTarget(case.after.name, case.after, case.after.name), allow, base, actual)
    return plan_text(text(case, allow), base, {actual.name: actual})


def catalogs(case: Case) -> Table:
    """The table of ``before`` as the catalog has it: snapshots, and references on them."""
    count: int = case.raw.get("before", {}).get("snapshots", 0)
    refs = dict(case.before.refs)
    if not count:
        return case.before
    return replace(
        case.before, snapshot=Snapshot(count, 0, count), refs={"main": Ref("branch", count), **refs}
    )


def plan_text(
    migration: str,
    base: DeclaredState,
    actual: Mapping[TableName, Table],
    version: str = "0002",
    overwrite: Iterable[str] = (),
    project: str = AROUND.project,
) -> Judged:
    """Read, fold and plan a file about one table.

    :param overwrite: facts that are set whatever they are now.
    :param project: the project that plans.
    """
    done = read_migration(SourceText(f"{version}.yaml", migration), Version.parse(version), "m")
    said = {d.code for d in done.diagnostics if d.severity is Severity.ERROR}
    before = next(iter(actual.values()), Table(TableName(("db",), "t"), Schema()))
    file = done.migration
    if file is None:
        return Judged(frozenset(said), None, before)
    around = replace(AROUND, project=project, overwrite=frozenset(overwrite))
    planned = plan_migrations([file], base, actual, around)
    (plan,) = planned.migrations
    said |= {d.code for d in planned.replay_diagnostics if d.severity is Severity.ERROR}
    return Judged(frozenset(said), plan, before)


def plan_value(wanted: TableTarget, allow: Iterable[str], base: DeclaredState, actual: Table) -> Judged:
    """Plan what no file can say, as the project that owns the table."""
    around = replace(AROUND, project=owner_of(actual) or AROUND.project)
    assert wanted.formerly is not None
    before = base.tables[wanted.formerly]
    planned = plan_table(wanted, before, {actual.name: actual}, "0002", base.former, around)
    unconsented = hazards_without_consent(planned.plan.hazards(), [Consent(kind) for kind in allow])
    plan = MigrationPlan(
        "0002",
        "",
        "",
        (planned.plan,),
        problems=planned.problems,
        warnings=planned.warnings,
        unconsented=tuple(unconsented),
    )
    return Judged(frozenset(), plan, actual)


def outcome(key: str, after: Table, case: Case) -> object:
    """What became of a thing that a case has an expectation of, in the notation of the cases."""
    paths = {f.id: format_path(path) for path, f in after.schema.walk()}
    if key == "field_ids":
        ids = {path: i for i, path in paths.items()}
        return {path: ids[path] for path in case.expect[key]}
    if key == "partition_spec":
        return [
            {
                "source": paths.get(f.source_ids[0]),
                "transform": str(f.transform),
                "name": f.name,
                "field_id": f.id,
            }
            for f in after.spec.fields
        ]
    if key == "absent_properties":
        return [name for name in case.expect[key] if name not in after.properties]
    return {"spec_id": after.spec.id, "sort_id": after.sort_order.id}[key]
