"""SQL in Python: the literals that are handed to ``….sql(…)``, with the place of each character.

Found in the syntax tree, so a name that is bound to one literal in the file stands for it.  What is put in,
by an f-string or otherwise, is that literal, or a name that stands for something unknown.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence

from icemigrate.impact.jinja import UNKNOWN
from icemigrate.impact.text import Building, Fragment

_OPENING = re.compile(r"(?P<prefix>[rRbBuUfF]{0,2})(?P<quote>\"\"\"|'''|\"|')")
_BETWEEN = re.compile(r"(?:\s|\\\n|#[^\n]*|\(|\))+")
_ESCAPE = re.compile(
    r"\\(?:\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\})"
)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:![rsa]\s*)?(?::[^}]*)?\Z")
_FIELD = re.compile(r"\{\w*\}")
"""What `str.format`, and Spark itself, put something in for."""
_METHOD = "sql"


class NoPython(Exception):
    """A file that cannot be read; :attr:`at` is the index where."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.at = at


def fragments(text: str) -> Iterator[Fragment]:
    """All SQL of a Python file, in the order of the calls.

    :param text: with ``\\n`` as the only line break.
    :raises NoPython: it cannot be read.
    """
    try:
        # What Python warns of while it reads is for whoever runs the job.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        line = text.split("\n")[: max((error.lineno or 1) - 1, 0)]
        raise NoPython(error.msg, sum(map(len, line)) + len(line)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise NoPython(type(error).__name__, 0) from error
    file = _File(text, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _METHOD:
            given = node.args[0] if node.args else _named(node)
            literal = file.literal(given)
            if literal is not None:
                yield file.read(literal)


def _named(call: ast.Call) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg in {"sqlQuery", "query"}), None)


_MOST_PUT_IN = 1_000_000
"""How many characters of other literals a file's f-strings may hold together; what is beyond is unknown."""


class _File:
    """A file's text, and the names that are bound to one literal in it."""

    def __init__(self, text: str, tree: ast.AST) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.literals = dict(_constants(tree))
        self.left = _MOST_PUT_IN

    def literal(self, node: ast.expr | None) -> ast.expr | None:
        """The literal that an expression is, or that its name is bound to."""
        if isinstance(node, ast.Name):
            node = self.literals.get(node.id)
        # `"…".format(…)`, `"…" % …` and `dedent("…")` are read as the text that they begin with.
        if isinstance(node, ast.Call):
            inside = node.func.value if isinstance(node.func, ast.Attribute) else None
            node = inside if _is_text(inside) else node.args[0] if node.args else None
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            node = node.left
        return node if _is_text(node) else None

    def read(self, node: ast.expr, within: int = 0) -> Fragment:
        """What a literal holds."""
        out = Building()
        at, end = self._index(node.lineno, node.col_offset), self._index(*_end(node))
        while at < end:
            if (gap := _BETWEEN.match(self.text, at)) is not None:
                at = gap.end()
                continue
            opening = _OPENING.match(self.text, at)
            if opening is None:
                break
            at = self._piece(opening, out, within)
        return out.built()

    def _piece(self, opening: re.Match[str], out: Building, within: int) -> int:
        """One literal of several that stand beside each other; where it ends."""
        prefix, quote = opening["prefix"].lower(), opening["quote"]
        at = opening.end()
        while at < len(self.text) and not self.text.startswith(quote, at):
            character = self.text[at]
            escape = _ESCAPE.match(self.text, at) if character == "\\" and "r" not in prefix else None
            if escape is not None:
                out.put(_meaning(escape[0]), at)
                at = escape.end()
            elif character == "\\":
                out.copy(self.text[at : at + 2], at)
                at += 2
            elif "f" in prefix and character in "{}" and self.text[at : at + 2] == character * 2:
                out.put(character, at)
                at += 2
            elif "f" in prefix and character == "{":
                at = self._put_in(at, out, within)
            elif character == "{" and (field := _FIELD.match(self.text, at)) is not None:
                out.put(UNKNOWN, at)
                at = field.end()
            else:
                out.copy(character, at)
                at += 1
        return at + len(quote)

    def _put_in(self, at: int, out: Building, within: int) -> int:
        """What stands in braces in an f-string; where it ends."""
        depth, end = 0, at
        while end < len(self.text):
            depth += {"{": 1, "}": -1}.get(self.text[end], 0)
            end += 1
            if depth == 0:
                break
        name = _NAME.match(self.text[at + 1 : end - 1])
        literal = self.literal(self.literals.get(name[1])) if name else None
        # Names may be bound in circles.
        is_read = literal is not None and within < 8 and self.left > 0
        put = self.read(literal, within + 1).text if literal is not None and is_read else UNKNOWN
        self.left -= len(put)
        out.put(put, at)
        return end

    def _index(self, line: int, column: int) -> int:
        """Where a position of the syntax tree is; it counts bytes of UTF-8."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:end].encode()[:column].decode(errors="ignore"))


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _constants(tree: ast.AST) -> Mapping[str, ast.expr]:
    """Names that are bound once in a file, and to what."""
    bound: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = (node.target,)
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                bound.setdefault(target.id, []).append(value)
    return {name: values[0] for name, values in bound.items() if len(values) == 1}


def _meaning(escape: str) -> str:
    if escape == "\\\n":
        return ""
    try:
        return str(ast.literal_eval(f'"{escape}"' if escape != '\\"' else "'\"'"))
    except (SyntaxError, ValueError):
        return escape
