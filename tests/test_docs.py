"""The documentation is true: its blocks run, its links lead somewhere, what is made from code is fresh."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path

import pytest

from icemigrate import IcebergManager, Project
from icemigrate.frozen import replace
from scripts.docs import generated
from scripts.docs_reference import VARIABLES, schema_keys
from scripts.docs_traps import TRAPS, untrue
from tests.support.played_documents import (
    PAGES,
    PLAYED,
    ROOT,
    SETTINGS,
    anchors,
    blocks,
    links,
    needs_spark,
    play,
)

QUICK = [page for page in PLAYED if not needs_spark(page)]


@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.name)
def test_blocks_without_spark(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_page(page, tmp_path, monkeypatch)


def play_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play a page; its project must be sound at the end, where it makes one."""
    from icemigrate.commands.check import check
    from icemigrate.project import open_project

    folder = tmp_path / "market"
    folder.mkdir()
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    text = page.read_text(encoding="utf-8")
    shown = difflib.unified_diff(text.splitlines(), play(text, folder).splitlines(), page.name, "now", n=1)
    assert "\n".join(shown) == "", "if the page is to say so: `make docs`"
    if (folder / "migrations").exists():
        assert check(open_project(folder)).ok


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    wrong = []
    for link in links(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            wrong.append(link)
    assert wrong == []


def test_every_page_is_linked_from_the_readme() -> None:
    readme = ROOT / "README.md"
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in links(readme.read_text(encoding="utf-8"))}
    assert [page.name for page in PAGES if page != readme and page not in linked] == []


@pytest.mark.parametrize(("path", "text"), generated().items(), ids=lambda value: getattr(value, "name", ""))
def test_what_is_made_from_code_is_fresh(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "run `make docs`"


def _variables_of_the_code() -> Iterator[str]:
    """Names of variables in the code: words that begin with ICEMIGRATE_, and keys of an environment."""
    for path in (ROOT / "icemigrate").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and re.fullmatch(r"ICEMIGRATE_[A-Z_]*[A-Z]", str(node.value)):
                yield node.value
            elif isinstance(node, ast.Call) and re.search(r"environ(ment)?\.get$", ast.unparse(node.func)):
                yield from (one.value for one in node.args[:1] if isinstance(one, ast.Constant))


def test_every_environment_variable_is_documented() -> None:
    found = set(_variables_of_the_code())
    assert {"ICEMIGRATE_CACHE", "JAVA_HOME", "GITLAB_TOKEN"} <= found
    of_hosts = {name for name in found if name.startswith(("GITHUB_", "GITLAB_", "CI_"))}
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert [name for name in found - of_hosts if f"| `{name}` |" not in page] == []
    assert {name for name in VARIABLES if name.startswith("ICEMIGRATE_")} - found == {"ICEMIGRATE_SOURCE"}


@pytest.mark.parametrize("name", ["migration", "migration-test", "project"])
def test_every_key_has_a_meaning(name: str) -> None:
    assert [path for path, text in schema_keys(name).items() if not text] == []
    deep = {
        "migration": "replaces.digest",
        "migration-test": "tests[].queries[].sql",
        "project": "environments.*.spark.jars",
    }
    assert deep[name] in schema_keys(name)


def test_the_python_api_is_on_its_page_whole() -> None:
    page = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    members = [*vars(Project).items(), *vars(IcebergManager).items()]
    methods = [name for name, value in members if isfunction(value) and name[0] != "_"]
    assert [name for name in methods if f"`{name}(" not in page] == []


def test_pages_have_blocks() -> None:
    found = [b.language for page in PLAYED for b in blocks(page.read_text(encoding="utf-8").splitlines())]
    assert {"yaml", "console", "python", "sql", "text", "sh"} <= set(found)


def test_traps_are_as_their_cases_show_them() -> None:
    assert untrue() == []
    (trap, *_) = TRAPS
    assert untrue([replace(trap, rule="empty-struct")]) == [f"`{trap.case}` does not report empty-struct"]
    assert untrue([replace(trap, case="nowhere")]) == [f"{trap.file} has no case `nowhere`"]
    assert untrue([replace(trap, rule=None)]) == [f"`{trap.case}` reports a problem"]
