"""``doctor`` on the embedded catalog and on catalogs that are not there: what it tries, and what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX
from icemigrate.cli import main
from icemigrate.commands.capability_report import capability_statuses
from icemigrate.commands.doctor import doctor
from icemigrate.errors import ExitCode, extra_hint
from icemigrate.project import open_project
from icemigrate.results.command_results import DoctorCheck, DoctorResult
from icemigrate.spark.jars import JARS_VARIABLE
from tests.support.embedded_project import Embedded

SCHEMA = Path(__file__).parents[3] / "schemas" / "doctor.schema.json"
MIGRATION = "tables: [{name: db.t, columns: [{name: id, type: long}]}]"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    monkeypatch.chdir(tmp_path)
    return Embedded(tmp_path)


def visit(project: Embedded, environment: str | None = None) -> DoctorResult:
    return doctor(open_project(project.folder), environment)


def of(result: DoctorResult, name: str) -> list[DoctorCheck]:
    return [c for c in result.checkups if c.name == name]


def test_a_wrong_java_home_is_noted_though_there_is_another(
    project: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    found, wrong = of(visit(project), "java")
    assert (found.state, wrong.state) == ("ok", "note")
    assert wrong.text == "JAVA_HOME is /nowhere, which does not exist; it is ignored"
    assert wrong.hint is not None
    assert "unset JAVA_HOME" in wrong.hint


def environments(project: Embedded, text: str) -> None:
    (project.folder / "icemigrate.yaml").write_text(
        f"project: market\nenvironments:\n{text}", encoding="utf-8"
    )


def test_before_the_first_apply_all_is_well_and_nothing_is_written(project: Embedded) -> None:
    result = visit(project)
    assert result.ok
    assert [c.name for c in result.checkups] == [
        "environment",
        "pyspark",
        "java",
        "jars",
        "catalog",
        "storage",
        "storage",
        "history",
        "session",
    ]
    assert "the first `apply` creates the warehouse" in of(result, "storage")[0].text
    assert "no migration was applied yet" in of(result, "history")[0].text
    assert of(result, "session")[0].state == "skipped"
    assert list(project.folder.iterdir()) == []


def test_an_environment_that_is_used_has_files_and_a_history(project: Embedded) -> None:
    project.write("0001_make.yaml", MIGRATION)
    project.apply()
    result = visit(project)
    assert result.ok
    assert "the files of `db.t` are readable" in of(result, "storage")[-1].text
    (history,) = of(result, "history")
    assert (history.state, history.text) == ("ok", "`icemigrate.history` is valid, at version 0001")
    assert of(result, "lock")[0].text == "no process holds the lock"


def test_a_table_whose_file_is_gone_is_told(project: Embedded) -> None:
    project.write("0001_make.yaml", MIGRATION)
    project.apply()
    for table in list(project.engine.tables):
        project.metadata_file(table).unlink()
    result = visit(project)
    assert not result.ok
    assert "is missing" in of(result, "storage")[-1].text
    # The rest is tried all the same.
    assert of(result, "history")[0].state == "failed"
    assert of(result, "session")[0].state == "skipped"


def test_a_history_that_was_altered_by_hand_is_told(project: Embedded) -> None:
    project.write("0001_make.yaml", MIGRATION)
    project.apply()
    project.edit("icemigrate.history", {"icemigrate.applied": "[]"})
    (history,) = of(visit(project), "history")
    assert history.state == "failed"
    assert "altered" in history.text
    assert history.hint is not None


def test_a_missing_variable_is_named_and_nothing_else_is_tried(project: Embedded) -> None:
    environments(
        project, "  prod:\n    catalog: {type: rest, uri: '${NO_SUCH_URI}', token: '${NO_SUCH_TOKEN}'}\n"
    )
    result = visit(project)
    assert not result.ok
    assert [(c.name, c.state) for c in result.checkups] == [("environment", "failed")] * 2
    assert "NO_SUCH_URI" in result.checkups[0].text
    assert result.abilities == ()


def test_a_server_that_is_not_there_fails_the_catalog_alone(project: Embedded) -> None:
    environments(
        project,
        "  prod:\n    catalog: {type: rest, uri: 'http://127.0.0.1:9', token: hushhush}\n",
    )
    result = visit(project)
    states = {c.name: c.state for c in result.checkups}
    assert (states["catalog"], states["storage"], states["history"]) == ("failed", "skipped", "skipped")
    assert states["java"] == "ok"
    assert of(result, "catalog")[0].hint is not None
    assert "hushhush" not in repr(result)
    assert result.catalog == "rest"
    assert result.abilities == capability_statuses(CAPABILITY_MATRIX["rest"])


def test_a_library_that_is_missing_is_named_with_the_line_that_installs_it(
    project: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments(project, "  prod:\n    catalog: {type: sql, uri: 'postgresql://127.0.0.1/lake', user: me}\n")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    (catalog,) = of(visit(project), "catalog")
    assert (catalog.state, catalog.hint) == ("failed", extra_hint("postgres"))


def test_jars_that_are_not_there_yet_are_a_note_and_a_folder_without_them_a_failure(
    project: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environments(
        project,
        f"  here:\n    catalog: {{type: sqlite}}\n    spark: {{conf: {{spark.jars.ivy: {tmp_path}/ivy}}}}\n",
    )
    (found,) = of(visit(project), "jars")
    assert found.state == "note"
    assert "iceberg-spark-runtime" in found.text
    assert JARS_VARIABLE in (found.hint or "")
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))
    (found,) = of(visit(project), "jars")
    assert found.state == "failed"


def test_two_environments_in_one_place_are_told(project: Embedded) -> None:
    environments(
        project,
        "  a: {catalog: {name: lake, type: sqlite, uri: lake.db}}\n"
        "  b: {catalog: {name: lake, type: sqlite, uri: lake.db}}\n"
        "  c: {catalog: {name: lake, type: sqlite, uri: other.db, warehouse: other}}\n"
        "default_environment: a\n",
    )
    notes = [c.text for c in of(visit(project), "environment") if c.state == "note"]
    assert len(notes) == 1
    assert "`a` and `b` share one catalog and one history" in notes[0]
    assert [c.state for c in of(visit(project, "c"), "environment")] == ["ok"]


@pytest.mark.parametrize("kind", CAPABILITY_MATRIX)
def test_every_ability_has_words(kind: str) -> None:
    found = capability_statuses(CAPABILITY_MATRIX[kind])
    assert len({a.name for a in found}) == len(found)
    assert all(a.text for a in found)


def test_the_command_answers_people_and_programs(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["doctor"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "✓ java: " in out
    assert "Capabilities of catalog kind `sqlite`:" in out
    assert out.splitlines()[-1].endswith("all checks passed.")
    monkeypatch.setenv(JARS_VARIABLE, str(project.folder / "none"))
    assert main(["doctor", "--format", "json"]) == ExitCode.ERROR
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert document["ok"] is False
