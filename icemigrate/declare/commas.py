"""Values that an unquoted comma inside ``{ }`` or ``[ ]`` has cut in two."""

from __future__ import annotations

from icemigrate.declare.nodes import Node, Scalar


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


def is_rest(before: Node, key: Scalar, value: Node, is_closed: bool) -> bool:
    """Whether a key is the rest of a value, or of the first of several commas, rather than a key.

    What a comma has cut off stands on the value's line and has no value of its own, not even an empty text.

    :param is_closed: whether other keys than the known ones are mistakes anyway.
    """
    is_alone = isinstance(value, Scalar) and value.value is None and value.text == ""
    is_bare = is_alone and key.place.line == before.place.line
    if split_by_comma(before, key) is not None:
        return is_closed or is_bare
    return is_bare and isinstance(before, Scalar) and before.text.count("(") > before.text.count(")")
