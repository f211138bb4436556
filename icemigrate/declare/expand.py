"""``for_each``: one written table entry → one entry for each value, or for each combination of values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping as Dict

from icemigrate.declare.nodes import Mapping, Node, Scalar, Sequence
from icemigrate.declare.phrases import shorten
from icemigrate.declare.values import entries, items, text
from icemigrate.diagnostics import Diagnostic, did_you_mean
from icemigrate.frozen import Frozen

COPY_LIMIT = 10_000
"""How many tables one entry may stand for."""

PARTS_LIMIT = 400_000
"""How many keys, values and lists the copies of one entry may have together."""
CHARACTERS_LIMIT = 20_000_000
"""How long the texts with variables in them may be together, in all copies of one entry."""
ALL_COPIES_LIMIT = 40_000
"""As :data:`COPY_LIMIT`, for all entries with ``for_each`` of a project."""
ALL_PARTS_LIMIT = 1_000_000
"""As :data:`PARTS_LIMIT`, for all entries with ``for_each`` of a project."""
ALL_CHARACTERS_LIMIT = 50_000_000
"""As :data:`CHARACTERS_LIMIT`, for all entries with ``for_each`` of a project."""

_VARIABLE = re.compile(r"\$(\$)?\{([^}]*)\}")

Lists = Dict[str, tuple[str, ...]]
"""The lists of the project file, by name."""


class Copy(Frozen):
    """A table entry without ``for_each``, and what was put in for the variables."""

    node: Mapping
    variables: Dict[str, str]


class CopyBudget:
    """How much the entries with ``for_each`` of a project may still stand for; each one takes its share."""

    __slots__ = ("characters", "copies", "parts")

    def __init__(self) -> None:
        self.copies = ALL_COPIES_LIMIT
        self.parts = ALL_PARTS_LIMIT
        self.characters = ALL_CHARACTERS_LIMIT

    def take(self, copies: int, parts: int, characters: int) -> str | None:
        """Count the copies of an entry; says which limit of the project they exceed."""
        self.copies -= copies
        self.parts -= parts
        self.characters -= characters
        if self.copies < 0:
            return f"{ALL_COPIES_LIMIT:,} tables"
        if self.parts < 0:
            return f"{ALL_PARTS_LIMIT:,} keys, values and lists"
        return f"{ALL_CHARACTERS_LIMIT:,} characters" if self.characters < 0 else None


def expand(
    entry: Mapping, lists: Lists, budget: CopyBudget
) -> tuple[tuple[Copy, ...], tuple[Diagnostic, ...]]:
    """Repeat an entry whose ``for_each`` fits the schema; one without it is its own only copy."""
    for_each = entry.get("for_each")
    if for_each is None:
        return (Copy(entry, {}),), _names_without_values(entry)
    diagnostics: list[Diagnostic] = []
    values: dict[str, tuple[str, ...]] = {}
    for variable, given in entries(for_each):
        if isinstance(given, Sequence):
            values[variable.text] = _without_doubles(given, variable, diagnostics)
        elif (named := lists.get(text(given))) is not None:
            values[variable.text] = named
        else:
            hint = (
                did_you_mean(text(given), lists)
                or "write the list here, or under `lists` in the project file"
            )
            message = f"there is no list {shorten(text(given))} in the project file"
            diagnostics.append(Diagnostic("unknown-list", message, given.place, hint))
    count = 1
    for one in values.values():
        count *= len(one)
    if count > COPY_LIMIT:
        message = f"this stands for {count:,} tables, more than {COPY_LIMIT:,}"
        diagnostics.append(Diagnostic("too-many-tables", message, for_each.place))
    if diagnostics:
        return (), tuple(diagnostics)
    if (wrong := _too_much(entry, for_each, values, count, budget)) is not None:
        return (), (wrong,)
    plain = Mapping(tuple(pair for pair in entry.entries if pair[0].text != "for_each"), entry.place)
    unknown: dict[Diagnostic, None] = {}
    copies = []
    for chosen in itertools.product(*values.values()):
        variables = dict(zip(values, chosen, strict=True))
        node = _substitute(plain, variables, unknown)
        assert isinstance(node, Mapping)
        copies.append(Copy(node, variables))
    return (() if unknown else tuple(copies)), tuple(unknown)


def _too_much(
    entry: Mapping, for_each: Node, values: Dict[str, tuple[str, ...]], count: int, budget: CopyBudget
) -> Diagnostic | None:
    """What is wrong where the copies of an entry would fill the memory, before any of them is made."""
    longest = max((len(value) for given in values.values() for value in given), default=0)
    nodes, characters = 0, 0
    left: list[Node] = [entry]
    while left:
        node = left.pop()
        nodes += 1
        if isinstance(node, Scalar):
            if "${" in node.text:
                characters += len(node.text) + node.text.count("${") * longest
        elif isinstance(node, Sequence):
            left.extend(node.items)
        else:
            left.extend(part for pair in node.entries if pair[0].text != "for_each" for part in pair)
    if count * nodes > PARTS_LIMIT:
        message = (
            f"this stands for {count:,} copies of an entry of {nodes:,} parts, {count * nodes:,} in all; "
            f"at most {PARTS_LIMIT:,} are made"
        )
    elif count * characters > CHARACTERS_LIMIT:
        message = (
            f"this stands for {count:,} copies with {characters:,} characters each, "
            f"{count * characters:,} in all; at most {CHARACTERS_LIMIT:,} are made"
        )
    else:
        exceeded = budget.take(count, count * nodes, count * characters)
        if exceeded is None:
            return None
        message = f"the entries with `for_each` of all files together stand for more than {exceeded}"
        hint = "use fewer values, or `icemigrate squash` the applied migrations"
        return Diagnostic("too-many-tables", message, for_each.place, hint)
    return Diagnostic(
        "too-many-tables", message, for_each.place, "write several migrations, with fewer values"
    )


def _without_doubles(given: Sequence, variable: Scalar, diagnostics: list[Diagnostic]) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    for item in items(given):
        if text(item) in seen:
            message = f"{shorten(text(item))} stands twice in the values of `{variable.text}`"
            diagnostics.append(Diagnostic("listed-twice", message, item.place))
        seen[text(item)] = None
    return tuple(seen)


def _names_without_values(entry: Mapping) -> tuple[Diagnostic, ...]:
    name = entry.get("name")
    if not isinstance(name, Scalar) or not (found := _VARIABLE.search(name.text)) or found.group(1):
        return ()
    message = f"nothing says what `{found.group(0)}` stands for"
    variable = found.group(2) or "variable"
    return (
        Diagnostic(
            "unknown-variable", message, name.place, f"add `for_each: {{{variable}: […]}}` to this table"
        ),
    )


def _substitute(node: Node, variables: Dict[str, str], unknown: dict[Diagnostic, None]) -> Node:
    """Put values in for variables in every text, keys included. ``$${x}`` stays as ``${x}``."""
    if isinstance(node, Scalar):
        if not isinstance(node.value, str) or "${" not in node.value:
            return node
        put = _put(node, variables, unknown)
        return Scalar(put, put, node.place)
    if isinstance(node, Sequence):
        return Sequence(tuple(_substitute(item, variables, unknown) for item in node.items), node.place)
    pairs = []
    for key, value in node.entries:
        new_key = _substitute(key, variables, unknown)
        assert isinstance(new_key, Scalar)
        pairs.append((new_key, _substitute(value, variables, unknown)))
    return Mapping(tuple(pairs), node.place)


def _put(node: Scalar, variables: Dict[str, str], unknown: dict[Diagnostic, None]) -> str:
    def value_of(found: re.Match[str]) -> str:
        if found.group(1):
            return found.group(0)[1:]
        name = found.group(2)
        if name not in variables:
            hint = did_you_mean(name, variables) or "known here: " + ", ".join(variables)
            unknown[Diagnostic("unknown-variable", f"`${{{name}}}` is not a variable", node.place, hint)] = (
                None
            )
            return found.group(0)
        return variables[name]

    return _VARIABLE.sub(value_of, node.text)
