"""The facts of a table that a user changed with `icemigrate table`, as drift finds them later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.history.history_record import ManualFact
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.drift.differing_facts import find_differing_facts
from icemigrate.planning.plan import MigrationPlan


def manual_facts(
    migration: MigrationPlan,
    recorded: DeclaredState,
    before: Mapping[TableName, Table | None],
    after: Mapping[TableName, Table | None],
) -> tuple[ManualFact, ...]:
    """The facts that differ from the recorded state because of a manual change.

    A table that no migration declares is compared with its state before the change: a later migration may
    adopt it.

    :param before: the tables before the change, by name in the catalog.
    :param after: the tables after it, by declared name.
    """
    found = list[ManualFact]()
    for plan in migration.tables:
        old, new = before.get(plan.name), after.get(plan.declared)
        if old is None or new is None or new.uuid is None:
            continue
        found += facts_of(recorded.tables.get(plan.declared, old), old, new)
    return tuple(found)


def facts_of(recorded: Table, before: Table, after: Table) -> Iterator[ManualFact]:
    """The facts of one table that differ from the recorded state since a change."""
    assert after.uuid is not None, "tables of a catalog have one"
    earlier = {(fact.key, fact.actual) for fact in find_differing_facts(recorded, before)}
    for fact in find_differing_facts(recorded, after):
        if (fact.key, fact.actual) not in earlier:
            yield ManualFact(after.uuid, fact.key, fact.actual)
