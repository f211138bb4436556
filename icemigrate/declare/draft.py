"""A schema while a migration is folded into it: a tree of nodes that can be changed.

The one place where something is changed in place; it never leaves the fold.  Fields are found by name
in constant time, so that an entry of a thousand columns stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from icemigrate.diagnostics import can_hint, did_you_mean
from icemigrate.model.lookup import Lookup, lowest_id
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema import Schema, index
from icemigrate.model.types import Field, JsonValue, List, Map, Primitive, Struct, Type, children

STRUCT, LIST, MAP = Struct, List, Map
_FEW = 32
_LONGEST_NAME = 20
"""How many dots a name is guessed to have."""
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
    _children: Children | None = None

    @property
    def children(self) -> Children:
        """The nodes right below, by name."""
        if self._children is None:
            fields, self.below = children(self.below) if self.below is not None else (), None
            self._children = Children(self, fields)
        return self._children

    @children.setter
    def children(self, nodes: Iterable[Node]) -> None:
        self.below, self._children = None, Children(self, (), nodes)

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
        fields = self.children.fields()
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


class Children:
    """The nodes below a node, by name and in order; a field becomes a node when it is asked for.

    A migration changes a field or two of a struct that may have thousands.
    """

    __slots__ = ("_before", "_has_gaps", "_named", "_order", "_parent")

    def __init__(self, parent: Node, fields: tuple[Field, ...], nodes: Iterable[Node] = ()) -> None:
        self._parent = parent
        self._before = Lookup(fields)
        nodes = tuple(nodes)
        self._named: dict[str, Node | None] = {node.name: node for node in nodes}
        # A field that nobody asked for, or its node, or nothing where it was taken out.
        self._order: list[Field | Node | None] = [*fields, *nodes]
        self._has_gaps = False

    def get(self, name: str) -> Node | None:
        """The node of this name."""
        if name in self._named:
            return self._named[name]
        at = self._before.position_of_name(name)
        return None if at is None else self._made(self._position(self._before.fields[at], at))

    def _made(self, at: int) -> Node:
        one = self._order[at]
        if isinstance(one, Field):
            one = self._order[at] = self._named[one.name] = _node(self._parent, one)
        assert one is not None, "what was taken out has no name any more"
        return one

    def __getitem__(self, name: str) -> Node:
        node = self.get(name)
        if node is None:
            raise KeyError(name)
        return node

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (one.name for one in self._order if one is not None)

    def values(self) -> Iterator[Node]:
        """All nodes, in order."""
        return (self._made(at) for at, one in enumerate(self._order) if one is not None)

    def ids(self) -> list[int]:
        """The ids of all fields, in order."""
        return [one.id for one in self._order if one is not None]

    def append(self, node: Node) -> None:
        """Put a node behind all others; no other one has its name."""
        self._named[node.name] = node
        self._order.append(node)

    def put(self, node: Node, at: int) -> None:
        """Put a node at a position among the others; no other one has its name."""
        self._order = [one for one in self._order if one is not None]
        self._named[node.name] = node
        self._order.insert(at, node)

    def remove(self, node: Node) -> None:
        """Take a node out."""
        self._named[node.name] = None
        self._order[self._at(node)] = None
        self._has_gaps = True

    def rename(self, names: Mapping[Node, str]) -> None:
        """Give nodes other names, all at once."""
        for node in names:
            self._named[node.name] = None
        for node, name in names.items():
            node.name = name
            self._named[name] = node

    def move(self, node: Node, behind: Node | None) -> None:
        """Put a node right behind another one, or first."""
        del self._order[self._at(node)]
        self._order.insert(0 if behind is None else self._at(behind) + 1, node)

    def replace(self, node: Node, new: Node) -> None:
        """Put the node that was appended last, which has the same name, in the place of another one."""
        self._order.pop()
        self._order[self._at(node)] = new

    def in_order(self, nodes: Iterable[Node]) -> list[Node]:
        """Some of the nodes, in order."""
        return sorted(nodes, key=self._at)

    def preceding(self, node: Node) -> int | None:
        """The id of the field right before a node; ``None`` where it is the first."""
        before = self._order[: self._at(node)]
        return next((one.id for one in reversed(before) if one is not None), None)

    def fields(self) -> tuple[Field, ...]:
        """The fields with everything below."""
        if len(self._named) > _FEW:
            return tuple(
                [one.field if isinstance(one, Node) else one for one in self._order if one is not None]
            )
        out: list[Field | Node | None] = list(self._order)
        for node in filter(None, self._named.values()):
            out[self._at(node)] = node.field
        if self._has_gaps:
            out = [one for one in out if one is not None]
        return cast("tuple[Field, ...]", tuple(out))

    def _at(self, node: Node) -> int:
        at = None if node.origin is None else self._before.position_of_name(node.origin.name)
        return self._position(node, at)

    def _position(self, sought: Field | Node, at: int | None) -> int:
        """Where it is now, which is where it was, but for moves."""
        if at is not None and at < len(self._order) and self._order[at] is sought:
            return at
        last = len(self._order) - 1
        return last - next(at for at, one in enumerate(reversed(self._order)) if one is sought)


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
        self._lowest = min(index(schema).columns.lowest(), *map(lowest_id, retired), 0)
        self.root = Node(0, "", None, STRUCT, below=schema.root)

    def new(self, parent: Node, name: str) -> Node:
        """A new field without a type below ``parent``, at the end."""
        self._lowest -= 1
        node = Node(self._lowest, name, parent)
        parent.children.append(node)
        return node

    def attach(self, parent: Node, one: Field, at: int) -> Node:
        """A field that has its ids, with everything below, at a position among the fields of ``parent``."""
        self._lowest = min(self._lowest, lowest_id(one))
        node = _node(parent, one)
        parent.children.put(node, at)
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
        node.children = ()
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

    def dotted(self, path: Path) -> str | None:
        """A hint where dots of the path are part of a name, and so the path leads somewhere."""
        ways: list[tuple[Node, Path, Path]] = [(self.root, (), path)]
        while ways:
            node, taken, rest = ways.pop()
            if not rest:
                return f"a name with a dot in it stands in backticks: {format_path(taken)}"
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
        """Cut the nodes off, so that they are freed without the collector, which rests during a fold."""
        self.root.children = ()


def is_unsaid(node: Node) -> bool:
    """Whether the node has no type yet."""
    return node.shape is None and node.leaf is None


def set_leaf(node: Node, type_: Type) -> None:
    """Make the node a primitive."""
    node.shape, node.leaf = None, type_
    node.children = ()


PLACEHOLDER = Primitive("unknown")
"""Stands for a type that could not be read, so that the fold can go on; the table is broken by then."""
