"""Commands that need no rows start no JVM, whatever engine the environment applies with."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.errors import ExitCode
from icemigrate.execution.engine_choice import maintenance_engine
from icemigrate.execution.environment_session import open_environment
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.project import open_project
from icemigrate.spark import session as spark_session
from icemigrate.spark.engine_port import Engine

TABLE = TableName.parse("db.t")
MAKE = """
tables:
  - name: db.t
    columns: [{name: a, type: int}, {name: at, type: timestamptz}]
    retention: {rows: {column: at, max_age: 30d}}
"""
ADD = "tables: [{name: db.t, columns: [{name: b, type: int}]}]\n"
DROP = "allow: [destructive db.t.b]\nbecause: x\ntables: [{name: db.t, drop_columns: [b]}]\n"
UPGRADE = "allow: [irreversible db.t]\nbecause: x\ntables: [{name: db.t, format_version: 3}]\n"


class SparkStarts(AssertionError):
    """Spark was about to start."""


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        raise SparkStarts

    monkeypatch.setattr(spark_session, "start_spark", start)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disposable project with four applied migrations, the last one irreversible."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "migrations").mkdir()
    configure(tmp_path, "apply_with: metadata")
    for number, text in enumerate((MAKE, ADD, DROP, UPGRADE), 1):
        (tmp_path / "migrations" / f"{number:04}_step.yaml").write_text(text, encoding="utf-8")
    made = open_project(tmp_path)
    apply(made, plan(made).plan)
    return tmp_path


def configure(folder: Path, setting: str) -> None:
    (folder / "icemigrate.yaml").write_text(
        f"project: market\nenvironments: {{local: {{catalog: {{type: sqlite}}, {setting}}}}}\n",
        encoding="utf-8",
    )


PLAIN, METADATA = "disposable: true", "disposable: true, apply_with: metadata"


@pytest.mark.parametrize(
    ("command", "code", "setting"),
    [
        ("plan", ExitCode.OK, PLAIN),
        ("apply --auto-approve", ExitCode.OK, PLAIN),
        ("apply --baseline --auto-approve", ExitCode.OK, PLAIN),
        ("rollback --auto-approve", ExitCode.FINDINGS, PLAIN),
        ("rollback --auto-approve", ExitCode.FINDINGS, f"{PLAIN}, apply_with: spark"),
        ("rollback --to 0001 --partial --auto-approve", ExitCode.OK, PLAIN),
        ("apply --reconcile --auto-approve", ExitCode.OK, PLAIN),
        ("drift", ExitCode.OK, PLAIN),
        ("status", ExitCode.OK, PLAIN),
        ("history", ExitCode.OK, PLAIN),
        ("repair", ExitCode.OK, PLAIN),
        ("unlock", ExitCode.OK, PLAIN),
        ("import other", ExitCode.FINDINGS, PLAIN),
        ("revert 0003", ExitCode.OK, PLAIN),
        ("maintain --dry-run", ExitCode.OK, f"{PLAIN}, apply_with: spark"),
        ("maintain --rows --auto-approve", ExitCode.OK, PLAIN),
        ("maintain --auto-approve", ExitCode.OK, PLAIN),
        ("maintain --auto-approve", ExitCode.OK, METADATA),
        ("reset --auto-approve", ExitCode.OK, PLAIN),
        ("reset --auto-approve", ExitCode.OK, METADATA),
    ],
)
def test_a_command_starts_no_jvm(
    folder: Path, command: str, code: ExitCode, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(folder, setting)
    assert main(command.split()) == code, capsys.readouterr().err


@pytest.mark.parametrize("setting", [PLAIN, METADATA])
def test_python_removes_the_schemas_that_another_client_left(
    folder: Path, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(folder, setting)
    project = open_project(folder)
    with open_environment(project, None) as session:
        engine = maintenance_engine(session, None, lambda: None)
        before = engine.table(TABLE)
        assert before is not None
        more = Schema((*before.schema.fields, Field(9, "x", Primitive("int"))))
        engine.commit(TABLE, lambda table: replace(table, schema=more, last_column_id=9))
        engine.commit(TABLE, lambda table: replace(table, schema=before.schema))
        ids = set(schema_ids(engine))
    assert main(["maintain", "--schemas", "--auto-approve"]) == ExitCode.OK
    assert "1 schema removed" in capsys.readouterr().out
    with open_environment(project, None) as session:
        left = set(schema_ids(maintenance_engine(session, None, lambda: None)))
    assert (len(ids - left), left - ids) == (1, set())


def schema_ids(engine: Engine) -> list[int]:
    return [schema["schema-id"] for schema in (engine.metadata_json(TABLE) or {})["schemas"]]


def test_the_start_of_spark_would_be_seen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(folder, f"{PLAIN}, apply_with: spark")
    assert main(["reset", "--auto-approve"]) == ExitCode.ERROR
    assert "SparkStarts" in capsys.readouterr().err
