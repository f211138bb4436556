"""A migration's text → :class:`MigrationFile`, or every mistake in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity, did_you_mean, renew_hints, sort_key
from icemigrate.files.parse.file_phrases import shorten_text
from icemigrate.files.parse.json_schemas import SchemaRule, load_schema
from icemigrate.files.parse.schema_validation import validate_node
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.files.read.entry_checks import check_entry, without_invalid_nodes
from icemigrate.files.read.for_each import COPY_LIMIT, CopyBudget, Lists, expand_for_each, expand_template
from icemigrate.files.read.ignore_comments import read_ignores
from icemigrate.files.read.list_sources import ListSource, ListValues, as_list_values
from icemigrate.files.read.migration_file import (
    AllowEntry,
    AllowKind,
    MigrationFile,
    NamespaceEntry,
    ReplacesEntry,
    TableEntry,
    TemplateEntry,
)
from icemigrate.files.read.node_values import as_mapping, list_items, scalar_text, time_zone_names
from icemigrate.files.read.table_entries import read_table
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace

_VARIABLE = "${"
"""A text with a variable is not checked: its final value is unknown here."""

SMALLEST = "tables: [{name: market_data.trades, columns: [{name: symbol, type: string}]}]"
"""The smallest migration that does something; shown where a file is empty."""


class MigrationReadResult(Frozen):
    """The result of reading a file; ``migration`` is ``None`` exactly when ``diagnostics`` has an error."""

    migration: MigrationFile | None
    diagnostics: tuple[Diagnostic, ...]


def read_migration(
    source: SourceText,
    version: Version,
    name: str,
    lists: Lists | None = None,
    budget: CopyBudget | None = None,
) -> MigrationReadResult:
    """Read one file.

    :param name: name of the migration, from the file's name.
    :param lists: the project's lists, which ``for_each`` may name.
    :param budget: the budget of the files that are read together; by default the file has its own.
    """
    parsed = parse_yaml(source)
    if parsed.node is None:
        empty = Diagnostic(
            "empty-file",
            "the file is empty",
            FilePosition(source.path),
            f"the smallest migration: {SMALLEST}",
        )
        return MigrationReadResult(None, (*parsed.diagnostics, *((empty,) if parsed.readable else ())))
    budget = budget or CopyBudget()
    if parsed.aliased and (exceeded := budget.take(0, parsed.aliased, 0)) is not None:
        message = f"the aliases and `for_each` entries of all files expand to more than {exceeded}"
        hint = "run `icemigrate squash --through VERSION` for older migrations, or use fewer aliases"
        return MigrationReadResult(None, (Diagnostic("too-many-nodes", message, parsed.node.place, hint),))
    reader = _Reader(lists or {}, budget)
    migration = reader.read(parsed.node, version, name, source.path)
    if migration is not None and (ignores := read_ignores(source)):
        migration = replace(migration, ignores=ignores)
    reported = (*parsed.diagnostics, *reader.diagnostics)
    if reported:
        # A file with errors is not replayed, so these are reported here.
        reported = tuple(dict.fromkeys((*reported, *reader.judged_alone())))
    warnings = (
        *parsed.warnings,
        *(_without_content(migration, source.path) if migration and not reported else ()),
    )
    diagnostics = tuple(sorted((*reported, *warnings), key=sort_key))
    return MigrationReadResult(None if reported else migration, diagnostics)


def _without_content(migration: MigrationFile, path: str) -> Iterator[Diagnostic]:
    """A migration that declares nothing, such as the file that `new` writes."""
    if not (migration.tables or migration.namespaces or migration.replaces):
        yield Diagnostic(
            "empty-migration",
            "the migration declares no table and no namespace, so it changes nothing",
            FilePosition(path),
            "declare the change under `tables`, or remove the file",
            Severity.WARNING,
        )


class _Reader:
    """One document. Table entries are checked one by one, so that an invalid one hides no other error."""

    def __init__(self, lists: Lists, budget: CopyBudget) -> None:
        self.lists = lists
        self.budget = budget
        self.diagnostics: list[Diagnostic] = []
        self.schema = load_schema("migration")
        self.entries: list[TableEntry] = []
        self.templates: list[TemplateEntry] = []

    def judged_alone(self) -> Iterator[Diagnostic]:
        """Errors of each entry that need no declared state, also of the valid part of an invalid entry."""
        for entry in self.entries:
            yield from (one for one in check_entry(entry) if _VARIABLE not in one.message)

    def read(self, root: YamlNode, version: Version, name: str, path: str) -> MigrationFile | None:
        self.diagnostics.extend(validate_node(_without_tables(root), self.schema))
        if not isinstance(root, YamlMapping):
            return None
        sound = not self.diagnostics
        listed = root.get("tables")
        tables = self._tables(listed) if isinstance(listed, YamlSequence) else ()
        if not sound:
            return None
        namespaces = tuple(_namespace(item) for item in list_items(root.get("namespaces")))
        named = [(one.name, one.place, number) for number, one in enumerate(namespaces)]
        self._named_twice("duplicate-namespace", "namespace", named)
        description, because = root.get("description"), root.get("because")
        return MigrationFile(
            version,
            path,
            name,
            root.place,
            description=None if description is None else scalar_text(description),
            allow=_allow(root.get("allow")),
            because=None if because is None else scalar_text(because),
            namespaces=namespaces,
            tables=tables,
            replaces=self._replaces(root.get("replaces")),
            allow_place=root.key_place("allow"),
            time_zone=self._time_zone(root.get("time_zone")),
            templates=tuple(self.templates),
            lists=self._list_values(),
        )

    def _list_values(self) -> tuple[ListValues, ...]:
        """The values of the lists that the templates name."""
        named = {name for template in self.templates for name in template.entry.sources.values()}
        found = {name: one for name, one in self.lists.items() if isinstance(one, ListSource)}
        return as_list_values({name: found[name].values or () for name in named})

    def _time_zone(self, node: YamlNode | None) -> str | None:
        if node is None:
            return None
        name = scalar_text(node)
        # Without a database of zones, every name of the right form passes; Spark refuses the others.
        known = frozenset[str]() if name[0] in "+-" else time_zone_names()
        if known and name not in known:
            message = f"there is no time zone {shorten_text(name)}"
            hint = did_you_mean(name, known) or "write `UTC` or a name of a region, such as `Europe/Berlin`"
            self.diagnostics.append(Diagnostic("bad-value", message, node.place, hint))
        return name

    def _tables(self, listed: YamlSequence) -> tuple[TableEntry, ...]:
        rule = self.schema.definitions["table"]
        found: list[TableEntry] = []
        named: list[tuple[str, FilePosition, int]] = []
        reported: dict[Diagnostic, None] = {}
        made = 0
        renew_hints()
        for number, item in enumerate(listed.items):
            if not isinstance(item, YamlMapping):
                reported.update(dict.fromkeys(validate_node(item, self.schema, rule, "tables", is_item=True)))
                continue
            for_each = item.get("for_each")
            if for_each is not None:
                wrong = validate_node(for_each, self.schema, rule.properties["for_each"], "for_each")
                reported.update(dict.fromkeys(wrong))
                if wrong:
                    reported.update(dict.fromkeys(self._beside_for_each(item, rule)))
                    continue
                reported_template = self._template(item, rule)
                if reported_template:
                    reported.update(dict.fromkeys(reported_template))
                    continue
            copies, mistakes = expand_for_each(item, self.lists, self.budget)
            made += len(copies)
            if made > COPY_LIMIT:
                message = f"the entries of this file expand to more than {COPY_LIMIT:,} tables"
                wrong_here = Diagnostic("too-many-tables", message, item.place, "write several migrations")
                reported[wrong_here] = None
                break
            reported.update(dict.fromkeys(mistakes))
            if mistakes and for_each is not None:
                reported.update(dict.fromkeys(self._beside_for_each(item, rule)))
            for copy in copies:
                wrong = validate_node(copy.node, self.schema, rule, "tables", is_item=True)
                if wrong:
                    reported.update(dict.fromkeys((*wrong, *self._sound_part(copy.node, rule))))
                    continue
                entry, wrong = read_table(copy.node, copy.variables)
                if copy.sources:
                    entry = replace(entry, sources=copy.sources)
                found.append(entry)
                if entry.name:
                    named.append((entry.name, entry.place, number))
                reported.update(dict.fromkeys(wrong))
        self.entries.extend(found)
        self.diagnostics.extend(reported)
        self._named_twice("duplicate-table", "table", named)
        return tuple(found)

    def _template(self, item: YamlMapping, rule: SchemaRule) -> tuple[Diagnostic, ...]:
        """Read an entry with placeholders for the values of lists that are no part of the project file."""
        reported: dict[Diagnostic, None] = {}
        for copy in expand_template(item, self.lists):
            if wrong := validate_node(copy.node, self.schema, rule, "tables", is_item=True):
                reported.update(dict.fromkeys((*wrong, *self._sound_part(copy.node, rule))))
                continue
            entry, wrong = read_table(copy.node, copy.variables)
            reported.update(dict.fromkeys(wrong))
            sources = {v: self._source(name) for v, name in copy.sources.items()}
            self.templates.append(TemplateEntry(replace(entry, sources=copy.sources), sources))
        return tuple(reported)

    def _source(self, name: str) -> str:
        source = self.lists[name]
        assert isinstance(source, ListSource), "only such lists are sources"
        return source.counted

    def _sound_part(self, node: YamlMapping, rule: SchemaRule) -> tuple[Diagnostic, ...]:
        """Errors of the part of an entry that the schema allows."""
        rest = without_invalid_nodes(node, self.schema, rule)
        if rest is None:
            return ()
        entry, mistakes = read_table(rest, {})
        self.entries.append(entry)
        return mistakes

    def _beside_for_each(self, item: YamlMapping, rule: SchemaRule) -> Iterator[Diagnostic]:
        """Errors of an entry that cannot be expanded, without those that depend on a variable."""
        plain = replace(item, entries=tuple(pair for pair in item.entries if pair[0].text != "for_each"))
        wrong = validate_node(plain, self.schema, rule, "tables", is_item=True)
        yield from (one for one in (*wrong, *self._sound_part(plain, rule)) if _VARIABLE not in one.message)

    def _named_twice(self, code: str, what: str, named: list[tuple[str, FilePosition, int]]) -> None:
        """Report tables and namespaces that a file declares twice.

        :param named: names with their entries; an alias counts as its own entry.
        """
        seen: dict[str, tuple[FilePosition, int]] = {}
        reported: dict[tuple[str, FilePosition, bool], None] = {}
        for name, place, entry in named:
            if name in seen:
                reported[(name, place, seen[name] == (place, entry))] = None
            else:
                seen[name] = (place, entry)
        for name, place, is_one_entry in reported:
            first = seen[name][0]
            if is_one_entry:
                hint = "use the variable of `for_each` in the name"
                message = f"every value of `for_each` names the same {what}, `{name}`"
            elif first == place:
                hint = "remove the alias"
                message = f"the {what} `{name}` occurs twice in this file, once through an alias of its entry"
            else:
                hint = "write everything about it in one entry"
                message = f"the {what} `{name}` occurs twice in this file, first on line {first.line}"
            self.diagnostics.append(Diagnostic(code, message, place, hint))

    def _replaces(self, node: YamlNode | None) -> ReplacesEntry | None:
        if node is None:
            return None
        entry = as_mapping(node)
        first, last = (Version.parse(scalar_text(entry.get(key)).strip()) for key in ("from", "to"))
        if last < first:
            message = f"the range ends at {last}, before it begins at {first}"
            self.diagnostics.append(Diagnostic("bad-value", message, entry.key_place("to")))
        listed = entry.get("versions")
        versions = (
            []
            if listed is None
            else [(Version.parse(k.text), scalar_text(v)) for k, v in as_mapping(listed).entries]
        )
        versions.sort(key=lambda one: one[0])
        return ReplacesEntry(first, last, scalar_text(entry.get("digest")), node.place, tuple(versions))


def _without_tables(root: YamlNode) -> YamlNode:
    """The document with an empty list of tables: they are checked one by one."""
    if not isinstance(root, YamlMapping) or not isinstance(root.get("tables"), YamlSequence):
        return root
    none: YamlNode = YamlSequence((), root.place)
    return replace(
        root, entries=tuple((key, none if key.text == "tables" else value) for key, value in root.entries)
    )


def _allow(node: YamlNode | None) -> tuple[AllowEntry, ...]:
    given = (node,) if isinstance(node, YamlScalar) else list_items(node)
    found = []
    for one in given:
        kind, _, scope = scalar_text(one).strip().partition(" ")
        found.append(AllowEntry(cast(AllowKind, kind), scope.strip() or None, one.place))
    return tuple(found)


def _namespace(node: YamlNode) -> NamespaceEntry:
    return NamespaceEntry(scalar_text(node), node.place)
