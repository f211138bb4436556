"""Words of other tools are answered by what they are here, and wrong values by the form that is wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from icemigrate.declare.elsewhere import DESTROYING, ELSEWHERE
from icemigrate.declare.forms import form
from icemigrate.declare.schema import Rule, load_schema, schema_text
from icemigrate.diagnostics import did_you_mean, one_slip
from tests.unit.declare.examples import migration, read

SCHEMAS = ("migration", "project")


def rules() -> dict[str, list[Rule]]:
    """Every rule with keys of its own, by its title."""
    found: dict[str, list[Rule]] = {}
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


@pytest.mark.parametrize("title", ELSEWHERE)
def test_a_word_of_others_has_one_meaning_and_is_none_of_ours(title: str) -> None:
    words = [word for _, said in ELSEWHERE[title] for word in said.split()]
    assert sorted(words) == sorted(set(words))
    assert title in rules(), "a title that no schema has"
    for rule in rules()[title]:
        assert not set(words) & set(rule.properties)
        assert all(" " in here or here in rule.properties for here, _ in ELSEWHERE[title])


def test_every_example_of_a_schema_fits_it() -> None:
    for name in SCHEMAS:
        document = json.loads(schema_text(name))
        for body in bodies(document):
            for example in body.get("examples", ()):
                jsonschema.validate(example, {**body, "$defs": document["$defs"]})


def test_every_value_that_is_no_plain_word_has_a_form_to_show() -> None:
    for found in rules().values():
        for key, inner in ((key, inner) for rule in found for key, inner in rule.properties.items()):
            types = {t for one in (inner, *inner.any_of) for t in one.types or ()}
            if types & {"array", "object"} and not inner.secret:
                shown = form(key, inner)
                assert shown is not None, key
                assert list(yaml.safe_load(shown.strip("`"))) == [key]


def hint(text: str) -> str | None:
    (one,) = read(text).diagnostics
    return one.hint


@pytest.mark.parametrize("word", sorted({w for _, said in ELSEWHERE["table"] for w in said.split()}))
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
    assert ("did you mean `drop_columns`" in told) == one_slip(word, "drop_columns")


def test_the_nearest_word_is_taken_where_the_nearer_one_destroys() -> None:
    assert did_you_mean("dropp", ["drop", "crop"], DESTROYING) == "did you mean `drop`?"
    assert did_you_mean("dropped", ["drop", "cropped"], DESTROYING) == "did you mean `cropped`?"
    assert did_you_mean("dropped", ["drop"], DESTROYING) is None
    assert did_you_mean("Drop-Columns", ["drop_columns"], DESTROYING) == "did you mean `drop_columns`?"


def test_a_file_with_words_of_ours_alone_is_told_nothing() -> None:
    assert migration("tables:\n  - {name: m.t, columns: [{name: a, type: long}], identifier: [a]}\n")
