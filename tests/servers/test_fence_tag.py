"""What a commit asserts on each catalog where a table has no fence yet."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from icemigrate.frozen import replace
from icemigrate.spark import commit
from icemigrate.spark.commit_fence import Fence
from icemigrate.spark.java_errors import is_commit_conflict
from tests.servers.lake import Lake

MADE = "tables: [{name: market_data.trades, columns: [{name: id, type: long}]}]"


def test_a_commit_that_was_begun_before_the_first_fence_is_refused(lake: Lake) -> None:
    lake.write("0001_make", MADE)
    lake.apply()
    name = lake.name()
    lake.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('icemigrate.owner')")
    if "icemigrate-fence" in [row[0] for row in lake.sql("SELECT name FROM {t}.refs")]:
        lake.sql("ALTER TABLE {t} DROP TAG `icemigrate-fence`")
    old, new = (Fence("market", "h", epoch, lambda: None) for epoch in (1, 2))
    with lake.engine.guarded(old):
        done = lake.engine.commit(name, lambda t: replace(t, properties={**t.properties, "a": "1"}))
        assert done.properties["a"] == "1"
        assert "icemigrate-fence" not in [row[0] for row in lake.sql("SELECT name FROM {t}.refs")]
        base = commit.open_commit_base(lake.engine, name)
    with lake.engine.guarded(new):
        assert lake.engine.fence(name, "0001")
    after = replace(base.table, properties={**base.table.properties, "a": "2"})
    with lake.engine.guarded(old), pytest.raises(Py4JJavaError) as refused:
        commit.commit_changes(lake.engine, base, after, None)
    assert is_commit_conflict(refused.value)
    assert lake.table().properties["a"] == "1"
