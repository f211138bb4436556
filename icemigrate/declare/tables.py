"""A table's node, found to fit the schema → :class:`TableEntry`."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from typing import cast

from icemigrate.declare import data_reading
from icemigrate.declare.columns import ColumnReader
from icemigrate.declare.commas import split_by_comma
from icemigrate.declare.migration import (
    UNSET,
    DropColumn,
    Subject,
    TableEntry,
    Unset,
    WriteDistribution,
)
from icemigrate.declare.nodes import Mapping, Node, Scalar
from icemigrate.declare.phrases import shorten
from icemigrate.declare.values import (
    entries,
    flag,
    items,
    mapping,
    nullable_text,
    optional_text,
    property_text,
    reference,
    retention,
    text,
    whole_number,
)
from icemigrate.diagnostics import Diagnostic, Place

_BESIDE_DROP = frozenset({"name", "drop"})


def read_table(node: Mapping, variables: Dict[str, str]) -> tuple[TableEntry, tuple[Diagnostic, ...]]:
    """Read one table entry; it is of use only when no diagnostics come with it."""
    reader = _TableReader(node)
    return reader.read(variables), tuple(reader.diagnostics)


class _TableReader:
    """The keys of one entry, with places and mistakes collected while reading."""

    def __init__(self, node: Mapping) -> None:
        self.node = node
        self.places: dict[Subject, Place] = {}
        self.diagnostics: list[Diagnostic] = []

    def read(self, variables: Dict[str, str]) -> TableEntry:
        node = self.node
        for key, value in node.entries:
            self.places[(key.text,)] = value.place if isinstance(value, Scalar) else key.place
        named = node.get("name") or node.get("match")
        assert named is not None
        self._standing_alone()
        number, policy = node.get("format_version"), node.get("retention")
        if policy is not None:
            self._note_nested(policy, ("retention",))
        for listed in ("retype", "backfill", "checks"):
            self.places.update(data_reading.places(listed, node.get(listed)))
        name, match = optional_text(node.get("name")), optional_text(node.get("match"))
        distribution = optional_text(node.get("write_distribution"))
        return TableEntry(
            None if name is UNSET else name,
            None if match is UNSET else match,
            named.place,
            variables,
            description=nullable_text(node.get("description")),
            renamed_from=optional_text(node.get("renamed_from")),
            renames=self._renames(),
            columns=ColumnReader(self.places, self.diagnostics).columns(node.get("columns")),
            drop_columns=self._drop_columns(),
            restore_columns=self._restore_columns(),
            refilled=self._refilled(),
            identifier=self._names("identifier"),
            partition_by=self._terms("partition_by"),
            sort_by=self._terms("sort_by"),
            write_distribution=cast("WriteDistribution | Unset", distribution),
            properties={key: property_text(value) for key, value in self._by_name("properties").items()},
            retention=UNSET if policy is None else retention(policy),
            branches={key: reference(value) for key, value in self._by_name("branches").items()},
            tags={key: reference(value) for key, value in self._by_name("tags").items()},
            format_version=UNSET if number is None else whole_number(number),
            location=optional_text(node.get("location")),
            adopt=flag(node.get("adopt")),
            drop=flag(node.get("drop")),
            retype=data_reading.retypes(node.get("retype")),
            backfill=data_reading.backfills(node.get("backfill")),
            checks=data_reading.checks(node.get("checks")),
            rewrites_old=node.get("rewrite") is not None,
            places=self.places,
        )

    def _standing_alone(self) -> None:
        """``drop`` stands alone (fold, rule 7); a pattern cannot rename tables onto one name."""
        if flag(self.node.get("drop")):
            for key, _ in self.node.entries:
                if key.text not in _BESIDE_DROP and key.text != "match":
                    message = f"`{key.text}` says something about a table that `drop: true` takes away"
                    self._add("conflicting-keys", message, key.place, "remove one of the two")
        if self.node.get("match") is not None:
            for word in ("renamed_from", "location"):
                if self.node.get(word) is not None:
                    message = f"`{word}` cannot stand beside `match`, which may fit many tables"
                    self._add(
                        "conflicting-keys", message, self.node.key_place(word), "use `name`, or `for_each`"
                    )

    def _renames(self) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        taken: dict[tuple[str, str], str] = {}
        for old, new in entries(self.node.get("renames")):
            self.places[("renames", old.text)] = old.place
            self.places[("renames", old.text, "to")] = new.place
            parent = old.text.rpartition(".")[0]
            other = taken.setdefault((parent, text(new)), old.text)
            if other != old.text:
                message = f"`{other}` and `{old.text}` cannot both be renamed to `{text(new)}`"
                self._add("duplicate-column", message, new.place)
            found.append((old.text, text(new)))
        return tuple(found)

    def _drop_columns(self) -> tuple[DropColumn, ...]:
        found = []
        for item in items(self.node.get("drop_columns")):
            name = item if isinstance(item, Scalar) else mapping(item).get("name")
            purge = False if isinstance(item, Scalar) else flag(mapping(item).get("purge"))
            assert name is not None
            self._once("drop_columns", text(name), name.place)
            found.append(DropColumn(text(name), purge, name.place))
        return tuple(found)

    def _restore_columns(self) -> tuple[str, ...]:
        found = []
        for item in items(self.node.get("restore_columns")):
            name = item if isinstance(item, Scalar) else mapping(item).get("name")
            assert name is not None
            self._once("restore_columns", text(name), name.place)
            found.append(text(name))
        return tuple(found)

    def _refilled(self) -> tuple[str, ...]:
        listed = [item for item in items(self.node.get("restore_columns")) if not isinstance(item, Scalar)]
        named = [(mapping(item).get("name"), mapping(item).get("refill")) for item in listed]
        return tuple(sorted(text(name) for name, refill in named if name is not None and flag(refill)))

    def _names(self, key: str) -> tuple[str, ...] | Unset:
        return UNSET if self.node.get(key) is None else self._listed(key)

    def _listed(self, key: str) -> tuple[str, ...]:
        listed = items(self.node.get(key))
        for item in listed:
            self._once(key, text(item), item.place)
        return tuple(text(item) for item in listed)

    def _once(self, key: str, name: str, place: Place) -> None:
        if (key, name) not in self.places:
            self.places[(key, name)] = place
        else:
            self._add("listed-twice", f"`{name}` stands twice in `{key}`", place, "keep one of the two")

    def _terms(self, key: str) -> tuple[str, ...] | Unset:
        node = self.node.get(key)
        if node is None:
            return UNSET
        before: Node | None = None
        for index, item in enumerate(items(node)):
            self.places[(key, str(index))] = item.place
            if (whole := split_by_comma(before, item)) is not None:
                message = f"the comma before {shorten(text(item))} ends the term"
                self._add("split-value", message, item.place, f'put the whole term in quotes: "{whole}"')
            before = item
        return tuple(text(item) for item in items(node))

    def _by_name(self, key: str) -> dict[str, Node]:
        found = {}
        for name, value in entries(self.node.get(key)):
            self.places[(key, name.text)] = name.place
            self._note_nested(value, (key, name.text))
            found[name.text] = value
        return found

    def _note_nested(self, node: Node, subject: Subject) -> None:
        if isinstance(node, Mapping):
            for key, value in node.entries:
                below = (*subject, key.text)
                self.places[below] = value.place if isinstance(value, Scalar) else key.place
                self._note_nested(value, below)

    def _add(self, code: str, message: str, place: Place, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, place, hint))
