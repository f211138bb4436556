"""What reports say about values that a list got and lost since its templates were applied."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.status import status
from icemigrate.errors import EngineError
from icemigrate.pipeline import seen_tenants
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.status_results import ListProgress, Status
from tests.unit.commands.test_new_tenants import KIND, TRACES, of_file, telemetry, write_entries


def state(folder: Path) -> Status:
    """The status of a project."""
    return status(open_project(folder))


def notes(folder: Path) -> dict[str, str]:
    """The notes of a plan about lists, by code."""
    found = plan(open_project(folder)).diagnostics
    return {d.code: d.message for d in found if d.code.endswith("list-values")}


def test_new_tenants_wait_for_an_extension(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES)
    project.write("0002_kind.yaml", KIND)
    project.apply()
    assert "to extend" not in render(state(tmp_path))
    write_entries(tmp_path, "globex", "initech")

    found = state(tmp_path)
    progress = ListProgress("seen", 1, 3, ("globex", "initech"))
    assert [m.lists for m in found.migrations] == [(progress,), (progress,)]
    assert json.loads(render(found, "json"))["migrations"][0]["lists"] == [
        {"list": "seen", "applied": 1, "values": 3, "new": ["globex", "initech"], "left": []}
    ]
    shown = render(found)
    assert "0001 and 0002 applied to 1 of 3 tenants; `icemigrate apply` extends them.\n" in shown
    assert "at 0002, 2 to extend, nothing else pending." in shown
    assert notes(tmp_path) == {
        "new-list-values": "0001 and 0002 applied to 1 of 3 tenants; this plan extends them"
    }
    project.apply()
    assert notes(tmp_path) == {}


def test_a_value_that_leaves_a_list_keeps_its_tables(tmp_path: Path) -> None:
    project = of_file(tmp_path, "tenants.csv", "acme\nglobex\n")
    project.apply()
    (tmp_path / "tenants.csv").write_text("acme\n", encoding="utf-8")
    message = (
        "`globex` is no longer in the list `tenants`: its tables stay, and new migrations for the list leave "
        "them as they are; a migration with `drop: true` drops them"
    )
    assert notes(tmp_path) == {"left-list-values": message}
    assert f"{message}.\n" in render(state(tmp_path))
    drop = "allow: [destructive]\nbecause: it left\ntables: [{name: otel.globex_traces, drop: true}]\n"
    project.write("0002_globex.yaml", drop)
    project.apply()
    assert notes(tmp_path) == {}


def test_a_part_of_another_name_is_no_table_of_a_value(tmp_path: Path) -> None:
    project = of_file(tmp_path, "tenants.csv", "a\nacme\nb1\nb10\ntraces\n")
    project.apply()
    (tmp_path / "tenants.csv").write_text("acme\nb10\n", encoding="utf-8")
    (note,) = notes(tmp_path).values()
    assert note.startswith("`a`, `b1` and `traces` are no longer in the list `tenants`")
    drops = "".join(f"  - {{name: otel.{value}_traces, drop: true}}\n" for value in ("a", "b1", "traces"))
    project.write("0002_drop.yaml", f"allow: [destructive]\nbecause: they left\ntables:\n{drops}")
    project.apply()
    assert notes(tmp_path) == {}


def test_a_renamed_table_is_one_of_its_value(tmp_path: Path) -> None:
    project = of_file(tmp_path, "tenants.csv", "acme\nglobex\n")
    project.apply()
    project.write("0002_name.yaml", "tables: [{name: otel.old, renamed_from: otel.globex_traces}]\n")
    project.apply()
    (tmp_path / "tenants.csv").write_text("", encoding="utf-8")
    (note,) = notes(tmp_path).values()
    assert note.startswith("`acme` and `globex` are no longer in the list `tenants`")


def test_a_template_drops_no_table_of_a_value_that_left_before(tmp_path: Path) -> None:
    project = of_file(tmp_path, "tenants.csv", "acme\nglobex\n")
    project.apply()
    (tmp_path / "tenants.csv").write_text("acme\n", encoding="utf-8")
    drop = '{name: "otel.${tenant}_traces", for_each: {tenant: tenants}, drop: true}'
    project.write("0002_drop.yaml", f"allow: [destructive]\nbecause: unused\ntables: [{drop}]\n")
    project.apply()
    (note,) = notes(tmp_path).values()
    assert note.startswith("`globex` is no longer in the list `tenants`")


def test_a_log_that_cannot_be_read_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES)
    project.apply()

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Host not found", "s3://missing/log")

    monkeypatch.setattr(seen_tenants, "read_drained_and_waiting", fails)
    with pytest.raises(EngineError, match=r"the log .*log cannot be read: host not found"):
        plan(open_project(tmp_path))
    found = state(tmp_path)
    assert found.unread_lists is not None
    assert "The values of lists are unknown: the log " in render(found)
