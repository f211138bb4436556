"""The manifest of dbt adds to what the files say; an old, broken or hostile one takes nothing away."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from icemigrate.sql_impact import dbt_manifest
from tests.impact.corpus import told

MODEL = "select {{ shop_utils.pick(source('shop', 'orders')) }} from {{ source('shop', 'orders') }}\n"
COMPILED = "select id, total from lake.shop.orders"
PIVOT = "select id, {{ dbt_utils.pivot('note', ['a']) }} from {{ source('shop', 'orders') }} group by id"
MACRO = "{% macro pick(relation) %} id, total {% endmacro %}"


def node(path: str, text: str, compiled: str | None, **more: Any) -> dict[str, Any]:
    """A model in a manifest."""
    return {
        "name": Path(path).stem,
        "package_name": "jaffle",
        "original_file_path": path,
        "schema": "analytics",
        "alias": Path(path).stem,
        "checksum": {"name": "sha256", "checksum": hashlib.sha256(text.strip().encode()).hexdigest()},
        "compiled_code": compiled,
        **more,
    }


def manifest(*nodes: dict[str, Any], **more: Any) -> str:
    """The text of a manifest."""
    written = {f"model.jaffle.{one['name']}": one for one in nodes}
    return json.dumps({"metadata": {"adapter_type": "spark"}, "nodes": written, **more})


def findings(folder: Path, files: dict[str, str], impact: object = "models") -> list[str]:
    """The findings about a dbt project, without their messages."""
    project = {"dbt_project.yml": "name: jaffle\n", **files}
    lines = told({"impact": [impact], "files": project}, folder)
    return [line.split(": ")[0] if " IM" in line else line for line in lines]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_a_column_of_a_packages_macro_is_found(folder: Path) -> None:
    files = {"models/a.sql": MODEL, "target/manifest.json": manifest(node("models/a.sql", MODEL, COMPILED))}
    assert findings(folder, files) == ["models/a.sql:1:11 error IM111"]


def test_without_a_manifest_it_is_in_a_file_that_is_not_read(folder: Path) -> None:
    assert findings(folder, {"models/a.sql": MODEL}) == []


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_argument_that_the_compiled_code_uses_is_found(is_compiled: bool, folder: Path) -> None:
    compiled = "select id, sum(case when note = 'a' then 1 end) from lake.shop.orders group by id"
    text = manifest(node("models/a.sql", PIVOT, compiled if is_compiled else None))
    found = findings(folder, {"models/a.sql": PIVOT, "target/manifest.json": text})
    assert found == ["models/a.sql:1:32 " + ("error IM111" if is_compiled else "warning IM112")]


def test_a_reader_of_a_relation_is_found_through_its_model(folder: Path) -> None:
    stg = "select * from {{ source('shop', 'orders') }}"
    compiled = "select * from lake.shop.orders"
    files = {
        "models/stg.sql": stg,
        "models/board.sql": "select total from analytics.orders_v1",
        "target/manifest.json": manifest(node("models/stg.sql", stg, compiled, alias="orders_v1")),
    }
    assert findings(folder, files) == ["models/board.sql:1:8 error IM111"]


def test_columns_behind_a_macro_reach_the_models_that_read_them(folder: Path) -> None:
    stg = "{{ shop_utils.all_of(source('shop', 'orders')) }}"
    files = {
        "models/stg.sql": stg,
        "models/b.sql": "select total, id from {{ ref('stg') }}",
        "target/manifest.json": manifest(node("models/stg.sql", stg, "select * from lake.shop.orders")),
    }
    assert findings(folder, files) == ["models/b.sql:1:8 error IM111"]


def test_a_source_whose_schema_is_a_template_is_that_of_the_manifest(folder: Path) -> None:
    declared = "sources: [{name: raw, schema: \"{{ env_var('X') }}\", tables: [{name: orders}]}]\n"
    source = {"name": "orders", "source_name": "raw", "schema": "shop", "identifier": "orders"}
    files = {
        "models/sources.yml": declared,
        "models/a.sql": "select total from {{ source('raw', 'orders') }}",
        "target/manifest.json": manifest(sources={"source.jaffle.raw.orders": source}),
    }
    assert findings(folder, files) == ["models/a.sql:1:8 error IM111"]


def test_an_old_manifest_hides_nothing_and_is_reported(folder: Path) -> None:
    new = "select total from {{ source('shop', 'orders') }}"
    files = {"models/a.sql": new, "target/manifest.json": manifest(node("models/a.sql", MODEL, "select 1"))}
    assert findings(folder, files) == [
        "models/a.sql:1:8 error IM111",
        "target/manifest.json:1:1 note stale-manifest: the manifest is not of the present text of "
        "`models/a.sql`: the compiled code is not used",
    ]


@pytest.mark.parametrize("what", ["macro", "caller", "project"])
def test_what_was_changed_after_the_manifest_makes_it_stale(what: str, folder: Path) -> None:
    macros = {
        "macro.jaffle.pick": {
            "name": "pick",
            "package_name": "jaffle",
            "original_file_path": "macros/pick.sql",
            "macro_sql": MACRO if what == "project" else MACRO.replace("total", "note"),
        },
        "macro.jaffle.outer": {"depends_on": {"macros": ["macro.jaffle.pick"]}},
    }
    depends = {"macros": ["macro.jaffle.outer" if what == "caller" else "macro.jaffle.pick"]}
    text = manifest(node("models/a.sql", MODEL, COMPILED, depends_on=depends), macros=macros)
    files = {"models/a.sql": MODEL, "macros/pick.sql": MACRO, "target/manifest.json": text}
    if what == "project":
        (folder / "target").mkdir()
        (folder / "target" / "manifest.json").write_text(text)
        os.utime(folder / "target" / "manifest.json", (1, 1))
        del files["target/manifest.json"]
    assert [line.split()[2] for line in findings(folder, files)] == ["stale-manifest:"]


def test_compiled_code_takes_nothing_away(folder: Path) -> None:
    text = "select {% if a %} total {% else %} 0 as total {% endif %} from {{ source('shop', 'orders') }}"
    files = {
        "models/stg.sql": text,
        "models/b.sql": "select total from {{ ref('stg') }}",
        "target/manifest.json": manifest(node("models/stg.sql", text, "select 0 as total from shop.orders")),
    }
    assert findings(folder, files) == ["models/b.sql:1:8 warning IM112", "models/stg.sql:1:19 error IM111"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '{"metadata": {}, "nodes": 5}',
        "[" * 100_000,
        '{"metadata": {}, "nodes": {"a": ["\\ud800"]}}',
    ],
    ids=["cut", "list", "number", "deep", "surrogate"],
)
def test_a_broken_manifest_gives_one_warning(text: str, folder: Path) -> None:
    files = {"models/a.sql": "select total from shop.orders", "target/manifest.json": text}
    found = findings(folder, files)
    assert [line.split(": ")[0] for line in found] == [
        "models/a.sql:1:8 error IM111",
        "target/manifest.json:1:1 warning unreadable-manifest",
    ]


def test_a_manifest_that_is_too_large_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbt_manifest, "MANIFEST_LIMIT", 50)
    files = {"models/a.sql": MODEL, "target/manifest.json": manifest(node("models/a.sql", MODEL, COMPILED))}
    (line,) = findings(folder, files)
    assert line.startswith("target/manifest.json:1:1 warning too-large")


def test_a_link_out_of_the_repository_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "manifest.json"
    outside.write_text(manifest(node("models/a.sql", MODEL, COMPILED)))
    (folder / "target").mkdir()
    (folder / "target" / "manifest.json").symlink_to(outside)
    (line,) = findings(folder, {"models/a.sql": MODEL})
    assert line.startswith("target/manifest.json:1:1 warning outside-repository")


def test_the_project_file_names_a_manifest(folder: Path) -> None:
    text = manifest(node("models/a.sql", MODEL, COMPILED))
    files = {"models/a.sql": MODEL, "build/m.json": text, "build/b.sql": "select 1"}
    setting = {"paths": ["models", "build"], "manifest": "build/m.json"}
    assert findings(folder, files, setting) == ["models/a.sql:1:11 error IM111"]


def test_a_manifest_that_is_named_and_missing_is_reported(folder: Path) -> None:
    (line,) = findings(folder, {"models/a.sql": MODEL}, {"paths": "models", "manifest": "m.json"})
    assert line.startswith("icemigrate.yaml:")
    assert "unreadable-file: `m.json`: the file cannot be read" in line


def test_no_node_of_a_file_is_left_out(folder: Path) -> None:
    other = "select id from lake.shop.orders"
    nodes = [node("models/a.sql", MODEL, COMPILED if n == 101 else other, name=f"a{n}") for n in range(103)]
    files = {"models/a.sql": MODEL, "target/manifest.json": manifest(*nodes)}
    assert findings(folder, files) == ["models/a.sql:1:11 error IM111"]


@pytest.mark.parametrize(("number", "reads"), [(20, 1), (201, 0)])
def test_a_file_of_macros_is_read_once_and_not_beyond_the_limit(
    number: int, reads: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = dbt_manifest.read_text
    monkeypatch.setattr(
        dbt_manifest, "read_text", lambda file, **more: read.append(file.name) or real(file, **more)
    )
    macros = {
        f"macro.jaffle.m{n}": {
            "name": f"m{n}",
            "package_name": "jaffle",
            "original_file_path": f"{'./' * n}macros/m.sql",
            "macro_sql": MACRO,
        }
        for n in range(number)
    }
    text = manifest(node("models/a.sql", MODEL, COMPILED), macros=macros)
    findings(folder, {"models/a.sql": MODEL, "macros/m.sql": MACRO, "target/manifest.json": text})
    assert len(read) == reads
