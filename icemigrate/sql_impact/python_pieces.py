"""Which SQL texts of a Python file are whole statements, and which are pieces of a text that grows.

``q = "select note "`` and ``q += "from s.t"`` are pieces: no parser can read either of them.  A piece may
use every column that it names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from icemigrate.sql_impact.python_names import called
from icemigrate.sql_impact.python_sql import PythonModule, is_text, rendered
from icemigrate.sql_impact.sql_parser import parse_statements

_GROWING = frozenset({"append", "extend", "insert", "write", "writelines", "add", "appendleft"})
"""Methods that add a text to what their object holds."""
_COMBINING = frozenset({"join", "format", "replace", "sub", "substitute", "safe_substitute", "Template"})
"""Functions that put texts into others."""
_MOST_STEPS = 30
"""How many expressions and names a text is followed through; a text that goes further is a piece."""


class SqlPieces:
    """The pieces among the SQL texts of one file."""

    def __init__(self, module: PythonModule) -> None:
        self.module = module
        self._reads: dict[str, list[ast.Name]] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._grown: set[str] = set()
        self._whole: dict[int, bool] = {}
        self._kept: dict[str, bool] = {}
        for node in ast.walk(module.names.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._reads.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Call):
                self._calls.setdefault(called(node), []).append(node)
                if called(node) in _GROWING and isinstance(node.func, ast.Attribute):
                    self._grown.add(_written(node.func.value))
            elif isinstance(node, ast.AugAssign):
                self._grown.add(_written(node.target))
            elif isinstance(node, ast.Assign):
                inside = {_written(one) for one in ast.walk(node.value)} - {""}
                self._grown |= inside.intersection(map(_written, node.targets))

    def is_piece(self, node: ast.expr) -> bool:
        """Whether a text that begins as a statement does may be a part of a longer one."""
        return not self._is_whole(node, 0)

    def _is_whole(self, node: ast.AST, steps: int) -> bool:
        """Whether a value goes as one whole statement to whatever takes it."""
        parents = self.module.names.parents
        parent, top = parents.get(id(node)), node
        while steps < _MOST_STEPS:
            steps += 1
            if isinstance(parent, ast.Call) and node not in parent.args:
                return False
            if isinstance(parent, ast.keyword) or (isinstance(parent, ast.Call) and node in parent.args):
                call = parents.get(id(parent)) if isinstance(parent, ast.keyword) else parent
                names = _GROWING | _COMBINING
                return isinstance(call, ast.Call) and called(call) not in names and self._can_be_read(top)
            if isinstance(parent, ast.AugAssign):
                return False
            if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
                targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
                return all(self._keeps(one, top, steps) for one in targets)
            if isinstance(parent, (ast.For, ast.comprehension)):
                return self._keeps(parent.target, top, steps)
            if isinstance(parent, ast.Return):
                return self._can_be_read(top) and all(
                    self._is_whole(call, steps) for call in self._returned_to(parent)
                )
            if isinstance(parent, ast.stmt) or parent is None:
                return self._can_be_read(top)
            if isinstance(parent, ast.BinOp):
                while isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add):
                    node, parent = parent, parents.get(id(parent))
                if isinstance(parent, ast.BinOp) and node is parent.left:
                    node, parent = parent, parents.get(id(parent))  # `"…" % x`
                elif isinstance(parent, ast.BinOp) or not _is_text(node):
                    return False
                top = node if _is_text(node) else top
                continue
            is_method = isinstance(parent, ast.Attribute)
            node, parent = parent, parents.get(id(parent))
            if is_method and isinstance(parent, ast.Call):
                # `"…".format(…)`: what the text begins with is what is read.
                node, parent = parent, parents.get(id(parent))
            elif isinstance(node, ast.JoinedStr):
                top = node
        return False

    def _keeps(self, target: ast.expr, top: ast.AST, steps: int) -> bool:
        """Whether a name holds a whole statement, and all that read the name take it as one."""
        if _written(target) in self._grown:
            return False
        if not isinstance(target, ast.Name):
            return self._can_be_read(top)
        reads = self._reads.get(target.id, [])
        if target.id not in self._kept:
            self._kept[target.id] = True
            self._kept[target.id] = all(self._is_whole(one, steps) for one in reads)
        is_put_in = bool(reads) and all(self._is_in_text(one) for one in reads)
        return self._kept[target.id] and (is_put_in or self._can_be_read(top))

    def _is_in_text(self, node: ast.AST) -> bool:
        parent = self.module.names.parents.get(id(node))
        return isinstance(parent, (ast.FormattedValue, ast.BinOp))

    def _returned_to(self, statement: ast.AST) -> Iterator[ast.Call]:
        """The calls of the function around a statement."""
        for one in self.module.names.around(statement):
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from self._calls.get(one.name, ())
                return

    def _can_be_read(self, node: ast.AST) -> bool:
        """Whether a text is read as statements that name a table; true of what is no text."""
        if not isinstance(node, ast.expr) or not is_text(node):
            return not isinstance(node, ast.BinOp)
        if id(node) not in self._whole:
            from sqlglot import exp

            statements = [
                one for text in rendered(self.module.read(node)) for one in parse_statements(text, "spark")
            ]
            self._whole[id(node)] = all(
                one.words or (one.tree is not None and one.tree.find(exp.Table) is not None)
                for one in statements
            )
        return self._whole[id(node)]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.expr) and is_text(node)


def _written(node: ast.AST) -> str:
    """A name, or an attribute or an element of one, as written; empty for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return f"{node.value.id}[{ast.unparse(node.slice)}]"
    return ""
