"""Hints about invalid values: examples, and values that the user probably intended."""

from __future__ import annotations

from icemigrate.diagnostics import bytes_of_size, did_you_mean
from icemigrate.files.parse.file_phrases import SHOWN_LENGTH
from icemigrate.files.parse.json_schemas import SchemaRule, all_rules
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlSequence, to_data
from icemigrate.files.write.yaml_text import to_flow_yaml

LONGEST = 80
"""Longer values are not repeated in hints."""


def format_example(key: str, rule: SchemaRule) -> str | None:
    """A key with a valid value, in backticks: ``renames: {volume: quantity}``.

    :param key: empty for an item of a list.
    :returns: ``None`` where there is no example.
    """
    found = next((one.examples for one in (rule, *rule.any_of) if one.examples), None)
    if found is None:
        return f"`{key}: true`" if key and rule.types == frozenset({"boolean"}) else None
    return _in_backticks(key, to_flow_yaml(found[0]))


def format_moved_value(key: str, rule: SchemaRule, value: YamlNode) -> str | None:
    """The key with a value that was written under another key and is valid here.

    :returns: ``None`` where the value is empty or long, or may be secret.
    """
    if any(one.secret for one in all_rules(rule)):
        return None
    data = to_data(value)
    text = to_flow_yaml(data) if data else ""
    return _in_backticks(key, text) if 0 < len(text) <= LONGEST else None


def _in_backticks(key: str, text: str) -> str:
    return f"`{to_flow_yaml(key)}: {text}`" if key else f"`{text}`"


_BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "y", "1"), "true"),
    **dict.fromkeys(("false", "no", "off", "n", "0"), "false"),
}


def example_hint(value: str, rule: SchemaRule) -> str | None:
    """A hint with the intended example, or with any."""
    if not rule.examples:
        return None
    words = value.split()
    near = did_you_mean(words[0], [one for one in rule.examples if " " not in one]) if words else None
    return near or f"for example `{rule.examples[0]}`"


def type_hint(node: YamlNode, types: frozenset[str], rule: SchemaRule, key: str) -> str | None:
    """A hint about a value of the wrong type.

    :param key: the key of the value; empty for an item of a list.
    """
    shown = format_example(key, rule) if types & {"array", "object"} else None
    example = shown and f"for example {shown}"
    if isinstance(node, YamlMapping):
        return _joined("begin every item with `- `", example) if types == {"array"} else example
    if isinstance(node, YamlSequence):
        return _joined("write `key: value` lines without dashes", example) if types == {"object"} else example
    word = node.text.lower()
    if "boolean" in types and word in _BOOLEAN_WORDS:
        plain = _BOOLEAN_WORDS[word]
        return f"write `{plain}`" if word != plain else f"write `{plain}` without quotes"
    if "integer" in types and key.endswith("_bytes") and (size := bytes_of_size(node.text)) is not None:
        return f"write the number of bytes, without a unit: {size}"
    if "integer" in types and any(character.isdigit() for character in node.text):
        return "write decimal digits, without a unit and quotes"
    if "string" in types and not isinstance(node.value, str) and node.text:
        return _quoted(node.text, rule)
    if types == {"array"} and node.text and _takes_text(rule.items):
        return f"write a list: [{node.text}]" if len(node.text) <= SHOWN_LENGTH else "write a list"
    return example


def _joined(hint: str, example: str | None) -> str:
    return hint if example is None else f"{hint}, {example}"


def _takes_text(rule: SchemaRule | None) -> bool:
    return rule is None or any(one.admits("string") for one in rule.any_of or (rule,))


def _quoted(text: str, rule: SchemaRule) -> str | None:
    """Quotes help unless the text would not do either."""
    for one in (rule, *rule.any_of):
        if one.pattern is not None and not one.pattern.search(text):
            return example_hint(text, one)
    return f'put it in quotes: "{text}"'
