"""Branches and tags in ``check``, and in ``plan`` where the tables have no snapshot yet."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from icemigrate.commands.check import check
from icemigrate.commands.plan import plan
from icemigrate.commands.show import show
from icemigrate.project import open_project
from icemigrate.render.formats import render

COLUMNS = "columns: [{name: id, type: long}]"
AUDIT = "tags: {audit: {retention: {max_age: 30d}}}, branches: {dev: {}}"


def codes(folder: Path, *migrations: str, header: str = "") -> list[str]:
    (folder / "migrations").mkdir()
    for number, text in enumerate(migrations, start=1):
        (folder / "migrations" / f"{number}_step.yaml").write_text(
            f"{header}tables: [{{name: db.t, {text}}}]\n"
        )
    return [d.code for d in check(open_project(folder)).diagnostics if not d.code.startswith("IM")]


def test_a_tag_of_a_table_that_was_made_before(tmp_path: Path) -> None:
    assert codes(tmp_path, COLUMNS, AUDIT) == []


def test_a_tag_of_a_table_that_is_renamed_with_it(tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "1_a.yaml").write_text(f"tables: [{{name: db.t, {COLUMNS}}}]")
    (tmp_path / "migrations" / "2_b.yaml").write_text(
        f"tables: [{{name: db.u, renamed_from: db.t, {AUDIT}}}]"
    )
    assert {d.code for d in check(open_project(tmp_path)).diagnostics} <= {"IM102"}


@pytest.mark.parametrize(
    "migrations",
    [
        (f"{COLUMNS}, {AUDIT}",),
        (COLUMNS, AUDIT),
        (f"{COLUMNS}, {AUDIT}", "tags: {audit: {retention: {max_age: 9d}}}", "tags: {audit: null}"),
        (COLUMNS, AUDIT, "branches: {dev: null}, tags: {audit: null}"),
    ],
)
def test_check_and_plan_agree_on_references_of_a_table_without_rows(
    tmp_path: Path, migrations: tuple[str, ...]
) -> None:
    assert codes(tmp_path, *migrations, header="allow: [destructive]\nbecause: too many\n") == []
    planned = plan(open_project(tmp_path))
    assert planned.ready, render(planned)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("branches: {main: {retention: {max_age: 30d}}}", "main-branch"),
        ("tags: {audit: {retention: {max_age: 30s}}}", "age-not-in-minutes"),
    ],
)
def test_what_is_wrong_with_a_reference_of_any_table_is_told(tmp_path: Path, said: str, code: str) -> None:
    assert codes(tmp_path, COLUMNS, said) == [code]


@pytest.mark.parametrize("said", ["{}", "{retention: {snapshots: {keep_at_least: 3}}}"])
def test_the_main_branch_can_be_spoken_of(tmp_path: Path, said: str) -> None:
    assert codes(tmp_path, f"{COLUMNS}, branches: {{main: {said}}}", f"branches: {{main: {said}}}") == []


def test_show_prints_where_branches_and_tags_point(tmp_path: Path) -> None:
    pins = "branches: {dev: {branch: main, retention: {max_age: 30d}}, old: {as_of: 2026-01-31T00:00:00Z}}"
    assert codes(tmp_path, COLUMNS, f"{pins}, tags: {{audit: {{snapshot: 17}}, last: {{}}}}") == []
    shown = yaml.safe_load(show(open_project(tmp_path)))
    for of_one in (shown, yaml.safe_load(show(open_project(tmp_path), "db.t"))):
        (table,) = of_one["tables"]
        assert table["branches"] == {
            "dev": {"branch": "main", "retention": {"max_age": "30d"}},
            "old": {"as_of": "2026-01-31T00:00:00+00:00"},
        }
        assert table["tags"] == {"audit": {"snapshot": 17}, "last": {}}
