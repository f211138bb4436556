"""Which declared tables the DataFrames of a Python file come from, by its syntax tree alone.

A value is a :class:`Relation`: known (``spark.table("shop.orders")`` and what follows from it), foreign (a
file, a table that is not declared), or opaque: a parameter for which the file gives nothing, for example.
``None`` is a value that is no DataFrame.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from icemigrate.frozen import replace
from icemigrate.sql_impact.jinja_values import REF, SOURCE, UNKNOWN
from icemigrate.sql_impact.python_names import Binding, Element, Parameter, called
from icemigrate.sql_impact.python_sql import PythonModule
from icemigrate.sql_impact.query_uses import TableLookup
from icemigrate.sql_impact.relations import NONE, OPAQUE_RELATION, Relation, joined_relation

Frame: TypeAlias = "Relation | None"
FOREIGN = Relation(is_complete=True)

_TABLE_READERS = frozenset(
    {"table", "load", "forName", "load_table", "loadTable", "read_table", "from_table"}
)
_FILE_READERS = re.compile(
    r"csv|json|parquet|orc|text|jdbc|avro|xml|read_csv|read_json|read_parquet|read_excel|"
    r"read_feather|range|createDataFrame|textFile|parallelize|emptyRDD|DataFrame|from_dict|"
    r"from_records|wholeTextFiles"
)
_SAME = re.compile(
    r"filter|where|limit|distinct|dropDuplicates|drop_duplicates|orderBy|sort|"
    r"sortWithinPartitions|repartition|repartitionByRange|coalesce|cache|persist|unpersist|hint|"
    r"sample|alias|checkpoint|localCheckpoint|dropna|fillna|replace|withWatermark|toPandas|fill|"
    r"head|take|first|collect|toLocalIterator|groupBy|groupby|rollup|cube|pivot|agg|count|sum|"
    r"max|min|avg|mean|show|option|options|format|mode|write|save|load|where|intersect|"
    r"subtract|exceptAll|copy|sort_values|reset_index|set_index|astype|cast|isin|isNull|"
    r"isNotNull|asc|desc|over|otherwise|when|iterrows|itertuples|to_dict|rdd|map|flatMap|"
    r"foreach|foreachPartition|explain|printSchema|append|overwritePartitions|tail|toDF|sampleBy|"
    r"asDict|between|like|rlike|startswith|contains|substr|getField"
)
_JOINS = frozenset(
    {"join", "crossJoin", "merge", "union", "unionAll", "unionByName", "union_by_name", "concat"}
)
_MOST_FOLDERS = 20
_MOST_COLUMNS = 1_000_000
"""How many columns and bindings a file's DataFrames are put together from; those beyond are opaque."""
_MOST_STEPS = 100
"""How many steps a DataFrame is followed back; beyond that it is opaque."""


class Frames:
    """Reads the DataFrames of one file.

    :param lookup: what the name of a table means.
    :param of_sql: what a query gives, by the call that runs it.
    """

    def __init__(
        self, module: PythonModule, lookup: TableLookup, of_sql: Callable[[ast.AST], Relation | None]
    ) -> None:
        self.module, self.lookup, self.of_sql = module, lookup, of_sql
        self._known: dict[int, Frame] = {}
        self._depth = 0
        self._left = _MOST_COLUMNS
        self._calls: dict[str, list[ast.Call]] = {}
        for node in ast.walk(module.names.tree):
            if isinstance(node, ast.Call):
                self._calls.setdefault(called(node), []).append(node)

    def frame(self, node: ast.expr | None) -> Frame:
        """What an expression is."""
        if node is None:
            return None
        if id(node) not in self._known:
            # A name that is bound by way of itself adds nothing to itself.
            self._known[id(node)] = None
            if self._depth > _MOST_STEPS or self._left <= 0:
                return OPAQUE_RELATION
            self._depth += 1
            found = self._known[id(node)] = self._read(node)
            self._depth -= 1
            self._left -= 1 + (len(found.columns) if found is not None else 0)
        return self._known[id(node)]

    def _read(self, node: ast.expr) -> Frame:
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Attribute):
            base = self.frame(node.value)
            if base is None and isinstance(node.value, ast.Name):
                names = self.module.names
                bound = names.bindings.get((id(names.tree), f"{node.value.id}.{node.attr}"), ())
                return self._union(self._binding(one) for one in bound)
            return base
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Dict):
                return self._union(map(self.frame, node.value.values))
            return self.frame(node.value)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self._union(map(self.frame, (node.left, node.right)))
        if isinstance(node, ast.IfExp):
            return self._union(map(self.frame, (node.body, node.orelse)))
        if isinstance(node, (ast.Starred, ast.Await, ast.NamedExpr)):
            return self.frame(node.value)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.frame(node.elt)
        if isinstance(node, (ast.List, ast.Tuple)):
            return self._union(map(self.frame, node.elts))
        return None

    def _union(self, frames: Iterable[Frame]) -> Frame:
        found: dict[int, Relation] = {}
        for one in frames:
            self._left -= 1
            if one is not None and id(one) not in found:
                found[id(one)] = one
                self._left -= len(one.columns)
            if self._left <= 0:
                return OPAQUE_RELATION
        return joined_relation(found.values()) if found else None

    def _name(self, node: ast.Name) -> Frame:
        return self._union(self._binding(one) for one in self.module.names.find(node))

    def _binding(self, binding: Binding) -> Frame:
        if isinstance(binding, Parameter):
            return self._parameter(binding)
        return self.frame(binding.of if isinstance(binding, Element) else binding)

    def _parameter(self, given: Parameter) -> Frame:
        """What a parameter is: what the file gives for it, or unknown."""
        if given.name in {"self", "cls", "spark", "session", "dbt", "args", "kwargs", "context", "dag"}:
            return None
        kinds = ("DataFrame", "Row", "Column", "Any", "Table")
        if given.annotation and not any(kind in given.annotation for kind in kinds):
            return None
        name = getattr(given.function, "name", "")
        if isinstance(given.function, ast.Lambda):
            outer = next(
                (n for n in self.module.names.around(given.function) if isinstance(n, ast.Call)), None
            )
            is_method = outer is not None and isinstance(outer.func, ast.Attribute)
            return self.frame(outer.func.value) if is_method and outer is not None else OPAQUE_RELATION  # type: ignore[attr-defined]
        values = []
        for call in self._calls.get(name, ()):
            named = next((k.value for k in call.keywords if k.arg == given.name), None)
            if named is None and len(call.args) > given.position >= 0:
                named = call.args[given.position]
            if named is not None:
                values.append(self.frame(named))
        for calls in (
            self._calls.get("transform", ()),
            self._calls.get("pipe", ()),
            self._calls.get("foreachBatch", ()),
        ):
            for call in calls:
                is_given = any(isinstance(a, ast.Name) and a.id == name for a in call.args)
                if is_given and isinstance(call.func, ast.Attribute):
                    values.append(self.frame(call.func.value))
        return self._union(values) if values else OPAQUE_RELATION

    def _call(self, node: ast.Call) -> Frame:
        name = called(node)
        if (query := self.of_sql(node)) is not None:
            return query
        if name in {"ref", "source"} and ast.unparse(node.func) in {"dbt.ref", "dbt.source"}:
            texts = [(self.module.known_text(one) or UNKNOWN).lower() for one in node.args]
            kind, parts = (REF, texts[-1:]) if name == "ref" else (SOURCE, texts)
            return self.lookup((kind, *parts)).relation if parts else OPAQUE_RELATION
        if name in _TABLE_READERS and (found := self._table(node)) is not None:
            return found
        if isinstance(node.func, ast.Attribute):
            base = self.frame(node.func.value)
            if base is not None:
                return self._method(name, base, node)
            if _FILE_READERS.fullmatch(name):
                return FOREIGN
            if name in {"load", "sql", "read_sql", "read_sql_query", *_TABLE_READERS}:
                return OPAQUE_RELATION
            if isinstance(node.func.value, ast.Name) and node.func.value.id in {"self", "cls"}:
                return self._own_function(name, node)
            if self._is_of_reader(node.func.value):
                return OPAQUE_RELATION
            given = self._arguments(node)
            # A function of another module may do anything with a DataFrame, and nothing with other values.
            return (
                replace(given, is_complete=False, is_opaque=True)
                if given is not None and not _is_column(node)
                else None
            )
        if _FILE_READERS.fullmatch(name):
            return FOREIGN
        return self._own_function(name, node)

    def _is_of_reader(self, node: ast.expr) -> bool:
        """Whether an expression is a module of the repository that reads a table, or a part of one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.module.readers

    def _own_function(self, name: str, node: ast.Call) -> Frame:
        """What a function of this file, or one that it imports by its name, returns."""
        names = self.module.names
        if name in names.functions:
            returned = [
                one.value
                for function in names.functions[name]
                for one in ast.walk(function)
                if isinstance(one, (ast.Return, ast.Yield)) and one.value is not None
            ]
            return self._union(map(self.frame, returned))
        given = self._arguments(node)
        if hasattr(builtins, name):
            return given
        if {name, "*"} & self.module.readers and given is None:
            return OPAQUE_RELATION
        if name in names.classes or name[:1].isupper() or _is_column(node):
            return None
        if given is not None:
            return replace(given, is_complete=False, is_opaque=True)
        table = self._table(node)
        return table if table is not None else OPAQUE_RELATION if name in names.imported else None

    def _arguments(self, node: ast.Call) -> Frame:
        return self._union(map(self.frame, (*node.args, *(k.value for k in node.keywords))))

    def _table(self, node: ast.Call) -> Frame:
        """The table that a call names by a literal; ``None`` where it names none."""
        for given in (*node.args, *(k.value for k in node.keywords)):
            text = self.module.known_text(given)
            if text is None:
                continue
            parts = tuple(part.strip("` ").lower() for part in text.split("."))
            if not all(parts) or "/" in text or ":" in text:
                return self._of_path(text) if called(node) in _TABLE_READERS else None
            found = self.lookup(parts)
            is_known = found.table is not None or bool(found.relation.tables) or found.relation.is_opaque
            if is_known or called(node) in _TABLE_READERS:
                return found.relation if is_known else FOREIGN
        return None

    def _of_path(self, text: str) -> Relation:
        """What is at a path: a declared table, if two of its folders are called as one."""
        folders = [one.lower().removesuffix(".db") for one in text.strip("/").split("/")[-_MOST_FOLDERS:]]
        for pair in itertools.pairwise(folders):
            found = self.lookup(pair) if all(pair) else None
            if found is not None and found.table is not None:
                return replace(found.relation, is_sure=False)
        return FOREIGN

    def _method(self, name: str, base: Relation, node: ast.Call) -> Relation:
        if name in _JOINS:
            given = self._arguments(node)
            return base if given is None else joined_relation((base, given))
        if name in {"select", "selectExpr"}:
            return self._selected(base, node)
        texts = [self.module.known_text(one) for one in node.args]
        first = (texts[0] or "").lower() if texts else ""
        if name in {"withColumn", "alias"} and first:
            return base if name == "alias" else replace(base, columns={**base.columns, first: NONE})
        if name == "withColumnRenamed" and len(texts) > 1:
            columns = {n: o for n, o in base.columns.items() if n != first}
            return replace(base, columns={**columns, (texts[1] or "").lower(): base.columns.get(first, NONE)})
        if name == "agg":
            new = {alias: NONE for one in node.args for alias in self._aliases(one)}
            return replace(base, columns={**base.columns, **new})
        if name == "drop":
            dropped = {text.lower() for text in texts if text}
            return replace(base, columns={n: o for n, o in base.columns.items() if n not in dropped})
        if name in {"toDF", "renamed"} and texts:
            return Relation(
                dict.fromkeys((t.lower() for t in texts if t), NONE), is_complete=None not in texts
            )
        return base if _SAME.fullmatch(name) else replace(base, is_complete=False, is_opaque=True)

    def _selected(self, base: Relation, node: ast.Call) -> Relation:
        """What ``select`` gives; a name that it does not give is no column of the table any more."""
        columns = {}
        is_complete = base.is_complete
        for one in node.args:
            aliases = self._aliases(one)
            text = self.module.known_text(one)
            if aliases:
                columns.update(dict.fromkeys(aliases, NONE))
            elif text is not None and text.isidentifier():
                columns[text.lower()] = base.columns.get(text.lower(), NONE)
            else:
                columns = {**base.columns, **columns}
                is_complete = False
        return replace(base, columns=columns, is_complete=is_complete)

    def _aliases(self, node: ast.expr) -> Sequence[str]:
        """The new names that an expression of columns gives."""
        if isinstance(node, ast.Call) and called(node) in {"alias", "name"} and node.args:
            text = self.module.known_text(node.args[0])
            return [text.lower()] if text else []
        return []


def _is_column(node: ast.Call) -> bool:
    """Whether a call is one of ``pyspark.sql.functions``, by the names that it is imported under."""
    base = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(base, ast.Name):
        return base.id in {"F", "f", "functions", "fn", "T", "np", "Window", "W"}
    return called(node) in {
        "col",
        "column",
        "expr",
        "lit",
        "when",
        "udf",
        "desc",
        "asc",
        "struct",
        "broadcast",
    }
