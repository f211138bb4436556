"""Hidden characters of files and catalogs: escaped in every output and in every file that is written."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import sys
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

import icemigrate.results
from icemigrate.cli import main
from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.errors import ExitCode
from icemigrate.files.parse.source_text import SourceText, hidden_characters
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import to_data
from icemigrate.files.write.yaml_text import to_yaml
from icemigrate.frozen import Frozen, replace
from icemigrate.hidden_characters import HIDDEN, escape_hidden_characters, escaped_json, escaped_lines
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.render.formats import OUTPUT_FORMATS, names_for, render
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.command_results import (
    CheckResult,
    Failure,
    RulesResult,
)
from icemigrate.results.maintain_results import MaintainResult
from icemigrate.spark_sql.literals import string_sql
from tests.support.embedded_project import Embedded, applied

HOSTILE = (
    "\x1b[2J\x07\x9b31m\u202e\u2066\u2069\u200b\u200d\u200e\u2028\u2029\ufeff\xad\u061c\u00a0\u2060\u3164\ufe00"
    "\U000e0041\U000e0100\ue000"
)
TEXT = f"a{HOSTILE}z"
NO_CONTROLS = "".join(c for c in HOSTILE if unicodedata.category(c) != "Cc")


def quoted(text: str) -> str:
    """The text in double quotes, as YAML has it."""
    return escape_hidden_characters(json.dumps(text, ensure_ascii=False))


def hidden_in(text: str) -> list[str]:
    """The hidden characters of an output, line breaks and tabs aside."""
    return [f"U+{ord(c):04X}" for c in HIDDEN.findall(text) if c not in "\n\t"]


def test_every_character_of_the_categories_is_hidden() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        category = unicodedata.category(character)
        if category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or (
            category == "Zs" and number not in (32, 0x3000)
        ):
            assert HIDDEN.fullmatch(character), f"U+{number:04X}"
        elif category[0] in "LNP":
            assert not HIDDEN.fullmatch(character) or number in (0x115F, 0x1160, 0x3164, 0xFFA0), (
                f"U+{number:04X}"
            )


def test_text_that_is_seen_stays_as_it_is() -> None:
    for text in ("plain", "é café 東京\u3000駅 العربية हिन्दी", "⚠️ ❤️ 👍🏽", "§ ´ → … \\ ' \""):
        assert (escape_hidden_characters(text), escaped_lines(text)) == (text, text)


def test_escapes() -> None:
    assert escape_hidden_characters("a\n\t\x1b\u202e\U000e0041") == r"a\n\t\u001b\u202e\U000e0041"
    assert escaped_lines("a\n\tb\x1b[31m") == "a\n\tb\\u001b[31m"
    assert escaped_lines("\x1b[31mred\x1b[0m\x1b[2J", painted=True) == "\x1b[31mred\x1b[0m\\u001b[2J"
    assert string_sql("a\u202e\U000e0041\n") == r"'a\u202e\U000e0041\n'"


@given(st.text(st.characters(codec="utf-16", categories=None) | st.sampled_from(HOSTILE)))
@example("a" * 2_000)
@example("\x01" * 200)
def test_json_and_yaml_come_back_as_they_were(text: str) -> None:
    document = escaped_json(json.dumps({text: [text]}, indent=1, ensure_ascii=False))
    assert hidden_in(document) == []
    assert json.loads(document) == {text: [text]}
    data = {"tables": [{"name": text, "properties": {text: text, "b": {text: [{text: 1}]}}, text: "c"}]}
    written = to_yaml(data)
    assert hidden_in(written) == []
    assert yaml.safe_load(written) == data
    parsed = parse_yaml(SourceText("it", written))
    assert parsed.node is not None
    assert to_data(parsed.node) == yaml.safe_load(written)


@given(st.text(st.characters(codec="utf-16", categories=None) | st.sampled_from(HOSTILE + "`%:,<&|@\n\r\"'")))
@example("BREAKS-SQL")
def test_every_format_of_findings_escapes(text: str) -> None:
    place = FilePosition(text or "x", 1, 1)
    found = (Diagnostic("bad-name", text, place, text), Diagnostic(text or "x", text))
    for result in (
        CheckResult(project=text, migrations=1, tables=1, diagnostics=found, base=text),
        Failure(error="Fault", message=text, hint=text, exit_code=1, diagnostics=()),
    ):
        for name in names_for(type(result)):
            shown = render(result, name)
            assert hidden_in(shown) == [], name
            if name == "junit":
                ElementTree.fromstring(shown)
            elif name in ("json", "sarif", "gitlab"):
                json.loads(shown)
            elif name == "github":
                assert all(line.startswith("::") for line in shown.splitlines()[:2])


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "check --format markdown",
        "check --format junit",
        "check --format github",
        "squash --through 0002",
    ],
)
def test_a_line_break_in_a_path_is_escaped(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("icemigrate.yaml").write_text("project: shop\nimpact: [sql]\n")
    Path("migrations").mkdir()
    Path("sql").mkdir()
    Path("migrations/0001_a\nz.yaml").write_text(
        "tables: [{name: db.t, columns: [{name: id, type: long}, {name: a, type: int}]}]\n"
    )
    Path("migrations/0002_a\nz.yaml").write_text("tables: [{name: db.t, renames: {a: b}}]\n")
    Path("sql/a\nz.sql").write_text("SELECT a FROM db.t\n")
    if "squash" not in command:
        Path("migrations/0002_ba\nz.yaml").write_text("tables: [{name: db.t, renames: {a: b}}]\n")
    main(command.split())
    out = capsys.readouterr().out
    assert "a\nz" not in out
    assert "a z.yaml" not in out
    assert "a z.sql" not in out
    assert "a\\nz." in out or "a&#92;nz." in out or "a%0Az." in out


MAKE = f"""\
description: {quoted(TEXT)}
tables:
  - name: db.t
    description: {quoted(TEXT)}
    columns: [{{name: id, type: long, description: {quoted(TEXT)}}}]
    properties: {{{quoted("p" + NO_CONTROLS)}: {quoted(TEXT)}}}
"""
ALTER = f"""\
description: {quoted(TEXT)}
tables:
  - name: db.t
    columns:
      - {{name: id, description: {quoted(TEXT + "2")}}}
      - {{name: n, type: string, description: {quoted(TEXT)}}}
    properties: {{q: {quoted(TEXT)}}}
    backfill: [{{set: {{n: {quoted("'" + NO_CONTROLS + "'")}}}}}]
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project with hostile texts in a file that is applied, and in one that is pending."""
    monkeypatch.chdir(tmp_path)
    made = applied(tmp_path, MAKE)
    made.write("0002_alter.yaml", ALTER)
    return made


def outputs(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    """All that a command prints; no command ends by a bug."""
    main(args)
    out, err = capfd.readouterr()
    assert "this is a bug" not in err, err
    return out + err


def test_commands_escape_what_files_and_tables_hold(
    shop: Embedded, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.edit("db.t", {f"theirs{NO_CONTROLS}": TEXT})
    shown = {}
    for command in ("check", "plan", "status", "history", "drift", "rules", "doctor"):
        for name in ("text", "json", *(f.name for f in OUTPUT_FORMATS if command in ("check", "plan"))):
            shown[f"{command} {name}"] = outputs(capfd, command, "--format", name)
    shown["show"] = outputs(capfd, "show")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown["painted"] = re.sub(r"\x1b\[[0-9]{1,2}m", "", outputs(capfd, "plan"))
    monkeypatch.delenv("FORCE_COLOR")
    shown["revert"] = outputs(capfd, "revert", "0001")
    for command, text in shown.items():
        assert hidden_in(text) == [], command
    assert "\\u202e" in shown["plan text"]
    assert "\\u202e" in shown["drift text"]
    assert yaml.safe_load(shown["show"])["tables"][0]["description"] == TEXT


def test_files_that_commands_write_hold_escapes(shop: Embedded, capfd: pytest.CaptureFixture[str]) -> None:
    (shop.folder / "migrations" / "0002_alter.yaml").unlink()
    shop.edit("db.t", {"theirs": TEXT})
    name = TableName.parse("db.new")
    table = shop.engine.tables[TableName.parse("db.t")]
    column = Field(1, "id", Primitive("long"), doc=TEXT)
    new = replace(table, name=name, uuid="", location=None, schema=Schema((column,)), properties={"k": TEXT})
    odd = replace(
        new, name=TableName(("db",), f"odd{NO_CONTROLS}"), schema=Schema((replace(column, name=TEXT),))
    )
    shop.engine.tables |= {name: new, odd.name: odd}
    shop.save()
    assert hidden_in(outputs(capfd, "import")) == []
    outputs(capfd, "drift", "--accept")
    outputs(capfd, "import", "db.new", "--description", TEXT)
    outputs(capfd, "plan", "--out", "plan.json")
    outputs(capfd, "check", "--fix")
    files = [*(shop.folder / "migrations").iterdir(), shop.folder / "plan.json"]
    written = {path.name: path.read_text(encoding="utf-8") for path in files if path.name != "0001_make.yaml"}
    assert len(written) >= 3, written.keys()
    assert [name for name, text in written.items() if hidden_in(text) or hidden_in(name)] == []
    assert "\\u202e" in "".join(written.values())


def test_names_of_files_and_arguments_are_escaped(shop: Embedded, capfd: pytest.CaptureFixture[str]) -> None:
    shop.write(f"0003_odd{NO_CONTROLS}\x1b[2J.yaml", "tabels: []\n")
    (shop.folder / "migrations" / os.fsdecode(b"0004_\xff.yaml")).write_text("tabels: []\n", encoding="utf-8")
    for name in names_for(CheckResult):
        assert hidden_in(outputs(capfd, "check", "--format", name)) == [], name
    for args in (
        ("check", "--project", TEXT),
        ("plan", "--env", TEXT),
        ("plan", "--to", TEXT),
        ("apply", TEXT),
        ("show", TEXT),
        ("explain", TEXT),
        (TEXT,),
        ("check", "--format", TEXT),
        ("new", TEXT),
        ("import", TEXT),
        ("comment", TEXT),
    ):
        assert hidden_in(outputs(capfd, *args)) == [], args


def test_names_with_hidden_characters_are_refused_and_shown_as_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = Embedded(tmp_path)
    for hidden in ("\u200b", "\xad", "\u202e", "\U000e0041", "\u3164", "\xa0"):
        name = quoted(f"i{hidden}d")
        made.write("0001_make.yaml", f"tables: [{{name: db.t, columns: [{{name: {name}, type: long}}]}}]\n")
        assert main(["check"]) == ExitCode.FINDINGS
        out = capfd.readouterr().out
        assert "[unprintable-name]" in out
        assert escape_hidden_characters(hidden) in out
        assert hidden_in(out) == []


@pytest.mark.parametrize(
    ("hidden", "weight"),
    [
        ("\u202e", "error"),
        ("\u2066", "error"),
        ("\U000e0041", "error"),
        ("\u200b", "warning"),
        ("\xad", "warning"),
    ],
)
def test_check_reports_a_hidden_character_in_a_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    hidden: str,
    weight: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    made = Embedded(tmp_path)
    text = f"tables: [{{name: db.t, columns: [{{name: id, type: long}}]}}]  # drops {hidden}nothing\n"
    made.write("0001_make.yaml", text)
    main(["check"])
    out = capfd.readouterr().out
    column = text.index(hidden) + 1
    message = f"the line contains an invisible character: U+{ord(hidden):04X} [hidden-character]"
    assert f"migrations/0001_make.yaml:1:{column}: {weight}: {message}" in out
    assert main(["plan"]) == (ExitCode.FINDINGS if weight == "error" else ExitCode.OK)
    capfd.readouterr()
    made.write("0001_make.yaml", text.replace(hidden, ""))
    (tmp_path / "icemigrate.yaml").write_text(f"project: market  # {hidden}\n", encoding="utf-8")
    assert main(["plan"]) == (ExitCode.FINDINGS if weight == "error" else ExitCode.OK)


def test_many_lines_with_hidden_characters_get_one_finding_together() -> None:
    text = "#\u200b\n" * 150 + "#\u202e\n"
    found = list(hidden_characters(SourceText("a.yaml", text)))
    assert len(found) == 101
    assert found[-1].message == "51 more lines contain invisible characters, including this one"
    assert found[-1].place == FilePosition("a.yaml", 151, 2)
    assert found[-1].severity is Severity.ERROR


# Every renderer, with a hostile text and a secret in every field


HOSTILE_SECRET = f"{TEXT} https://me:zq7Kx@host/x?sig=zq7Kx"
_SEEN = datetime(2026, 1, 2, tzinfo=timezone.utc)


def filled(hint: Any) -> Any:
    """A value of a type, the hostile text in every text that it holds."""
    if hint is str:
        return HOSTILE_SECRET
    if hint in (int, bool, float, datetime):
        return {int: 1, bool: False, float: 1.0, datetime: _SEEN}[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return filled(next(one for one in arguments if one is not type(None)))
    if origin is tuple:
        return tuple(filled(one) for one in arguments if one is not Ellipsis)
    if origin is not None and issubclass(origin, Mapping):
        return {filled(arguments[0]): filled(arguments[1])}
    if issubclass(hint, Enum):
        return next(iter(hint))
    assert issubclass(hint, Frozen), hint
    hints = get_type_hints(hint)
    return hint(**{name: filled(hints[name]) for name in hint.__struct_fields__})


RESULTS = {
    name: kind
    for module in pkgutil.iter_modules(icemigrate.results.__path__, "icemigrate.results.")
    for name, kind in vars(importlib.import_module(module.name)).items()
    if isinstance(kind, type)
}
RENDERERS = [(f.name, RESULTS[n]) for f in OUTPUT_FORMATS for n in f.renderers if n != "PlanResult"]


@pytest.mark.parametrize(
    ("name", "kind"), RENDERERS, ids=lambda one: one if isinstance(one, str) else one.__name__
)
def test_every_renderer_escapes_and_masks_every_field(name: str, kind: type) -> None:
    result = filled(kind)
    if kind is MaintainResult:
        result = replace(
            result, parts=("rows",), acts=tuple(replace(act, part="rows") for act in result.acts)
        )
    if kind is RulesResult:
        rules = tuple(replace(rule, level="error", default="error") for rule in result.rules)
        result = replace(result, rules=rules)
    for one in (result, *(replace(result, done=done) for done in (True, False) if hasattr(result, "done"))):
        for style in (TerminalStyle(False), TerminalStyle(True)):
            shown = re.sub(r"\x1b\[[0-9]{1,2}m", "", render(one, name, style))
            assert hidden_in(shown) == []
            assert "zq7Kx" not in shown
