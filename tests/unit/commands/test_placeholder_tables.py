"""Tables of templates whose values are unknown without a catalog: no placeholder is used as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.check import check
from icemigrate.commands.diff import DiffOptions, diff
from icemigrate.commands.generate import generate
from icemigrate.commands.show import show
from icemigrate.commands.test_files import diagnostics_of_tests, find_tests
from icemigrate.errors import UsageError
from icemigrate.project import open_project
from tests.unit.commands.test_new_tenants import KIND, TRACES, of_file, planned, telemetry

SHOWN = """tables:
  - name: otel.${tenant}_traces
    for_each: {tenant: seen}
    columns:
      - {name: name, type: string}
"""
TESTS = """
tests:
  - name: a name
    version: "0001"
    expect:
      otel.acme_traces: [{name: a}]
"""


def test_show_prints_the_name_of_the_template(tmp_path: Path) -> None:
    project = telemetry(tmp_path)
    project.write("0001_traces.yaml", TRACES)
    opened = open_project(tmp_path)
    assert show(opened) == SHOWN
    assert show(opened, "otel.${tenant}_traces") == show(opened, "otel.any_tenant_traces") == SHOWN
    assert "name: otel.acme_traces\n" in show(opened, "otel.acme_traces")
    # What `show` prints is a desired state that is reached.
    (tmp_path / "all.yaml").write_text(SHOWN, encoding="utf-8")
    assert diff(opened, tmp_path / "all.yaml", options=DiffOptions(include_drops=True)).is_empty


def test_show_prints_equal_tables_once(tmp_path: Path) -> None:
    project = of_file(tmp_path, "tenants.txt", "acme\nglobex\ninitech\n")
    assert show(open_project(tmp_path)) == SHOWN.replace("seen", "tenants")
    assert show(open_project(tmp_path), shows_all=True).count("name: otel.") == 3
    project.write(
        "0002_size.yaml", KIND.replace("${tenant}", "globex").replace("for_each: {tenant: seen}", "")
    )
    shown = show(open_project(tmp_path))
    assert "any_tenant" not in shown
    assert "        - acme\n        - initech\n" in shown
    assert shown.endswith(
        "  - name: otel.globex_traces\n    columns:\n      - {name: name, type: string}\n"
        "      - {name: kind, type: int}\n"
    )


def test_generate_refuses_a_placeholder(tmp_path: Path) -> None:
    project = telemetry(tmp_path)
    path = project.write("0001_traces.yaml", TRACES)
    opened = open_project(tmp_path)
    message = rf"a placeholder for the tables of `otel.\$\{{tenant\}}_traces` \({path}:4:11\): the list"
    with pytest.raises(UsageError, match=message):
        generate(opened, None, "otel.any_tenant_traces", 3, output=tmp_path / "rows.parquet")
    found = generate(opened, None, "otel.acme_traces", 3, output=tmp_path / "rows.parquet")
    assert (found.table, found.rows) == ("otel.acme_traces", 3)


def test_diff_compares_the_tables_of_values(tmp_path: Path) -> None:
    project = telemetry(tmp_path)
    project.write("0001_traces.yaml", TRACES)
    desired = (
        "tables: [{name: otel.acme_traces, columns: [{name: name, type: string}, {name: x, type: int}]}]\n"
    )
    (tmp_path / "desired.yaml").write_text(desired, encoding="utf-8")
    found = diff(open_project(tmp_path), tmp_path / "desired.yaml", options=DiffOptions(include_drops=True))
    assert [(one.table, one.changes) for one in found.tables] == [("otel.acme_traces", ("+ x int",))]
    assert found.notes == (
        "of `otel.${tenant}_traces`, only the tables that the desired state has are compared",
    )


def test_tests_name_the_tables_of_values(tmp_path: Path) -> None:
    project = telemetry(tmp_path)
    project.write("0001_traces.yaml", TRACES)
    project.write("tests/names.yaml", TESTS)
    opened = open_project(tmp_path)
    assert [one.test.name for one in find_tests(opened, ()).tests] == ["a name"]
    assert [d for d in check(opened).diagnostics if d.code == "unknown-table"] == []
    assert diagnostics_of_tests(opened, None) == ()


@pytest.mark.parametrize(
    "change",
    [
        "{name: otel.globex_traces, drop: true}",
        "{name: otel.globex_traces, drop_columns: [name]}",
        "{name: otel.old, renamed_from: otel.globex_traces}",
        "{name: otel.globex_traces, renames: {name: title}}",
    ],
)
def test_files_change_tables_of_values_that_left_or_are_unknown(tmp_path: Path, change: str) -> None:
    text = f"allow: [destructive, incompatible]\nbecause: it left\ntables: [{change}]\n"
    project = of_file(tmp_path, "tenants.csv", "acme\nglobex\n")
    project.apply()
    (tmp_path / "tenants.csv").write_text("acme\n", encoding="utf-8")
    project.write("0002_globex.yaml", text)
    assert [d for d in check(open_project(tmp_path)).diagnostics if d.code.startswith("unknown")] == []
    assert [version for version, _, _ in planned(project)] == ["0002"]
    project.write("0001_traces.yaml", TRACES)
    (tmp_path / "icemigrate.yaml").write_text("project: otel\npipeline: {log: log}\n", encoding="utf-8")
    assert [d for d in check(open_project(tmp_path)).diagnostics if d.code.startswith("unknown")] == []
