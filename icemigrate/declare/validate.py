"""Nodes against a schema: every mistake, at its very key or value, in plain words."""

from __future__ import annotations

from typing import Any

from icemigrate.declare.elsewhere import DESTROYING, meant
from icemigrate.declare.forms import form
from icemigrate.declare.nodes import Mapping, Node, Scalar, Sequence, Value
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
_BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "y", "1"), "true"),
    **dict.fromkeys(("false", "no", "off", "n", "0"), "false"),
}
_SHOWN_LENGTH = 40


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


def with_article(noun: str) -> str:
    """``table`` → ``a table``; ``environment`` → ``an environment``."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def shorten(text: str) -> str:
    """A text for a message: one line, not too long, in backticks."""
    flat = " ".join(text.split())
    return f"`{flat if len(flat) <= _SHOWN_LENGTH else flat[: _SHOWN_LENGTH - 1] + '…'}`"


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


def _fits(json_type: str, types: frozenset[str] | None) -> bool:
    return types is None or json_type in types or (json_type == "integer" and "number" in types)


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
        if rule.types is not None and not _fits(json_type, rule.types):
            self._wrong_type(node, rule.types, rule, name, is_item)
        elif type(node) is Mapping:
            self._mapping(node, rule, name)
        elif type(node) is Sequence:
            self._sequence(node, rule, name)
        elif type(node) is Scalar:
            self._scalar(node, rule, name, is_item)

    def _alternatives(self, node: Node, json_type: str, rule: Rule, name: str, is_item: bool) -> None:
        for one in rule.any_of:
            if _fits(json_type, one.types):
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
            if inner is None and before is not None and _is_rest(before[0], key, value, rule.closed):
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
                _example(value, rule),
            )

    def _key(self, key: Scalar, names: Rule) -> None:
        if len(key.text) < names.min_length:
            self._add("empty-value", "a key is empty", key)
        elif names.pattern is not None and not names.pattern.search(key.text):
            self._add("bad-format", f"{shorten(key.text)} does not fit: {names.pattern_message}", key)

    def _not_listed(self, node: Scalar, rule: Rule, what: str) -> None:
        known = [str(one) for one in rule.enum or ()]
        message = f"{what} must be {_either([f'`{one}`' for one in known])}, not {self._shown(node, rule)}"
        self._add("bad-value", message, node, did_you_mean(node.text, known))

    def _unknown_key(self, key: Scalar, value: Node, holder: Mapping, rule: Rule) -> None:
        hint = meant(key, value, holder, rule, self._fits)
        if hint is None and key.text in self.schema.homes:
            homes = _either([with_article(home) for home in self.schema.homes[key.text]])
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
            self._add("missing-key", f"{with_article(rule.title)} needs {_either(names)}", node)
        elif len(met) > 1:
            second = next(key for key, _ in node.entries if key.text == met[1][0])
            self._add(
                "conflicting-keys", f"{with_article(rule.title)} has only one of {_either(names)}", second
            )

    def _wrong_type(self, node: Node, types: frozenset[str], rule: Rule, name: str, is_item: bool) -> None:
        what = _subject(name, is_item)
        wanted = _either([word for key, word in _TYPE_WORDS.items() if key in types])
        if isinstance(node, Scalar) and node.value is None:
            message = f"{what} is empty; it must be {wanted}"
        else:
            message = f"{what} must be {wanted}, not {self._shown(node, rule)}"
        hint = None if rule.secret else _type_hint(node, types, rule, "" if is_item else name)
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


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _example(value: str, rule: Rule) -> str | None:
    if not rule.examples:
        return None
    words = value.split()
    near = did_you_mean(words[0], [one for one in rule.examples if " " not in one]) if words else None
    return near or f"for example `{rule.examples[0]}`"


def _type_hint(node: Node, types: frozenset[str], rule: Rule, key: str) -> str | None:
    """What to write where another type of value is wanted.

    :param key: that the value is for; empty for an item of a list.
    """
    shown = form(key, rule) if types & {"array", "object"} else None
    example = shown and f"for example {shown}"
    if isinstance(node, Mapping):
        return _joined("begin every item with `- `", example) if types == {"array"} else example
    if isinstance(node, Sequence):
        return _joined("write `key: value` lines without dashes", example) if types == {"object"} else example
    word = node.text.lower()
    if "boolean" in types and word in _BOOLEAN_WORDS:
        plain = _BOOLEAN_WORDS[word]
        return f"write `{plain}`" if word != plain else f"write `{plain}` without quotes"
    if "integer" in types and any(character.isdigit() for character in node.text):
        return "write it in plain decimal digits, without quotes"
    if "string" in types and not isinstance(node.value, str) and node.text:
        return _quoted(node.text, rule)
    if types == {"array"} and node.text and _takes_text(rule.items):
        return f"write a list: [{node.text}]" if len(node.text) <= _SHOWN_LENGTH else "write a list"
    return example


def _joined(hint: str, example: str | None) -> str:
    return hint if example is None else f"{hint}, {example}"


def _takes_text(rule: Rule | None) -> bool:
    return rule is None or any(_fits("string", one.types) for one in rule.any_of or (rule,))


def _quoted(text: str, rule: Rule) -> str | None:
    """Quotes help unless the text would not do either."""
    for one in (rule, *rule.any_of):
        if one.pattern is not None and not one.pattern.search(text):
            return _example(text, one)
    return f'put it in quotes: "{text}"'


def split_by_comma(before: Node | None, rest: Node) -> str | None:
    """The whole value, when an unquoted comma inside ``{ }`` or ``[ ]`` cut it in two.

    ``{type: decimal(18, 6)}`` is, to YAML, the value ``decimal(18`` and a key ``6)`` without a value.
    """
    if not isinstance(before, Scalar) or not isinstance(rest, Scalar):
        return None
    for opening, closing in ("()", "<>"):
        opened = before.text.count(opening) > before.text.count(closing)
        if opened and rest.text.count(closing) > rest.text.count(opening):
            return f"{before.text}, {rest.text}"
    return None


def _is_rest(before: Node, key: Scalar, value: Node, is_closed: bool) -> bool:
    """Whether a key is the rest of a value, or of the first of several commas, rather than a key.

    What a comma has cut off stands on the value's line and has no value of its own, not even an empty text.

    :param is_closed: whether other keys than the known ones are mistakes anyway.
    """
    is_alone = isinstance(value, Scalar) and value.value is None and value.text == ""
    is_bare = is_alone and key.place.line == before.place.line
    if split_by_comma(before, key) is not None:
        return is_closed or is_bare
    return is_bare and isinstance(before, Scalar) and before.text.count("(") > before.text.count(")")
