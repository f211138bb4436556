"""Templates that give a table the name of another one: they never change that table."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.check import check
from icemigrate.commands.plan import plan
from icemigrate.commands.tenant_table_creation import TenantTableCreation
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.project import open_project
from tests.support.table_project import TableProject
from tests.unit.commands.test_new_tenants import (
    KIND,
    TRACES,
    mistakes,
    of_file,
    planned,
    telemetry,
    without_table,
    write_entries,
)

PROD = "tables:\n  - {name: otel.prod_traces, columns: [{name: id, type: long}]}\n"
RENAMED = "tables:\n  - {name: otel.production, renamed_from: otel.prod_traces}\n"
OTHER = """
tables:
  - name: "otel.${one}"
    for_each: {one: more}
    columns: [{name: name, type: string}]
"""


@pytest.mark.parametrize("is_plain_first", [True, False])
def test_a_new_value_never_changes_a_declared_table(tmp_path: Path, is_plain_first: bool) -> None:
    project = telemetry(tmp_path, "acme")
    plain, template = ("0001", "0002") if is_plain_first else ("0002", "0001")
    path = project.write(f"{plain}_prod.yaml", PROD)
    of_template = project.write(f"{template}_traces.yaml", TRACES)
    project.write("0003_kind.yaml", KIND)
    project.apply()
    write_entries(tmp_path, "prod", "globex")
    messages = mistakes(plan, open_project(tmp_path))
    taken = f"`otel.prod_traces`, the name that this template gives for `prod`, is declared in {path}:2:12"
    assert messages == [taken, taken]

    # As the hint says: the table gets another name, and then the tenant gets tables.
    project.write("0004_production.yaml", RENAMED)
    assert [(v, is_extended) for v, is_extended, _ in planned(project)] == [
        (template, True),
        ("0003", True),
        ("0004", False),
    ]
    project.apply()
    assert planned(project) == [
        (template, True, ["otel.prod_traces"]),
        ("0003", True, ["otel.prod_traces"]),
    ]
    assert of_template.exists()


def test_a_pending_template_never_changes_a_declared_table(tmp_path: Path) -> None:
    project = of_file(tmp_path, "tenants.csv", "acme\nprod\n")
    (tmp_path / "migrations" / "0001_traces.yaml").rename(tmp_path / "migrations" / "0002_traces.yaml")
    project.write("0001_prod.yaml", PROD)
    (message,) = mistakes(plan, open_project(tmp_path))
    assert message.startswith(
        "`otel.prod_traces`, the name that this template gives for `prod`, is declared in"
    )
    (error,) = (d for d in check(open_project(tmp_path)).diagnostics if d.code == "template-name-taken")
    assert error.hint is not None
    assert error.hint.startswith("remove `prod` from the list `tenants`")
    (tmp_path / "tenants.csv").write_text("acme\n", encoding="utf-8")
    assert [version for version, _, _ in planned(project)] == ["0001", "0002"]


def test_two_templates_never_give_one_name(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    (tmp_path / "icemigrate.yaml").write_text(
        "project: otel\npipeline: {log: log}\nlists: {more: {file: more.txt}}\n", encoding="utf-8"
    )
    (tmp_path / "more.txt").write_text("globex_traces\n", encoding="utf-8")
    project.write("0001_traces.yaml", TRACES)
    project.write("0002_other.yaml", OTHER)
    project.apply()
    write_entries(tmp_path, "globex")
    (message,) = mistakes(plan, open_project(tmp_path))
    assert message.startswith("`otel.globex_traces`, the name that this template gives for `globex`")


def test_a_template_is_changed_by_one_of_the_same_values(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES.replace("seen", "[acme, prod]"))
    project.write("0002_kind.yaml", KIND)
    project.apply()
    project.write("0003_one.yaml", PROD.replace("long", "int").replace("name: id", "name: size"))
    project.apply()
    write_entries(tmp_path, "prod", "globex")
    assert [(v, tables) for v, _, tables in planned(project)] == [
        ("0002", ["otel.globex_traces", "otel.prod_traces"])
    ]


@pytest.mark.parametrize(
    ("settings", "tenant", "reason"),
    [
        ("pipeline: {log: log, quarantine: otel.bad_traces}", "bad", "is the quarantine of the log"),
        ("pipeline: {log: log}\nhistory: otel.own_traces", "own", "holds this project's history"),
    ],
)
def test_a_template_never_gives_the_name_of_a_table_of_icemigrate(
    tmp_path: Path, settings: str, tenant: str, reason: str
) -> None:
    project = telemetry(tmp_path, tenant)
    (tmp_path / "icemigrate.yaml").write_text(f"project: otel\n{settings}\n", encoding="utf-8")
    project.write("0001_traces.yaml", TRACES)
    (message,) = mistakes(plan, open_project(tmp_path))
    assert reason in message


def test_ingest_creates_no_table_of_such_a_tenant(tmp_path: Path) -> None:
    write_entries(tmp_path, "acme")
    project = TableProject.create(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: otel\npipeline: {log: log}\n", encoding="utf-8")
    logs = TRACES.replace("traces", "logs").replace("Traces", "Logs")
    project.migrate(1, f"{TRACES}{logs.partition('tables:')[2].lstrip(chr(10))}")
    project.migrate(2, PROD)
    failed = [
        without_table("globex"),
        TableBatch("otel.prod_logs", "prod", "logs", 1, 0, "there is no table"),
    ]
    with project.tables() as session:
        created = TenantTableCreation(project.project, session, None)(failed)  # type: ignore[arg-type]
        assert created.names == ("otel.globex_logs", "otel.globex_traces")
        assert "is declared in" in created.reasons["otel.prod_logs"]
        assert session.find(session.parse("otel.prod_logs")) is None
