"""SQL in Python: string literals that are SQL, with the index of each character.

Literals are found in the syntax tree, so a name that is bound to one literal in the file stands for it.  The
values of f-strings and other formats are that literal, or a name for something unknown.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from icemigrate.sql_impact.jinja_templates import is_template, read_template
from icemigrate.sql_impact.jinja_values import UNKNOWN, Variables
from icemigrate.sql_impact.python_names import Names, called, constants
from icemigrate.sql_impact.sql_source import FragmentBuilder, SqlFragment

_OPENING = re.compile(r"(?P<prefix>[rRbBuUfF]{0,2})(?P<quote>\"\"\"|'''|\"|')")
_BETWEEN = re.compile(r"(?:\s|\\\n|#[^\n]*|\(|\))+")
_ESCAPE = re.compile(
    r"\\(?:\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\})"
)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:![rsa]\s*)?(?::[^}]*)?\Z")
_FIELD = re.compile(r"\{\w*\}")
"""What `str.format`, and Spark itself, put something in for."""
_PARAMETER = re.compile(r"%s\b|%\(\w+\)s")
_SQL = re.compile(
    r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\{%[^%]*%\}|\{#[^#]*#\})*(?:select|with|insert|update|delete|merge|create|alter|replace|truncate|call"
    r"|comment|cache|analyze|optimize|refresh)\s",
    re.IGNORECASE | re.DOTALL,
)
_PROSE = frozenset(
    (
        "print",
        "debug",
        "info",
        "warning",
        "warn",
        "error",
        "exception",
        "critical",
        "log",
        "echo",
        "markdown",
        "fail",
    )
)
"""Functions whose texts are for people."""
_EXCEPTIONS = ("Error", "Exception", "Warning")
"""How the classes end whose texts are messages."""
_MOST_INTERPOLATED_CHARACTERS = 1_000_000
"""How many characters of other literals a file's f-strings may have together; what is beyond is unknown."""


_MOST_STEPS = 8
"""How many names a value is followed through."""
_LONGEST_CONSTANT = 1_000
"""How long a constant may be that a module gives to the modules that import it, in characters."""


class NoPython(Exception):
    """A file that cannot be read; :attr:`at` is the index where."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.at = at


class PythonModule:
    """A Python file: its syntax tree, its names, and the SQL in it.

    :param text: with ``\\n`` as the only line break.
    :raises NoPython: it cannot be read.
    """

    def __init__(self, text: str) -> None:
        try:
            # What Python warns of while it reads is for whoever runs the job.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
            self.names = Names.of(tree)
        except SyntaxError as error:
            line = text.split("\n")[: max((error.lineno or 1) - 1, 0)]
            raise NoPython(error.msg, sum(map(len, line)) + len(line)) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise NoPython(type(error).__name__, 0) from error
        self.text, self.is_ascii = text, text.isascii()
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.literals = dict(constants(self.names))
        self.imported: dict[str, str] = {}
        self.readers: set[str] = set()
        self._elements: dict[int, dict[object, ast.expr]] = {}
        self.left = _MOST_INTERPOLATED_CHARACTERS

    def fragments(self) -> Iterator[tuple[ast.expr, SqlFragment]]:
        """All SQL of the file, each with its expression."""
        seen: set[int] = set()
        for node in ast.walk(self.names.tree):
            if isinstance(node, ast.Call) and called(node) == "sql" and isinstance(node.func, ast.Attribute):
                given = node.args[0] if node.args else _named(node)
                if (literal := self.literal(given)) is not None and id(literal) not in seen:
                    seen |= {id(one) for one in ast.walk(literal)}
                    yield from ((node, one) for one in self._sql(literal))
        for node in ast.walk(self.names.tree):
            if not isinstance(node, ast.expr) or id(node) in seen:
                continue
            if not is_text(node):
                seen |= {id(one) for one in _sums_within(node)}  # no part of a sum without a text is one
                continue
            seen |= {id(one) for one in ast.walk(node)}
            if not self.is_prose(node) and looks_like_sql((whole := self.read(node)).text):
                yield from ((node, one) for one in rendered(whole))

    def _sql(self, literal: ast.expr) -> Iterator[SqlFragment]:
        yield from rendered(self.read(literal))

    def is_prose(self, node: ast.AST) -> bool:
        """Whether a text is for people: documentation, a message."""
        before = node
        for one in self.names.around(node):
            is_index = isinstance(one, ast.Subscript) and one.slice is before
            if is_index or (isinstance(one, ast.Compare) and one.left is before):
                return False
            before = one
            if isinstance(one, ast.NamedExpr):
                return False
            if isinstance(one, ast.Call):
                return called(one) in _PROSE or called(one).endswith(_EXCEPTIONS)
            if isinstance(one, (ast.Expr, ast.Raise, ast.Assert)):
                return True
            if isinstance(one, ast.stmt):
                return False
        return False

    def literal(self, node: ast.expr | None) -> ast.expr | None:
        """The literal that an expression is, or that its name is bound to."""
        node = self.bound(node)
        # `"…".format(…)`, `"…" % …` and `dedent("…")` are read as the text that they begin with.
        if isinstance(node, ast.Call):
            if called(node) == "join":
                return None
            inside = node.func.value if isinstance(node.func, ast.Attribute) else None
            node = inside if is_text(inside) else node.args[0] if node.args else None
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            node = node.left
        return node if is_text(node) else None

    def bound(self, node: ast.expr | None) -> ast.expr | None:
        """What a name, an attribute or an element is bound to, and nothing else in the file; or the node."""
        for _ in range(_MOST_STEPS):
            if isinstance(node, ast.Name):
                node = self.literals.get(node.id)
            elif isinstance(node, ast.Attribute):
                if node.attr == "value" and isinstance(node.value, ast.Attribute):
                    node = node.value  # of a member of an enumeration
                found = self.names.find_members(node)
                name = f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""
                node = found[0] if len(found) == 1 else self.literals.get(name) if not found else None
            elif isinstance(node, ast.Subscript):
                node = self._element(self.bound(node.value), node.slice)
            else:
                break
        return node

    def known_text(self, node: ast.expr | None) -> str | None:
        """The text of an expression; ``None`` where it is unknown."""
        if isinstance(node, ast.Name) and node.id in self.imported:
            return self.imported[node.id]
        if isinstance(node, (ast.Attribute, ast.Subscript)) and self.imported:
            written = ast.unparse(node)
            if written in self.imported:
                return self.imported[written]
        literal = self.literal(node)
        return None if literal is None else self.read(literal).text

    def mentions(self) -> tuple[set[str], set[str]]:
        """All words of the code but comments and documentation, and its string literals, in lower case."""
        words: set[str] = set()
        texts: set[str] = set()
        for node in ast.walk(self.names.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if not isinstance(self.names.parents.get(id(node)), ast.Expr):
                    texts.add(node.value.lower().strip("` ."))
            elif isinstance(node, (ast.Name, ast.Attribute)):
                words.add((node.id if isinstance(node, ast.Name) else node.attr).lower())
        return words.union(*(re.findall(r"\w+", text) for text in texts)), texts

    @cached_property
    def constants(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """The texts that importers can read, by the first word of their names: each with its name.

        Constants, members of classes, and elements of mappings (``CONFIG['table']``).
        """
        values = [*self.literals.items(), *((f"{c}.{m}", v[0]) for (c, m), v in self.names.members.items())]
        elements = [
            (f"{name}[{key.value!r}]", element)
            for name, value in values
            if isinstance(value, ast.Dict)
            for key, element in zip(value.keys, value.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
        found: dict[str, list[tuple[str, str]]] = {}
        for name, value in (*values, *elements):
            text = self.known_text(value)
            if text is not None and len(text) <= _LONGEST_CONSTANT:
                found.setdefault(re.split(r"[.[]", name, maxsplit=1)[0], []).append((name, text))
        return found

    def _element(self, container: ast.expr | None, index: ast.expr) -> ast.expr | None:
        """The element of a literal mapping or list; ``None`` where it is unknown."""
        if not isinstance(index, ast.Constant):
            return None
        if isinstance(container, ast.Dict):
            if id(container) not in self._elements:
                pairs = zip(container.keys, container.values, strict=True)
                known: dict[object, ast.expr] = {k.value: v for k, v in pairs if isinstance(k, ast.Constant)}
                self._elements[id(container)] = known
            return self._elements[id(container)].get(index.value)
        if isinstance(container, (ast.List, ast.Tuple)) and type(index.value) is int:
            return container.elts[index.value] if 0 <= index.value < len(container.elts) else None
        return None

    def read(self, node: ast.expr, within: int = 0) -> SqlFragment:
        """What a literal holds."""
        out = FragmentBuilder()
        if isinstance(node, ast.BinOp):
            # A long sum is nested to the left.
            parts: list[ast.expr] = []
            at: ast.expr = node
            while isinstance(at, ast.BinOp):
                parts.append(at.right)
                at = at.left
            for part in (at, *reversed(parts)):
                literal = self.literal(part)
                start = self.index(part.lineno, part.col_offset)
                is_short = literal is part or self.left > 0
                if literal is not None and not isinstance(literal, ast.BinOp) and within < 8 and is_short:
                    put = self.read(literal, within + 1)
                    self.left -= 0 if literal is part else len(put.text)
                    out.append(put)
                else:
                    out.put(self.imported.get(getattr(part, "id", ""), UNKNOWN), start)
            return out.built()
        at_, end = self.index(node.lineno, node.col_offset), self.index(*_end(node))
        while at_ < end:
            if (gap := _BETWEEN.match(self.text, at_)) is not None:
                at_ = gap.end()
                continue
            opening = _OPENING.match(self.text, at_)
            if opening is None:
                break
            at_ = self._piece(opening, out, within)
        return out.built()

    def _piece(self, opening: re.Match[str], out: FragmentBuilder, within: int) -> int:
        """One of several adjacent literals, and where it ends."""
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
            elif character == "{" and self.text.startswith("{{", at):
                # A template that another program fills in.
                out.copy("{{", at)
                at += 2
            elif character == "{" and (field := _FIELD.match(self.text, at)) is not None:
                out.put(UNKNOWN, at)
                at = field.end()
            else:
                out.copy(character, at)
                at += 1
        return at + len(quote)

    def _put_in(self, at: int, out: FragmentBuilder, within: int) -> int:
        """The expression in braces in an f-string, and where it ends."""
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
        otherwise = self.imported.get(self.text[at + 1 : end - 1].strip(), UNKNOWN)
        put = self.read(literal, within + 1).text if literal is not None and is_read else otherwise
        self.left -= len(put)
        out.put(put, at)
        return end

    def index(self, line: int, column: int) -> int:
        """Where a position of the syntax tree is; it counts bytes of UTF-8."""
        start = self.starts[line - 1]
        if self.is_ascii:
            return start + column
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:end].encode()[:column].decode(errors="ignore"))


def looks_like_sql(text: str) -> bool:
    """Whether a text begins as a statement does."""
    return _SQL.match(text) is not None


def rendered(fragment: SqlFragment, variables: Variables | None = None) -> Iterator[SqlFragment]:
    """A text, or what the template in it gives, with names for the parameters of a driver."""
    if _PARAMETER.search(fragment.text) is not None:
        out, at = FragmentBuilder(), 0
        for found in _PARAMETER.finditer(fragment.text):
            out.append(SqlFragment(fragment.text[at : found.start()], fragment.indexes[at : found.start()]))
            out.put(UNKNOWN, fragment.index(found.start()))
            at = found.end()
        out.append(SqlFragment(fragment.text[at:], fragment.indexes[at:]))
        fragment = out.built()
    if not is_template(fragment.text):
        yield fragment
        return
    template = read_template(fragment.text, variables)
    for reading in template.readings:
        yield reading.inside(fragment)
    if template.is_cut:
        yield fragment  # which is not SQL


def _named(call: ast.Call) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg in {"sqlQuery", "query"}), None)


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _sums_within(node: ast.expr) -> Iterator[ast.expr]:
    """The sums that a long sum is nested from."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
        yield node


def is_text(node: ast.expr | None) -> bool:
    """Whether an expression is a string literal, an f-string, or a sum with one of them."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        if is_text(node.right):
            return True
        node = node.left
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _meaning(escape: str) -> str:
    if escape == "\\\n":
        return ""
    try:
        return str(ast.literal_eval(f'"{escape}"' if escape != '\\"' else "'\"'"))
    except (SyntaxError, ValueError):
        return escape
