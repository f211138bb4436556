"""What a name or a text of a Python file is for: a value, a label, a new column, a key of an own mapping.

Whatever has none of these roles may name a column, even where no DataFrame takes it directly.
"""

from __future__ import annotations

import ast
import re

from icemigrate.sql_impact.data_frames import Frames
from icemigrate.sql_impact.python_names import Element, called
from icemigrate.sql_impact.python_sql import PythonModule

_VALUES = re.compile(
    r"lit|isin|contains|startswith|endswith|like|rlike|ilike|eqNullSafe|otherwise|cast|astype|"
    r"date_format|to_date|to_timestamp|hint|option|options|format|mode|save|load|table|sql|"
    r"saveAsTable|insertInto|writeTo|forName|createOrReplaceTempView|createTempView|"
    r"registerTempTable|createOrReplaceGlobalTempView|appName|config|getenv|get_argument|"
    r"getLogger|import_module|strftime|strptime|join_path"
)
"""Functions whose texts are values, and no columns."""
_LABELS = re.compile(
    r"tags|task_id|dag_id|description|doc_md|owner|.*conn_id|pool|queue|name|title|label|help|level|group_id|dest"
)
"""Arguments whose texts are labels."""
_FIELDS = re.compile(r"\w*(?:[Ff]ield|[Cc]olumn|[Cc]ol)")
"""Functions whose argument ``name`` is the name of a column."""
_NEW_NAMES = frozenset({"alias", "name", "toDF"})
"""Functions whose texts name new columns."""
_OF_COLUMNS = frozenset({"columns", "dtypes", "names", "fields", "fieldNames", "schema", "keys"})
_COLUMN_LIKE = re.compile(r"(?i).*(?:col|field|key|name).*|c")
"""Variables that hold the name of a column."""
_ROWS = frozenset({"Row", "withColumns", "assign", "struct", "dict"})
_OBJECTS = frozenset({"values", "insert", "update", "filter_by", "replace", "rename"})
_ELEMENTS = frozenset({"get", "pop", "setdefault"})
"""Methods of a mapping that return an element."""
_PROGRAMS = re.compile(r"DAG|\w*(?:Operator|Sensor|Task|Parser|Logger|Error|Exception)")
_ARGUMENTS = frozenset({"parse_args", "parse_known_args"})


class Roles:
    """The roles of the nodes of one file."""

    def __init__(self, module: PythonModule, frames: Frames) -> None:
        self.module, self.frames = module, frames
        self._reads: dict[str, list[ast.Name]] = {}
        self._keys: dict[int, ast.expr | None] = {}
        for node in ast.walk(module.names.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._reads.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                self._keys |= {id(value): key for key, value in pairs}
        self._is_indexed: dict[str, bool] = {}

    def subscript(self, node: ast.AST) -> ast.Subscript | None:
        """The subscript whose index a text is, or is an element of."""
        before = node
        for one in self.module.names.around(node):
            if isinstance(one, ast.Subscript):
                return one if one.slice is before else None
            if not isinstance(one, (ast.List, ast.Tuple)):
                return None
            before = one
        return None

    def is_value(self, node: ast.expr) -> bool:
        """Whether a text is surely the argument of a function that takes values."""
        call = self.call_around(node)
        if call is None:
            return False
        name = called(call)
        if name == "when":
            return node in call.args[1:]
        if name == "add_argument":
            return node in call.args
        if name in _ELEMENTS and isinstance(call.func, ast.Attribute) and call.args[:1] == [node]:
            return self.is_own_mapping(call.func.value)
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        # A text that a name holds has `format` too.
        is_text = isinstance(base, ast.Name) or self.module.literal(base) is not None
        return _VALUES.fullmatch(name) is not None and not (name == "format" and is_text)

    def is_new_name(self, node: ast.expr) -> bool:
        """Whether a text names a new column."""
        call = self.call_around(node)
        if call is None:
            return False
        return (
            called(call) in _NEW_NAMES
            or (called(call) == "withColumn" and call.args[:1] == [node])
            or (called(call) == "withColumnRenamed" and node in call.args[1:])
        )

    def is_compared_value(self, node: ast.expr) -> bool:
        """Whether a text is compared with a value, and not with the name of a column."""
        parents = self.module.names.parents
        side: ast.AST | None = node
        while isinstance(parents.get(id(side)), (ast.List, ast.Tuple, ast.Set)):
            side = parents.get(id(side))
        compare = parents.get(id(side))
        if not isinstance(compare, ast.Compare):
            return False
        others = [one for one in (compare.left, *compare.comparators) if one is not side]
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in compare.ops) and compare.left is side:
            return all(self._is_own_text(one) for one in others)
        return not any(self._may_be_column_name(one) for one in others)

    def _is_own_text(self, node: ast.expr) -> bool:
        return self.module.known_text(node) is not None or ast.unparse(node) in {"sys.argv", "os.environ"}

    def _may_be_column_name(self, node: ast.expr) -> bool:
        """Whether an expression may be the name of a column, such as a loop over ``df.columns`` gives."""
        if isinstance(node, ast.Name):
            if _COLUMN_LIKE.fullmatch(node.id):
                return True
            bound = [one.of for one in self.module.names.find(node) if isinstance(one, Element)]
            attributes = (at for one in bound for at in ast.walk(one) if isinstance(at, ast.Attribute))
            return any(at.attr in _OF_COLUMNS for at in attributes)
        return isinstance(node, ast.Attribute) and node.attr in {"name", "column", "col", "field"}

    def is_kept_apart(self, node: ast.AST) -> bool:
        """Whether a text is a label, or a key of a mapping that the file only takes elements of."""
        names = self.module.names
        before = node
        for one in names.around(node):
            if isinstance(one, ast.keyword) and _LABELS.fullmatch(one.arg or ""):
                call = names.parents.get(id(one))
                is_field = isinstance(call, ast.Call) and _FIELDS.fullmatch(called(call)) is not None
                return not (is_field and one.arg == "name")
            if isinstance(one, ast.Dict) and id(before) in self._keys:
                key = self._keys[id(before)]
                label = key.value if isinstance(key, ast.Constant) else ""
                return label != "name" and _LABELS.fullmatch(str(label)) is not None
            if isinstance(one, ast.Assign) and isinstance(before, ast.Dict):
                bound = [t.id for t in one.targets if isinstance(t, ast.Name)]
                return len(bound) == len(one.targets) and all(map(self.is_only_indexed, bound))
            if isinstance(one, ast.stmt):
                return False
            before = one
        return False

    def is_only_indexed(self, name: str) -> bool:
        """Whether every read of a name takes an element."""
        if name not in self._is_indexed:
            reads = self._reads.get(name, [])
            parents = [self.module.names.parents.get(id(one)) for one in reads]
            pairs = zip(parents, reads, strict=True)
            self._is_indexed[name] = bool(reads) and all(
                (isinstance(parent, ast.Subscript) and parent.value is read)
                or (isinstance(parent, ast.Attribute) and parent.attr in _ELEMENTS)
                for parent, read in pairs
            )
        return self._is_indexed[name]

    def is_own_mapping(self, node: ast.expr) -> bool:
        """Whether what is indexed is a mapping of this file that goes nowhere else."""
        if not isinstance(node, ast.Name):
            return ast.unparse(node) in {"os.environ", "self.__dict__"}
        bound = self.module.names.find(node)
        is_dict = bool(bound) and all(
            isinstance(one, (ast.Dict, ast.DictComp))
            or (isinstance(one, ast.Call) and called(one) in {"dict", "defaultdict", "Counter"})
            for one in bound
        )
        return is_dict and self.is_only_indexed(node.id)

    def is_own_attribute(self, node: ast.Attribute) -> bool:
        """Whether an attribute belongs to an object that is surely no row: a module, arguments, ``self``."""
        base, names = node.value, self.module.names
        if isinstance(base, ast.Call):
            return called(base) in _ARGUMENTS or called(base) in names.classes
        if not isinstance(base, ast.Name):
            return False
        if base.id in {"self", "cls", *names.classes}:
            return True
        if base.id in names.imported:
            # Constants of another file are read there.
            return base.id not in self.module.readers or node.attr.isupper()
        bound = names.find(base)
        return bool(bound) and all(
            isinstance(one, ast.Call) and (called(one) in _ARGUMENTS or called(one) in names.classes)
            for one in bound
        )

    def is_column_argument(self, keyword: ast.keyword) -> bool:
        """Whether the name of an argument may be that of a column."""
        call = self.module.names.parents.get(id(keyword))
        if not isinstance(call, ast.Call):
            return False
        name = called(call)
        if name in _ROWS or (name in _OBJECTS and isinstance(call.func, ast.Attribute)):
            return True
        is_class = name[:1].isupper() and name not in self.module.names.classes
        return is_class and _PROGRAMS.fullmatch(name) is None

    def is_field(self, node: ast.stmt) -> bool:
        """Whether a statement declares a field of a class that describes rows."""
        parent = self.module.names.parents.get(id(node))
        if not isinstance(parent, ast.ClassDef) or not (parent.bases or parent.decorator_list):
            return False
        return isinstance(node, ast.AnnAssign) or (
            isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        )

    def call_around(self, node: ast.AST) -> ast.Call | None:
        """The call whose argument a node is, directly or in lists and dictionaries."""
        for one in self.module.names.around(node):
            if isinstance(one, ast.Call):
                return one
            if isinstance(one, ast.stmt):
                return None
        return None
