"""``for_each``: one written table entry → one entry for each value, or for each combination of values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping as Dict

from icemigrate.diagnostics import Diagnostic, did_you_mean
from icemigrate.files.parse.file_phrases import shorten_text
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.files.read.list_sources import ListSource
from icemigrate.files.read.node_values import list_items, mapping_entries, scalar_text
from icemigrate.frozen import Frozen, field, replace

COPY_LIMIT = 10_000
"""The number of tables that one entry may expand to."""

PARTS_LIMIT = 400_000
"""How many keys, values and lists the copies of one entry may have together."""
CHARACTERS_LIMIT = 20_000_000
"""How long the texts with variables in them may be together, in all copies of one entry."""
LIMITED_BYTES = 1_000_000
"""The size of a project up to which its limits are constant; above it they grow with the size."""
ALL_COPIES_LIMIT = 27_000
"""As :data:`COPY_LIMIT`, for all entries with ``for_each`` of a project."""
ALL_PARTS_LIMIT = 2_000_000
"""As :data:`PARTS_LIMIT`, for all entries with ``for_each`` of a project."""
ALL_CHARACTERS_LIMIT = 75_000_000
"""As :data:`CHARACTERS_LIMIT`, for all entries with ``for_each`` of a project."""

_VARIABLE = re.compile(r"\$(\$)?\{([^}]*)\}")

Lists = Dict[str, "tuple[str, ...] | ListSource"]
"""The lists of the project file, by name."""


class EntryCopy(Frozen):
    """A table entry without ``for_each``, and the values of its variables.

    :param sources: the names of the lists that are no part of the project file, by variable.
    """

    node: YamlMapping
    variables: Dict[str, str]
    sources: Dict[str, str] = field(default_factory=dict)


class CopyBudget:
    """The expanded size of all aliases and entries with ``for_each`` in a project, and its limits."""

    __slots__ = ("characters", "copies", "parts", "size")

    def __init__(self) -> None:
        self.copies = 0
        self.parts = 0
        self.characters = 0
        self.size = 0

    def add_file(self, size: int) -> None:
        """Count the bytes of a file, which raise the limits of large projects."""
        self.size += size

    def take(self, copies: int, parts: int, characters: int) -> str | None:
        """Count the copies of an entry or of aliases; returns the limit of the project that they exceed."""
        self.copies += copies
        self.parts += parts
        self.characters += characters
        for taken, least, what in (
            (self.copies, ALL_COPIES_LIMIT, "tables"),
            (self.parts, ALL_PARTS_LIMIT, "keys, values and lists"),
            (self.characters, ALL_CHARACTERS_LIMIT, "characters"),
        ):
            limit = least * max(self.size, LIMITED_BYTES) // LIMITED_BYTES
            if taken > limit:
                return f"{limit:,} {what}"
        return None


def expand_for_each(
    entry: YamlMapping, lists: Lists, budget: CopyBudget
) -> tuple[tuple[EntryCopy, ...], tuple[Diagnostic, ...]]:
    """Repeat an entry whose ``for_each`` is valid; an entry without it is returned as it is."""
    for_each = entry.get("for_each")
    if for_each is None:
        return (EntryCopy(entry, {}),), _names_without_values(entry)
    diagnostics: list[Diagnostic] = []
    values: dict[str, tuple[str, ...]] = {}
    sources: dict[str, str] = {}
    for variable, given in mapping_entries(for_each):
        if isinstance(given, YamlSequence):
            values[variable.text] = _without_doubles(given, variable, diagnostics)
        elif (named := lists.get(scalar_text(given))) is not None:
            if isinstance(named, ListSource):
                sources[variable.text] = scalar_text(given)
                named = named.values_of(variable.text)
            values[variable.text] = named
        else:
            hint = (
                did_you_mean(scalar_text(given), lists)
                or "write the list here, or under `lists` in the project file"
            )
            message = f"there is no list {shorten_text(scalar_text(given))} in the project file"
            diagnostics.append(Diagnostic("unknown-list", message, given.place, hint))
    count = 1
    for one in values.values():
        count *= len(one)
    if count > COPY_LIMIT:
        message = f"this expands to {count:,} tables, more than {COPY_LIMIT:,}"
        diagnostics.append(Diagnostic("too-many-tables", message, for_each.place))
    if diagnostics:
        return (), tuple(diagnostics)
    if (wrong := _too_much(entry, for_each, values, count, budget)) is not None:
        return (), (wrong,)
    plain = YamlMapping(tuple(pair for pair in entry.entries if pair[0].text != "for_each"), entry.place)
    unknown: dict[Diagnostic, None] = {}
    copies = []
    for chosen in itertools.product(*values.values()):
        variables = dict(zip(values, chosen, strict=True))
        node = _substitute(plain, variables, unknown)
        assert isinstance(node, YamlMapping)
        copies.append(EntryCopy(node, variables, sources))
    return (() if unknown else tuple(copies)), tuple(unknown)


def expand_template(entry: YamlMapping, lists: Lists) -> tuple[EntryCopy, ...]:
    """Repeat an entry with a placeholder for each list whose values are not in the project file.

    Empty for an entry that names no such list, or that cannot be expanded.
    """
    named = {
        scalar_text(given) for _, given in mapping_entries(entry.get("for_each")) if type(given) is YamlScalar
    }
    if not any(isinstance(lists.get(name), ListSource) for name in named):
        return ()
    unknown = {
        name: replace(one, values=None, named=()) if isinstance(one, ListSource) else one
        for name, one in lists.items()
    }
    return expand_for_each(entry, unknown, CopyBudget())[0]


def _too_much(
    entry: YamlMapping, for_each: YamlNode, values: Dict[str, tuple[str, ...]], count: int, budget: CopyBudget
) -> Diagnostic | None:
    """The error of an entry whose copies would fill the memory, found before any copy is made."""
    longest = max((len(value) for given in values.values() for value in given), default=0)
    nodes, characters = 0, 0
    left: list[YamlNode] = [entry]
    while left:
        node = left.pop()
        nodes += 1
        if isinstance(node, YamlScalar):
            if "${" in node.text:
                characters += len(node.text) + node.text.count("${") * longest
        elif isinstance(node, YamlSequence):
            left.extend(node.items)
        else:
            left.extend(part for pair in node.entries if pair[0].text != "for_each" for part in pair)
    if count * nodes > PARTS_LIMIT:
        message = (
            f"this expands to {count:,} copies of an entry of {nodes:,} parts, {count * nodes:,} in all; "
            f"the limit is {PARTS_LIMIT:,}"
        )
    elif count * characters > CHARACTERS_LIMIT:
        message = (
            f"this expands to {count:,} copies with {characters:,} characters each, "
            f"{count * characters:,} in all; the limit is {CHARACTERS_LIMIT:,}"
        )
    else:
        exceeded = budget.take(count, count * nodes, count * characters)
        if exceeded is None:
            return None
        message = f"the `for_each` entries and aliases of all files expand to more than {exceeded}"
        hint = "run `icemigrate squash --through VERSION` for older migrations, or use fewer values"
        return Diagnostic("too-many-tables", message, for_each.place, hint)
    return Diagnostic(
        "too-many-tables", message, for_each.place, "write several migrations, with fewer values"
    )


def _without_doubles(
    given: YamlSequence, variable: YamlScalar, diagnostics: list[Diagnostic]
) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    for item in list_items(given):
        if scalar_text(item) in seen:
            message = f"{shorten_text(scalar_text(item))} occurs twice in the values of `{variable.text}`"
            diagnostics.append(Diagnostic("listed-twice", message, item.place))
        seen[scalar_text(item)] = None
    return tuple(seen)


def _names_without_values(entry: YamlMapping) -> tuple[Diagnostic, ...]:
    name = entry.get("name")
    if not isinstance(name, YamlScalar) or not (found := _VARIABLE.search(name.text)) or found.group(1):
        return ()
    message = f"`{found.group(0)}` has no value"
    variable = found.group(2) or "variable"
    return (
        Diagnostic(
            "unknown-variable", message, name.place, f"add `for_each: {{{variable}: […]}}` to this table"
        ),
    )


def _substitute(node: YamlNode, variables: Dict[str, str], unknown: dict[Diagnostic, None]) -> YamlNode:
    """Put values in for variables in every text, keys included. ``$${x}`` stays as ``${x}``."""
    if isinstance(node, YamlScalar):
        if not isinstance(node.value, str) or "${" not in node.value:
            return node
        put = _substitute_text(node, variables, unknown)
        return YamlScalar(put, put, node.place)
    if isinstance(node, YamlSequence):
        return YamlSequence(tuple(_substitute(item, variables, unknown) for item in node.items), node.place)
    pairs = []
    for key, value in node.entries:
        new_key = _substitute(key, variables, unknown)
        assert isinstance(new_key, YamlScalar)
        pairs.append((new_key, _substitute(value, variables, unknown)))
    return YamlMapping(tuple(pairs), node.place)


def _substitute_text(node: YamlScalar, variables: Dict[str, str], unknown: dict[Diagnostic, None]) -> str:
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
