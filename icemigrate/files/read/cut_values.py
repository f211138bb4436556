"""Values that an unquoted comma inside ``{ }`` or ``[ ]`` has cut in two."""

from __future__ import annotations

from icemigrate.files.parse.yaml_nodes import YamlNode, YamlScalar


def split_by_comma(before: YamlNode | None, rest: YamlNode) -> str | None:
    """The complete value, when an unquoted comma inside ``{ }`` or ``[ ]`` split it in two.

    YAML reads ``{type: decimal(18, 6)}`` as the value ``decimal(18`` and a key ``6)`` without a value.
    """
    if not isinstance(before, YamlScalar) or not isinstance(rest, YamlScalar):
        return None
    for opening, closing in ("()", "<>"):
        opened = before.text.count(opening) > before.text.count(closing)
        if opened and rest.text.count(closing) > rest.text.count(opening):
            return f"{before.text}, {rest.text}"
    return None


def is_rest(before: YamlNode, key: YamlScalar, value: YamlNode, is_closed: bool) -> bool:
    """Whether a key is the rest of a value that a comma split, and not a key.

    Such a rest is on the line of the value and has no value, not even an empty text.

    :param is_closed: whether keys that the schema does not have are errors.
    """
    is_alone = isinstance(value, YamlScalar) and value.value is None and value.text == ""
    is_bare = is_alone and key.place.line == before.place.line
    if split_by_comma(before, key) is not None:
        return is_closed or is_bare
    return is_bare and isinstance(before, YamlScalar) and before.text.count("(") > before.text.count(")")
