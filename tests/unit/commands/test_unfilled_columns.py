"""Columns of declared tables that `ingest` leaves null: in its warning, and in `ingest status`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.unfilled_columns import declared_unfilled_columns
from icemigrate.errors import ExitCode
from icemigrate.project import open_project
from icemigrate.project.tenant_tables import tables_of
from icemigrate.render.ingest_text import unfilled_text
from icemigrate.render.log_lines import unfilled_event
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.results.ingest_status_results import UnfilledColumns, UnfilledName
from icemigrate.wal import EntryKind, Writer

PROJECT = """\
project: otel
lists: {tenants: [acme, globex]}
pipeline:
  log: log
  tables: {traces: "otel.${tenant}_traces", logs: "otel.${tenant}_logs"}
"""
TEMPLATES = """\
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: tenants}
    columns:
      - {name: trace_idd, type: "fixed[16]"}
      - {name: customer, type: string}
  - name: "otel.${tenant}_logs"
    for_each: {tenant: seen}
    columns:
      - {name: time, type: timestamptz}
      - {name: route, type: string}
      - {name: Body, type: string}
    properties: {icemigrate.attribute.column.route: attributes.http.route}
"""
TRACES = UnfilledColumns(
    "traces",
    "otel.${tenant}_traces",
    (UnfilledName("trace_idd", "trace_id"), UnfilledName("customer", None)),
)
LOGS = UnfilledColumns("logs", "otel.${tenant}_logs", (UnfilledName("Body", "body"),))


def found(folder: Path, project: str = PROJECT, templates: str = TEMPLATES) -> tuple[UnfilledColumns, ...]:
    (folder / "icemigrate.yaml").write_text(project, encoding="utf-8")
    (folder / "migrations").mkdir(exist_ok=True)
    (folder / "migrations" / "0001_step.yaml").write_text(templates, encoding="utf-8")
    opened = open_project(folder)
    return declared_unfilled_columns(opened, tables_of(opened.pipeline))


def test_each_kind_is_named_once(tmp_path: Path) -> None:
    assert found(tmp_path) == (TRACES, LOGS)
    assert unfilled_text(TRACES, PLAIN_STYLE) == (
        "warning   traces: nothing fills columns `trace_idd` (did you mean `trace_id`?), `customer` of "
        "`otel.${tenant}_traces`"
    )
    event = unfilled_event(LOGS)
    assert (event.level, event.fields) == (
        "warning",
        {"kind": "logs", "pattern": "otel.${tenant}_logs", "columns": "Body"},
    )


def test_the_rule_of_check_decides(tmp_path: Path) -> None:
    others = 'rules: {IM405: {pattern: "customer|Body"}}\n'
    (traces,) = found(tmp_path, PROJECT + others)
    assert [one.column for one in traces.columns] == ["trace_idd"]
    assert found(tmp_path, PROJECT + "rules: {unfilled-column: off}\n") == ()


def test_a_migration_may_change_the_table_of_one_tenant(tmp_path: Path) -> None:
    found(tmp_path)
    second = "tables: [{name: otel.globex_traces, columns: [{name: trace_jd, type: string}]}]\n"
    (tmp_path / "migrations" / "0002_step.yaml").write_text(second, encoding="utf-8")
    traces, logs = found(tmp_path)
    assert [one.column for one in traces.columns] == ["trace_idd", "customer", "trace_jd"]
    assert logs == LOGS


def test_files_with_errors_and_projects_without_tables_do_not_stop_a_run(tmp_path: Path) -> None:
    assert found(tmp_path, templates="tables: [{nmae: x}]\n") == ()
    assert found(tmp_path, "project: otel\n") == ()
    assert declared_unfilled_columns(open_project(tmp_path / "migrations"), None) == ()


def test_status_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found(tmp_path)
    with Writer(tmp_path / "log") as writer:
        writer.append("acme", EntryKind.TRACES, b"{}")
    assert main(["ingest", "status"]) == ExitCode.OK
    shown = capsys.readouterr().out.splitlines()
    assert shown[2:4] == [unfilled_text(TRACES, PLAIN_STYLE), unfilled_text(LOGS, PLAIN_STYLE)]
    assert main(["ingest", "status", "--format", "json"]) == ExitCode.OK
    (traces, logs) = json.loads(capsys.readouterr().out)["unfilled_columns"]
    assert traces["columns"][0] == {"column": "trace_idd", "did_you_mean": "trace_id"}
    assert logs["kind"] == "logs"
