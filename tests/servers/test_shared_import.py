"""Every table of the shared cases on a REST catalog, as others made it: imported, it plans to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from icemigrate.execution.environment_session import open_environment
from icemigrate.files.write.migration_entries import creation_entry
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from tests.servers.lake import Lake
from tests.support.case_tables import (
    make_by_pyiceberg,
    make_by_spark,
    pyiceberg_of,
    table_name,
    without_defaults,
)
from tests.support.imported_tables import own, require_nothing_but_adoption
from tests.support.shared_cases import Course, courses

pytestmark = pytest.mark.parametrize("kind", ["rest"], indirect=True)

COURSES = courses()

Make = Callable[[TableName, Course], None]


def by_spark(lake: Lake) -> Make:
    return lambda name, course: make_by_spark(lake.engine, name, course)


def by_pyiceberg(lake: Lake) -> Make:
    catalog = pyiceberg_of(lake.project, lake.kind.variables)
    return lambda name, course: make_by_pyiceberg(catalog, name, course)


LOST: Mapping[str, Mapping[str, Callable[[Table], Table]]] = {
    "by_spark": {},
    # Its `create_table` leaves out what a column defaults to.
    "by_pyiceberg": dict.fromkeys(("AC-10 after", "TY-24", "TY-24 after", "TY-26"), without_defaults),
}
"""What a client cannot make of a table there, by the id of its course: the table that comes out instead."""


@pytest.mark.parametrize("maker", [by_spark, by_pyiceberg], ids=lambda m: m.__name__)
def test_whole_namespaces_are_taken_in_and_plan_to_nothing(lake: Lake, maker: Callable[[Lake], Make]) -> None:
    names = {id_: table_name(lake.namespace, id_) for id_ in COURSES}
    lake.engine.create_namespace((lake.namespace,))
    make = maker(lake)
    for id_, name in names.items():
        make(name, COURSES[id_])
    with open_environment(lake.project, None) as world:
        there = world.catalog.load(names.values())
    lost = LOST[maker.__name__]
    for id_, name in names.items():
        found, asked = there[name], replace(COURSES[id_].end, name=name)
        assert found is not None
        assert creation_entry(own(found)) == creation_entry(
            own(lost[id_](asked) if id_ in lost else asked)
        ), id_
        assert id_ not in lost or creation_entry(own(found)) != creation_entry(own(asked)), (
            f"{id_}: nothing is lost"
        )

    result = lake.api.import_tables("market_data")
    assert len(result.tables) == len(names) > 130
    assert not result.notes
    (migration,) = lake.plan().plan.migrations
    assert len(migration.tables) == len(names)
    require_nothing_but_adoption(migration)

    lake.api.apply(lake.api.plan(baseline=True), spark=lake.session)
    assert lake.plan().is_empty
    with open_environment(lake.project, None) as world:
        assert world.catalog.load(names.values()) == there
