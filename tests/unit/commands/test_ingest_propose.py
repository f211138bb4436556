"""`ingest propose`: a migration with columns for counted attributes, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import ExitCode
from icemigrate.otlp.attribute_columns import AttributeSource
from icemigrate.pipeline.attribute_counts import AttributeCount, KindAttributes, pack_counts
from icemigrate.pipeline.attribute_records import record_attributes
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.task_results import TableEntries
from tests.support.table_project import TableProject

PROJECT = """\
project: sales
lists: {tenants: [acme, globex]}
pipeline:
  log: log
  tables: {traces: "otel.${tenant}_traces", logs: "otel.${tenant}_logs"}
  unknown_attributes: {traces: column}
"""
TEMPLATE = """\
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: %s}
    columns:
      - {name: trace_id, type: "fixed[16]"}
      - {name: Taken, type: string}
      - {name: attributes, type: "map<string, string>"}
"""
Counts = dict[str, dict[str, int]]


def create(folder: Path, *values: str) -> TableProject:
    """A project with migrations that are written, and not applied."""
    (folder / "icemigrate.yaml").write_text(PROJECT, encoding="utf-8")
    (folder / "migrations").mkdir()
    for number, one in enumerate(values, 1):
        (folder / f"migrations/{number:04}_step.yaml").write_text(TEMPLATE % one, encoding="utf-8")
    return TableProject(folder)


def count(folder: Path, counts: Counts, kind: str = "traces", batch: int = 0, **more: Any) -> None:
    """Record a complete batch of a tenant; attributes are given with their map."""
    found = [
        AttributeCount(AttributeSource(*name.split(".", 1)), types)  # type: ignore[arg-type]
        for name, types in counts.items()
    ]
    packed = pack_counts(KindAttributes(tuple(found), **more))
    checkpoint = folder / "log/checkpoint"
    (checkpoint / "commits").mkdir(parents=True, exist_ok=True)
    (checkpoint / f"commits/{batch}").write_text("v1\n{}")
    results = [TableEntries("t", "acme", kind, attributes=packed)]
    record_attributes(checkpoint, batch, results, [TableBatch("t", "acme", kind, 1, 1)], 1_700_000_000.0)


def propose(
    project: TableProject, capsys: pytest.CaptureFixture[str], *args: str, code: int = ExitCode.OK
) -> dict[str, Any]:
    capsys.readouterr()
    assert project.run("ingest", "propose", "--format", "json", *args) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


HTTP = {
    "attributes.http.request.method": {"string": 7},
    "attributes.http.response.status_code": {"long": 5},
    "attributes.retry": {"boolean": 2},
    "attributes.ratio": {"long": 1, "double": 2},
    "attributes.mixed": {"long": 1, "string": 2},
    "resource_attributes.host.name": {"string": 9},
}


def test_the_migration_declares_the_columns_and_what_fills_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = create(tmp_path, "tenants", "[initech]")
    count(tmp_path, HTTP)
    dry = propose(project, capsys, "--dry-run")
    assert dry["path"] is None
    found = propose(project, capsys)
    assert found["content"] == dry["content"]
    path = tmp_path / "migrations/0003_add_columns_for_attributes_of_traces.yaml"
    assert path.read_text(encoding="utf-8") == found["content"]
    assert {one["column"]: one["type"] for one in found["columns"]} == {
        "http_request_method": "string",
        "http_response_status_code": "long",
        "mixed": "string",
        "ratio": "double",
        "resource_host_name": "string",
        "retry": "boolean",
    }
    assert "# http_request_method: 7 rows of 1 tenant since 2023-11-14T22:13:20+00:00\n" in found["content"]
    assert "for_each: {tenant: tenants}" in found["content"]
    assert "otel.initech_traces" in found["content"]
    assert "icemigrate.attribute.column.resource_host_name: resource_attributes.host.name" in found["content"]

    assert project.run("check", "--fix") == ExitCode.OK
    assert project.run("apply", "--auto-approve", "--quiet", "--apply-with", "metadata") == ExitCode.OK
    with project.tables() as session:
        for tenant in ("acme", "globex", "initech"):
            table = session.find(session.parse(f"otel.{tenant}_traces"))
            assert table is not None
            assert table.metadata["properties"]["icemigrate.attribute.column.retry"] == "attributes.retry"
    # The declared columns are not proposed again, whatever is counted meanwhile.
    again = propose(project, capsys)
    assert (again["content"], again["columns"], again["in_map"]) == ("", [], [])


def test_a_new_tenant_of_a_list_from_the_log_gets_the_columns_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = create(tmp_path, "seen")
    count(tmp_path, {"attributes.a": {"string": 1}})
    assert "for_each: {tenant: seen}" in propose(project, capsys)["content"]


def test_attributes_that_give_one_name_are_reported_and_one_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = create(tmp_path, "tenants")
    counts = {f"attributes.{name}": {"string": 2} for name in ("a.b", "a_b", "A.B", "taken", "fine")}
    count(tmp_path, {**counts, "attributes.listed": {"list": 1, "string": 4}, "attributes.no": {"empty": 1}})
    found = propose(project, capsys, "--dry-run")
    assert [one["attribute"] for one in found["columns"]] == ["attributes.fine"]
    assert {one["attribute"]: one["reason"] for one in found["in_map"]} == {
        "attributes.listed": "no column has its values of type list and string",
        "attributes.no": "all its values are empty",
        "attributes.taken": "table `otel.acme_traces` has another column `taken`; write the column in a "
        "migration, with a name of its own",
        "attributes.A.B": "`attributes.A.B` and `attributes.a.b` and `attributes.a_b` give the same column "
        "name `a_b`; choose one of them with `--attribute`, or write the column in a migration, with a name "
        "of its own",
    }
    chosen = propose(project, capsys, "--attribute", "a.b")
    assert [(one["column"], one["attribute"]) for one in chosen["columns"]] == [("a_b", "attributes.a.b")]
    others = propose(project, capsys, "--attribute", "attributes.a_b")
    assert "has another column `a_b`" in others["in_map"][0]["reason"]


def test_only_some_columns_are_proposed_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = create(tmp_path, "tenants")
    count(tmp_path, HTTP)
    found = propose(project, capsys, "--limit", "2", "--dry-run")
    assert [one["column"] for one in found["columns"]] == ["http_request_method", "resource_host_name"]
    assert {one["reason"] for one in found["in_map"]} == {"`--limit` leaves it for a later migration"}
    assert len(found["in_map"]) == 4


def test_hostile_names_are_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = create(tmp_path, "tenants")
    names = ['x: "y"', "a # b", "{{ z }}", "'; DROP TABLE t --", "null", "*", "Größe", "a`b", "x" * 128]
    count(
        tmp_path,
        {f"attributes.{name}": {"string": 1} for name in names},
        unusable_rows=3,
        unusable_sample="\\u001b[31m",
        has_more=True,
    )
    found = propose(project, capsys)
    assert {one["attribute"].partition(".")[2] for one in found["columns"]} == set(names)
    assert found["notes"] == [
        "3 rows have attributes of traces whose names are too long or have hidden characters, such as "
        "`\\u001b[31m`; they stay in the map",
        "there are more attributes of traces than are counted; the most frequent ones are",
    ]
    assert project.run("check", "--fix") == ExitCode.OK
    assert project.run("apply", "--auto-approve", "--quiet", "--apply-with", "metadata") == ExitCode.OK
    with project.tables() as session:
        table = session.find(session.parse("otel.acme_traces"))
        assert table is not None
        filled = {
            text.partition(".")[2]
            for key, text in table.metadata["properties"].items()
            if key.startswith("icemigrate.attribute.column.")
        }
    assert filled == set(names)


def test_nothing_to_propose_and_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = create(tmp_path, "tenants")
    assert project.run("ingest", "propose") == ExitCode.OK
    assert "Nothing to propose: no attribute needs a column." in capsys.readouterr().out
    count(tmp_path, {"attributes.http.route": {"string": 1}}, kind="metrics")
    assert propose(project, capsys)["notes"] == [
        "no migration declares a table of metrics, so its attributes get no column"
    ]
    assert project.run("ingest", "propose", "--attribute", "http.rout") == ExitCode.USAGE
    assert "did you mean `http.route`?" in capsys.readouterr().err
    (tmp_path / "icemigrate.yaml").write_text("project: sales\npipeline: {log: log}\n", encoding="utf-8")
    assert project.run("ingest", "propose") == ExitCode.USAGE
    assert "the project file gives no tables of tenants" in capsys.readouterr().err


def test_a_property_that_names_no_attribute_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = create(tmp_path, "tenants")
    text = "tables: [{name: otel.acme_traces, properties: {icemigrate.attribute.column.Taken: http.route}}]\n"
    (tmp_path / "migrations/0002_property.yaml").write_text(text, encoding="utf-8")
    assert project.run("check") == ExitCode.FINDINGS
    assert (
        "expected one of `attributes.`, `resource_attributes.`, `scope_attributes.`, and the name of an "
        "attribute [IM502]" in " ".join(capsys.readouterr().out.split())
    )
