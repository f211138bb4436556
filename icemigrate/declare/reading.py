"""A migration's text → :class:`MigrationFile`, or every mistake in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from icemigrate.declare.alone import judged_alone, sound_part
from icemigrate.declare.composing import parse
from icemigrate.declare.expand import COPY_LIMIT, CopyBudget, Lists, expand
from icemigrate.declare.ignores import read_ignores
from icemigrate.declare.migration import (
    Allow,
    AllowKind,
    MigrationFile,
    NamespaceEntry,
    Replaces,
    TableEntry,
)
from icemigrate.declare.nodes import Mapping, Node, Scalar, Sequence
from icemigrate.declare.schema import Rule, load_schema
from icemigrate.declare.source import Source
from icemigrate.declare.tables import read_table
from icemigrate.declare.validate import validate
from icemigrate.declare.values import items, mapping, text
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Diagnostic, Place, renew_hints, sort_key
from icemigrate.frozen import Frozen, replace

_VARIABLE = "${"
"""What is told of a text with a variable is not told: nobody knows what will stand there."""

SMALLEST = "tables: [{name: market_data.trades, columns: [{name: symbol, type: string}]}]"
"""The smallest migration that does something; shown where a file is empty."""


class Read(Frozen):
    """What became of a file; ``migration`` is ``None`` exactly when the diagnostics hold an error."""

    migration: MigrationFile | None
    diagnostics: tuple[Diagnostic, ...]


def read_migration(
    source: Source, version: Version, name: str, lists: Lists | None = None, budget: CopyBudget | None = None
) -> Read:
    """Read one file.

    :param name: of the migration, from the file's name.
    :param lists: the project's lists, which ``for_each`` may name.
    :param budget: what the files that are read with this one share; one of its own where left out.
    """
    parsed = parse(source)
    if parsed.node is None:
        empty = Diagnostic(
            "empty-file", "the file is empty", Place(source.path), f"the smallest migration: {SMALLEST}"
        )
        return Read(None, (*parsed.diagnostics, *((empty,) if parsed.readable else ())))
    reader = _Reader(lists or {}, budget or CopyBudget())
    migration = reader.read(parsed.node, version, name, source.path)
    if migration is not None and (ignores := read_ignores(source)):
        migration = replace(migration, ignores=ignores)
    told = (*parsed.diagnostics, *reader.diagnostics)
    if told:
        # Nobody folds the file now, and so nobody else would tell of these.
        told = tuple(dict.fromkeys((*told, *reader.judged_alone())))
    diagnostics = tuple(sorted((*told, *parsed.warnings), key=sort_key))
    return Read(None if told else migration, diagnostics)


class _Reader:
    """One document. Table entries are checked one by one, so that a broken one hides no other mistake."""

    def __init__(self, lists: Lists, budget: CopyBudget) -> None:
        self.lists = lists
        self.budget = budget
        self.diagnostics: list[Diagnostic] = []
        self.schema = load_schema("migration")
        self.entries: list[TableEntry] = []

    def judged_alone(self) -> Iterator[Diagnostic]:
        """What is wrong with each entry by itself, with what is sound of a broken one too."""
        for entry in self.entries:
            yield from (one for one in judged_alone(entry) if _VARIABLE not in one.message)

    def read(self, root: Node, version: Version, name: str, path: str) -> MigrationFile | None:
        self.diagnostics.extend(validate(_without_tables(root), self.schema))
        if not isinstance(root, Mapping):
            return None
        sound = not self.diagnostics
        listed = root.get("tables")
        tables = self._tables(listed) if isinstance(listed, Sequence) else ()
        if not sound:
            return None
        namespaces = tuple(_namespace(item) for item in items(root.get("namespaces")))
        named = [(one.name, one.place, number) for number, one in enumerate(namespaces)]
        self._named_twice("duplicate-namespace", "namespace", named)
        description, because = root.get("description"), root.get("because")
        return MigrationFile(
            version,
            path,
            name,
            root.place,
            description=None if description is None else text(description),
            allow=_allow(root.get("allow")),
            because=None if because is None else text(because),
            namespaces=namespaces,
            tables=tables,
            replaces=self._replaces(root.get("replaces")),
            allow_place=root.key_place("allow"),
        )

    def _tables(self, listed: Sequence) -> tuple[TableEntry, ...]:
        rule = self.schema.definitions["table"]
        found: list[TableEntry] = []
        named: list[tuple[str, Place, int]] = []
        told: dict[Diagnostic, None] = {}
        made = 0
        renew_hints()
        for number, item in enumerate(listed.items):
            if not isinstance(item, Mapping):
                told.update(dict.fromkeys(validate(item, self.schema, rule, "tables", is_item=True)))
                continue
            for_each = item.get("for_each")
            if for_each is not None:
                wrong = validate(for_each, self.schema, rule.properties["for_each"], "for_each")
                told.update(dict.fromkeys(wrong))
                if wrong:
                    told.update(dict.fromkeys(self._beside_for_each(item, rule)))
                    continue
            copies, mistakes = expand(item, self.lists, self.budget)
            made += len(copies)
            if made > COPY_LIMIT:
                message = f"the entries of this file stand for more than {COPY_LIMIT:,} tables"
                wrong_here = Diagnostic("too-many-tables", message, item.place, "write several migrations")
                told[wrong_here] = None
                break
            told.update(dict.fromkeys(mistakes))
            if mistakes and for_each is not None:
                told.update(dict.fromkeys(self._beside_for_each(item, rule)))
            for copy in copies:
                wrong = validate(copy.node, self.schema, rule, "tables", is_item=True)
                if wrong:
                    told.update(dict.fromkeys((*wrong, *self._sound_part(copy.node, rule))))
                    continue
                entry, wrong = read_table(copy.node, copy.variables)
                found.append(entry)
                if entry.name:
                    named.append((entry.name, entry.place, number))
                told.update(dict.fromkeys(wrong))
        self.entries.extend(found)
        self.diagnostics.extend(told)
        self._named_twice("duplicate-table", "table", named)
        return tuple(found)

    def _sound_part(self, node: Mapping, rule: Rule) -> tuple[Diagnostic, ...]:
        """What reading tells of the rest of an entry that is not what the schema says."""
        rest = sound_part(node, self.schema, rule)
        if rest is None:
            return ()
        entry, mistakes = read_table(rest, {})
        self.entries.append(entry)
        return mistakes

    def _beside_for_each(self, item: Mapping, rule: Rule) -> Iterator[Diagnostic]:
        """What is wrong with an entry that cannot be repeated, where no variable has a part in it."""
        plain = replace(item, entries=tuple(pair for pair in item.entries if pair[0].text != "for_each"))
        wrong = validate(plain, self.schema, rule, "tables", is_item=True)
        yield from (one for one in (*wrong, *self._sound_part(plain, rule)) if _VARIABLE not in one.message)

    def _named_twice(self, code: str, what: str, named: list[tuple[str, Place, int]]) -> None:
        """A table or a namespace stands at most once in a file (fold, rule 7).

        :param named: each with the entry that it comes from; an alias is an entry of its own.
        """
        seen: dict[str, tuple[Place, int]] = {}
        told: dict[tuple[str, Place, bool], None] = {}
        for name, place, entry in named:
            if name in seen:
                told[(name, place, seen[name] == (place, entry))] = None
            else:
                seen[name] = (place, entry)
        for name, place, is_one_entry in told:
            first = seen[name][0]
            if is_one_entry:
                hint = "use the variable of `for_each` in the name"
                message = f"every value of `for_each` names the same {what}, `{name}`"
            elif first == place:
                hint = "leave the alias away"
                message = f"the {what} `{name}` stands twice in this file, once by an alias of its entry"
            else:
                hint = "write everything about it in one entry"
                message = f"the {what} `{name}` stands twice in this file, first on line {first.line}"
            self.diagnostics.append(Diagnostic(code, message, place, hint))

    def _replaces(self, node: Node | None) -> Replaces | None:
        if node is None:
            return None
        entry = mapping(node)
        first, last = (Version.parse(text(entry.get(key)).strip()) for key in ("from", "to"))
        if last < first:
            message = f"the range ends at {last}, before it begins at {first}"
            self.diagnostics.append(Diagnostic("bad-value", message, entry.key_place("to")))
        listed = entry.get("versions")
        versions = (
            [] if listed is None else [(Version.parse(k.text), text(v)) for k, v in mapping(listed).entries]
        )
        versions.sort(key=lambda one: one[0])
        return Replaces(first, last, text(entry.get("digest")), node.place, tuple(versions))


def _without_tables(root: Node) -> Node:
    """The document with an empty list of tables: they are checked one by one."""
    if not isinstance(root, Mapping) or not isinstance(root.get("tables"), Sequence):
        return root
    none: Node = Sequence((), root.place)
    return replace(
        root, entries=tuple((key, none if key.text == "tables" else value) for key, value in root.entries)
    )


def _allow(node: Node | None) -> tuple[Allow, ...]:
    given = (node,) if isinstance(node, Scalar) else items(node)
    found = []
    for one in given:
        kind, _, scope = text(one).strip().partition(" ")
        found.append(Allow(cast(AllowKind, kind), scope.strip() or None, one.place))
    return tuple(found)


def _namespace(node: Node) -> NamespaceEntry:
    return NamespaceEntry(text(node), node.place)
