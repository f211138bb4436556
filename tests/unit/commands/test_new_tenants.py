"""Templates: migrations for lists that grow after they are applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from icemigrate.commands.apply import verify_saved_plan
from icemigrate.commands.check import check
from icemigrate.commands.plan import plan
from icemigrate.commands.revert import revert
from icemigrate.commands.rollback import plan_rollback
from icemigrate.commands.status import history
from icemigrate.commands.tenant_table_creation import TenantTableCreation
from icemigrate.errors import ConflictError, ExitCode, Mistakes, UsageError
from icemigrate.execution.failures import Interrupted
from icemigrate.execution.run import run_plan
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal, LockedJournal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.created_tables import CreatedTables
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.project import open_project
from icemigrate.table_data.new_table import create_table
from icemigrate.wal import EntryKind, Writer
from tests.support.embedded_project import HISTORY, Embedded
from tests.support.table_project import TableProject

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


def roll_back(project: Embedded) -> None:
    """Undo the last applied version."""
    todo = plan_rollback(open_project(project.folder)).plan
    project.engine.expect(todo)
    run_plan(todo, project.engine, Journal(HistoryWriter(project.engine, HISTORY, "otel")))
    project.save()


def mistakes(call: Callable[..., object], *args: object) -> list[str]:
    """The messages of the errors of a call."""
    with pytest.raises(Mistakes) as caught:
        call(*args)
    return [d.message for d in caught.value.diagnostics]


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
    assert planned(project) == [
        ("0001", True, ["otel.globex_traces"]),
        ("0002", True, ["otel.globex_traces"]),
    ]
    project.apply()
    assert planned(project) == []
    assert columns(project, "otel.globex_traces") == columns(project, "otel.acme_traces") == ["name", "kind"]
    events = [(e.event, e.version) for e in history(open_project(tmp_path)).events]
    assert events == [("applied", "0001"), ("applied", "0002"), ("extended", "0001"), ("extended", "0002")]


def test_a_rollback_undoes_the_migration_for_all_tenants(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES)
    project.write("0002_kind.yaml", KIND)
    project.apply()
    write_entries(tmp_path, "globex")
    project.apply()

    roll_back(project)
    assert columns(project, "otel.globex_traces") == columns(project, "otel.acme_traces") == ["name"]
    # A rolled-back version waits for its redo, and a new tenant gets the applied ones.
    write_entries(tmp_path, "initech")
    assert planned(project) == [("0001", True, ["otel.initech_traces"])]
    project.apply()
    redone = plan(open_project(tmp_path), redo="0002").plan
    assert [str(t.declared) for t in redone.migrations[0].tables] == [
        "otel.acme_traces",
        "otel.globex_traces",
        "otel.initech_traces",
    ]
    roll_back(project)
    assert not [name for name in project.engine.tables if name.namespace == ("otel",)]


def test_a_plan_runs_for_the_tenants_that_it_shows(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES)
    shown = plan(open_project(tmp_path)).plan
    write_entries(tmp_path, "globex")
    again = verify_saved_plan(open_project(tmp_path), parse_plan_file(plan_file_text(shown), "plan.json"))
    assert [str(t.declared) for t in again.plan.migrations[0].tables] == ["otel.acme_traces"]


def test_an_interrupted_extension_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES)
    project.apply()
    write_entries(tmp_path, "globex")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LockedJournal, "end", killed)
        with pytest.raises(Interrupted):
            project.apply()
    project.save()
    with pytest.raises(ConflictError, match="0001 is being applied to new tenants"):
        plan_rollback(open_project(tmp_path))
    write_entries(tmp_path, "initech")
    assert planned(project) == [("0001", True, ["otel.globex_traces", "otel.initech_traces"])]
    project.apply()
    assert planned(project) == []
    roll_back(project)
    assert not [name for name in project.engine.tables if name.namespace == ("otel",)]


def test_a_pattern_fits_tables_of_later_tenants(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES)
    project.write("0002_all.yaml", 'tables: [{match: "otel.*", columns: [{name: host, type: string}]}]\n')
    project.apply()
    write_entries(tmp_path, "globex")
    assert planned(project) == [
        ("0001", True, ["otel.globex_traces"]),
        ("0002", True, ["otel.globex_traces"]),
    ]
    project.apply()
    assert planned(project) == []
    assert columns(project, "otel.globex_traces") == ["name", "host"]


def test_a_template_applies_to_no_tenant_at_first(tmp_path: Path) -> None:
    project = telemetry(tmp_path)
    project.write("0001_traces.yaml", TRACES)
    project.apply()
    write_entries(tmp_path, "acme")
    assert planned(project) == [("0001", True, ["otel.acme_traces"])]


def test_a_checksum_counts_the_source_of_a_list(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    path = project.write("0001_traces.yaml", TRACES)
    project.apply()
    write_entries(tmp_path, "globex")
    # Another comment: the file is read again, and compared by its checksum.
    path.write_text(f"# A comment.\n{TRACES}", encoding="utf-8")
    assert planned(project) == [("0001", True, ["otel.globex_traces"])]
    path.write_text(TRACES.replace("seen", "[acme]"), encoding="utf-8")
    (message,) = mistakes(planned, project)
    assert message.startswith("0001 changed after it was applied")


def test_check_reads_no_log(tmp_path: Path) -> None:
    project = telemetry(tmp_path, "acme")
    project.write("0001_traces.yaml", TRACES.replace("type: string", "type: strin"))
    messages = [d.message for d in check(open_project(tmp_path)).diagnostics]
    assert [m for m in messages if "strin" in m]
    project.write("0001_traces.yaml", TRACES)
    found = check(open_project(tmp_path))
    assert found.tables == 1
    (note,) = (d for d in found.diagnostics if d.code == "placeholder-value")
    assert "for `any_tenant`" in note.message
    (message,) = mistakes(revert, open_project(tmp_path), "0001")
    assert message.startswith("`revert` cannot write tables of 0001")


def test_a_list_of_seen_tenants_needs_a_log(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").write_text("lists: {tenants: seen}\n", encoding="utf-8")
    (message,) = mistakes(open_project, tmp_path)
    assert message.endswith("the project has no log")


FILES = {
    "tenants.txt": "acme\n\nglobex\n",
    "tenants.csv": "acme\nglobex\n",
    "tenants.json": '["acme", "globex"]',
    "tenants.yaml": "- acme\n- globex\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_values_of_a_list(tmp_path: Path, name: str) -> None:
    project = of_file(tmp_path, name, FILES[name])
    assert planned(project) == [("0001", False, ["otel.acme_traces", "otel.globex_traces"])]
    # `check` reads the file, too.
    assert check(open_project(tmp_path)).tables == 2


def of_file(folder: Path, name: str, text: str) -> Embedded:
    """A project whose tenants are in a file."""
    (folder / "icemigrate.yaml").write_text(f"lists: {{tenants: {{file: {name}}}}}\n", encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    project = Embedded(folder)
    project.write("0001_traces.yaml", TRACES.replace("seen", "tenants"))
    return project


def test_a_new_line_of_a_file_extends_a_migration(tmp_path: Path) -> None:
    project = of_file(tmp_path, "tenants.csv", "acme\n")
    project.apply()
    (tmp_path / "tenants.csv").write_text("initech\n", encoding="utf-8")
    assert planned(project) == [("0001", True, ["otel.initech_traces"])]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tenants.txt", "acme\na.b\n", "2:1: `a.b` cannot be a value of a list"),
        ("tenants.txt", "acme\nacme\n", "2:1: `acme` occurs twice, first on line 1"),
        ("tenants.csv", "acme,1\n", "1:1: the row has 2 values"),
        ("tenants.json", '{"acme": 1}', "1:1: the file is no list"),
        ("tenants.json", "[[acme]]", "1:2: a value of a list is a text or a whole number"),
    ],
)
def test_errors_of_a_file_have_their_position(tmp_path: Path, name: str, text: str, message: str) -> None:
    project = of_file(tmp_path, name, text)
    with pytest.raises(Mistakes) as caught:
        open_project(project.folder)
    (found,) = caught.value.diagnostics
    assert found.place is not None
    assert f"{found.place.line}:{found.place.column}: {found.message}" == message


def test_a_file_is_inside_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    project = of_file(folder, "tenants.txt", "")
    (tmp_path / "other.txt").write_text("acme\n", encoding="utf-8")
    (folder / "tenants.txt").unlink()
    (folder / "tenants.txt").symlink_to("../other.txt")
    (message,) = mistakes(open_project, project.folder)
    assert message.startswith("the file is not read")


def test_a_query_has_the_values_of_a_list(tmp_path: Path) -> None:
    project = TableProject.create(
        tmp_path, "tables: [{name: ops.tenants, columns: [{name: id, type: string}]}]\n"
    )
    (tmp_path / "icemigrate.yaml").write_text(
        'project: sales\nlists: {tenants: {query: "SELECT id FROM ops.tenants"}}\n', encoding="utf-8"
    )
    insert(project, "globex", "acme")
    project.migrate(2, TRACES.replace("seen", "tenants"))
    with project.tables() as tables:
        assert {n for n in ("acme", "globex") if tables.find(tables.parse(f"otel.{n}_traces"))} == {
            "acme",
            "globex",
        }
    insert(project, "initech")
    (migration,) = plan(project.project).plan.migrations
    assert (migration.version, [str(t.declared) for t in migration.tables]) == (
        "0002",
        ["otel.initech_traces"],
    )
    insert(project, "../x")
    with pytest.raises(UsageError, match=r"the query of the list `tenants`: `\.\./x` cannot be a value"):
        plan(project.project)


@pytest.mark.parametrize(("value", "text"), [("NULL", "NULL"), ("true", "True")])
def test_a_query_gives_texts_and_numbers(value: str, text: str, tmp_path: Path) -> None:
    project = TableProject.create(
        tmp_path, "tables: [{name: ops.tenants, columns: [{name: id, type: string}]}]\n"
    )
    insert(project, "acme")
    (tmp_path / "icemigrate.yaml").write_text(
        f'project: sales\nlists: {{tenants: {{query: "SELECT {value} FROM ops.tenants"}}}}\n',
        encoding="utf-8",
    )
    (tmp_path / "migrations" / "0002_traces.yaml").write_text(
        TRACES.replace("seen", "tenants"), encoding="utf-8"
    )
    with pytest.raises(UsageError, match=f"the query of the list `tenants`: `{text}` cannot be a value"):
        plan(project.project)


def insert(project: TableProject, *tenants: str) -> None:
    """Add rows to the table of tenants."""
    path = project.folder / "rows.csv"
    path.write_text("\n".join(["id", *tenants]) + "\n", encoding="utf-8")
    assert project.run("table", "insert", "ops.tenants", "--data", str(path), "--quiet") == ExitCode.OK


def without_table(tenant: str) -> TableBatch:
    """The entry of a tenant that has no table."""
    table = f"otel.{tenant}_traces"
    return TableBatch(table, tenant, "traces", 1, 0, f"there is no table `{table}`")


def test_ingest_creates_the_tables_of_each_tenant_that_can_have_them(tmp_path: Path) -> None:
    write_entries(tmp_path, "acme")
    project = TableProject.create(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: otel\npipeline: {log: log}\n", encoding="utf-8")
    project.migrate(1, TRACES)
    failed = [without_table(tenant) for tenant in ("globex", "initech")]
    with project.tables() as session:
        create_table(session, "otel.initech_traces", Schema((Field(1, "name", Primitive("int")),)))
        # A table that another client makes is not missing; one that is in the way of a template is.
        creation = TenantTableCreation(project.project, session, None)  # type: ignore[arg-type]
        created = creation(failed)
        assert created == CreatedTables(("otel.globex_traces",))
        assert creation(failed) == CreatedTables()
        assert created.waited_for(failed) == (failed[0],)


def test_a_tenant_whose_tables_cannot_be_created_stops_no_other(tmp_path: Path) -> None:
    write_entries(tmp_path, "acme")
    project = TableProject.create(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: otel\npipeline: {log: log}\n", encoding="utf-8")
    logs = TRACES.replace("traces", "logs").replace("Traces", "Logs")
    project.migrate(1, f"{TRACES}{logs.partition('tables:')[2].lstrip(chr(10))}")
    failed = [without_table(tenant) for tenant in ("globex", "initech")]
    with project.tables() as session:
        create_table(session, "otel.initech_logs", Schema((Field(1, "name", Primitive("int")),)))
        created = TenantTableCreation(project.project, session, None)(failed)  # type: ignore[arg-type]
        assert created.names == ("otel.globex_logs", "otel.globex_traces")
        (_, initech) = created.with_reasons(failed)
        assert initech.problem is not None
        assert initech.problem.startswith(
            "there is no table `otel.initech_traces`, and it cannot be created: "
        )
        assert "otel.initech_logs" in initech.problem
        assert session.find(session.parse("otel.initech_traces")) is None
