"""``test`` without Spark: its files, what is wrong with them, and how rows that differ are shown."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest

from icemigrate.commands.check import check
from icemigrate.commands.test import row_differences, scratch_project
from icemigrate.commands.test_files import find_tests
from icemigrate.errors import Mistakes, UsageError
from icemigrate.files.read.migration_test_file import GeneratedRows
from icemigrate.project import Project, choose_environment, open_project
from icemigrate.render.formats import render
from icemigrate.results.migration_test_results import CaseResult, MigrationTestsResult
from tests.support.embedded_project import Embedded

RENAME = "tables: [{name: demo.events, renames: {kind: source}}]\n"
EVENTS = """\
namespaces: [demo]
tables:
  - name: demo.events
    columns: [{name: id, type: long}, {name: kind, type: string}]
  - name: demo.shapes
    columns: [{name: shape, type: variant}]
    format_version: 3
"""


@pytest.fixture
def market(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    text = "project: market\nenvironments: {local: {catalog: {type: sqlite}}}\ndefault_environment: local\n"
    (tmp_path / "icemigrate.yaml").write_text(text, encoding="utf-8")
    Embedded(tmp_path).write("0001_events.yaml", EVENTS)
    Embedded(tmp_path).write("0002_rename.yaml", RENAME)
    return open_project(tmp_path)


def write(market: Project, text: str, name: str = "cases.yaml") -> Path:
    path = market.migrations_dir / "tests" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def mistakes(market: Project, text: str) -> list[str]:
    write(market, text)
    with pytest.raises(Mistakes) as caught:
        find_tests(market, ())
    return [str(d).partition("\n")[0] for d in caught.value.diagnostics]


GOOD = """\
tests:
  - name: the rename keeps the values
    version: 2
    given: {demo.events: [{id: 1, kind: opened}, {id: 2}]}
    expect: {demo.events: [{id: 1, source: opened}, {id: 2, source: null}]}
    rollback: true
    after_rollback: {demo.events: {rows: [{kind: opened}], ordered: true}}
  - name: rows of files
    version: "0002"
    from: 1
    given: {demo.events: {file: rows.csv}}
    expect: {demo.events: {file: rows.jsonl}}
    queries: [{sql: "select count(*) as n from demo.events", rows: [{n: 2}]}]
"""


GENERATED = """\
tests:
  - name: generated rows return
    version: 2
    given: {demo.events: {generate: {rows: 1000, seed: 7}}}
    rollback: true
    after_rollback: {demo.events: given}
"""


def test_tests_are_read_with_their_files(market: Project) -> None:
    write(market, GOOD)
    write(market, 'id,kind\n1,"a, b"\n2,\n', "rows.csv")
    write(market, '{"id": 1, "source": "a, b"}\n{"id": 2}\n', "rows.jsonl")
    first, second = find_tests(market, ()).tests
    assert (first.version, first.start) == ("0002", "0001")
    assert first.test.given["demo.events"].rows == ({"id": "1", "kind": "opened"}, {"id": "2"})
    assert second.test.given["demo.events"].rows == ({"id": "1", "kind": "a, b"}, {"id": "2", "kind": None})
    assert second.test.expected["demo.events"].rows == ({"id": "1", "source": "a, b"}, {"id": "2"})
    write(market, GENERATED)
    (third,) = find_tests(market, ()).tests
    assert third.test.given["demo.events"].generated == GeneratedRows(1000, 7)
    assert third.test.after_rollback["demo.events"].as_given
    write(market, GOOD)
    only = find_tests(market, ("files",))
    assert ([one.test.name for one in only.tests], only.left_out) == (["rows of files"], 1)
    with pytest.raises(UsageError, match="no test has `nothing`"):
        find_tests(market, ("nothing",))


def test_check_leaves_the_folder_of_tests_alone(market: Project) -> None:
    write(market, GOOD)
    assert [d.code for d in check(market).diagnostics if d.code == "folder-not-read"] == []


def test_all_mistakes_of_a_file_are_reported_with_their_positions(market: Project) -> None:
    wrong = GOOD.replace("kind: opened}, {id: 2", "kimd: opened}, {id: 2").replace(
        'version: "0002"', "version: 7"
    )
    assert mistakes(market, wrong) == [
        "migrations/tests/cases.yaml:4:35: error: `demo.events` has no column `kimd` at this version "
        "[unknown-column]",
        "migrations/tests/cases.yaml:9:14: error: no migration has the version `7` [unknown-version]",
    ]
    assert mistakes(market, "tests: [{name: a, version: 2, expects: {}}]\n") == [
        "migrations/tests/cases.yaml:1:31: error: `expects` is not a key of a test [unknown-key]"
    ]
    assert mistakes(
        market, "tests: [{name: a, version: 2}, {name: a, version: 2, after_rollback: {demo.events: []}}]"
    ) == [
        "migrations/tests/cases.yaml:1:9: error: the test `a` expects nothing [missing-key]",
        "migrations/tests/cases.yaml:1:32: error: two tests have the name `a` [listed-twice]",
        "migrations/tests/cases.yaml:1:84: error: `after_rollback` has no meaning without a rollback "
        "[conflicting-keys]",
    ]


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("given: {demo.events: {file: ../../../outside.csv}}", "outside-repository"),
        ("given: {demo.events: {file: /etc/passwd.csv}}", "outside-repository"),
        ("given: {demo.events: {file: ../../../outside.parquet}}", "outside-repository"),
        ("given: {demo.events: {file: missing.csv}}", "unreadable-file"),
        ("given: {demo.events: {file: missing.parquet}}", "unreadable-file"),
        ("given: {demo.events: {file: cases.yaml}}", "bad-value"),
        ("given: {demo.events: {file: ragged.csv}}", "bad-value"),
        ("given: {demo.nothing: []}", "unknown-table"),
        ("queries: [{sql: drop table demo.events, rows: []}]", "bad-expression"),
        ("queries: [{sql: select 1; select 2, rows: []}]", "bad-expression"),
        ("queries: [{sql: select 1) union (select 2, rows: []}]", "bad-expression"),
        ("from: 2", "bad-value"),
        ("given: {demo.events: 1}", "wrong-type"),
        ("given: {demo.events: given}", "wrong-type"),
        ("given: {demo.events: {generate: {rows: 0}}}", "out-of-range"),
        ("given: {demo.events: {generate: {seed: 1}}}", "missing-key"),
        ("given: {demo.events: {generate: {rows: 1}, file: a.csv}}", "conflicting-keys"),
        ("given: {demo.shapes: {generate: {rows: 1}}}", "bad-value"),
        ("rollback: true, after_rollback: {demo.events: given}", "missing-key"),
        ("rollback: true, after_rollback: {demo.events: gven}", "bad-value"),
    ],
)
def test_a_test_that_cannot_run_is_refused(market: Project, case: str, code: str) -> None:
    write(market, "id,kind\n1\n", "ragged.csv")
    found = mistakes(market, f"tests: [{{name: a, version: 2, expect: {{demo.events: []}}, {case}}}]\n")
    assert [one.rpartition("[")[2] for one in found] == [f"{code}]"]
    assert found[0].startswith("migrations/tests/cases.yaml:1:")


def test_a_project_without_tests_says_where_they_go(market: Project) -> None:
    with pytest.raises(UsageError, match="there are no tests in `migrations/tests`"):
        find_tests(market, ())


def test_the_catalog_of_a_test_is_in_its_own_folder(market: Project, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    scratch = scratch_project(market, folder, 3)
    environment = choose_environment(scratch, None, {})
    assert (environment.catalog.name, environment.catalog.uri) == ("test3", str(folder / "catalog.db"))
    assert environment.catalog.warehouse == str(folder / "warehouse")


def test_rows_that_differ_are_shown() -> None:
    old, new = [("1", "a"), ("2", None), ("2", None)], [("2", None), ("1", "a"), ("3", "c")]
    assert list(row_differences("expect: t", ("id", "x"), old, [*reversed(old)], ordered=False)) == []
    assert list(row_differences("expect: t", ("id", "x"), old, new, ordered=False)) == [
        "expect: t: expected 3 rows, found 3; they differ\n    id | x\n  - 2 | null\n  + 3 | c"
    ]
    assert list(row_differences("q", ("id", "x"), old[:2], [old[0]], ordered=True)) == [
        "q: expected 2 rows, found 1; they differ from row 2 on\n    id | x\n  - 2 | null"
    ]
    (many,) = row_differences("q", ("id",), [], [(str(n),) for n in range(30)], ordered=False)
    assert many.splitlines()[-1] == "  + … 10 more"


RESULT = MigrationTestsResult(
    "market",
    (
        CaseResult("migrations/tests/a.yaml", 2, "kept <values>", "0002", "passed", (), 900),
        CaseResult(
            "migrations/tests/a.yaml", 9, "lost", "0002", "failed", ("expect: t: differ\n  - 1",), 1000
        ),
        CaseResult("migrations/tests/b.yaml", 2, "broken", "0003", "error", ("version 0003: no",), 10),
    ),
    left_out=2,
    spark_start_ms=5000,
)


def test_the_text_names_each_test_and_what_differs() -> None:
    assert render(RESULT) == dedent(
        """\
        passed  migrations/tests/a.yaml:2  kept <values>  0.9 s
        failed  migrations/tests/a.yaml:9  lost  1.0 s
            expect: t: differ
              - 1
        error  migrations/tests/b.yaml:2  broken  0.0 s
            version 0003: no

        3 tests in 6.9 s: 1 passed, 2 failed, 2 left out. The start of Spark took 5.0 s.
        """
    )


def test_junit_has_a_case_for_each_test() -> None:
    root = ElementTree.fromstring(render(RESULT, "junit"))
    counts = {"tests": "3", "failures": "1", "errors": "1", "time": "6.910"}
    assert root.attrib == {"name": "icemigrate test", **counts}
    cases = list(root.iter("testcase"))
    assert [case.get("name") for case in cases] == ["kept <values>", "lost", "broken"]
    assert [child.tag for case in cases for child in case] == ["failure", "error"]
    assert cases[0].get("time") == "0.900"


def test_check_reports_what_is_wrong_with_tests(market: Project) -> None:
    write(market, "tests: [{name: a, version: 2, expect: {demo.events: []}}]\n", "good.yaml")
    write(market, "tests: [{name: a, version: 2, expects: {}}]\n", "keys.yaml")
    write(market, "tests: [{name: a, version: 9, expect: {demo.events: []}}]\n", "version.yaml")
    write(market, "tests: [\n", "syntax.yaml")
    places = [(Path(d.place.file), d.code) for d in check(market).diagnostics if d.place is not None]
    found = {file.name: code for file, code in places if file.parent.name == "tests"}
    assert found == {
        "keys.yaml": "unknown-key",
        "version.yaml": "unknown-version",
        "syntax.yaml": "yaml-syntax",
    }


def test_check_reads_tests_beside_a_broken_migration(market: Project) -> None:
    write(market, "tests: [{name: a, version: 2, expects: {}}]\n")
    Embedded(market.root).write("0002_rename.yaml", "tables: [{name: demo.events, renames: {nope: x}}]\n")
    codes = [d.code for d in check(market).diagnostics]
    assert "unknown-key" in codes
    assert len(codes) > 1
