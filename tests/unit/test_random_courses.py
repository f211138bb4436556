"""Which migrations the random tests on Spark take as legal; where none is, those tests change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, made_by
from tests.support.random_undo_course import legal
from tests.support.small_tables import table

MADE = {CREATED_BY_PROPERTY: made_by("undo", "0001")}


@pytest.mark.parametrize(
    "marks", [{}, {"owner": "undo"}, {"properties": MADE}], ids=["not owned", "owned", "made by a migration"]
)
def test_a_table_of_the_project_can_be_changed(marks: dict[str, Any]) -> None:
    declared = table("id: long, a: string")
    is_legal = legal(declared, replace(declared, **marks), "rename_column")
    assert is_legal(table("id: long, b: string"))
    assert not is_legal(table("id: string, a: string"))
