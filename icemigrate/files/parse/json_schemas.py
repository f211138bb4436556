"""The JSON Schemas of the user's files, compiled for checking nodes.

Only the part of JSON Schema (draft 2020-12) that ``schemas/`` uses is supported; any other keyword is an
assertion.  Importing the ``jsonschema`` library takes longer than reading two hundred files, and it reports
no positions; a test compares the results of both.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icemigrate.frozen import Frozen

_ANNOTATIONS = frozenset(
    {
        "$schema",
        "$id",
        "$defs",
        "title",
        "description",
        "examples",
        "default",
        "writeOnly",
        "patternErrorMessage",
    }
)
_CONSTRAINTS = frozenset(
    {
        *(
            "type",
            "enum",
            "pattern",
            "minLength",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "required",
        ),
        *("properties", "additionalProperties", "propertyNames", "items", "anyOf", "oneOf", "$ref"),
    }
)


@dataclass(slots=True, eq=False, repr=False)
class SchemaRule:
    """One schema; filled while compiling, because schemas are recursive, and not changed after that.

    :param title: the noun for a value of it in messages, without an article: ``table``.
    :param types: allowed JSON types; ``None`` allows all.
    :param closed: whether keys that are not in ``properties`` are errors.
    :param others: the rule for keys that are not in ``properties``.
    :param names: the rule for the keys themselves.
    :param examples: valid values, for hints.
    :param one_of: exactly one of these sets of keys must be given.
    :param secret: whether messages must not show a value.
    """

    title: str = "value"
    types: frozenset[str] | None = None
    enum: tuple[Any, ...] | None = None
    pattern: re.Pattern[str] | None = None
    pattern_message: str | None = None
    examples: tuple[Any, ...] = ()
    min_length: int = 0
    minimum: int | None = None
    maximum: int | None = None
    min_items: int = 0
    max_items: int | None = None
    max_properties: int | None = None
    min_properties: int = 0
    required: tuple[str, ...] = ()
    properties: dict[str, SchemaRule] = field(default_factory=dict)
    closed: bool = False
    others: SchemaRule | None = None
    names: SchemaRule | None = None
    items: SchemaRule | None = None
    any_of: tuple[SchemaRule, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    secret: bool = False

    def admits(self, json_type: str) -> bool:
        """Whether a value of this JSON type is allowed."""
        types = self.types
        return types is None or json_type in types or (json_type == "integer" and "number" in types)


class JsonSchema(Frozen):
    """A compiled schema.

    :param definitions: the rules under ``$defs``.
    :param homes: the titles of the mappings that have a key, for each key of the schema: ``{"columns":
        ("table",)}``.
    """

    root: SchemaRule
    definitions: dict[str, SchemaRule]
    homes: dict[str, tuple[str, ...]]


def schema_folder() -> Path:
    """Where the JSON Schemas are: beside the modules in a wheel, at the top of the source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "schemas"
    return inside if inside.is_dir() else package.parent / "schemas"


def schema_text(name: str) -> str:
    """The text of a schema: ``schema_text("migration")``."""
    return (schema_folder() / f"{name}.schema.json").read_text(encoding="utf-8")


@functools.cache
def load_schema(name: str) -> JsonSchema:
    """Read and compile ``schemas/<name>.schema.json``."""
    return compile_schema(json.loads(schema_text(name)))


def compile_schema(document: dict[str, Any]) -> JsonSchema:
    """Compile a schema document.

    :raises AssertionError: the schema has a keyword that is not supported.
    """
    definitions: dict[str, SchemaRule] = {name: SchemaRule() for name in document.get("$defs", {})}
    for name, body in document.get("$defs", {}).items():
        _fill(definitions[name], body, definitions)
    root = _rule(document, definitions)
    for rule in all_rules(root):
        _assert_distinct_types(rule)
    homes: dict[str, list[str]] = {}
    for rule in all_rules(root):
        for key in rule.properties:
            titles = homes.setdefault(key, [])
            if rule.title not in titles:
                titles.append(rule.title)
    return JsonSchema(root, definitions, {key: tuple(titles) for key, titles in homes.items()})


def _rule(body: dict[str, Any], definitions: dict[str, SchemaRule]) -> SchemaRule:
    if "$ref" in body:
        assert body.keys() - _ANNOTATIONS == {"$ref"}, "a constraint beside $ref"
        return definitions[body["$ref"].removeprefix("#/$defs/")]
    rule = SchemaRule()
    _fill(rule, body, definitions)
    return rule


def _fill(rule: SchemaRule, body: dict[str, Any], definitions: dict[str, SchemaRule]) -> None:
    unknown = body.keys() - _ANNOTATIONS - _CONSTRAINTS
    assert not unknown, f"keywords that are not understood: {unknown}"
    rule.title = body.get("title", "value").lower()
    types = body.get("type")
    rule.types = None if types is None else frozenset([types] if isinstance(types, str) else types)
    rule.enum = tuple(body["enum"]) if "enum" in body else None
    rule.pattern = re.compile(body["pattern"]) if "pattern" in body else None
    rule.pattern_message = body.get("patternErrorMessage")
    rule.examples = tuple(body.get("examples", ()))
    rule.min_length = body.get("minLength", 0)
    rule.minimum = body.get("minimum")
    rule.maximum = body.get("maximum")
    rule.min_items = body.get("minItems", 0)
    rule.max_items = body.get("maxItems")
    rule.max_properties = body.get("maxProperties")
    rule.min_properties = body.get("minProperties", 0)
    rule.required = tuple(body.get("required", ()))
    rule.properties = {key: _rule(value, definitions) for key, value in body.get("properties", {}).items()}
    others = body.get("additionalProperties")
    rule.closed = others is False
    rule.others = _rule(others, definitions) if isinstance(others, dict) else None
    rule.names = _rule(body["propertyNames"], definitions) if "propertyNames" in body else None
    rule.items = _rule(body["items"], definitions) if "items" in body else None
    rule.any_of = tuple(_rule(one, definitions) for one in body.get("anyOf", ()))
    rule.one_of = tuple(tuple(one["required"]) for one in body.get("oneOf", ()))
    rule.secret = body.get("writeOnly", False)


def _assert_distinct_types(rule: SchemaRule) -> None:
    """Assert that the type of a value chooses one alternative, so that its errors can be reported."""
    types = [one.types or frozenset() for one in rule.any_of]
    assert all(types), "an alternative without a type"
    assert len(frozenset().union(*types)) == sum(map(len, types)), "alternatives of one type"


def all_rules(root: SchemaRule) -> Iterator[SchemaRule]:
    """A rule and, recursively, the rules of its values."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        rule = waiting.pop()
        if id(rule) in seen:
            continue
        seen.add(id(rule))
        yield rule
        waiting.extend(rule.properties.values())
        waiting.extend(rule.any_of)
        waiting.extend(one for one in (rule.others, rule.items) if one is not None)
