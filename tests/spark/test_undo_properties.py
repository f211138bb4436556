"""Random migrations of real tables taken back, with rows and changes of others arriving in between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icemigrate.declare.yaml_text import to_yaml
from icemigrate.undo import Options
from tests.spark.test_rollback import ROW_1, ROW_2, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each edit of the one table by itself; those that are drawn stand in one migration.
COLUMNS: dict[str, dict[str, Any]] = {
    "add": {"name": "note", "type": "string"},
    "add nested": {"name": "place", "type": "struct<city: string, zip: int>"},
    "widen": {"name": "id", "type": "long"},
    "widen decimal": {"name": "price", "type": "decimal(12,2)"},
    "optional": {"name": "venue", "required": False},
    "describe": {"name": "at", "description": "When"},
    "move": {"name": "at", "first": True},
}
KEYS: dict[str, dict[str, Any]] = {
    "rename": {"renames": {"symbol": "ticker"}},
    "partition": {"partition_by": ["hour(at) as hour"]},
    "order": {"sort_by": ["id desc nulls last"]},
    "properties": {"properties": {"k": "v"}},
    "drop": {"drop_columns": ["price"]},
}


def migration(names: frozenset[str]) -> str:
    entry: dict[str, Any] = {"name": "db.trades"}
    for name in sorted(names & KEYS.keys()):
        entry |= KEYS[name]
    merged: dict[str, dict[str, Any]] = {}
    for name in sorted(names & COLUMNS.keys()):
        if not ("drop" in names and name == "widen decimal"):
            merged.setdefault(COLUMNS[name]["name"], {}).update(COLUMNS[name])
    if merged:
        entry["columns"] = list(merged.values())
    return to_yaml({"allow": ["destructive", "incompatible"], "tables": [entry]})


def rows(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.sql(
        "SELECT id, symbol, CAST(price AS string), venue, at FROM @.trades WHERE id < 3 ORDER BY id"
    )


@pytest.mark.parametrize("format_version", [1, 2, 3])
@settings(
    max_examples=3,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    names=st.frozensets(st.sampled_from(sorted({*COLUMNS, *KEYS})), min_size=2, max_size=6),
    write=st.booleans(),
    theirs=st.booleans(),
)
def test_what_is_taken_back_is_as_it_was(
    spark: SparkSession, format_version: int, names: frozenset[str], write: bool, theirs: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder), spark, format_version)
        shop.insert(f"{ROW_1}, {ROW_2}")
        before, columns = rows(shop), shop.columns()
        types = dict(shop.spark.table(f"{shop.catalog}.db.trades").dtypes)
        shop.apply("0002", migration(names))
        if write:
            shop.insert("(7, 'X', TIMESTAMP '2026-01-09 10:00:00')", "id, venue, at")
        if theirs:
            shop.sql("ALTER TABLE @.trades ADD COLUMN theirs string")
        planned = shop.project.plan_rollback(spark=shop.spark)
        # A file was added under the wider type: refused before anything is touched.
        assert planned.ready == (not (write and "widen" in names))
        assert shop.rollback(options=Options(partial=not planned.ready)) == ("0002",)
        assert rows(shop) == before
        kept = [c for c in shop.columns() if not c.startswith("theirs")]
        assert kept == columns
        assert any(c.startswith("theirs") for c in shop.columns()) == theirs
        now = dict(shop.spark.table(f"{shop.catalog}.db.trades").dtypes)
        stuck = set() if planned.ready else {"id"}
        assert {n: t for n, t in now.items() if n not in {"theirs", *stuck}} == {
            n: t for n, t in types.items() if n not in stuck
        }
        assert shop.sql("SELECT count(*) FROM @.trades") == [(3 if write else 2,)]
        shop.insert("(8, 'ZZ', 1.00, 'Z', TIMESTAMP '2026-02-01 10:00:00')")
        assert shop.sql("SELECT symbol, venue FROM @.trades WHERE id = 8") == [("ZZ", "Z")]
