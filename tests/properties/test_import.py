"""A table of a catalog, written as the entry that takes it in: nothing is left to do, whatever it is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.files.write.migration_entries import format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.partitioning import PartitionField, SortField, Transform
from icemigrate.iceberg.table import Ref, Table
from icemigrate.planning.adopted_entries import adoption_entry, declarable_table
from tests.support.random_tables import lake_tables
from tests.support.shared_plans import plan_text
from tests.support.table_strategies import tables

GONE = 999
_AGES = st.none() | st.sampled_from((1, 1500, 86_400_000, 10**12))


@st.composite
def odd_tables(draw: st.DrawFn) -> Table:
    """A table as others may have left it: void fields, gone sources, limits that no duration says, ….

    Not legal in each of its parts; a catalog holds it all the same.
    """
    table = draw(tables() | st.sampled_from((1, 2, 3)).flatmap(lambda v: lake_tables("db.t", v)))
    parts = (
        PartitionField((GONE,), Transform("identity"), "gone", 2000),
        PartitionField((table.schema.fields[0].id,), Transform("void"), "emptied", 2001),
        PartitionField((table.schema.fields[0].id,), Transform("zorder"), "unknown_one", 2002),
        PartitionField((table.schema.fields[0].id, GONE), Transform("bucket", 4), "several", 2003),
    )
    more = draw(st.lists(st.sampled_from(parts), max_size=2, unique=True))
    gone = draw(st.lists(st.just(SortField((GONE,))), max_size=1))
    limits = st.builds(Ref, st.just("branch"), st.just(1), _AGES, _AGES, st.none() | st.integers(1, 10**9))
    refs = draw(st.dictionaries(st.sampled_from(("main", "audit", "b.c: d")), limits, max_size=2))
    tags = draw(st.dictionaries(st.sampled_from(("v1", "icemigrate-0001")), _AGES, max_size=2))
    first, *rest = table.schema.fields
    if draw(st.booleans()):
        first = replace(first, initial_default=draw(st.sampled_from((None, 3, "x", "00ff"))))
    return replace(
        table,
        schema=replace(table.schema, fields=(first, *rest)),
        spec=replace(table.spec, fields=(*table.spec.fields, *more)),
        sort_order=replace(table.sort_order, fields=(*table.sort_order.fields, *gone)),
        refs={**refs, **{name: Ref("tag", 1, age) for name, age in tags.items()}},
        properties={**table.properties, **draw(st.dictionaries(st.text(min_size=1), st.text(), max_size=2))},
    )


@settings(max_examples=60)
@given(odd_tables())
def test_an_imported_table_plans_to_nothing(table: Table) -> None:
    found = adoption_entry(declarable_table(table))
    assert found is not None
    judged = plan_text(format_migration_file([found.entry]), EMPTY_STATE, {table.name: table})
    assert judged.ready
    assert [type(c.change) for c in judged.table.changes()] == [AdoptTable]
    assert not any(step.statements for step in judged.table.steps)
    # What is recorded is what the catalog has: the same file once more has nothing to say.
    recorded = judged.table.wanted
    assert recorded is not None
    assert recorded.spec.live == table.spec.live
    assert recorded.sort_order.fields == table.sort_order.fields
    assert recorded.schema.identifier_ids == table.schema.identifier_ids
    again = plan_text(
        format_migration_file([{k: v for k, v in found.entry.items() if k != "adopt"}]),
        DeclaredState({table.name: recorded}),
        {table.name: table},
    )
    assert not again.said
    assert not list(again.table.changes())


@settings(max_examples=60)
@given(tables() | st.sampled_from((1, 2, 3)).flatmap(lambda v: lake_tables("db.t", v)))
def test_all_of_an_ordinary_table_is_said_and_importing_what_came_of_it_says_the_same(table: Table) -> None:
    found = adoption_entry(declarable_table(table))
    assert found is not None
    assert not found.unsaid
    recorded = plan_text(format_migration_file([found.entry]), EMPTY_STATE, {table.name: table}).table.wanted
    assert recorded is not None
    again = adoption_entry(declarable_table(recorded))
    assert again is not None
    assert again.entry == found.entry
