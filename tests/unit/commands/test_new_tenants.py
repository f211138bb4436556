"""Templates: migrations for lists that grow after they are applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.status import history
from icemigrate.iceberg.names import TableName
from icemigrate.project import open_project
from icemigrate.wal import EntryKind, Writer
from tests.support.embedded_project import Embedded

TRACES = """
description: Traces
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: seen}
    columns: [{name: name, type: string}]
"""
KIND = """
description: Kind
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: seen}
    columns: [{name: kind, type: int}]
"""


def telemetry(folder: Path, *tenants: str) -> Embedded:
    """A project with a log of some tenants."""
    (folder / "icemigrate.yaml").write_text("project: otel\npipeline: {log: log}\n", encoding="utf-8")
    write_entries(folder, *tenants)
    return Embedded(folder)


def write_entries(folder: Path, *tenants: str) -> None:
    """Append an entry of each tenant to the log."""
    with Writer(folder / "log") as log:
        for tenant in tenants:
            log.append(tenant, EntryKind.TRACES, json.dumps({"resourceSpans": []}).encode())


def columns(project: Embedded, table: str) -> list[str]:
    """The names of a table's columns."""
    return [field.name for field in project.engine.tables[TableName.parse(table)].schema.fields]


def planned(project: Embedded) -> list[tuple[str, bool, list[str]]]:
    """The migrations of a plan, whether they extend, and their tables."""
    found = plan(open_project(project.folder)).plan.migrations
    return [(m.version, m.extends, [str(t.declared) for t in m.tables]) for m in found]


def test_a_new_tenant_extends_each_version(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES)
    project.apply()
    project.write("0002_kind.yaml", KIND)
    project.apply()
    assert planned(project) == []

    write_entries(tmp_path, "globex", "acme")
    assert planned(project) == [("0001", True, ["otel.globex_traces"]), ("0002", True, ["otel.globex_traces"])]
    project.apply()
    assert planned(project) == []
    assert columns(project, "otel.globex_traces") == columns(project, "otel.acme_traces") == ["name", "kind"]
    events = [(e.event, e.version) for e in history(open_project(tmp_path)).events]
    assert events == [("applied", "0001"), ("applied", "0002"), ("extended", "0001"), ("extended", "0002")]
