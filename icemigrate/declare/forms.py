"""How a value is written, by the examples of the schemas: their one home."""

from __future__ import annotations

from icemigrate.declare.nodes import Node, to_data
from icemigrate.declare.schema import Rule, all_rules
from icemigrate.declare.yaml_text import flow

LONGEST = 80
"""A value of so many characters is shown as it was written; a longer one is no hint any more."""


def form(key: str, rule: Rule) -> str | None:
    """A key with a value that fits, in backticks: ``renames: {volume: quantity}``.

    :param key: empty where the value stands alone, as an item of a list.
    :returns: ``None`` where no example is known.
    """
    found = next((one.examples for one in (rule, *rule.any_of) if one.examples), None)
    if found is None:
        return f"`{key}: true`" if key and rule.types == frozenset({"boolean"}) else None
    return _in_backticks(key, flow(found[0]))


def moved(key: str, rule: Rule, value: Node) -> str | None:
    """The key with a value that was written elsewhere and fits here.

    :returns: ``None`` where it is empty or long, or may be secret.
    """
    if any(one.secret for one in all_rules(rule)):
        return None
    data = to_data(value)
    text = flow(data) if data else ""
    return _in_backticks(key, text) if 0 < len(text) <= LONGEST else None


def _in_backticks(key: str, text: str) -> str:
    return f"`{flow(key)}: {text}`" if key else f"`{text}`"
