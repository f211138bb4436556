"""Words of other tools are answered by what they are here, and wrong values by the form that is wanted."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from icemigrate import diagnostics
from icemigrate.diagnostics import did_you_mean, has_edit_distance_one, renew_hints
from icemigrate.files.parse.json_schemas import SchemaRule, load_schema, schema_text
from icemigrate.files.parse.other_tool_keys import DESTROYING, KEYS_OF_OTHER_TOOLS
from icemigrate.files.parse.suggestions import format_example
from tests.unit.files.examples import migration, read

SCHEMAS = ("migration", "project")


def rules() -> dict[str, list[SchemaRule]]:
    """Every rule with keys of its own, by its title."""
    found: dict[str, list[SchemaRule]] = {}
    for name in SCHEMAS:
        waiting, seen = [load_schema(name).root], set()
        while waiting:
            rule = waiting.pop()
            if id(rule) in seen:
                continue
            seen.add(id(rule))
            if rule.properties:
                found.setdefault(rule.title, []).append(rule)
            waiting += [*rule.properties.values(), *rule.any_of]
            waiting += [one for one in (rule.others, rule.items) if one is not None]
    return found


def bodies(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("type", node.get("anyOf")), (str, list)):
            yield node
        for key, inner in node.items():
            if key != "examples":
                yield from bodies(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from bodies(inner)


@pytest.mark.parametrize("title", KEYS_OF_OTHER_TOOLS)
def test_a_word_of_others_has_one_meaning_and_is_none_of_ours(title: str) -> None:
    words = [word for _, said in KEYS_OF_OTHER_TOOLS[title] for word in said.split()]
    assert sorted(words) == sorted(set(words))
    assert title in rules(), "a title that no schema has"
    for rule in rules()[title]:
        assert not set(words) & set(rule.properties)
        assert all(" " in here or here in rule.properties for here, _ in KEYS_OF_OTHER_TOOLS[title])


def test_every_example_of_a_schema_fits_it() -> None:
    for name in SCHEMAS:
        document = json.loads(schema_text(name))
        jsonschema.Draft202012Validator.check_schema(document)
        for body in bodies(document):
            for example in body.get("examples", ()):
                schema = {**body, "$defs": document["$defs"]}
                jsonschema.Draft202012Validator(schema).validate(example)


def test_every_value_that_is_no_plain_word_has_a_form_to_show() -> None:
    for found in rules().values():
        for key, inner in ((key, inner) for rule in found for key, inner in rule.properties.items()):
            types = {t for one in (inner, *inner.any_of) for t in one.types or ()}
            if types & {"array", "object"} and not inner.secret:
                shown = format_example(key, inner)
                assert shown is not None, key
                assert list(yaml.safe_load(shown.strip("`"))) == [key]


def hint(text: str) -> str | None:
    (one,) = read(text).diagnostics
    return one.hint


@pytest.mark.parametrize(
    "word", sorted({w for _, said in KEYS_OF_OTHER_TOOLS["table"] for w in said.split()})
)
def test_no_word_of_others_leads_to_a_drop_that_it_does_not_name(word: str) -> None:
    told = hint(f"tables:\n  - name: m.t\n    {word}: x\n")
    assert told is not None
    assert "did you mean" not in told
    if not any(
        part in word for part in ("drop", "remove", "delete", "destroy", "absent", "truncate", "unset")
    ):
        assert "drop" not in told


@pytest.mark.parametrize("word", ["crop_columns", "add_column_s", "drp_colums", "shop_columns", "backdrop"])
def test_a_key_that_destroys_is_guessed_one_slip_away_at_most(word: str) -> None:
    told = hint(f"tables:\n  - name: m.t\n    {word}: [a]\n") or ""
    assert ("did you mean `drop_columns`" in told) == has_edit_distance_one(word, "drop_columns")


def test_the_nearest_word_is_taken_where_the_nearer_one_destroys() -> None:
    assert did_you_mean("dropp", ["drop", "crop"], DESTROYING) == "did you mean `drop`?"
    assert did_you_mean("dropped", ["drop", "cropped"], DESTROYING) == "did you mean `cropped`?"
    assert did_you_mean("dropped", ["drop"], DESTROYING) is None
    assert did_you_mean("Drop-Columns", ["drop_columns"], DESTROYING) == "did you mean `drop_columns`?"


def test_a_file_with_words_of_ours_alone_is_told_nothing() -> None:
    assert migration("tables:\n  - {name: m.t, columns: [{name: a, type: long}], identifier: [a]}\n")


def test_many_unknown_names_beside_many_known_ones_take_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that differ in few letters take a millisecond each with difflib."""
    compared: list[int] = []

    def count(word: str, known: Collection[str], n: int, cutoff: float) -> list[str]:
        compared.append(len(known))
        return get_close_matches(word, known, n, cutoff)

    get_close_matches = difflib.get_close_matches
    monkeypatch.setattr(difflib, "get_close_matches", count)
    monkeypatch.setattr(diagnostics, "_GUESSES", 20_000)
    known = [f"market_data.table_of_things_{'abcdefgh'[i % 8]}{i}" for i in range(1_000)]
    renew_hints(for_all_files=True)
    hints = []
    for i in range(200):
        renew_hints()  # as for a file of its own
        hints.append(did_you_mean(f"market_data.tabel_of_things_a{i}", known))
    assert hints[8] == "did you mean `market_data.table_of_things_a8`?"
    assert hints[-1] is None
    assert len(compared) <= 20
    assert max(compared) <= 20
    monkeypatch.undo()
    renew_hints(for_all_files=True)
    assert did_you_mean("market_data.tabel_of_things_a8", known) == hints[8]
