"""A schema while a migration is folded into it: a tree of nodes that can be changed.

The one place where something is changed in place; it never leaves the fold.  Fields are found by name
in constant time, so that an entry of a thousand columns stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from icemigrate.diagnostics import did_you_mean
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import Schema
from icemigrate.model.types import Field, JsonValue, List, Map, Primitive, Struct, Type, below, children

STRUCT, LIST, MAP = Struct, List, Map
_Nested = type[Struct] | type[List] | type[Map]


@dataclass(slots=True, eq=False)
class Node:
    """One field, or the root.

    :param shape: the class of a nested type, ``None`` for a primitive.
    :param leaf: a primitive's type; ``None`` where nobody has said it yet.
    :param origin: the field that it was made from; given back as it is where nothing of it changed.
    :param below: the type whose fields are no nodes yet: most stay as they are, and nobody asks for them.
    """

    id: int
    name: str
    parent: Node | None
    shape: _Nested | None = None
    leaf: Type | None = None
    required: bool = False
    doc: str | None = None
    initial_default: JsonValue = None
    write_default: JsonValue = None
    origin: Field | None = None
    below: Type | None = None
    _children: dict[str, Node] = field(default_factory=dict)

    @property
    def children(self) -> dict[str, Node]:
        """The nodes right below, by name."""
        if self.below is not None:
            fields, self.below = children(self.below), None
            self._children = {one.name: _node(self, one) for one in fields}
        return self._children

    @children.setter
    def children(self, nodes: dict[str, Node]) -> None:
        self.below, self._children = None, nodes

    @property
    def path(self) -> Path:
        """Names from the column down; the root's is empty."""
        return () if self.parent is None else (*self.parent.path, self.name)

    @property
    def is_part(self) -> bool:
        """Whether it is a list's element or a map's key or value, whose name cannot be changed."""
        return self.parent is not None and self.parent.shape is not STRUCT

    @property
    def type(self) -> Type:
        """The type with everything below."""
        if self.shape is None:
            assert self.leaf is not None, f"nobody said the type of {self.path}"
            return self.leaf
        if self.below is not None:
            return self.below
        fields = tuple(child.field for child in self.children.values())
        if self.shape is STRUCT:
            return Struct(fields)
        if self.shape is LIST:
            return List(*fields)
        return Map(*fields)

    @property
    def field(self) -> Field:
        """The field with everything below."""
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

    def walk(self) -> Iterator[Node]:
        """Every node below, parents first."""
        for child in self.children.values():
            yield child
            yield from child.walk()


def _node(parent: Node, one: Field) -> Node:
    """A field that has its ids as a node, with what is below it."""
    node = Node(
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


class Draft:
    """A schema's fields as nodes, and the next id for a new one."""

    def __init__(self, schema: Schema, retired: Iterable[Field]) -> None:
        """:param retired: dropped fields; their ids are taken too."""
        self._lowest = 0
        self.root = Node(0, "", None, STRUCT)
        for one in schema.fields:
            self.attach(self.root, one)
        for one in retired:
            self._take(one)

    def _take(self, one: Field) -> None:
        self._lowest = min(self._lowest, one.id, below(one.type).lowest)

    def new(self, parent: Node, name: str) -> Node:
        """A new field without a type below ``parent``, at the end."""
        self._lowest -= 1
        node = Node(self._lowest, name, parent)
        parent.children[name] = node
        return node

    def attach(self, parent: Node, one: Field) -> Node:
        """A field that has its ids, with everything below, at the end of ``parent``."""
        self._take(one)
        node = parent.children[one.name] = _node(parent, one)
        return node

    def fresh(self, parent: Node, one: Field) -> Node:
        """A field like the given one, that it and everything below are new, at the end of ``parent``."""
        node = self.new(parent, one.name)
        node.required, node.doc = one.required, one.doc
        if isinstance(one.type, (Struct, List, Map)):
            node.shape = type(one.type)
            for below in children(one.type):
                self.fresh(node, below)
        else:
            node.leaf = one.type
        return node

    def reshape(self, node: Node, shape: _Nested) -> bool:
        """Make the node nested in this way; whether its parts are new, for it was something else."""
        if node.shape is shape:
            return False
        node.shape, node.leaf = shape, None
        node.children = {}
        if shape is LIST:
            self.new(node, "element")
        if shape is MAP:
            self.new(node, "key").required = True
            self.new(node, "value")
        return True

    def find(self, path: Path) -> Node | None:
        """The node at a path, or ``None``."""
        node: Node | None = self.root
        for name in path:
            if node is None:
                return None
            node = node.children.get(name)
        return node

    def nearest(self, path: Path) -> str | None:
        """A hint for a path that leads nowhere: a dotted name, a near one, or the same elsewhere."""
        if (hint := self.dotted(path)) is not None:
            return hint
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

    def dotted(self, path: Path) -> str | None:
        """A hint where dots of the path are part of a name, and so the path leads somewhere."""
        ways: list[tuple[Node, Path, Path]] = [(self.root, (), path)]
        while ways:
            node, taken, rest = ways.pop()
            if not rest:
                return f"a name with a dot in it stands in backticks: {format_path(taken)}"
            for end in range(1, len(rest) + 1):
                name = ".".join(rest[:end])
                if (below := node.children.get(name)) is not None:
                    ways.append((below, (*taken, name), rest[end:]))
        return None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns."""
        return tuple(child.field for child in self.root.children.values())


def is_unsaid(node: Node) -> bool:
    """Whether the node has no type yet."""
    return node.shape is None and node.leaf is None


def set_leaf(node: Node, type_: Type) -> None:
    """Make the node a primitive."""
    node.shape, node.leaf = None, type_
    node.children = {}


PLACEHOLDER = Primitive("unknown")
"""Stands for a type that could not be read, so that the fold can go on; the table is broken by then."""
