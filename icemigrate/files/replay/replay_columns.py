"""Replays the columns of a table entry: merged by name, at every depth."""

from __future__ import annotations

from icemigrate.files.read.migration_file import UNSET, ColumnEntry, KeyPath
from icemigrate.files.replay.default_values import BadDefault, default_value
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.schema_draft import (
    LIST,
    MAP,
    PLACEHOLDER,
    STRUCT,
    DraftField,
    SchemaDraft,
    has_no_type,
    set_leaf,
)
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath, format_path, quote_name
from icemigrate.iceberg.type_promotions import promoted_default
from icemigrate.iceberg.types import Field, List, Map, Struct, Type


class AssertedPosition(Frozen):
    """A position as written: right after the sibling ``after``, or first where that is ``None``."""

    node: DraftField
    after: str | None
    subject: KeyPath


class ColumnReplay:
    """Merges column entries into a draft; positions are collected, because they may name later columns.

    :param renamed: old path of every rename → the path after it, for hints.
    """

    def __init__(
        self, draft: SchemaDraft, diagnostics: EntryDiagnostics, renamed: dict[FieldPath, FieldPath]
    ) -> None:
        self.draft = draft
        self.diagnostics = diagnostics
        self.renamed = renamed
        self.asserted: list[AssertedPosition] = []

    def merge(self, columns: tuple[ColumnEntry, ...], parent: DraftField | None = None) -> None:
        """Merge the entries, in their order, into the fields of ``parent``."""
        parent = parent or self.draft.root
        seen: set[int] = set()
        for entry in columns:
            node = self._merge_one(parent, entry)
            if node is not None and node.id in seen:
                self._error("duplicate-column", entry, f"`{entry.path}` is declared twice", None)
            if node is not None:
                seen.add(node.id)

    def _merge_one(self, parent: DraftField, entry: ColumnEntry) -> DraftField | None:
        path = self.diagnostics.path(entry.name, ("columns", entry.path))
        if path is None:
            return None
        for depth, name in enumerate(path[:-1], 1):
            below = parent.children.get(name)
            if below is None:
                missing = (*parent.path, name)
                self._error(
                    "unknown-column",
                    entry,
                    f"`{entry.path}` is inside `{format_path(missing)}`, which is not a column",
                    self._hint((*parent.path, *path[depth - 1 :]))
                    or "write a name with a literal dot in backticks",
                )
                return None
            parent = below
        node = parent.children.get(path[-1])
        if node is not None:
            self._change(node, entry)
        elif parent.shape is not STRUCT:
            what = "list has `element`" if parent.shape is LIST else "map has `key` and `value`"
            if parent.shape is None:
                message = f"`{format_path(parent.path)}` is not a struct, so it has no field `{entry.path}`"
            else:
                message = f"there is no `{entry.path}`: a {what} below it"
            self._error("unknown-column", entry, message, self.draft.dotted(path))
        else:
            node = self._add(parent, path[-1], entry)
        return node

    def _add(self, parent: DraftField, name: str, entry: ColumnEntry) -> DraftField | None:
        if entry.type is UNSET and not entry.is_nested:
            path = (*parent.path, name)
            self._error(
                "type-missing",
                entry,
                f"`{entry.path}` is not declared yet, so it needs a type",
                self._hint(path),
            )
            return None
        node = self.draft.new(parent, name)
        self._shape(node, entry)
        node.required = entry.required is True
        self._describe(node, entry)
        if entry.default is not UNSET:
            self._default(node, entry)
            node.initial_default = node.write_default
        self._note_position(node, entry)
        return node

    def _change(self, node: DraftField, entry: ColumnEntry) -> None:
        self._shape(node, entry)
        if entry.required is not UNSET:
            if node.is_part and node.name == "key" and not entry.required:
                self._error(
                    "key-required", entry, f"`{entry.path}`: a map's key is always required", None, "required"
                )
            else:
                node.required = entry.required
        self._describe(node, entry)
        if entry.default is not UNSET:
            self._default(node, entry)
        self._note_position(node, entry)

    def _describe(self, node: DraftField, entry: ColumnEntry) -> None:
        if entry.description is not UNSET:
            if node.is_part:
                self._no_part(entry, "description")
            node.doc = entry.description

    def _default(self, node: DraftField, entry: ColumnEntry) -> None:
        assert entry.default is not UNSET
        if node.is_part:
            self._no_part(entry, "default")
            return
        if node.leaf is PLACEHOLDER:
            return
        try:
            node.write_default = default_value(entry.default, node.type)
        except BadDefault as e:
            self._error("bad-default", entry, f"`{entry.path}`: {e}", e.hint, "default")

    def _no_part(self, entry: ColumnEntry, key: str) -> None:
        self._error(
            "no-part-of-that", entry, f"`{entry.path}` is part of a list or map and has no {key}", None, key
        )

    def _note_position(self, node: DraftField, entry: ColumnEntry) -> None:
        if not entry.first and entry.after is UNSET:
            return
        key = "first" if entry.first else "after"
        subject = ("columns", entry.path, key)
        if node.is_part:
            self._error(
                "bad-position",
                entry,
                f"`{entry.path}` cannot be moved: it is part of a list or map",
                None,
                key,
            )
            return
        after = None if entry.after is UNSET else entry.after
        if after is not None:
            path = self.diagnostics.path(after, subject)
            if path is None:
                return
            siblings = node.parent.path if node.parent else ()
            if len(path) > 1 and path[:-1] != siblings:
                dotted = node.parent is not None and after in node.parent.children
                hint = f"write a name with a dot in backticks: {quote_name(after)}" if dotted else None
                self._error("bad-position", entry, f"`{after}` is not a sibling of `{entry.path}`", hint, key)
                return
            after = path[-1]
        self.asserted.append(AssertedPosition(node, after, subject))

    def _shape(self, node: DraftField, entry: ColumnEntry) -> None:
        if entry.type is not UNSET:
            type_ = self.diagnostics.type(entry.type, entry.path, ("columns", entry.path, "type"))
            if type_ is not None:
                self._merge_type(node, type_)
            elif has_no_type(node):
                set_leaf(node, PLACEHOLDER)
        elif entry.fields is not UNSET:
            self.draft.reshape(node, STRUCT)
            self.merge(entry.fields, node)
        elif entry.element is not UNSET:
            self.draft.reshape(node, LIST)
            self._part(node, entry.element)
        elif entry.key is not UNSET or entry.value is not UNSET:
            self.draft.reshape(node, MAP)
            for part in (entry.key, entry.value):
                if part is not UNSET:
                    self._part(node, part)
            for name, part in (("key", entry.key), ("value", entry.value)):
                if part is UNSET and has_no_type(node.children[name]):
                    self._error(
                        "type-missing", entry, f"`{entry.path}` is a new map, so it needs a `{name}`", None
                    )
                    set_leaf(node.children[name], PLACEHOLDER)

    def _part(self, node: DraftField, entry: ColumnEntry) -> None:
        part = node.children[entry.name]
        if has_no_type(part) and entry.type is UNSET and not entry.is_nested:
            self._error(
                "type-missing", entry, f"`{entry.path}` is not declared yet, so it needs a type", None
            )
            set_leaf(part, PLACEHOLDER)
        self._change(part, entry)

    def _merge_type(self, node: DraftField, type_: Type) -> None:
        if isinstance(type_, Struct):
            self.draft.reshape(node, STRUCT)
            for one in type_.fields:
                below = node.children.get(one.name) or self.draft.new(node, one.name)
                self._merge_field(below, one)
        elif isinstance(type_, List):
            self.draft.reshape(node, LIST)
            self._merge_field(node.children["element"], type_.element)
        elif isinstance(type_, Map):
            self.draft.reshape(node, MAP)
            self._merge_field(node.children["key"], type_.key)
            self._merge_field(node.children["value"], type_.value)
        else:
            if node.leaf is not None:
                node.initial_default = promoted_default(node.initial_default, node.leaf, type_)
                node.write_default = promoted_default(node.write_default, node.leaf, type_)
            set_leaf(node, type_)

    def _merge_field(self, node: DraftField, field: Field) -> None:
        """Merge a field of a type's text: it keeps its description, and without a mark its nullability."""
        self._merge_type(node, field.type)
        node.required = node.required or field.required
        if field.doc is not None:
            node.doc = field.doc

    def _hint(self, path: FieldPath) -> str | None:
        if path in self.renamed:
            return f"this migration renames it: write `{format_path(self.renamed[path])}`"
        return self.draft.nearest(path)

    def _error(
        self, code: str, entry: ColumnEntry, message: str, hint: str | None, key: str | None = None
    ) -> None:
        subject = ("columns", entry.path) if key is None else ("columns", entry.path, key)
        self.diagnostics.error(code, subject, message, hint)
