"""Migrations written as YAML, planned against what is there: for tests of what comes after a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.history.history_io import read_history
from icemigrate.history.history_properties import History
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import Plan
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext


def pending(version: str, text: str) -> MigrationFile:
    """A migration out of YAML that has no mistake of its own."""
    done = read_migration(SourceText(f"{version}.yaml", dedent(text)), Version.parse(version), "")
    file = done.migration
    assert file is not None, done.diagnostics
    return file


def make_plan(
    files: Mapping[str, str],
    actual: Mapping[TableName, Table | None],
    catalog_name: str = "local",
    base: DeclaredState = EMPTY_STATE,
    namespaces: Iterable[tuple[str, ...]] = (),
    project: str = "market",
    overwrite: Iterable[str] = (),
) -> Plan:
    """Plan YAML files by version.

    :param actual: the catalog's tables.
    :param base: what the history says.
    """
    around = PlanningContext(
        project, catalog_name, namespaces=frozenset(namespaces), overwrite=frozenset(overwrite)
    )
    planned = plan_migrations([pending(v, t) for v, t in files.items()], base, actual, around)
    plan = Plan(project, "local", "sqlite", catalog_name, planned.migrations, base=base)
    assert plan.ready, [(m.problems, m.conflicts, m.unconsented) for m in plan.migrations]
    return plan


@dataclass(slots=True)
class Deployment:
    """A project's files on their way into a catalog that is read as ``plan`` reads it."""

    catalog: Catalog
    history: TableName
    project: str = "market"
    files: dict[str, str] = field(default_factory=dict)

    def read(self) -> History:
        """What the history says; an empty one before the first apply."""
        return read_history(self.catalog, self.history, self.project) or History(self.project)

    def plan(self) -> Plan:
        """What is pending."""
        history = self.read()
        applied = {a.version.text for a in history.applied if a.state == "applied"}
        waiting = {v: text for v, text in self.files.items() if v not in applied}
        return make_plan(
            waiting,
            self.catalog.load(self.catalog.tables()),
            self.catalog.settings.name,
            history.state,
            self.catalog.namespaces(),
            self.project,
        )
