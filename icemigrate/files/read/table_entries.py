"""Reads a table's node that matches the schema as :class:`TableEntry`."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from typing import cast

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.parse.file_phrases import shorten_text
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read import data_step_reader
from icemigrate.files.read.column_entries import ColumnReader
from icemigrate.files.read.cut_values import split_by_comma
from icemigrate.files.read.migration_file import (
    UNSET,
    DistributionMode,
    DropColumnEntry,
    KeyPath,
    Reference,
    TableEntry,
    Unset,
)
from icemigrate.files.read.node_values import (
    as_mapping,
    list_items,
    mapping_entries,
    nullable_text,
    optional_text,
    property_text,
    read_flag,
    read_keep_view,
    read_reference,
    read_retention,
    scalar_text,
    utc_time,
    whole_number,
)
from icemigrate.iceberg.snapshot_pins import PIN_KEYS

_BESIDE_DROP = frozenset({"name", "drop"})


def read_table(node: YamlMapping, variables: Dict[str, str]) -> tuple[TableEntry, tuple[Diagnostic, ...]]:
    """Read one table entry; valid only when it has no diagnostics."""
    reader = _TableReader(node)
    return reader.read(variables), tuple(reader.diagnostics)


class _TableReader:
    """Reads the keys of one entry, and collects positions and diagnostics."""

    def __init__(self, node: YamlMapping) -> None:
        self.node = node
        self.places: dict[KeyPath, FilePosition] = {}
        self.diagnostics: list[Diagnostic] = []

    def read(self, variables: Dict[str, str]) -> TableEntry:
        node = self.node
        for key, value in node.entries:
            self.places[(key.text,)] = value.place if isinstance(value, YamlScalar) else key.place
        named = node.get("name") or node.get("match")
        assert named is not None
        self._check_combinations()
        number, policy = node.get("format_version"), node.get("retention")
        if policy is not None:
            self._note_nested(policy, ("retention",))
        if (kept := node.get("keep_view")) is not None:
            self._note_nested(kept, ("keep_view",))
        for listed in ("retype", "backfill", "checks"):
            self.places.update(data_step_reader.item_positions(listed, node.get(listed)))
        name, match = optional_text(node.get("name")), optional_text(node.get("match"))
        distribution = optional_text(node.get("write_distribution"))
        restored = self._columns_with("refill", "restore_columns")
        return TableEntry(
            None if name is UNSET else name,
            None if match is UNSET else match,
            named.place,
            variables,
            description=nullable_text(node.get("description")),
            renamed_from=optional_text(node.get("renamed_from")),
            renames=self._renames(),
            keep_view=read_keep_view(node.get("keep_view")),
            columns=ColumnReader(self.places, self.diagnostics).columns(node.get("columns")),
            drop_columns=tuple(DropColumnEntry(*one) for one in self._columns_with("purge", "drop_columns")),
            restore_columns=tuple(name for name, _, _ in restored),
            refilled=tuple(sorted(name for name, is_refilled, _ in restored if is_refilled)),
            identifier=self._names("identifier"),
            partition_by=self._terms("partition_by"),
            sort_by=self._terms("sort_by"),
            write_distribution=cast("DistributionMode | Unset", distribution),
            properties={key: property_text(value) for key, value in self._by_name("properties").items()},
            retention=UNSET if policy is None else read_retention(policy),
            branches=self._references("branches"),
            tags=self._references("tags"),
            format_version=UNSET if number is None else whole_number(number),
            location=optional_text(node.get("location")),
            adopt=read_flag(node.get("adopt")),
            drop=read_flag(node.get("drop")),
            retype=data_step_reader.read_retypes(node.get("retype")),
            backfill=data_step_reader.read_backfills(node.get("backfill")),
            checks=data_step_reader.read_checks(node.get("checks")),
            rewrites_old=node.get("rewrite") is not None,
            places=self.places,
        )

    def _check_combinations(self) -> None:
        """Refuse other keys beside ``drop``, and a pattern that renames several tables to one name."""
        if read_flag(self.node.get("drop")):
            for key, _ in self.node.entries:
                if key.text not in _BESIDE_DROP and key.text != "match":
                    message = f"`{key.text}` cannot be combined with `drop: true`"
                    self._add("conflicting-keys", message, key.place, "remove one of the two")
        if self.node.get("match") is not None:
            for word in ("renamed_from", "location"):
                if self.node.get(word) is not None:
                    message = f"`{word}` cannot be combined with `match`, which may select many tables"
                    self._add(
                        "conflicting-keys", message, self.node.key_place(word), "use `name`, or `for_each`"
                    )
            kept = self.node.get("keep_view")
            if isinstance(kept, YamlMapping) and kept.get("name") is not None:
                message = "a view's `name` cannot be combined with `match`, which may select many tables"
                self._add("conflicting-keys", message, kept.key_place("name"), "remove the `name`")

    def _renames(self) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        taken: dict[tuple[str, str], str] = {}
        for old, new in mapping_entries(self.node.get("renames")):
            self.places[("renames", old.text)] = old.place
            self.places[("renames", old.text, "to")] = new.place
            parent = old.text.rpartition(".")[0]
            other = taken.setdefault((parent, scalar_text(new)), old.text)
            if other != old.text:
                message = f"`{other}` and `{old.text}` cannot both be renamed to `{scalar_text(new)}`"
                self._add("duplicate-column", message, new.place)
            found.append((old.text, scalar_text(new)))
        return tuple(found)

    def _columns_with(self, option: str, key: str) -> list[tuple[str, bool, FilePosition]]:
        """The columns of a list: names, or mappings of a name and an option."""
        found = []
        for item in list_items(self.node.get(key)):
            name = item if isinstance(item, YamlScalar) else as_mapping(item).get("name")
            is_set = not isinstance(item, YamlScalar) and read_flag(as_mapping(item).get(option))
            assert name is not None
            self._once(key, scalar_text(name), name.place)
            found.append((scalar_text(name), is_set, name.place))
        return found

    def _names(self, key: str) -> tuple[str, ...] | Unset:
        if self.node.get(key) is None:
            return UNSET
        listed = list_items(self.node.get(key))
        for item in listed:
            self._once(key, scalar_text(item), item.place)
        return tuple(scalar_text(item) for item in listed)

    def _once(self, key: str, name: str, place: FilePosition) -> None:
        if (key, name) not in self.places:
            self.places[(key, name)] = place
        else:
            self._add("listed-twice", f"`{name}` occurs twice in `{key}`", place, "remove one of the two")

    def _terms(self, key: str) -> tuple[str, ...] | Unset:
        node = self.node.get(key)
        if node is None:
            return UNSET
        before: YamlNode | None = None
        for index, item in enumerate(list_items(node)):
            self.places[(key, str(index))] = item.place
            if (whole := split_by_comma(before, item)) is not None:
                message = f"the comma before {shorten_text(scalar_text(item))} ends the term"
                self._add("split-value", message, item.place, f'put the whole term in quotes: "{whole}"')
            before = item
        return tuple(scalar_text(item) for item in list_items(node))

    def _by_name(self, key: str) -> dict[str, YamlNode]:
        found = {}
        for name, value in mapping_entries(self.node.get(key)):
            self.places[(key, name.text)] = name.place
            self._note_nested(value, (key, name.text))
            found[name.text] = value
        return found

    def _references(self, key: str) -> dict[str, Reference | None]:
        found = self._by_name(key)
        for node in (value for value in found.values() if isinstance(value, YamlMapping)):
            pins = [k for k, _ in node.entries if k.text in PIN_KEYS]
            for other in pins[1:]:
                message = f"`{pins[0].text}` and `{other.text}` cannot be combined"
                self._add("conflicting-keys", message, other.place, "remove one of the two")
            at = node.get("as_of")
            if at is not None and utc_time(scalar_text(at).strip()) is None:
                self._add("bad-value", f"{shorten_text(scalar_text(at))} is not a time", at.place)
        return {name: read_reference(value) for name, value in found.items()}

    def _note_nested(self, node: YamlNode, subject: KeyPath) -> None:
        if isinstance(node, YamlMapping):
            for key, value in node.entries:
                below = (*subject, key.text)
                self.places[below] = value.place if isinstance(value, YamlScalar) else key.place
                self._note_nested(value, below)

    def _add(self, code: str, message: str, place: FilePosition, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, place, hint))
