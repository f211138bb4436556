"""Every rule against its documents, its page and the others."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.check import check
from icemigrate.diagnostics import Severity
from icemigrate.errors import ExitCode
from icemigrate.project import open_project
from icemigrate.rules import RULES, RULES_BY_NAME, find_rule
from icemigrate.rules.rule import Rule, RuleLevel
from tests.checks.corpus import Case, all_cases, found, of_last

ROOT = Path(__file__).resolve().parents[2]
CASES = all_cases()
SECTIONS = ("Why", "Bad", "Good", "Instead")
FILES = sorted(path.stem for path in (ROOT / "icemigrate" / "rules").glob("im*.py"))
MODULES = [importlib.import_module(f"icemigrate.rules.{name}") for name in FILES]
each = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
# Those that look at SQL have their documents in tests/impact.
each_of_tables = pytest.mark.parametrize(
    "rule", [rule for rule in RULES if "```sql\n" not in rule.page], ids=lambda rule: rule.id
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.title}")
def test_what_is_told(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(of_last(tmp_path, case)) == case.says["told"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.title}")
def test_a_rule_finds_nothing_where_no_part_changes_that_it_inspects(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Rule, "is_needed", lambda _rule, _parts: True)
    assert list(of_last(tmp_path, case)) == case.says["told"]


@each_of_tables
def test_a_rule_has_documents_in_which_it_speaks_and_in_which_it_is_silent(rule: Rule) -> None:
    own = [case for case in CASES if case.rule == rule.id]
    speaks = [any(f" {rule.id}: " in line for line in case.says["told"]) for case in own]
    assert {True, False} == set(speaks)


def test_titles_are_unique() -> None:
    titles = [(case.rule, case.title) for case in CASES]
    assert len(set(titles)) == len(titles) >= 60


def _blocks(rule: Rule) -> Mapping[str, tuple[str, ...]]:
    """The migrations of the page's bad and good example."""
    out = {}
    for section in ("Bad", "Good"):
        block = re.search(rf"^## {section}\n\n```yaml\n(.*?)```$", rule.page, re.MULTILINE | re.DOTALL)
        assert block is not None, f"{rule.id} has no block `{section}`"
        out[section] = tuple(block[1].split("---\n"))
    return out


def _project(rule: Rule) -> str:
    """The project file that the page shows, for a rule that finds nothing without it."""
    tables = re.search(r"^```yaml\n(pipeline:\n.*?)```$", rule.page, re.MULTILINE | re.DOTALL)
    block = re.search(r"^```yaml\n(rules:\n.*?)```$", rule.page, re.MULTILINE | re.DOTALL)
    rules = block[1] if block and rule.level in (RuleLevel.OFF, RuleLevel.ERROR) else ""
    return rules + (tables[1] if tables else "")


@each_of_tables
def test_the_bad_example_is_found_and_the_good_one_is_not(rule: Rule, tmp_path: Path) -> None:
    told = {}
    for section, migrations in _blocks(rule).items():
        (folder := tmp_path / section).mkdir()
        diagnostics = found(folder, migrations, _project(rule))
        last = f"{len(migrations):04}_step.yaml"
        told[section] = {d.code for d in diagnostics if d.place and d.place.file.endswith(last)}
        others = [d for d in diagnostics if d.severity is Severity.ERROR and d.code != rule.id]
        assert others == [], "an example is a sound migration but for what it shows"
    assert rule.id in told["Bad"]
    assert rule.id not in told["Good"]


@each
def test_a_page_says_why_and_what_to_do(rule: Rule) -> None:
    first, *rest = rule.page.splitlines()
    assert first.endswith(".")
    assert tuple(line[3:] for line in rest if line.startswith("## ")) == SECTIONS


@each
def test_a_rule_is_called_as_its_file(rule: Rule) -> None:
    assert re.fullmatch(r"IM[1-9]\d\d", rule.id)
    own = [m for m in MODULES if m.RULE is rule]
    assert [m.__name__.rpartition(".")[2][:6] for m in own] == [f"im{rule.id[2:]}_"]
    assert rule.docstring is own[0].__doc__
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert find_rule(rule.id) is find_rule(rule.name) is find_rule(rule.id.lower()) is rule


def test_rules_stand_in_the_order_of_their_ids() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert len(RULES_BY_NAME) == 2 * len(RULES)
    assert [module.RULE for module in MODULES] == list(RULES)


def test_only_what_is_dangerous_is_an_error() -> None:
    """What the project itself forbids, what makes every write fail, and queries of its own that fail."""
    assert [rule.id for rule in RULES if rule.level is RuleLevel.ERROR] == ["IM111", "IM201", "IM502"]


def test_the_reference_project_has_no_errors() -> None:
    told = check(open_project(ROOT)).diagnostics
    assert [d for d in told if d.severity is Severity.ERROR] == []
    assert {d.code for d in told} <= {rule.id for rule in RULES}


@each
def test_explain_shows_the_page(rule: Rule, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", rule.name]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith(
        f"# {rule.id} {rule.name}\n\n{rule.title}.\n\nDefault level: `{rule.level.value}`."
    )
    assert all(f"\n## {section}\n" in shown for section in SECTIONS)
    assert all(f"- `{option.key}`: " in shown for option in rule.options)


def test_every_rule_has_its_page_and_no_page_is_left_over() -> None:
    pages = {path.name for path in (ROOT / "docs" / "rules").iterdir()}
    assert pages == {f"{rule.id}.md" for rule in RULES}
