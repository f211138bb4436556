"""SQL that uses what migrations change: what is told of it, where, and that nothing else is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icemigrate.cli import main
from icemigrate.commands import sql_findings
from icemigrate.commands.check import check
from icemigrate.commands.comparison_base import GitBase
from icemigrate.errors import ExitCode, extra_hint
from icemigrate.project import open_project
from icemigrate.rules import RULES
from icemigrate.rules.rule import Rule
from tests.impact.corpus import BEFORE, CHANGE, FILES, Case, cases, told
from tests.support.git_projects import GitProject

CASES = [case for file in FILES for case in cases(file)]
ROOT = Path(__file__).resolve().parents[2]
TRADES = """tables:
  - name: market_data.trades
    columns: [{name: id, type: long}, {name: volume, type: long}, {name: qualifiers, type: string}]
"""
RENAME = """allow: [destructive]
tables: [{name: market_data.trades, renames: {volume: quantity}, drop_columns: [qualifiers]}]
"""
MAIN = GitBase("main", "main")
OF_SQL = [rule for rule in RULES if "```sql\n" in rule.page]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_is_told(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(told(case, tmp_path)) == case["told"]


def test_there_are_enough_documents() -> None:
    titles = [case["case"] for case in CASES]
    assert len(set(titles)) == len(titles) >= 60
    assert sum(not case["told"] for case in CASES) >= 8, "what breaks nothing is told of too little"


def project(folder: Path, sql: str, *migrations: str, said: str = "") -> None:
    """A project with one file of SQL."""
    (folder / "migrations").mkdir(parents=True, exist_ok=True)
    (folder / "icemigrate.yaml").write_text(f"project: shop\nimpact: [sql]\n{said}")
    for number, text in enumerate(migrations, start=1):
        (folder / "migrations" / f"{number:04}_step.yaml").write_text(text)
    (folder / "sql").mkdir()
    (folder / "sql" / "a.sql").write_text(sql)


@pytest.mark.parametrize("rule", OF_SQL, ids=lambda rule: rule.id)
def test_the_bad_example_is_found_and_the_good_one_is_not(rule: Rule, tmp_path: Path) -> None:
    for section, is_told in (("Bad", True), ("Good", False)):
        block = re.search(
            rf"^## {section}\n\n```yaml\n(.*?)```\n\n```sql\n(.*?)```$", rule.page, re.MULTILINE | re.DOTALL
        )
        assert block is not None
        shop = GitProject.make(tmp_path / section)
        before, change = block[1].split("---\n")
        project(shop.folder, block[2], before, said="rules: {IM201: off}\n")
        shop.commit()
        (shop.folder / "migrations" / "0002_step.yaml").write_text(change)
        found = check(open_project(shop.folder), MAIN).diagnostics
        assert (rule.id in {d.code for d in found}) is is_told, section


def test_a_wider_type_is_told_under_review_alone(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    wider = "tables: [{name: shop.orders, columns: [{name: total, type: long}]}]"
    project(shop.folder, "SELECT total, note FROM shop.orders", BEFORE, CHANGE.replace("total", "id"))
    shop.commit()
    (shop.folder / "migrations" / "0003_wider.yaml").write_text(wider)
    opened = open_project(shop.folder)
    assert {d.code for d in check(opened, MAIN).diagnostics if "sql" in str(d.place)} == {"IM113"}
    assert {d.code for d in check(opened).diagnostics if "a.sql" in str(d.place)} == {"IM111"}


def test_a_column_that_is_retyped_is_told_under_review(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    retype = "{total: {to: string, using: cast(total as string)}}"
    project(shop.folder, "SELECT total FROM shop.orders", BEFORE)
    shop.commit()
    (shop.folder / "migrations" / "0002_retype.yaml").write_text(
        f"allow: [destructive]\ntables: [{{name: shop.orders, retype: {retype}}}]\n"
    )
    found = [d for d in check(open_project(shop.folder), MAIN).diagnostics if "a.sql" in str(d.place)]
    assert [(d.code, "which 0002_retype.yaml changes to `string`" in d.message) for d in found] == [
        ("IM113", True)
    ]


def test_a_file_of_the_base_is_told_where_a_new_migration_breaks_it(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    project(shop.folder, "SELECT total FROM shop.orders", BEFORE)
    shop.commit()
    (shop.folder / "migrations" / "0002_change.yaml").write_text(CHANGE)
    found = check(open_project(shop.folder), MAIN).diagnostics
    assert [d.place.line for d in found if d.code == "IM111" and d.place] == [1]


def test_without_sqlglot_one_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, "SELECT total FROM shop.orders", BEFORE, CHANGE)
    monkeypatch.setattr(sql_findings, "is_sqlglot_installed", lambda: False)
    found = [d for d in check(open_project(tmp_path)).diagnostics if not d.code.startswith("IM")]
    assert [(d.code, d.hint) for d in found] == [("missing-extra", extra_hint("impact"))]
    assert found[0].place is not None
    assert (found[0].place.line, found[0].place.column) == (2, 10)


def test_it_is_loaded_only_where_sql_is_named(tmp_path: Path) -> None:
    project(tmp_path, "SELECT total FROM shop.orders", BEFORE, CHANGE)
    program = (
        "import sys; from icemigrate.cli import main; main(['check']); "
        "print('sqlglot' in sys.modules, 'icemigrate.sql_impact' in sys.modules)"
    )
    seen = []
    for text in ("impact: [sql]\n", ""):
        (tmp_path / "icemigrate.yaml").write_text(text)
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        seen.append(ran.stdout.splitlines()[-1])
    assert seen == ["True True", "False False"]


def test_every_output_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, "SELECT id,\n  total FROM shop.orders\n", BEFORE, CHANGE)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    names = ("json", "markdown", "gitlab", "junit", "sarif")
    outputs = [f"--format={name}=out.{name}" for name in names]
    assert main(["check", "--format=github", *outputs, "--git-base=none"]) == ExitCode.FINDINGS
    assert "::error file=sql/a.sql,line=2,col=3,title=icemigrate IM111::" in capsys.readouterr().out
    texts = {name: (tmp_path / f"out.{name}").read_text() for name in names}
    assert "sql/a.sql" in texts["markdown"]
    assert any(
        (d["code"], d["file"], d["line"], d["column"]) == ("IM111", "sql/a.sql", 2, 3)
        for d in json.loads(texts["json"])["diagnostics"]
    )
    assert any(one["location"]["path"] == "sql/a.sql" for one in json.loads(texts["gitlab"]))
    assert any("sql/a.sql" in str(case.attrib) for case in ElementTree.fromstring(texts["junit"]).iter())
    run = json.loads(texts["sarif"])["runs"][0]
    found = [one for one in run["results"] if one["ruleId"] == "IM111"]
    region = found[0]["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"]) == (2, 3)


def test_the_page_shows_what_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, "", TRADES, RENAME)
    (tmp_path / "migrations" / "0002_step.yaml").rename(tmp_path / "migrations" / "0002_rename.yaml")
    (tmp_path / "icemigrate.yaml").write_text(
        "impact: [models, jobs]\nrules: {IM101: off, IM102: off, IM104: off}\n"
    )
    for name, text in {
        "models/stg_trades.sql": "select id,\n       t.volume as size\n"
        "from {{ source('market_data', 'trades') }} t",
        "models/daily.sql": "select sum(size) from {{ ref('stg_trades') }}",
        "jobs/load.py": 'spark.sql("""\n    INSERT INTO market_data.trades\n        (id,\n'
        + " " * 19
        + 'qualifiers)\n    VALUES (1, 2)""")',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == ExitCode.FINDINGS
    page = (ROOT / "docs" / "pull-requests.md").read_text(encoding="utf-8")
    shown = re.search(r"^    jobs/load.py.*?^$", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert textwrap.dedent(shown[0]) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (
            "SELECT 1 FROM shop.orders WHERE "
            + " OR ".join(f"id = {n}" for n in range(3000))
            + " OR total = 1",
            "IM111",
        ),
        (" UNION ALL ".join(["SELECT total FROM shop.orders"] * 3000), "IM114"),
        ("SELECT " + "(" * 3000 + "total" + ")" * 3000 + " FROM shop.orders", "IM114"),
    ],
    ids=["terms", "unions", "brackets"],
)
def test_what_a_program_wrote_is_searched_or_told(sql: str, code: str, tmp_path: Path) -> None:
    project(tmp_path, sql, BEFORE, CHANGE)
    found = [
        d for d in check(open_project(tmp_path)).diagnostics if d.place and d.place.file.endswith("a.sql")
    ]
    assert {d.code for d in found} == {code}


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_wrongly_is_told_or_let_be(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever becomes of a file, there is a finding with a place in it, or none."""
    case = data.draw(st.sampled_from([case for case in CASES if "change" not in case]))
    files = dict(case["files"])
    name = data.draw(st.sampled_from(sorted(files)))
    text = files[name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 6)))
    piece = data.draw(
        st.sampled_from(
            (
                "",
                "'",
                '"',
                "`",
                "(",
                ")",
                "{{",
                "{%",
                "%}",
                "}",
                ";",
                "--",
                "\\",
                "\n",
                ",",
                "SELECT ",
                ".",
                "*",
                "\t表",
            )
        )
    )
    files[name] = text[:start] + piece + text[end:]
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        lines = list(told({**case, "files": files}, folder))
    for line in lines:
        path, number, column = re.match(r"([^:]+):(\d+):(\d+) ", line).groups()  # type: ignore[union-attr]
        shown = (folder / path).read_text(encoding="utf-8").replace("\r\n", "\n").split("\n")
        assert 1 <= int(number) <= len(shown)
        assert 1 <= int(column) <= len(shown[int(number) - 1]) + 1
