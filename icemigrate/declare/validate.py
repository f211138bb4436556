"""Nodes against a schema: every mistake, at its very key or value, in plain words."""

from __future__ import annotations

from typing import Any

from icemigrate.declare.commas import is_rest, split_by_comma
from icemigrate.declare.elsewhere import DESTROYING, meant
from icemigrate.declare.instead import example_hint, type_hint
from icemigrate.declare.nodes import Mapping, Node, Scalar, Sequence
from icemigrate.declare.phrases import either, shorten, with_article
from icemigrate.declare.scalars import Value
from icemigrate.declare.schema import Rule, Schema
from icemigrate.diagnostics import Diagnostic, did_you_mean

_TYPE_WORDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def validate(
    node: Node, schema: Schema, rule: Rule | None = None, name: str = "", *, is_item: bool = False
) -> tuple[Diagnostic, ...]:
    """Every place where a node is not what the schema (or one rule of it) says, in the order of the file.

    :param rule: of the schema; its root when omitted.
    :param name: the key that the node is the value of, or whose list it is an item of; for the messages.
    """
    check = _Check(schema)
    check.node(node, rule or schema.root, name, is_item)
    return tuple(check.found)


def wrong_nodes(node: Node, schema: Schema, rule: Rule) -> frozenset[int]:
    """The ``id`` of each node, keys among them, that :func:`validate` tells of."""
    check = _Check(schema)
    check.node(node, rule, "", False)
    return frozenset(check.wrong)


def _json_type(node: Node) -> str:
    if type(node) is Mapping:
        return "object"
    if type(node) is Sequence:
        return "array"
    assert isinstance(node, Scalar)
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

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.found: list[Diagnostic] = []
        self.wrong: set[int] = set()

    def node(self, node: Node, rule: Rule, name: str, is_item: bool) -> None:
        """Check one node.

        :param name: the key that the node is the value of, or that its list is the value of.
        """
        json_type = _json_type(node)
        if rule.any_of:
            self._alternatives(node, json_type, rule, name, is_item)
            return
        if rule.types is not None and not rule.admits(json_type):
            self._wrong_type(node, rule.types, rule, name, is_item)
        elif type(node) is Mapping:
            self._mapping(node, rule, name)
        elif type(node) is Sequence:
            self._sequence(node, rule, name)
        elif type(node) is Scalar:
            self._scalar(node, rule, name, is_item)

    def _alternatives(self, node: Node, json_type: str, rule: Rule, name: str, is_item: bool) -> None:
        for one in rule.any_of:
            if one.admits(json_type):
                self.node(node, one, name, is_item)
                return
        types = frozenset(t for one in rule.any_of for t in one.types or ())
        self._wrong_type(node, types, rule, name, is_item)

    def _mapping(self, node: Mapping, rule: Rule, name: str) -> None:
        properties = rule.properties
        given = set()
        before: tuple[Node, bool] | None = None
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
            self._nothing_said(node, rule, name)
        if rule.max_properties is not None and len(node.entries) > rule.max_properties:
            self._add("out-of-range", f"`{name}` takes at most {rule.max_properties} entries", node)
        if rule.one_of:
            self._one_of(node, rule, given)

    def _nothing_said(self, node: Mapping, rule: Rule, name: str) -> None:
        if rule.properties:
            hint = "one or more of " + ", ".join(f"`{key}`" for key in rule.properties)
            self._add("empty-value", f"{with_article(rule.title)} says nothing here", node, hint)
        else:
            self._add("empty-value", f"`{name}` is empty", node)

    def _sequence(self, node: Sequence, rule: Rule, name: str) -> None:
        if rule.items is not None:
            items = rule.items
            for item in node.items:
                self.node(item, items, name, True)
        if len(node.items) < rule.min_items:
            self._add("empty-value", f"`{name}` needs at least {rule.min_items} value", node)
        if rule.max_items is not None and len(node.items) > rule.max_items:
            self._add("out-of-range", f"`{name}` takes at most {rule.max_items} values", node)

    def _scalar(self, node: Scalar, rule: Rule, name: str, is_item: bool) -> None:
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

    def _text(self, node: Scalar, value: str, rule: Rule, what: str) -> None:
        if len(value) < rule.min_length:
            self._add("empty-value", f"{what} is empty", node)
        elif rule.pattern is not None and not rule.pattern.search(value):
            self._add(
                "bad-format",
                f"{self._shown(node, rule)} is not {with_article(rule.title)}: {rule.pattern_message}",
                node,
                example_hint(value, rule),
            )

    def _key(self, key: Scalar, names: Rule) -> None:
        if len(key.text) < names.min_length:
            self._add("empty-value", "a key is empty", key)
        elif names.pattern is not None and not names.pattern.search(key.text):
            self._add("bad-format", f"{shorten(key.text)} does not fit: {names.pattern_message}", key)

    def _not_listed(self, node: Scalar, rule: Rule, what: str) -> None:
        known = [str(one) for one in rule.enum or ()]
        message = f"{what} must be {either([f'`{one}`' for one in known])}, not {self._shown(node, rule)}"
        self._add("bad-value", message, node, did_you_mean(node.text, known))

    def _unknown_key(self, key: Scalar, value: Node, holder: Mapping, rule: Rule) -> None:
        hint = meant(key, value, holder, rule, self._fits)
        if hint is None and key.text in self.schema.homes:
            homes = either([with_article(home) for home in self.schema.homes[key.text]])
            hint = f"`{key.text}` is a key of {homes}; is it indented as it should be?"
        hint = hint or did_you_mean(key.text, rule.properties, DESTROYING)
        if hint is None:
            hint = "known here: " + ", ".join(rule.properties)
        self._add("unknown-key", f"{shorten(key.text)} is not a key of {with_article(rule.title)}", key, hint)

    def _fits(self, value: Node, rule: Rule) -> bool:
        return not validate(value, self.schema, rule)

    def _split(self, key: Scalar, before: Node, secret: bool) -> None:
        """:param before: the value that a comma has ended, of which the key is the rest."""
        whole = split_by_comma(before, key)
        message = f"the comma before {'this' if secret else shorten(key.text)} ends the value"
        shown = "" if secret or whole is None else f': "{whole}"'
        self.wrong.add(id(before))
        self._add("split-value", message, key, f"put the whole value in quotes{shown}")

    def _one_of(self, node: Mapping, rule: Rule, given: set[str]) -> None:
        met = [keys for keys in rule.one_of if given.issuperset(keys)]
        names = [" and ".join(f"`{key}`" for key in keys) for keys in rule.one_of]
        if not met:
            self._add("missing-key", f"{with_article(rule.title)} needs {either(names)}", node)
        elif len(met) > 1:
            second = next(key for key, _ in node.entries if key.text == met[1][0])
            self._add(
                "conflicting-keys", f"{with_article(rule.title)} has only one of {either(names)}", second
            )

    def _wrong_type(self, node: Node, types: frozenset[str], rule: Rule, name: str, is_item: bool) -> None:
        what = _subject(name, is_item)
        wanted = either([word for key, word in _TYPE_WORDS.items() if key in types])
        if isinstance(node, Scalar) and node.value is None:
            message = f"{what} is empty; it must be {wanted}"
        else:
            message = f"{what} must be {wanted}, not {self._shown(node, rule)}"
        hint = None if rule.secret else type_hint(node, types, rule, "" if is_item else name)
        self._add("wrong-type", message, node, hint)

    def _shown(self, node: Node, rule: Rule) -> str:
        if isinstance(node, Scalar):
            return "what stands here" if rule.secret else shorten(node.text)
        return "a list" if isinstance(node, Sequence) else "a mapping"

    def _add(self, code: str, message: str, at: Node, hint: str | None = None) -> None:
        self.found.append(Diagnostic(code, message, at.place, hint))
        self.wrong.add(id(at))


def _listed(value: Value, known: tuple[Any, ...]) -> bool:
    """Whether a value is one of ``known``, as JSON Schema compares: ``1`` is ``1.0``, but not ``true``."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in known)


def _subject(name: str, is_item: bool) -> str:
    if is_item:
        return f"an item of `{name}`"
    return f"`{name}`" if name else "the file"
