"""The tables of templates in ``status``: those of the values of lists, and never a placeholder."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from icemigrate.commands.status import status
from icemigrate.pipeline import seen_tenants
from icemigrate.project import open_project
from icemigrate.render.formats import render
from tests.support.embedded_project import Embedded
from tests.unit.commands.test_new_tenants import KIND, TRACES, of_file, roll_back, telemetry, write_entries

EVENTS = "tables: [{name: demo.events, columns: [{name: id, type: long}]}]\n"
Row = tuple[str | None, str, tuple[str, ...]]


def rows(folder: Path) -> dict[str, Row]:
    """The version, the presence and the pending versions of each table, as status shows them."""
    found = status(open_project(folder))
    assert "any_tenant" not in render(found) + render(found, "json")
    lines = [re.split("  +", line) for line in render(found).splitlines()]
    presence = {line[0]: line[2] for line in lines if len(line) == 4}
    return {row.table: (row.version, presence[row.table], row.pending) for row in found.tables}


def seen(folder: Path) -> Embedded:
    """An unapplied project whose second file is a template for the tenants of a log."""
    project = telemetry(folder, "acme", "globex")
    project.write("0001_events.yaml", EVENTS)
    project.write("0002_traces.yaml", TRACES)
    return project


def listed(folder: Path) -> Embedded:
    """The same for tenants in a file."""
    project = of_file(folder, "tenants.csv", "acme\nglobex\n")
    (folder / "migrations" / "0001_traces.yaml").unlink()
    project.write("0001_events.yaml", EVENTS)
    project.write("0002_traces.yaml", TRACES.replace("seen", "tenants"))
    return project


def _add_comment(project: Embedded) -> None:
    project.write("0001_events.yaml", f"# A comment\n{EVENTS}")


def _add_list(project: Embedded) -> None:
    path = project.folder / "icemigrate.yaml"
    text = path.read_text(encoding="utf-8")
    more = "regions: [eu, us]"
    text = text.replace("lists: {", f"lists: {{{more}, ") if "lists" in text else f"{text}lists: {{{more}}}\n"
    path.write_text(text, encoding="utf-8")


def _edit(project: Embedded) -> None:
    project.write("0001_events.yaml", EVENTS.replace("columns", "properties: {a.b: c}, columns"))


def _edit_last_file(project: Embedded) -> None:
    project.write("0003_last.yaml", EVENTS.replace("events", "last"))
    project.apply()
    project.write("0003_last.yaml", EVENTS.replace("events", "later"))


CHANGES = [_add_comment, _add_list, _edit, _edit_last_file]


@pytest.mark.parametrize("start", [seen, listed])
@pytest.mark.parametrize("change", CHANGES)
def test_the_tables_of_an_applied_template_have_its_version(
    tmp_path: Path, start: Callable[[Path], Embedded], change: Callable[[Embedded], None]
) -> None:
    project = start(tmp_path)
    project.apply()
    change(project)
    found = rows(tmp_path)
    there = ("0002", "there", ())
    assert {name: row for name, row in found.items() if name.startswith("otel.")} == {
        "otel.acme_traces": there,
        "otel.globex_traces": there,
    }
    assert found["demo.events"] == ("0001", "there", ())


@pytest.mark.parametrize("change", CHANGES[:3])
def test_a_table_of_a_value_that_came_or_left_is_shown_as_it_is(
    tmp_path: Path, change: Callable[[Embedded], None]
) -> None:
    project = listed(tmp_path)
    project.apply()
    (tmp_path / "tenants.csv").write_text("acme\ninitech\n", encoding="utf-8")
    project.write("0003_kind.yaml", KIND.replace("seen", "tenants"))
    change(project)
    assert rows(tmp_path) == {
        "demo.events": ("0001", "there", ()),
        "otel.acme_traces": ("0002", "there", ("0003",)),
        "otel.globex_traces": ("0002", "there", ()),
        "otel.initech_traces": (None, "not yet", ("0003",)),
    }


def test_an_extended_template_has_its_version_for_all_values(tmp_path: Path) -> None:
    project = seen(tmp_path)
    project.apply()
    _add_comment(project)
    write_entries(tmp_path, "initech")
    project.apply()
    assert [name for name, row in rows(tmp_path).items() if row == ("0002", "there", ())] == [
        "otel.acme_traces",
        "otel.globex_traces",
        "otel.initech_traces",
    ]


def test_a_pending_template_has_the_tables_of_its_values(tmp_path: Path) -> None:
    project = seen(tmp_path)
    pending = {f"otel.{name}_traces": (None, "not yet", ("0002",)) for name in ("acme", "globex")}
    assert rows(tmp_path) == {"demo.events": (None, "not yet", ("0001",)), **pending}
    project.apply()
    roll_back(project)
    waiting: dict[str, Row] = dict.fromkeys(pending, (None, "not yet", ()))
    assert rows(tmp_path) == {"demo.events": ("0001", "there", ()), **waiting}


def test_without_the_values_of_a_list_no_placeholder_is_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Host not found", "s3://missing/log")

    project = seen(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(seen_tenants, "read_drained_and_waiting", fails)
        assert rows(tmp_path) == {"demo.events": (None, "not yet", ("0001",))}
        found = json.loads(render(status(open_project(tmp_path)), "json"))
        assert found["unread_lists"].startswith("the log ")
    project.apply()
    project.write("0003_kind.yaml", KIND)
    _edit(project)
    monkeypatch.setattr(seen_tenants, "read_drained_and_waiting", fails)
    # The history knows the values for which the template is applied.
    applied = ("0002", "there", ("0003",))
    assert rows(tmp_path) == {
        "demo.events": ("0001", "there", ()),
        "otel.acme_traces": applied,
        "otel.globex_traces": applied,
    }
