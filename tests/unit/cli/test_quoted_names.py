"""Options of `table` with names of columns that are no plain words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from tests.support.table_project import TableProject

UGLY = """\
tables:
  - name: sales.odd
    columns:
      - {name: id, type: long}
      - {name: "`a b`", type: string}
      - {name: "`a,b`", type: string}
      - {name: "`a=b`", type: long}
      - {name: select, type: string}
      - {name: '`say "hi"`', type: string}
      - {name: "`x.y`", type: "struct<`p.q`: string>"}
"""
ROWS = (
    '{"id": 1, "a b": "u", "a,b": "v", "a=b": 3, "select": "s", "say \\"hi\\"": "h", "x.y": {"p.q": "z"}}\n'
)
CHANGED = (
    '{"a b": "u", "a,b": "v", "a=b": 9, "select": "t"}\n{"a b": "n", "a,b": "v", "a=b": 4, "select": null}\n'
)


@pytest.fixture
def odd(tmp_path: Path) -> TableProject:
    """A project with one row in a table of such columns."""
    made = TableProject.create(tmp_path, UGLY)
    (tmp_path / "rows.jsonl").write_text(ROWS, encoding="utf-8")
    assert made.run("table", "insert", "sales.odd", "--data", str(tmp_path / "rows.jsonl")) == ExitCode.OK
    return made


def test_rows_by_quoted_names(odd: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    data = odd.folder / "changed.jsonl"
    data.write_text(CHANGED, encoding="utf-8")
    sets = ('"a=b"="a=b" + 1', "select=upper(\"select\")", '`say "hi"`=\'a=b\'')  # fmt: skip
    options = [part for text in sets for part in ("--set", text)]
    assert odd.run("table", "update", "sales.odd", *options, "--where", "\"a b\" = 'u'") == ExitCode.OK
    capsys.readouterr()
    shown = ("--columns", '"a=b",select,"say ""hi""",`x.y`.`p.q`', "--format", "json")
    assert odd.run("table", "query", "sales.odd", *shown) == ExitCode.OK
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"a=b": 4, "select": "S", 'say "hi"': "a=b", "`x.y`.`p.q`": "z"}
    assert odd.run("table", "upsert", "sales.odd", "--data", str(data), "--on", '"a b",`a,b`') == ExitCode.OK
    capsys.readouterr()
    assert (
        odd.run("table", "query", "sales.odd", "--columns", '"a b","a=b"', "--format", "json") == ExitCode.OK
    )
    assert {(row["a b"], row["a=b"]) for row in json.loads(capsys.readouterr().out)} == {("u", 9), ("n", 4)}
    with odd.tables() as tables:
        _marker, first, *_ = tables.load("sales.odd").metadata["snapshots"]
    key = ("--from", str(first["snapshot-id"]), "--key", '"a b","a,b"', "--format", "json")
    assert odd.run("table", "compare", "sales.odd", *key) == ExitCode.OK
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert (rows["added"], rows["removed"], rows["changed"]) == (1, 0, 1)


def test_columns_by_quoted_names(odd: TableProject) -> None:
    def names() -> list[str]:
        with odd.tables() as tables:
            metadata = tables.load("sales.odd").metadata
        (schema,) = (s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])
        return [field["name"] for field in schema["fields"]]

    assert odd.run("table", "add-column", "sales.odd", '"new, one"', "int", "--after", '"a,b"') == ExitCode.OK
    assert names()[2:4] == ["a,b", "new, one"]
    assert odd.run("table", "rename-column", "sales.odd", '"new, one"', '"is ""new"""') == ExitCode.OK
    assert names()[3] == 'is "new"'
    drop = ("table", "drop-column", "sales.odd", '`is "new"`', "--allow", "destructive")
    assert odd.run(*drop) == ExitCode.OK
    assert 'is "new"' not in names()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("query", "t.u", "--columns", '"a,b'), '`--columns`: the quote at character 1 of `"a,b` is not'),
        (("compare", "t.u", "--from", "1", "--key", "a,"), "`--key`: a name is missing in `a,`"),
        (("update", "t.u", "--set", '"a"b=1', "--where", "true"), "`--set`: text after a closing quote in"),
        (("update", "t.u", "--set", "a", "--where", "true"), "`--set`: `a` is not `COLUMN=EXPRESSION`"),
        (("update", "t.u", "--set", "a=1", "--set", '"a"=2', "--where", "true"), "column `a` is set twice"),
        (("upsert", "t.u", "--data", "x.csv", "--on", ""), "`--on`: a name is missing in"),
        (("upsert", "t.u", "--data", "x.csv", "--on", 'a,"a"'), "`--on`: column `a` is given twice"),
        (("drop-column", "t.u", 'a"b'), "`COLUMN`: the quote at character 2"),
        (("rename-column", "t.u", "a", "`b"), "`NEW`: the quote at character 1"),
        (("add-column", "t.u", "a", "int", "--after", '""'), "`--after`: the quote at character 1"),
    ],
)  # fmt: skip
def test_what_is_no_name_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: p\n", encoding="utf-8")
    assert TableProject(tmp_path).run("table", *arguments) == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert problem in shown
    assert shown.count("error:") == 1
