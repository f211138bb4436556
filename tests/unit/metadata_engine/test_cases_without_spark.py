"""The documents in ``cases/`` carried out by commits of metadata in Python: no Spark, no Java."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.planning.spark_requirements import renames, spark_requirements
from tests.support import case_documents as documents
from tests.support import case_texts as texts
from tests.support.case_documents import Case, make_plan
from tests.support.case_lake import OF_VIEWS, CaseLake, foreseen, lake_without_spark

POSITIVE = [c for c in documents.all_cases() if c.is_positive]
ONE_OF_EACH = list({c.folder: c for c in POSITIVE if c.folder not in OF_VIEWS}.values())
"""One document of each kind of change; the tests with Spark compare all of them with what Spark commits."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CaseLake]:
    with lake_without_spark(tmp_path_factory.mktemp("lake"), "local") as made:
        yield made


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda case: case.id)
def test_what_comes_out_is_what_is_declared(lake: CaseLake, case: Case) -> None:
    place = lake.place(POSITIVE.index(case))
    before = lake.prepare(case, place)
    planned = make_plan(before, "0100", case.migration, place)
    done = lake.carry_out(case, before, planned, place, lake.atomically)
    there = {place.declared(n): t for n, t in done.actual.items() if t is not None}
    goal, foretold = documents.declared(case.after), foreseen(case)
    assert there.keys() == goal.keys()
    for name, table in there.items():
        assert texts.comparable(table, with_ids=False) == texts.comparable(goal[name], with_ids=False)
        assert texts.comparable(table, with_ids=True) == texts.comparable(foretold[name], with_ids=True)
        assert table.last_column_id == foretold[name].last_column_id
    again = make_plan(replace(done, base=before.base), "0100", case.migration, place)
    assert again.plan is not None
    assert not again.plan.conflicts
    assert texts.open_text(again.plan) == ""


@pytest.mark.parametrize("case", [c for c in POSITIVE if c.folder == "keep_view"], ids=lambda case: case.id)
def test_a_view_needs_spark(lake: CaseLake, case: Case) -> None:
    place = lake.place(POSITIVE.index(case))
    before = lake.prepare(case, place)
    planned = make_plan(before, "0100", case.migration, place)
    assert planned.plan is not None
    assert any("view" in part for part in spark_requirements(planned.plan))
    with pytest.raises(EngineError, match="needs Spark, and `apply_with: metadata` does not use it"):
        lake.carry_out(case, before, planned, place, lake.atomically)


@pytest.mark.parametrize(
    "case",
    [c for c in POSITIVE if c.folder in ("drop_table", "rename_table", "rename_column")],
    ids=lambda case: case.id,
)
def test_what_renames_a_table_is_named_for_catalogs_without_renames(lake: CaseLake, case: Case) -> None:
    # Another namespace than that of the test of all cases.
    place = lake.place(len(POSITIVE) + POSITIVE.index(case))
    planned = make_plan(lake.prepare(case, place), "0100", case.migration, place)
    assert planned.plan is not None
    assert bool(renames(planned.plan)) == ("RENAME TO" in texts.open_text(planned.plan))
