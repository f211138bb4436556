"""Limits of what the migrations of one table and of one project may declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.telemetry_tables import migration
from icemigrate.commands.check import check
from icemigrate.commands.plan import plan
from icemigrate.commands.project_files import load_valid_files
from icemigrate.commands.squash import squash
from icemigrate.errors import Mistakes
from icemigrate.files.read import for_each
from icemigrate.files.replay import replay_work
from icemigrate.project import open_project
from icemigrate.project.project_values import Project
from icemigrate.wal import EntryKind


def project(folder: Path, *texts: str, lists: str = "{}") -> Project:
    (folder / "migrations").mkdir()
    (folder / "icemigrate.yaml").write_text(f"project: p\nlists: {lists}\n", encoding="utf-8")
    for number, text in enumerate(texts, start=1):
        (folder / f"migrations/{number:04d}_a.yaml").write_text(text, encoding="utf-8")
    return open_project(folder)


def codes_of(given: Project) -> list[str]:
    return [found.code for found in check(given).diagnostics if found.code.startswith("too-m")]


TENANTS = f"{{tenants: [{', '.join(f't{n}' for n in range(100))}]}}"


def for_tenants(number: int) -> str:
    entry = f"{{name: 'db.${{t}}', for_each: {{t: tenants}}, columns: [{{name: c{number}, type: long}}]}}"
    return f"namespaces: [db]\ntables: [{entry}]\n"


def test_many_migrations_of_a_hundred_tenants_are_read(tmp_path: Path) -> None:
    given = project(tmp_path, *map(for_tenants, range(201)), lists=TENANTS)
    assert sum(len(file.tables) for file in load_valid_files(given)) == 20_100


def test_the_telemetry_of_a_thousand_tenants_has_nine_migrations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A hundredth of everything: ten tenants, and a hundredth of each limit.
    for module, limit in (
        (replay_work, "WORK_LIMIT"),
        (for_each, "ALL_COPIES_LIMIT"),
        (for_each, "ALL_PARTS_LIMIT"),
        (for_each, "ALL_CHARACTERS_LIMIT"),
    ):
        monkeypatch.setattr(module, limit, getattr(module, limit) // 100)
    added = [
        "tables:\n"
        + "".join(
            f"  - {{name: 'otel.${{tenant}}_{kind.value}', for_each: {{tenant: tenants}}, "
            f"columns: [{{name: c{number}, type: string}}]}}\n"
            for kind in EntryKind
        )
        for number in range(8)
    ]
    lists = f"{{tenants: [{', '.join(f't{n}' for n in range(10))}]}}"
    assert codes_of(project(tmp_path, migration({}), *added, lists=lists)) == []


def test_a_project_over_the_limit_is_squashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(for_each, "ALL_COPIES_LIMIT", 250)
    given = project(tmp_path, *map(for_tenants, range(4)), lists=TENANTS)
    assert set(codes_of(given)) == {"too-many-tables"}
    with pytest.raises(Mistakes):
        load_valid_files(given)
    squash(given, "3")
    assert codes_of(given) == []
    assert [len(file.tables) for file in load_valid_files(given)] == [100, 100]


def test_the_limit_grows_with_the_size_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(for_each, "ALL_COPIES_LIMIT", 100)
    given = project(tmp_path, for_tenants(1), for_tenants(2), lists=TENANTS)
    assert codes_of(given) == ["too-many-tables"]
    monkeypatch.setattr(for_each, "LIMITED_BYTES", len(for_tenants(1)))
    assert codes_of(given) == []


PROPERTIES = ", ".join(f"p{n}: x" for n in range(2_000))
WIDE = f"tables: [{{name: db.t, columns: [{{name: a, type: int}}], properties: {{{PROPERTIES}}}}}]"


def described(number: int) -> str:
    return f"tables: [{{name: db.t, description: '{number}'}}]\n"


def test_a_replay_over_the_limit_of_its_work_is_squashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_work, "WORK_LIMIT", 129_000)
    given = project(tmp_path, WIDE, *map(described, range(60)))
    (found,) = check(given).diagnostics
    assert (found.code, str(found.place)[-27:]) == ("too-much-work", "migrations/0028_a.yaml:1:17")
    with pytest.raises(Mistakes) as refused:
        plan(given)
    assert [(d.code, d.place) for d in refused.value.diagnostics] == [(found.code, found.place)]
    squash(given, "50")
    assert codes_of(given) == []
    assert plan(given).plan.migrations[-1].ready


def test_entries_that_change_only_properties_take_less_of_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_work, "WORK_LIMIT", 10_000)
    one = "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n"
    edits = [f"tables: [{{match: db.*, properties: {{p: '{n}'}}}}]\n" for n in range(15)]
    assert codes_of(project(tmp_path, one, *edits)) == []
    (second := tmp_path / "second").mkdir()
    assert codes_of(project(second, one, *map(described, range(15)))) == ["too-much-work"]


def test_the_limit_of_the_work_grows_with_the_size_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = project(tmp_path, WIDE, *map(described, range(60)))
    monkeypatch.setattr(replay_work, "WORK_LIMIT", 200_000)
    assert codes_of(given) == ["too-much-work"]
    monkeypatch.setattr(replay_work, "LIMITED_BYTES", 10_000)
    assert codes_of(given) == []
