"""What to write instead of a value that does not fit."""

from __future__ import annotations

from icemigrate.declare.forms import form
from icemigrate.declare.nodes import Mapping, Node, Sequence
from icemigrate.declare.phrases import SHOWN_LENGTH
from icemigrate.declare.schema import Rule
from icemigrate.diagnostics import did_you_mean

_BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "y", "1"), "true"),
    **dict.fromkeys(("false", "no", "off", "n", "0"), "false"),
}


def example_hint(value: str, rule: Rule) -> str | None:
    """The example that was meant, or any."""
    if not rule.examples:
        return None
    words = value.split()
    near = did_you_mean(words[0], [one for one in rule.examples if " " not in one]) if words else None
    return near or f"for example `{rule.examples[0]}`"


def type_hint(node: Node, types: frozenset[str], rule: Rule, key: str) -> str | None:
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
        return f"write a list: [{node.text}]" if len(node.text) <= SHOWN_LENGTH else "write a list"
    return example


def _joined(hint: str, example: str | None) -> str:
    return hint if example is None else f"{hint}, {example}"


def _takes_text(rule: Rule | None) -> bool:
    return rule is None or any(one.admits("string") for one in rule.any_of or (rule,))


def _quoted(text: str, rule: Rule) -> str | None:
    """Quotes help unless the text would not do either."""
    for one in (rule, *rule.any_of):
        if one.pattern is not None and not one.pattern.search(text):
            return example_hint(text, one)
    return f'put it in quotes: "{text}"'
