"""Unknown attributes with the policy `column`: counted, proposed, applied, filled, rolled back, redone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from icemigrate.errors import ExitCode
from icemigrate.table_data.query_tables import query_table
from icemigrate.wal import EntryKind, Writer
from tests.support.table_project import TableProject

PROJECT = """\
project: sales
pipeline:
  log: log
  quarantine: otel.quarantine
  tables: {logs: "otel.${tenant}_logs"}
  unknown_attributes: column
"""
LOGS = """\
tables:
  - name: "otel.${tenant}_logs"
    for_each: {tenant: seen}
    columns:
      - {name: body, type: string}
      - {name: attributes, type: "map<string, string>"}
"""


def record(body: str, **attributes: dict[str, Any]) -> bytes:
    """A request with one log record."""
    found = {
        "body": {"stringValue": body},
        "attributes": [{"key": key.replace("_", "."), "value": value} for key, value in attributes.items()],
    }
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [found]}]}]}).encode()


def rows(project: TableProject, tenant: str, *names: str) -> dict[str, tuple[Any, ...]]:
    """Values of columns, and the attribute `http.status` of the map, by body."""
    with project.tables() as session:
        found = query_table(session, f"otel.{tenant}_logs").to_pylist()
    return {
        row["body"]: (*(row[name] for name in names), dict(row["attributes"]).get("http.status"))
        for row in found
    }


def test_a_proposed_column_is_filled_after_it_is_applied(tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    (tmp_path / "icemigrate.yaml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "migrations/0001_logs.yaml").write_text(LOGS, encoding="utf-8")
    project, number = TableProject(tmp_path), 0

    def write(*values: dict[str, Any], tenant: str = "acme") -> None:
        """Append a record for each value of the attribute `http.status`."""
        nonlocal number
        with Writer(tmp_path / "log") as writer:
            for value in values:
                writer.append(tenant, EntryKind.LOGS, record(str(number), http_status=value))
                number += 1

    def ingest(*values: dict[str, Any]) -> None:
        write(*values)
        assert project.run("ingest", "--quiet") == ExitCode.OK

    def migrate(*args: str) -> None:
        assert project.run(*args, "--auto-approve", "--quiet") == ExitCode.OK

    with Writer(tmp_path / "log") as writer:
        writer.append("acme", EntryKind.LOGS, record("first"))
    migrate("apply", "--apply-with", "metadata")
    ingest({"intValue": "200"}, {"intValue": 404})
    assert project.run("ingest", "propose") == ExitCode.OK
    (path,) = (tmp_path / "migrations").glob("0002_*.yaml")
    assert "- {name: http_status, type: long}" in path.read_text(encoding="utf-8")

    # Before `apply`, tables are as they were; afterwards, old rows read null.
    before = {"first": (None,), "0": ("200",), "1": ("404",)}
    assert rows(project, "acme") == before
    migrate("apply", "--apply-with", "metadata")
    write({"intValue": 204}, tenant="globex")  # it appears later, and gets the column with its table
    ingest({"intValue": 201}, {"stringValue": "unknown"})
    with_column = {body: (None, *values) for body, values in before.items()}
    with_column |= {"3": (201, "201"), "4": (None, "unknown")}
    assert rows(project, "acme", "http_status") == with_column
    assert rows(project, "globex", "http_status") == {"2": (204, "204")}

    migrate("rollback", "--apply-with", "metadata")
    ingest({"intValue": 202})
    assert rows(project, "acme") == {body: found[1:] for body, found in with_column.items()} | {"5": ("202",)}
    migrate("apply", "--redo", "0002", "--apply-with", "metadata")
    ingest({"intValue": 203})
    assert rows(project, "acme", "http_status") == with_column | {"5": (None, "202"), "6": (203, "203")}
