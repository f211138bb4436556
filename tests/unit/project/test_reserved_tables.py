"""Tables of icemigrate's own, which no migration may touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.errors import Mistakes
from icemigrate.project import open_project
from tests.support.embedded_project import HISTORY, Embedded

TABLE = "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n"


def test_the_history_of_another_project_is_not_adopted(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_make.yaml", TABLE)
    shop.apply()
    (tmp_path / "icemigrate.yaml").write_text("project: other\nhistory: other.history\n", encoding="utf-8")
    shop.write("0001_make.yaml", TABLE.replace("db.t,", f"{HISTORY}, adopt: true,"))
    with pytest.raises(Mistakes) as refused:
        plan(open_project(tmp_path))
    (mistake,) = refused.value.diagnostics
    assert mistake.place is not None
    assert (mistake.code, mistake.place.line, mistake.place.column) == ("reserved-table", 1, 17)
    assert "holds a project's history" in mistake.message
