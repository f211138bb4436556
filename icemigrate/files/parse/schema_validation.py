"""Nodes against a schema: every mistake, at its very key or value, in plain words."""

from __future__ import annotations

from typing import Any

from icemigrate.diagnostics import Diagnostic, Replacement, did_you_mean, did_you_mean_word, most_similar
from icemigrate.files.parse.file_phrases import or_list, shorten_text, with_article
from icemigrate.files.parse.json_schemas import JsonSchema, SchemaRule
from icemigrate.files.parse.other_tool_keys import DESTROYING, other_tool_key_hint
from icemigrate.files.parse.suggestions import example_hint, type_hint
from icemigrate.files.parse.yaml_nodes import Value, YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.files.read.cut_values import is_rest, split_by_comma

_TYPE_WORDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def validate_node(
    node: YamlNode,
    schema: JsonSchema,
    rule: SchemaRule | None = None,
    name: str = "",
    *,
    is_item: bool = False,
) -> tuple[Diagnostic, ...]:
    """Diagnostics for every node that the schema (or one rule of it) does not allow, in the order of the
    file.

    :param rule: a rule of the schema; its root when omitted.
    :param name: the key of the node, or of the list that the node is an item of; for the messages.
    """
    check = _Check(schema)
    check.node(node, rule or schema.root, name, is_item)
    return tuple(check.found)


def invalid_nodes(node: YamlNode, schema: JsonSchema, rule: SchemaRule) -> frozenset[int]:
    """The ``id`` of each node, keys included, that :func:`validate_node` reports."""
    check = _Check(schema)
    check.node(node, rule, "", False)
    return frozenset(check.wrong)


def _json_type(node: YamlNode) -> str:
    if type(node) is YamlMapping:
        return "object"
    if type(node) is YamlSequence:
        return "array"
    assert isinstance(node, YamlScalar)
    value = node.value
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) or value.is_integer() else "number"


class _Check:
    """One walk over one document."""

    def __init__(self, schema: JsonSchema) -> None:
        self.schema = schema
        self.found: list[Diagnostic] = []
        self.wrong: set[int] = set()

    def node(self, node: YamlNode, rule: SchemaRule, name: str, is_item: bool) -> None:
        """Check one node.

        :param name: the key that the node is the value of, or that its list is the value of.
        """
        json_type = _json_type(node)
        if rule.any_of:
            self._alternatives(node, json_type, rule, name, is_item)
            return
        if rule.types is not None and not rule.admits(json_type):
            self._wrong_type(node, rule.types, rule, name, is_item)
        elif type(node) is YamlMapping:
            self._mapping(node, rule, name)
        elif type(node) is YamlSequence:
            self._sequence(node, rule, name)
        elif type(node) is YamlScalar:
            self._scalar(node, rule, name, is_item)

    def _alternatives(
        self, node: YamlNode, json_type: str, rule: SchemaRule, name: str, is_item: bool
    ) -> None:
        for one in rule.any_of:
            if one.admits(json_type):
                self.node(node, one, name, is_item)
                return
        types = frozenset(t for one in rule.any_of for t in one.types or ())
        self._wrong_type(node, types, rule, name, is_item)

    def _mapping(self, node: YamlMapping, rule: SchemaRule, name: str) -> None:
        properties = rule.properties
        given = set()
        before: tuple[YamlNode, bool] | None = None
        is_split = False
        for key, value in node.entries:
            given.add(key.text)
            inner = properties.get(key.text)
            if inner is None and before is not None and is_rest(before[0], key, value, rule.closed):
                if not is_split:
                    self._split(key, *before)
                is_split = True
                continue
            is_split = False
            if inner is not None:
                self.node(value, inner, key.text, False)
            elif rule.closed:
                self._unknown_key(key, value, node, rule)
            elif rule.others is not None:
                self.node(value, rule.others, key.text, False)
            if rule.names is not None:
                self._key(key, rule.names)
            before = (value, inner is not None and inner.secret)
        for needed in rule.required:
            if needed not in given:
                self._add("missing-key", f"`{needed}` is missing: {with_article(rule.title)} needs it", node)
        if len(node.entries) < rule.min_properties:
            self._is_empty(node, rule, name)
        if rule.max_properties is not None and len(node.entries) > rule.max_properties:
            self._add("out-of-range", f"`{name}` takes at most {rule.max_properties} entries", node)
        if rule.one_of:
            self._one_of(node, rule, given)

    def _is_empty(self, node: YamlMapping, rule: SchemaRule, name: str) -> None:
        if rule.properties:
            hint = "one or more of " + ", ".join(f"`{key}`" for key in rule.properties)
            self._add("empty-value", f"{with_article(rule.title)} must not be empty", node, hint)
        else:
            self._add("empty-value", f"`{name}` is empty", node)

    def _sequence(self, node: YamlSequence, rule: SchemaRule, name: str) -> None:
        if rule.items is not None:
            items = rule.items
            for item in node.items:
                self.node(item, items, name, True)
        if len(node.items) < rule.min_items:
            self._add("empty-value", f"`{name}` needs at least {rule.min_items} value", node)
        if rule.max_items is not None and len(node.items) > rule.max_items:
            self._add("out-of-range", f"`{name}` takes at most {rule.max_items} values", node)

    def _scalar(self, node: YamlScalar, rule: SchemaRule, name: str, is_item: bool) -> None:
        value = node.value
        what = _subject(name, is_item)
        if rule.enum is not None and not _listed(value, rule.enum):
            self._not_listed(node, rule, what)
            return
        if isinstance(value, str):
            self._text(node, value, rule, what)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if rule.minimum is not None and value < rule.minimum:
                self._add("out-of-range", f"{what} must be at least {rule.minimum}, not {node.text}", node)
            if rule.maximum is not None and value > rule.maximum:
                self._add("out-of-range", f"{what} must be at most {rule.maximum}, not {node.text}", node)

    def _text(self, node: YamlScalar, value: str, rule: SchemaRule, what: str) -> None:
        if len(value) < rule.min_length:
            self._add("empty-value", f"{what} is empty", node)
        elif rule.pattern is not None and not rule.pattern.search(value):
            self._add(
                "bad-format",
                f"{self._shown(node, rule)} is not {with_article(rule.title)}: {rule.pattern_message}",
                node,
                example_hint(value, rule),
            )

    def _key(self, key: YamlScalar, names: SchemaRule) -> None:
        if len(key.text) < names.min_length:
            self._add("empty-value", "a key is empty", key)
        elif names.pattern is not None and not names.pattern.search(key.text):
            self._add(
                "bad-format", f"{shorten_text(key.text)} is not a valid key: {names.pattern_message}", key
            )

    def _not_listed(self, node: YamlScalar, rule: SchemaRule, what: str) -> None:
        known = [str(one) for one in rule.enum or ()]
        message = f"{what} must be {or_list([f'`{one}`' for one in known])}, not {self._shown(node, rule)}"
        self._add("bad-value", message, node, did_you_mean(node.text, known))

    def _unknown_key(self, key: YamlScalar, value: YamlNode, holder: YamlMapping, rule: SchemaRule) -> None:
        hint, meant = other_tool_key_hint(key, value, holder, rule, self._fits)
        if hint is None and key.text in self.schema.homes:
            homes = or_list([with_article(home) for home in self.schema.homes[key.text]])
            hint = f"`{key.text}` is a key of {homes}; check the indentation"
        if hint is None and (meant := most_similar(key.text, rule.properties, DESTROYING)) is not None:
            hint = did_you_mean_word(meant)
            meant = None if meant in DESTROYING else meant
        if hint is None:
            hint = "known here: " + ", ".join(rule.properties)
        message = f"{shorten_text(key.text)} is not a key of {with_article(rule.title)}"
        self._add("unknown-key", message, key, hint, meant)

    def _fits(self, value: YamlNode, rule: SchemaRule) -> bool:
        return not validate_node(value, self.schema, rule)

    def _split(self, key: YamlScalar, before: YamlNode, secret: bool) -> None:
        """:param before: the value that a comma has ended, of which the key is the rest."""
        whole = split_by_comma(before, key)
        message = f"the comma before {'this' if secret else shorten_text(key.text)} ends the value"
        shown = "" if secret or whole is None else f': "{whole}"'
        self.wrong.add(id(before))
        self._add("split-value", message, key, f"put the whole value in quotes{shown}")

    def _one_of(self, node: YamlMapping, rule: SchemaRule, given: set[str]) -> None:
        met = [keys for keys in rule.one_of if given.issuperset(keys)]
        names = [" and ".join(f"`{key}`" for key in keys) for keys in rule.one_of]
        if not met:
            self._add("missing-key", f"{with_article(rule.title)} needs {or_list(names)}", node)
        elif len(met) > 1:
            second = next(key for key, _ in node.entries if key.text == met[1][0])
            self._add(
                "conflicting-keys", f"{with_article(rule.title)} has only one of {or_list(names)}", second
            )

    def _wrong_type(
        self, node: YamlNode, types: frozenset[str], rule: SchemaRule, name: str, is_item: bool
    ) -> None:
        what = _subject(name, is_item)
        wanted = or_list([word for key, word in _TYPE_WORDS.items() if key in types])
        if isinstance(node, YamlScalar) and node.value is None:
            message = f"{what} is empty; it must be {wanted}"
        else:
            message = f"{what} must be {wanted}, not {self._shown(node, rule)}"
        hint = None if rule.secret else type_hint(node, types, rule, "" if is_item else name)
        self._add("wrong-type", message, node, hint)

    def _shown(self, node: YamlNode, rule: SchemaRule) -> str:
        if isinstance(node, YamlScalar):
            return "this value" if rule.secret else shorten_text(node.text)
        return "a list" if isinstance(node, YamlSequence) else "a mapping"

    def _add(
        self, code: str, message: str, at: YamlNode, hint: str | None = None, meant: str | None = None
    ) -> None:
        """:param meant: the only text that can be meant instead of the text of a scalar."""
        right = Replacement(at.text, meant) if meant is not None and isinstance(at, YamlScalar) else None
        self.found.append(Diagnostic(code, message, at.place, hint, replacement=right))
        self.wrong.add(id(at))


def _listed(value: Value, known: tuple[Any, ...]) -> bool:
    """Whether a value is in ``known``, compared as in JSON Schema: ``1`` equals ``1.0``, but not ``true``."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in known)


def _subject(name: str, is_item: bool) -> str:
    if is_item:
        return f"an item of `{name}`"
    return f"`{name}`" if name else "the file"
