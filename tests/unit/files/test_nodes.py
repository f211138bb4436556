"""YAML as nodes: what a plain scalar means, places, anchors, limits, line breaks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.parse import yaml_composer
from icemigrate.files.parse.source_text import SIZE_LIMIT, SourceText, decode_source, read_source
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence, to_data
from icemigrate.files.parse.yaml_syntax_errors import explain_yaml_error
from tests.unit.files.examples import EVERYTHING, source


def node(text: str) -> YamlNode:
    parsed = parse_yaml(source(text))
    assert parsed.node is not None
    assert parsed.diagnostics == ()
    return parsed.node


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "on",
        "y",
        "Yes",
        "off",
        "2026-01-01",
        "12:30:00",
        "1:30",
        "010",
        "0x1F",
        "1_000",
        "0o7",
        "1.2.3",
        "+",
        ".",
    ],
)
def test_what_yaml_1_1_would_read_otherwise_is_text(text: str) -> None:
    assert node(f"a: {text}").get("a") == YamlScalar(text, text, FilePosition("0007_all.yaml", 1, 4))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-3", -3),
        ("+4", 4),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("'7'", "7"),
        ('"true"', "true"),
        ("!!str 7", "7"),
        ("!!int '7'", 7),
        ("! 7", "7"),
        ("9" * 39, "9" * 39),
        ("|\n  7\n", "7\n"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    assert to_data(node(f"a: {text}")) == {"a": value}


def test_not_a_number() -> None:
    found = to_data(node("a: .nan"))
    assert isinstance(found, dict)
    assert found["a"] != found["a"]


def test_a_number_keeps_its_characters() -> None:
    found = node("a: 1.10")
    assert isinstance(found, YamlMapping)
    assert isinstance(scalar := found.get("a"), YamlScalar)
    assert scalar.text == "1.10"


def test_places_are_those_of_keys_and_values() -> None:
    found = node("a:\n  - ü: {b: c}\n")
    assert isinstance(found, YamlMapping)
    inner = found.get("a").items[0]  # type: ignore[union-attr]
    assert inner.key_place("ü") == FilePosition("0007_all.yaml", 2, 5)  # type: ignore[union-attr]
    assert inner.get("ü").get("b").place == FilePosition("0007_all.yaml", 2, 12)  # type: ignore[union-attr]
    assert found.key_place("missing") == found.place
    assert found.get("missing") is None


def test_anchors_and_merge_keys_are_put_in() -> None:
    text = "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: {<<: [{a: 9}, *x], c: *x}\n'<<': {q: 1}\n"
    assert to_data(node(text)) == {
        "x": {"a": 1, "b": 2},
        "y": {"a": 1, "b": 3},
        "z": {"a": 9, "b": 2, "c": {"a": 1, "b": 2}},
        "<<": {"q": 1},
    }


def test_an_alias_that_makes_it_too_deep() -> None:
    deep = "a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40
    assert [one.code for one in parse_yaml(source(deep)).diagnostics] == ["too-deep"]


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_composer, "NODE_LIMIT", 3)
    assert [one.code for one in parse_yaml(source("[1, 2, 3]")).diagnostics] == ["too-many-nodes"]


def test_the_slow_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = parse_yaml(source(EVERYTHING))
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert parse_yaml(source(EVERYTHING)) == fast
    told = parse_yaml(source("a:\n\tb: 1\n")).diagnostics
    assert [(one.code, str(one.place)) for one in told] == [("tab-indentation", "0007_all.yaml:2:1")]


def test_a_complaint_without_a_place_is_told_at_the_beginning() -> None:
    told = explain_yaml_error(yaml.YAMLError("no idea\nat all"), source(""))
    assert str(told) == "0007_all.yaml:1:1: error: this is not YAML: no idea [yaml-syntax]"


def test_brackets_beyond_any_stack() -> None:
    for text in ("[" * 100_000, "a: " + "{a: " * 50_000, "- " * 100_000 + "x"):
        assert [one.code for one in parse_yaml(source(text)).diagnostics] == ["too-deep"]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_breaks_and_byte_order_marks_do_not_count(line_break: str, mark: str) -> None:
    found = decode_source((mark + EVERYTHING.replace("\n", line_break)).encode(), "0007_all.yaml")
    assert isinstance(found, SourceText)
    assert parse_yaml(found) == parse_yaml(source(EVERYTHING))


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "0001_large.yaml"
    path.write_bytes(b"#" * (SIZE_LIMIT + 1))
    found = read_source(path, top=tmp_path)
    assert isinstance(found, Diagnostic)
    assert found.code == "too-large"
    path.write_bytes(b"#" * SIZE_LIMIT)
    assert isinstance(read_source(path, top=tmp_path), SourceText)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    found = read_source(tmp_path / "gone.yaml", top=tmp_path)
    assert isinstance(found, Diagnostic)
    assert (found.code, found.message) == (
        "unreadable-file",
        "the file cannot be read: no such file or directory",
    )


def test_paths_are_shown_as_a_user_would_type_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("x: 1")
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "a.yaml", Path("a.yaml")):
        found = read_source(path, top=tmp_path)
        assert isinstance(found, SourceText)
        assert found.path == "a.yaml"
    monkeypatch.chdir("/")
    outside = read_source(tmp_path / "a.yaml", "shown", top=tmp_path)
    assert isinstance(outside, SourceText)
    assert outside.path == "shown"


def test_lines() -> None:
    found = source("a\nb")
    assert [found.line(number) for number in (0, 1, 2, 3)] == ["", "a", "b", ""]


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\u2029"])
def test_lines_are_counted_as_editors_do(odd: str) -> None:
    node = parse_yaml(SourceText("f.yaml", f"a: '{odd}x'\nbc: [1,\n  de]\n")).node
    assert isinstance(node, YamlMapping)
    inner = node.get("bc")
    assert isinstance(inner, YamlSequence)
    assert [str(p) for p in (node.key_place("bc"), inner.items[1].place)] == ["f.yaml:2:1", "f.yaml:3:3"]


@pytest.mark.parametrize(
    ("text", "place"), [("a: 1\nb: [1,\n", "3:1"), ("a: 1\nb: [{", "2:6"), ("a: '\u2028'\nb: [", "2:5")]
)
def test_what_is_missing_at_the_end_is_told_at_the_end(text: str, place: str) -> None:
    (found,) = parse_yaml(SourceText("f.yaml", text)).diagnostics
    assert str(found.place) == f"f.yaml:{place}"
