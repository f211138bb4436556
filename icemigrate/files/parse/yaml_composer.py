"""Composes nodes from PyYAML's events, without recursion and with limits for depth, size and expanded
aliases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.files.parse.source_text import SourceText, hidden_characters
from icemigrate.files.parse.yaml_nodes import (
    Value,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    plain_value,
)
from icemigrate.files.parse.yaml_syntax_errors import explain_yaml_error
from icemigrate.frozen import Frozen

DEPTH_LIMIT = 64
NODE_LIMIT = 1_000_000
ALIAS_LIMIT = 100_000
"""The number of nodes that aliases may add to a file, to stop expansion bombs."""


class ParsedYaml(Frozen):
    """The content of a file; ``node`` is ``None`` when the file is empty or not YAML.

    :param readable: whether the text is YAML; an empty file is.
    :param warnings: diagnostics that do not stop the reading.
    :param aliased: how many values come from aliases.
    """

    node: YamlNode | None
    diagnostics: tuple[Diagnostic, ...]
    readable: bool = True
    warnings: tuple[Diagnostic, ...] = ()
    aliased: int = 0


def parse_yaml(source: SourceText) -> ParsedYaml:
    """Compose the first document of a file; invalid YAML becomes a diagnostic, not an exception."""
    composer = _Composer(source)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # `yaml.parse` does the same, but checks each event twice.
        composer.run(iter(loader(source.text).get_event, None))
    except yaml.YAMLError as error:
        return ParsedYaml(None, (*composer.diagnostics, explain_yaml_error(error, source)), readable=False)
    except _Stop as stop:
        return ParsedYaml(None, (*composer.diagnostics, stop.diagnostic), readable=False)
    hidden = tuple(hidden_characters(source))
    errors = tuple(one for one in hidden if one.severity is Severity.ERROR)
    warnings = tuple(one for one in hidden if one.severity is not Severity.ERROR)
    diagnostics = (*composer.diagnostics, *errors)
    return ParsedYaml(composer.root, diagnostics, warnings=warnings, aliased=composer._from_aliases)


_PREFIX = "tag:yaml.org,2002:"
_SCALAR_TAGS = {_PREFIX + name for name in ("int", "float", "bool", "null")}
_TEXT_TAGS = {"!", _PREFIX + "str"}
_MAPPING_TAGS = {None, "!", _PREFIX + "map"}
_SEQUENCE_TAGS = {None, "!", _PREFIX + "seq"}


class _Stop(Exception):
    """The file cannot be read on; carries the reason."""

    def __init__(self, code: str, message: str, place: FilePosition, hint: str | None = None) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(code, message, place, hint)


@dataclass(slots=True)
class _Frame:
    """A list or a mapping that is still open; a mapping's keys and values alternate in ``children``."""

    is_mapping: bool
    place: FilePosition
    anchor: str | None
    begun_at: int
    children: list[YamlNode] = field(default_factory=list)
    height: int = 0


class _Anchored(Frozen):
    """The target of an alias: the node, the number of nodes in it when expanded, and its depth."""

    node: YamlNode
    size: int
    height: int


class _Composer:
    """Composes one root node from events, and collects errors that do not stop the reading."""

    def __init__(self, source: SourceText) -> None:
        self.file = source.path
        self._source = source
        self._starts = source.line_starts() if source.has_odd_breaks else None
        self.root: YamlNode | None = None
        self.diagnostics: list[Diagnostic] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._count = 0
        self._from_aliases = 0
        self._values: dict[str, Value] = {}
        self._merge_keys: set[FilePosition] = set()

    def run(self, events: Iterator[Any]) -> None:
        documents = 0
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent:
                self._open(event, True, _MAPPING_TAGS)
            elif kind is yaml.SequenceStartEvent:
                self._open(event, False, _SEQUENCE_TAGS)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._mistake(
                        "several-documents",
                        "a second document begins here; a file contains one",
                        self._place(event),
                        "remove the `---`, or move what follows to a file of its own",
                    )
                    return
        if isinstance(self.root, YamlScalar) and self.root.text == "" and self.root.value is None:
            self.root = None

    def _place(self, event: Any) -> FilePosition:
        mark = event.start_mark
        if self._starts is not None:
            return self._source.place_at(mark.index, self._starts)
        return FilePosition(self.file, mark.line + 1, mark.column + 1)

    def _mistake(self, code: str, message: str, place: FilePosition, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, place, hint))

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        place = self._place(event)
        self._grow(1, place)
        value: Value = text
        if event.tag is None:
            if event.implicit[0]:
                if text == "<<":
                    self._merge_keys.add(place)
                try:
                    value = self._values[text]
                except KeyError:
                    value = self._values[text] = plain_value(text)
        elif event.tag in _SCALAR_TAGS:
            value = plain_value(text)
        elif event.tag not in _TEXT_TAGS:
            self._unknown_tag(event.tag, place)
        node = YamlScalar(value, text, place)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(node, 1, 0)
        self._add(node, 0)

    def _open(self, event: Any, is_mapping: bool, tags: set[str | None]) -> None:
        place = self._place(event)
        self._grow(1, place)
        if event.tag not in tags:
            self._unknown_tag(event.tag, place)
        if len(self._stack) >= DEPTH_LIMIT:
            raise _Stop("too-deep", f"values are nested more than {DEPTH_LIMIT} deep here", place)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Frame(is_mapping, place, event.anchor, self._count))

    def _close(self) -> None:
        frame = self._stack.pop()
        node: YamlNode
        if frame.is_mapping:
            node = YamlMapping(self._entries(frame.children), frame.place)
        else:
            node = YamlSequence(tuple(frame.children), frame.place)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = _Anchored(node, self._count - frame.begun_at + 1, frame.height)
        self._add(node, frame.height)

    def _alias(self, event: Any) -> None:
        place = self._place(event)
        if event.anchor not in self._anchors:
            raise _Stop(
                "unknown-alias", f"`*{event.anchor}` refers to an anchor that is not defined above", place
            )
        target = self._anchors[event.anchor]
        if target is None:
            raise _Stop("recursive-alias", f"`*{event.anchor}` is inside its own anchor", place)
        self._from_aliases += target.size
        if self._from_aliases > ALIAS_LIMIT:
            raise _Stop(
                "too-many-nodes",
                f"the aliases of this file expand to more than {ALIAS_LIMIT:,} values",
                place,
            )
        if len(self._stack) + target.height >= DEPTH_LIMIT:
            raise _Stop("too-deep", f"values are nested more than {DEPTH_LIMIT} deep here", place)
        self._grow(target.size, place)
        self._add(target.node, target.height)

    def _grow(self, by: int, place: FilePosition) -> None:
        self._count += by
        if self._count > NODE_LIMIT:
            raise _Stop(
                "too-many-nodes", f"the file contains more than {NODE_LIMIT:,} values", place, "split it"
            )

    def _add(self, node: YamlNode, height: int) -> None:
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        frame.children.append(node)
        if height >= frame.height:
            frame.height = height + 1

    def _unknown_tag(self, tag: str, place: FilePosition) -> None:
        shown = "!!" + tag[len(_PREFIX) :] if tag.startswith(_PREFIX) else tag
        self._mistake(
            "unknown-tag", f"the tag `{shown}` has no meaning here", place, "write the value without a tag"
        )

    def _entries(self, children: list[YamlNode]) -> tuple[tuple[YamlScalar, YamlNode], ...]:
        """Pair keys with values; duplicate keys are errors and are left out, merged keys come first."""
        seen: dict[str, YamlScalar] = {}
        own: list[tuple[YamlScalar, YamlNode]] = []
        merged: dict[str, tuple[YamlScalar, YamlNode]] = {}
        for key, value in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, YamlScalar):
                self._mistake(
                    "key-not-plain",
                    "a key must be a single word, not a list or a mapping",
                    key.place,
                    "write a string that begins with `{` or `[` in quotes",
                )
            elif key.text in seen:
                self._mistake(
                    "duplicate-key",
                    f"`{key.text}` is a duplicate key, first on line {seen[key.text].place.line}",
                    key.place,
                    "remove one of the two",
                )
            else:
                seen[key.text] = key
                if key.place in self._merge_keys:
                    self._merge(value, merged)
                else:
                    own.append((key, value))
        if not merged:
            return tuple(own)
        return (*(pair for name, pair in merged.items() if name not in seen), *own)

    def _merge(self, value: YamlNode, merged: dict[str, tuple[YamlScalar, YamlNode]]) -> None:
        sources = value.items if isinstance(value, YamlSequence) else (value,)
        for one in sources:
            if not isinstance(one, YamlMapping):
                self._mistake("bad-merge", "`<<` merges a mapping or a list of mappings", one.place)
                continue
            for key, inner in one.entries:
                merged.setdefault(key.text, (key, inner))
