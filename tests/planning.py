"""Migrations written as YAML, planned against what is there: for tests of what comes after a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent

from icemigrate.catalog.port import Catalog
from icemigrate.declare.fold import fold
from icemigrate.declare.reading import read_migration
from icemigrate.declare.source import Source
from icemigrate.declare.version import Version
from icemigrate.history.properties import History
from icemigrate.history.read import read
from icemigrate.model.names import TableName
from icemigrate.model.sides import EMPTY_STATE, State
from icemigrate.model.table import Table
from icemigrate.plan import Consent, Plan
from icemigrate.plan_case import Surroundings
from icemigrate.planner import Pending, plan_migrations


def pending(version: str, text: str) -> Pending:
    """A migration out of YAML that has no mistake of its own."""
    done = read_migration(Source(f"{version}.yaml", dedent(text)), Version.parse(version), "m")
    file = done.migration
    assert file is not None, done.diagnostics
    return Pending(
        version=version,
        description=file.description or "",
        checksum=file.checksum,
        consents=tuple(Consent(a.kind, a.scope) for a in file.allow),
        fold=lambda state: fold(state, file),
    )


def make_plan(
    files: Mapping[str, str],
    actual: Mapping[TableName, Table | None],
    catalog_name: str = "local",
    base: State = EMPTY_STATE,
    namespaces: Iterable[tuple[str, ...]] = (),
    project: str = "market",
    overwrite: Iterable[str] = (),
) -> Plan:
    """Plan YAML files by version.

    :param actual: the catalog's tables.
    :param base: what the history says.
    """
    around = Surroundings(
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
        return read(self.catalog, self.history, self.project) or History(self.project)

    def plan(self) -> Plan:
        """What is pending."""
        history = self.read()
        applied = {a.version.text for a in history.applied if a.standing == "applied"}
        waiting = {v: text for v, text in self.files.items() if v not in applied}
        return make_plan(
            waiting,
            self.catalog.load(self.catalog.tables()),
            self.catalog.settings.name,
            history.state,
            self.catalog.namespaces(),
            self.project,
        )
