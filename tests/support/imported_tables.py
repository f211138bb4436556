"""A table of a catalog as ``import`` writes it, planned against that catalog."""

from __future__ import annotations

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, server_managed_predicate
from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.files.write.migration_entries import format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, Table
from icemigrate.planning.adopted_entries import AdoptionEntry, adoption_entry, declarable_table
from icemigrate.planning.plan import MigrationPlan
from tests.support.shared_plans import Judged, plan_text


def own(table: Table) -> Table:
    """The table as its owners asked for it."""
    return declarable_table(table, server_managed_predicate(CAPABILITY_MATRIX["sqlite"]))


def imported(table: Table) -> AdoptionEntry:
    """The entry that takes the table in, seen to plan to nothing but that."""
    found = adoption_entry(own(table))
    assert found is not None
    judged = planned(found, table)
    assert judged.ready, (judged.said, judged.plan)
    assert judged.plan is not None
    require_nothing_but_adoption(judged.plan)
    return found


def planned(found: AdoptionEntry, table: Table) -> Judged:
    """The entry as a file, planned against the table, which no project owns."""
    properties = {key: value for key, value in table.properties.items() if key != CREATED_BY_PROPERTY}
    free = replace(table, owner=None, properties=properties)
    return plan_text(format_migration_file([found.entry]), EMPTY_STATE, {table.name: free})


def require_nothing_but_adoption(plan: MigrationPlan) -> None:
    """Every table of a plan is taken in as it is: nothing is changed, nothing is run."""
    assert plan.ready, (plan.problems, plan.conflicts, plan.unconsented)
    for table in plan.tables:
        assert [type(c.change) for c in table.changes()] == [AdoptTable], table.name
        assert not any(step.statements for step in table.steps), table.name
