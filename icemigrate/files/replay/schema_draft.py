"""A mutable tree of a schema's fields, used during replay.

It is the only mutable value of replay, and no other package sees it.  Fields are found by name in constant
time, so an entry of a thousand columns stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from icemigrate.diagnostics import can_hint, did_you_mean
from icemigrate.iceberg.lookup import FieldLookup, lowest_id
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.types import Field, JsonValue, List, Map, Primitive, Struct, Type, children

STRUCT, LIST, MAP = Struct, List, Map
_FEW = 32
_LONGEST_NAME = 20
"""How many dots a name is guessed to have."""
_Nested = type[Struct] | type[List] | type[Map]


@dataclass(slots=True, eq=False)
class DraftField:
    """One field, or the root.

    :param shape: the class of a nested type, ``None`` for a primitive.
    :param leaf: a primitive's type; ``None`` until it is read.
    :param origin: the field that it was created from; returned as it is if nothing changed.
    :param below: the type whose fields have no nodes yet: most fields do not change.
    """

    id: int
    name: str
    parent: DraftField | None
    shape: _Nested | None = None
    leaf: Type | None = None
    required: bool = False
    doc: str | None = None
    initial_default: JsonValue = None
    write_default: JsonValue = None
    origin: Field | None = None
    below: Type | None = None
    _children: DraftChildren | None = None

    @property
    def children(self) -> DraftChildren:
        """The direct child nodes, by name."""
        if self._children is None:
            fields, self.below = children(self.below) if self.below is not None else (), None
            self._children = DraftChildren(self, fields)
        return self._children

    @children.setter
    def children(self, nodes: Iterable[DraftField]) -> None:
        self.below, self._children = None, DraftChildren(self, (), nodes)

    @property
    def path(self) -> FieldPath:
        """Names from the column down; the root's is empty."""
        return () if self.parent is None else (*self.parent.path, self.name)

    @property
    def is_part(self) -> bool:
        """Whether it is a list's element or a map's key or value, whose name cannot change."""
        return self.parent is not None and self.parent.shape is not STRUCT

    @property
    def type(self) -> Type:
        """The type with all nested fields."""
        if self.shape is None:
            assert self.leaf is not None, f"the type of {self.path} was not read"
            return self.leaf
        if self.below is not None:
            return self.below
        fields = self.children.fields()
        if self.shape is STRUCT:
            return Struct(fields)
        if self.shape is LIST:
            return List(*fields)
        return Map(*fields)

    @property
    def field(self) -> Field:
        """The field with all nested fields."""
        type_, was = self.type, self.origin
        if (
            was is not None
            and was.type == type_
            and (was.id, was.name, was.required, was.doc) == (self.id, self.name, self.required, self.doc)
            and was.initial_default is self.initial_default
            and was.write_default is self.write_default
        ):
            return was
        return Field(
            self.id, self.name, type_, self.required, self.doc, self.initial_default, self.write_default
        )

    def walk(self) -> Iterator[DraftField]:
        """Every descendant node, parents first."""
        for child in self.children.values():
            yield child
            yield from child.walk()


class DraftChildren:
    """The children of a node, by name and in order; a field becomes a node on first access.

    A migration changes one or two fields of a struct that may have thousands.
    """

    __slots__ = ("_before", "_has_gaps", "_named", "_order", "_parent")

    def __init__(
        self, parent: DraftField, fields: tuple[Field, ...], nodes: Iterable[DraftField] = ()
    ) -> None:
        self._parent = parent
        self._before = FieldLookup(fields)
        nodes = tuple(nodes)
        self._named: dict[str, DraftField | None] = {node.name: node for node in nodes}
        # A field without a node yet, its node, or nothing where it was removed.
        self._order: list[Field | DraftField | None] = [*fields, *nodes]
        self._has_gaps = False

    def made(self) -> Iterator[DraftField]:
        """The children that have nodes."""
        return (node for node in self._named.values() if node is not None)

    def get(self, name: str) -> DraftField | None:
        """The node of this name."""
        if name in self._named:
            return self._named[name]
        at = self._before.position_of_name(name)
        return None if at is None else self._made(self._position(self._before.fields[at], at))

    def _made(self, at: int) -> DraftField:
        one = self._order[at]
        if isinstance(one, Field):
            one = self._order[at] = self._named[one.name] = _node(self._parent, one)
        assert one is not None, "what was taken out has no name any more"
        return one

    def __getitem__(self, name: str) -> DraftField:
        node = self.get(name)
        if node is None:
            raise KeyError(name)
        return node

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (one.name for one in self._order if one is not None)

    def values(self) -> Iterator[DraftField]:
        """All nodes, in order."""
        return (self._made(at) for at, one in enumerate(self._order) if one is not None)

    def ids(self) -> list[int]:
        """The ids of all fields, in order."""
        return [one.id for one in self._order if one is not None]

    def append(self, node: DraftField) -> None:
        """Append a node; its name must be new."""
        self._named[node.name] = node
        self._order.append(node)

    def put(self, node: DraftField, at: int) -> None:
        """Insert a node at an index; its name must be new."""
        self._order = [one for one in self._order if one is not None]
        self._named[node.name] = node
        self._order.insert(at, node)

    def remove(self, node: DraftField) -> None:
        """Take a node out."""
        self._named[node.name] = None
        self._order[self._at(node)] = None
        self._has_gaps = True

    def rename(self, names: Mapping[DraftField, str]) -> None:
        """Give nodes other names, all at once."""
        for node in names:
            self._named[node.name] = None
        for node, name in names.items():
            node.name = name
            self._named[name] = node

    def move(self, node: DraftField, behind: DraftField | None) -> None:
        """Move a node right after another one, or to the first position."""
        del self._order[self._at(node)]
        self._order.insert(0 if behind is None else self._at(behind) + 1, node)

    def replace(self, node: DraftField, new: DraftField) -> None:
        """Move the node that was appended last to the position of another one with the same name."""
        self._order.pop()
        self._order[self._at(node)] = new

    def in_order(self, nodes: Iterable[DraftField]) -> list[DraftField]:
        """Some of the nodes, in order."""
        return sorted(nodes, key=self._at)

    def preceding(self, node: DraftField) -> int | None:
        """The id of the field right before a node; ``None`` where it is the first."""
        before = self._order[: self._at(node)]
        return next((one.id for one in reversed(before) if one is not None), None)

    def fields(self) -> tuple[Field, ...]:
        """The child fields with all nested fields."""
        if len(self._named) > _FEW:
            return tuple(
                [one.field if isinstance(one, DraftField) else one for one in self._order if one is not None]
            )
        out: list[Field | DraftField | None] = list(self._order)
        for node in filter(None, self._named.values()):
            out[self._at(node)] = node.field
        if self._has_gaps:
            out = [one for one in out if one is not None]
        return cast("tuple[Field, ...]", tuple(out))

    def _at(self, node: DraftField) -> int:
        at = None if node.origin is None else self._before.position_of_name(node.origin.name)
        return self._position(node, at)

    def _position(self, sought: Field | DraftField, at: int | None) -> int:
        """Where it is now, which is where it was, but for moves."""
        if at is not None and at < len(self._order) and self._order[at] is sought:
            return at
        last = len(self._order) - 1
        return last - next(at for at, one in enumerate(reversed(self._order)) if one is sought)


def _node(parent: DraftField, one: Field) -> DraftField:
    """Create the node of a field that has ids, with its descendants."""
    node = DraftField(
        one.id,
        one.name,
        parent,
        None,
        None,
        one.required,
        one.doc,
        one.initial_default,
        one.write_default,
        origin=one,
    )
    if isinstance(one.type, (Struct, List, Map)):
        node.shape, node.below = type(one.type), one.type
    else:
        node.leaf = one.type
    return node


class SchemaDraft:
    """A schema's fields as nodes, and the next id for a new one."""

    def __init__(self, schema: Schema, retired: Iterable[Field]) -> None:
        """:param retired: dropped fields; their ids are taken too."""
        self._lowest = min(schema_index(schema).columns.lowest(), *map(lowest_id, retired), 0)
        self.root = DraftField(0, "", None, STRUCT, below=schema.root)

    def new(self, parent: DraftField, name: str) -> DraftField:
        """A new field without a type, at the end of ``parent``."""
        self._lowest -= 1
        node = DraftField(self._lowest, name, parent)
        parent.children.append(node)
        return node

    def attach(self, parent: DraftField, one: Field, at: int) -> DraftField:
        """Insert a field that has ids, with its descendants, at an index of ``parent``."""
        self._lowest = min(self._lowest, lowest_id(one))
        node = _node(parent, one)
        parent.children.put(node, at)
        return node

    def fresh(self, parent: DraftField, one: Field) -> DraftField:
        """Append a copy of the given field to ``parent``; it and its descendants are new fields."""
        node = self.new(parent, one.name)
        node.required, node.doc = one.required, one.doc
        if isinstance(one.type, (Struct, List, Map)):
            node.shape = type(one.type)
            for below in children(one.type):
                self.fresh(node, below)
        else:
            node.leaf = one.type
        return node

    def reshape(self, node: DraftField, shape: _Nested) -> bool:
        """Give the node a nested shape; returns whether its parts are new because its type was another."""
        if node.shape is shape:
            return False
        node.shape, node.leaf = shape, None
        node.children = ()
        if shape is LIST:
            self.new(node, "element")
        if shape is MAP:
            self.new(node, "key").required = True
            self.new(node, "value")
        return True

    def find(self, path: FieldPath) -> DraftField | None:
        """The node at a path, or ``None``."""
        node: DraftField | None = self.root
        for name in path:
            if node is None:
                return None
            node = node.children.get(name)
        return node

    def nearest(self, path: FieldPath) -> str | None:
        """A hint for a path without a field: a dotted name, a similar one, or the same name in another
        struct.
        """
        if (hint := self.dotted(path)) is not None:
            return hint
        if not can_hint(len(self.root.children.ids())):
            return None
        node = self.root
        for depth, name in enumerate(path):
            below = node.children.get(name)
            if below is None:
                hint = did_you_mean(name, node.children)
                if hint is not None:
                    near = hint.split("`")[1]
                    return f"did you mean `{format_path((*path[:depth], near, *path[depth + 1 :]))}`?"
                break
            node = below
        for other in self.root.walk():
            if other.name == path[-1] and not other.is_part:
                return f"did you mean `{format_path(other.path)}`?"
        return None

    def dotted(self, path: FieldPath) -> str | None:
        """A hint for a path whose dots belong to a column name."""
        ways: list[tuple[DraftField, FieldPath, FieldPath]] = [(self.root, (), path)]
        while ways:
            node, taken, rest = ways.pop()
            if not rest:
                return f"write a name with a dot in backticks: {format_path(taken)}"
            for end in range(1, min(len(rest), _LONGEST_NAME) + 1):
                name = ".".join(rest[:end])
                if (below := node.children.get(name)) is not None:
                    ways.append((below, (*taken, name), rest[end:]))
        return None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns."""
        return self.root.children.fields()

    def close(self) -> None:
        """Unlink the nodes, so that they are freed without the garbage collector, which is paused during
        replay.
        """
        left = [self.root]
        while left:
            node = left.pop()
            if node._children is not None:
                left += node._children.made()
            node.below = node._children = node.parent = None


def has_no_type(node: DraftField) -> bool:
    """Whether the node has no type yet."""
    return node.shape is None and node.leaf is None


def set_leaf(node: DraftField, type_: Type) -> None:
    """Make the node a primitive."""
    node.shape, node.leaf = None, type_
    node.children = ()


PLACEHOLDER = Primitive("unknown")
"""Replaces a type that could not be read, so that replay can continue; the table has an error then."""
