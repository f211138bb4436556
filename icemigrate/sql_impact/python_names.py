"""What the names of a Python file are bound to, found in its syntax tree alone; nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MOST_BASES = 8
"""How many classes are looked through for an attribute."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function.

    :param position: among the parameters, without ``self``.
    """

    function: ast.AST
    name: str
    position: int
    annotation: str


@dataclass(frozen=True, slots=True)
class Element:
    """An element of what a loop, a comprehension or an assignment of several names takes apart."""

    of: ast.expr


Binding = ast.expr | Parameter | Element


@dataclass(slots=True)
class Names:
    """The names of a file.

    :param parents: the node around each node, by identity.
    :param bindings: what each name is bound to, by scope and name; ``self.x`` is a name of the module.
    :param imported: the module and the name that an import binds a name to; the name is empty for a module.
    :param functions: the functions by their names.
    :param classes: the classes by their names.
    :param members: what the body of a class binds a name to, by the names of both.
    """

    tree: ast.Module
    parents: dict[int, ast.AST] = field(default_factory=dict)
    bindings: dict[tuple[int, str], list[Binding]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    members: dict[tuple[str, str], list[ast.expr]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: ast.Module) -> Names:
        """The names of a syntax tree."""
        names = cls(tree)
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                names.parents[id(child)] = node
        for node in ast.walk(tree):
            names._take(node)
        return names

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        at = self.parents.get(id(node))
        while at is not None:
            yield at
            at = self.parents.get(id(at))

    def find(self, node: ast.Name) -> Sequence[Binding]:
        """What a name may be bound to where it is read."""
        for scope in (*(one for one in self.around(node) if isinstance(one, FUNCTIONS)), self.tree):
            found = self.bindings.get((id(scope), node.id))
            if found:
                return found
        return ()

    def find_members(self, node: ast.Attribute) -> Sequence[ast.expr]:
        """What an attribute of a class of this file, or of an object of it, is bound to in the class."""
        base = node.value
        if isinstance(base, ast.Call):
            base = base.func
        if not isinstance(base, ast.Name):
            return ()
        name = base.id
        if name in {"self", "cls"}:
            around = next((one for one in self.around(node) if isinstance(one, ast.ClassDef)), None)
            name = around.name if around is not None else ""
        elif name not in self.classes:
            made = [
                one.func.id
                for one in self.find(base)
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
            ]
            name = made[0] if len(made) == 1 else ""
        for _ in range(_MOST_BASES):
            if (name, node.attr) in self.members or name not in self.classes:
                break
            bases = [one.id for one in self.classes[name].bases if isinstance(one, ast.Name)]
            name = bases[0] if bases else ""
        return self.members.get((name, node.attr), ())

    def _scope(self, node: ast.AST) -> ast.AST:
        return next((one for one in self.around(node) if isinstance(one, FUNCTIONS)), self.tree)

    def _bind(self, target: ast.expr, value: Binding) -> None:
        if isinstance(target, ast.Name):
            self.bindings.setdefault((id(self._scope(target)), target.id), []).append(value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            key = f"{target.value.id}.{target.attr}"
            self.bindings.setdefault((id(self.tree), key), []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else ()
            for number, one in enumerate(target.elts):
                is_pair = len(values) == len(target.elts)
                whole = value if not isinstance(value, ast.expr) else Element(value)
                self._bind(one, values[number] if is_pair else whole)

    def _take(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            self._bind(node.target, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._bind(node.target, Element(node.iter))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind(node.optional_vars, node.context_expr)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in node.names:
                module = (node.module or "") if isinstance(node, ast.ImportFrom) else name.name
                bound = name.name if isinstance(node, ast.ImportFrom) else ""
                self.imported[name.asname or name.name.split(".")[0]] = (module.split(".")[-1], bound)
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
            for inner in node.body:
                if isinstance(inner, (ast.Assign, ast.AnnAssign)) and inner.value is not None:
                    for target in inner.targets if isinstance(inner, ast.Assign) else [inner.target]:
                        if isinstance(target, ast.Name):
                            self.members.setdefault((node.name, target.id), []).append(inner.value)
        if isinstance(node, FUNCTIONS):
            if not isinstance(node, ast.Lambda):
                self.functions.setdefault(node.name, []).append(node)
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            is_method = bool(given) and given[0].arg in {"self", "cls"}
            for position, one in enumerate(given):
                annotation = ast.unparse(one.annotation) if one.annotation is not None else ""
                found = Parameter(node, one.arg, position - is_method, annotation)
                self.bindings.setdefault((id(node), one.arg), []).append(found)


def constants(names: Names) -> Mapping[str, ast.expr]:
    """Names that a file binds once, and to what."""
    bound: dict[str, list[Binding]] = {}
    for (_, name), values in names.bindings.items():
        bound.setdefault(name, []).extend(values)
    return {n: v[0] for n, v in bound.items() if len(v) == 1 and isinstance(v[0], ast.expr)}


def called(node: ast.Call) -> str:
    """The last name of the function that is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
