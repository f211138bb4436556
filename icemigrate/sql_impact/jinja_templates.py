"""Converts dbt templates to SQL that can be parsed, without running any code.

``{{ ref('x') }}`` and ``{{ source('a', 'b') }}`` become names that the search knows; texts that the template
binds (``{% set k = 'total' %}``, ``{% for k in ['id', 'total'] %}``) are put in where it uses them; the
columns among a macro's arguments become arguments of a function; every other expression becomes a name for
something unknown.  Conditions are read once for each of their branches.  What takes part in no reading is
kept, so that the search can look at its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from icemigrate.sql_impact.jinja_expressions import (
    Place,
    TemplateLiteral,
    bound_texts,
    config_values,
    expression_sql,
    function_of,
    literals_in,
)
from icemigrate.sql_impact.jinja_tree import Node, parse_template
from icemigrate.sql_impact.jinja_values import UNKNOWN, Items, Token, Value, Variables, tokens_of, value_of
from icemigrate.sql_impact.sql_source import FragmentBuilder, SqlFragment

_MOST_CHARACTERS = 300_000
"""How many characters loops may add to the readings of a template; they are read once beyond that."""
_MOST_READINGS = 6
_LONGEST_EXPRESSION = 10_000
"""The value of a longer expression is unknown; in characters."""
_ASSIGNMENT = re.compile(r"(\w+)\s*=(?!=)")
_LOOP = re.compile(r"\s*([\w\s,]+?)\s+in\s+", re.DOTALL)
_LOOP_END = re.compile(r"\s*(not\s+)?loop\.(first|last)\s*")
_CALLED = re.compile(r"(?<![\w.'\"])(?:\w+\.)?(\w+)\s*\(")
_WORD = re.compile(r"\w+")
_QUERY = re.compile(r"\bselect\b", re.IGNORECASE)
_DEFINED = frozenset({"macro", "test", "materialization"})
_SEPARATE = frozenset({"set", "call", "filter"})
"""Blocks whose content is no SQL of the file's own query."""
_SILENT = frozenset({"config", "log", "print", "exceptions"})
"""Functions that return no values of their arguments."""
_ENVIRONMENT = frozenset(
    (
        "var",
        "env_var",
        "target",
        "flags",
        "execute",
        "is_incremental",
        "and",
        "or",
        "not",
        "in",
        "is",
        "none",
        "true",
        "false",
    )
)
"""The names in a condition that says nothing of columns."""
_HIDDEN = frozenset({"docs"})
_OF_DBT = frozenset({"ref", "source", "config", "var", "env_var", "log", "is_incremental", "this", "return"})
"""Functions of dbt that give no columns."""


@dataclass(slots=True)
class Macro:
    """A macro.

    :param bodies: its body, once for each branch of the conditions.
    :param called: the words of its code, some of which are the macros that it calls.
    :param literals: the string literals of its code and of its parameters, which it may return.
    :param lost: as in a template.
    """

    bodies: list[SqlFragment] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    literals: list[TemplateLiteral] = field(default_factory=list)
    lost: dict[tuple[int, str], SqlFragment] = field(default_factory=dict)


@dataclass(slots=True)
class Template:
    """What a template holds.

    :param readings: its SQL, once for each branch of its conditions.
    :param blocks: SQL that it gives to a name or to a macro, such as that of ``{% set q %}`` and
        ``{% call statement() %}``.
    :param macros: the macros that it defines, by name.
    :param literals: the string literals of its code.
    :param rest: texts that take part in no reading, with their indexes.
    :param lost: texts of variables and names in expressions whose values are unknown.
    :param called: the words of its code, some of which are the macros that it calls.
    :param snapshots: the names of its snapshots.
    :param first_macro: the index of its first expression that calls a macro; 0 where none does.
    :param is_cut: whether its loops give more than the limit, so that some are read once.
    """

    readings: list[SqlFragment] = field(default_factory=list)
    blocks: list[SqlFragment] = field(default_factory=list)
    macros: dict[str, Macro] = field(default_factory=dict)
    literals: list[TemplateLiteral] = field(default_factory=list)
    rest: list[tuple[str, int]] = field(default_factory=list)
    lost: dict[tuple[int, str], SqlFragment] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    snapshots: list[str] = field(default_factory=list)
    first_macro: int = 0
    is_cut: bool = False

    @property
    def read(self) -> set[int]:
        """The indexes of all characters that take part in a reading."""
        found: set[int] = set()
        for fragment in (*self.readings, *self.blocks):
            found.update(fragment.indexes)
        return found


def is_template(text: str) -> bool:
    """Whether a text contains template syntax."""
    return "{{" in text or "{%" in text or "{#" in text


def read_template(text: str, variables: Variables | None = None) -> Template:
    """Read a template.

    :param variables: the variables of the dbt project, by :func:`~.jinja_values.variable_key`.
    """
    nodes = parse_template(text)
    template = Template()
    variables = variables or {}
    reader = _Renderer(template, text, variables)
    seen: set[str] = set()
    count = 1
    for reading in range(_MOST_READINGS):
        if reading >= count:
            break
        reader.begin(reading)
        out = FragmentBuilder()
        reader.render(nodes, out)
        count = max(count, reader.branches)
        fragment = out.built()
        if fragment.text not in seen:
            seen.add(fragment.text)
            template.readings.append(fragment)
    for node in _all(nodes):
        if node.kind == "text":
            if id(node) not in reader.rendered:
                template.rest.append((node.code, node.start))
        elif node.kind != "comment":
            template.called |= _words(node)
            if node.kind == "expression" and not template.first_macro and _called(node) - _OF_DBT:
                template.first_macro = node.start + len(node.code) - len(node.code.lstrip())
            for code, at in _codes(node):
                if node.kind != "if" or not _is_of_environment(code, at):
                    template.literals.extend(literals_in(code, at, variables))
    return template


def _codes(node: Node) -> list[tuple[str, int]]:
    """The code of a piece, with that of each branch."""
    return [(node.code, node.start), *((branch.code, branch.start) for branch in node.branches[1:])]


def _called(node: Node) -> set[str]:
    """The functions that a piece calls."""
    if node.kind in {"text", "comment"}:
        return set()
    return {found[1] for code, _ in _codes(node) for found in _CALLED.finditer(code)}


def _is_of_environment(code: str, at: int) -> bool:
    """Whether a condition asks only for variables and the target, and for no name of a column."""
    tokens = tokens_of(code, at)
    names = [
        token.text
        for number, token in enumerate(tokens)
        if token.kind == "name" and (not number or tokens[number - 1].text != ".")
    ]
    return bool(tokens) and _ENVIRONMENT.issuperset(names)


def _words(node: Node) -> set[str]:
    """The words of the code of a piece: a macro may be called by its name, through a name, or by a text."""
    if node.kind in {"text", "comment"}:
        return set()
    return {word for code, _ in _codes(node) for word in _WORD.findall(code)}


def _all(nodes: list[Node]) -> Iterator[Node]:
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if node.kind in _HIDDEN:
            continue
        yield node
        for branch in reversed(node.branches):
            waiting.extend(reversed(branch.nodes))


@dataclass(slots=True)
class _Loop:
    is_first: bool
    is_last: bool


class _Renderer:
    """Writes the SQL of one template."""

    def __init__(self, template: Template, text: str, variables: Variables) -> None:
        self.template, self.text, self.variables = template, text, variables
        self.rendered: set[int] = set()
        self.left = _MOST_CHARACTERS + _MOST_READINGS * len(text)
        self.lost = template.lost
        self.branches = 1
        self.begin(0)

    def begin(self, reading: int) -> None:
        """Begin a reading.

        :param reading: which branch of each condition it takes.
        """
        self.reading = reading
        self.names: dict[str, Value] = dict(self.variables)
        self.loops: list[_Loop | None] = []

    def render(self, nodes: list[Node], out: FragmentBuilder) -> None:
        for node in nodes:
            self.left -= len(node.code) if node.kind == "text" else 10
            if node.kind == "text":
                self.rendered.add(id(node))
                out.copy(node.code, node.start)
            elif node.kind == "expression":
                self._expression(node, out)
            elif node.kind != "comment" and node.kind not in _HIDDEN:
                self._statement(node, out)
                out.put(" ", node.start)

    def _expression(self, node: Node, out: FragmentBuilder) -> None:
        if len(node.code) > _LONGEST_EXPRESSION or self.left <= 0:
            out.put(UNKNOWN, node.start)
            return
        end = self.text.find("}}", node.start + len(node.code))
        place = Place.of(out.tail(), self.text[end + 2 : end + 200] if end >= 0 else "")
        tokens = tokens_of(node.code, node.start)
        loop = self.loops[-1] if self.loops else None
        choice = next((at for at, t in enumerate(tokens) if t.kind == "name" and t.text == "if"), None)
        if choice is not None and not any(t.text in "([{" for t in tokens[:choice] if t.kind == "mark"):
            otherwise = next(
                (at for at, t in enumerate(tokens) if t.kind == "name" and t.text == "else"), None
            )
            condition = "".join(
                f" {t.text}" if t.kind == "name" else t.text for t in tokens[choice + 1 : otherwise]
            )
            holds = self._holds(condition, loop)
            if holds is None:
                self.branches = max(self.branches, 2)
                holds = self.reading == 0
            tokens = tokens[:choice] if holds else tokens[otherwise + 1 :] if otherwise else []
            if not tokens:
                return
        if tokens and function_of(tokens) == "config":
            self.template.literals.extend(config_values(tokens, self.names) if self.reading == 0 else ())
        sql = expression_sql(tokens, self.names, place)
        if tokens and (UNKNOWN in sql.text or not sql.text) and function_of(tokens) not in _SILENT:
            self._lose(tokens)
        self.left -= len(sql.text)
        out.parts.append(sql.text)
        out.indexes.extend(sql.indexes)

    @staticmethod
    def _holds(condition: str, loop: _Loop | None) -> bool | None:
        """Whether a condition holds; ``None`` where that is unknown."""
        found = _LOOP_END.fullmatch(condition)
        if found is None or loop is None:
            return None
        holds = loop.is_first if found[2] == "first" else loop.is_last
        return holds is (found[1] is None)

    def _statement(self, node: Node, out: FragmentBuilder) -> None:
        if node.kind == "if":
            self._if(node, out)
        elif node.kind == "for":
            self._for(node, out)
        elif node.kind == "set" and not node.branches:
            self._set(node)
        elif node.kind in _DEFINED:
            name = node.code.partition("(")[0].split(",")[0].strip()
            macro = self.template.macros.setdefault(name, Macro())
            outer, self.lost = self.lost, macro.lost
            body = self._apart(node)
            self.lost = outer
            if all(body.text != known.text for known in macro.bodies):
                macro.bodies.append(body)
            if self.reading == 0:
                self._take_code(node, macro)
        elif node.kind in _SEPARATE and node.branches:
            content = self._apart(node)
            if self.reading == 0:
                self.template.blocks.append(content)
            if node.kind == "set":
                self.names[node.code.strip()] = content
        elif node.branches:
            if node.kind == "snapshot":
                if self.reading == 0:
                    self.template.snapshots.append(node.code.strip())
                out.put(" ; ", node.start)
            self.render(node.branches[0].nodes, out)
            if node.kind == "snapshot":
                out.put(" ; ", node.start)

    def _take_code(self, node: Node, macro: Macro) -> None:
        """Take the code of a macro: what it calls, and the texts that it may return."""
        for inner in _all([node]):
            macro.called |= _words(inner)
            if inner.kind not in {"text", "comment"}:
                for code, at in _codes(inner):
                    if inner.kind == "if" and _is_of_environment(code, at):
                        continue
                    macro.literals.extend(literals_in(code, at, self.variables))

    def _lose(self, tokens: list[Token]) -> None:
        """Keep the texts that an expression uses whose value is unknown."""
        if self.left <= 0:
            return
        for text in bound_texts(tokens, self.names):
            if (text.index(0), text.text) not in self.lost and _QUERY.search(text.text) is None:
                self.left -= len(text.text)
                self.lost[text.index(0), text.text] = text

    def _apart(self, node: Node) -> SqlFragment:
        """The content of a block that is no SQL of the file's own query."""
        out, names = FragmentBuilder(), self.names
        self.names = dict(names)
        self.render(node.branches[0].nodes, out)
        self.names = names
        return out.built()

    def _if(self, node: Node, out: FragmentBuilder) -> None:
        branches = node.branches
        holds = self._holds(branches[0].code, self.loops[-1] if self.loops else None)
        has_else = branches[-1].word == "else"
        count = len(branches) + (not has_else)
        if holds is None:
            self.branches = max(self.branches, count)
            chosen = min(self.reading, count - 1)
        else:
            chosen = 0 if holds else 1
        if chosen < len(branches):
            self.render(branches[chosen].nodes, out)

    def _set(self, node: Node) -> None:
        found = _ASSIGNMENT.match(node.code)
        if found is None:
            return
        code = node.code[found.end() :]
        is_short = len(code) <= _LONGEST_EXPRESSION * 10
        tokens = tokens_of(code, node.start + found.end()) if is_short else []
        value = value_of(tokens, self.names) if is_short else None
        if value is None:
            self._lose(tokens)
        self.names[found[1]] = value

    def _for(self, node: Node, out: FragmentBuilder) -> None:
        found = _LOOP.match(node.code)
        targets = [name.strip() for name in found[1].split(",")] if found else []
        code = node.code[found.end() :] if found else ""
        body = node.branches[0].nodes
        tokens = tokens_of(code, node.start + found.end()) if found else []
        items = value_of(tokens, self.names) if found else None
        if items is None:
            self._lose(tokens)
        values = (items.keys or items.values) if isinstance(items, Items) else ()
        if not values:
            self.loops.append(None)
            self._once(body, targets, None, out)
            self.loops.pop()
            return
        for number, value in enumerate(values):
            # A long list in a nested loop is read until the characters are used up, and once from then on.
            if self.left <= 0 and number:
                self.template.is_cut = True
                break
            self.loops.append(_Loop(number == 0, number == len(values) - 1 or self.left <= 0))
            self._once(body, targets, value, out)
            self.loops.pop()

    def _once(self, body: list[Node], targets: list[str], value: Value, out: FragmentBuilder) -> None:
        names = dict(self.names)
        if len(targets) == 1:
            self.names[targets[0]] = value
        else:
            parts = value.values if isinstance(value, Items) else ()
            for number, name in enumerate(targets):
                self.names[name] = parts[number] if number < len(parts) else None
        self.render(body, out)
        self.names = {**self.names, **{name: names.get(name) for name in targets}}
