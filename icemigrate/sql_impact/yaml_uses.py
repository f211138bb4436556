"""Uses in YAML: tests, contracts, snapshots, exposures and semantic models of dbt, and SQL in other files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.sql_impact.ddl_uses import Word
from icemigrate.sql_impact.jinja_templates import read_template
from icemigrate.sql_impact.jinja_values import REF, SOURCE, Variables, tokens_of, value_of
from icemigrate.sql_impact.python_sql import looks_like_sql, rendered
from icemigrate.sql_impact.query_uses import QueryReader
from icemigrate.sql_impact.relations import UNKNOWN_RELATION, Relation
from icemigrate.sql_impact.sql_source import SqlFragment
from icemigrate.sql_impact.template_uses import find_name_uses

_SILENT = re.compile(
    r"description|docs?|meta|tags|identifier|schema|database|quoting|values|data_type|severity|warn_if|error_if"
    r"|group|access|latest_version|label|owner|url|maturity|type|materialized|alias|loader|target_schema|strategy"
    r"|agg|granularity|time_granularity|period|version|file_format|store_failures|enabled|target_database"
)
"""Keys whose values name no columns."""
_COLUMN_KEYS = re.compile(
    r"column|column_name|columns|combination_of_columns|field|unique_key|check_cols|updated_at|partition_by"
    r"|cluster_by|loaded_at_field|group_by_columns|event_time|to_columns|primary_key|expr|column_list"
)
"""Keys whose values are names of columns."""
_CHECKED = ("tests", "data_tests", "constraints", "quote")
_LISTS = ("models", "snapshots", "seeds")
_OURS = frozenset(
    ("sources", "models", "snapshots", "seeds", "exposures", "semantic_models", "unit_tests", "metrics")
)


class YamlUses:
    """Finds the uses of one file.

    :param reader: takes the uses, by their index in the file.

    ``second`` is where a second document begins, which is not read.
    """

    def __init__(self, source: SourceText, reader: QueryReader, variables: Variables) -> None:
        self.source, self.reader, self.variables = source, reader, variables
        self.starts = source.line_starts()
        parsed = parse_yaml(source)
        self.root = parsed.node
        self.is_readable = parsed.readable
        self.second = next((d.place for d in parsed.diagnostics if d.code == "several-documents"), None)
        self.is_dbt = isinstance(self.root, YamlMapping) and any(
            k.text in _OURS for k, _ in self.root.entries
        )

    def statements(self) -> Iterator[SqlFragment]:
        """The SQL in values, such as hooks and the tasks of other programs."""
        for key, scalar in self._scalars(self.root, ""):
            if not _SILENT.fullmatch(key) and looks_like_sql(scalar.text):
                at = self._index(scalar)
                start = self.source.text.find(scalar.text[:20].split("\n")[0], at)
                written = self.source.text[start : start + len(scalar.text)]
                is_whole = written == scalar.text
                indexes: Sequence[int] = range(start, start + len(scalar.text))
                if not is_whole:
                    indexes = list(_aligned(scalar.text, self.source.text, max(start, at)))
                yield from rendered(SqlFragment(scalar.text, indexes), self.variables)

    def find(self, tables: Sequence[Relation]) -> None:
        """Find the uses.

        :param tables: the changed tables that the file names, for files of other programs than dbt.
        """
        if not isinstance(self.root, YamlMapping) or not self.is_dbt:
            for key, scalar in self._scalars(self.root, ""):
                if not _SILENT.fullmatch(key) and not looks_like_sql(scalar.text):
                    self._words(scalar, tables, is_sure=False, is_whole=True)
            return
        for source in _mappings(self.root.get("sources")):
            for table in _mappings(source.get("tables")):
                parts = (SOURCE, _text(source.get("name")).lower(), _text(table.get("name")).lower())
                self._entry(table, self.reader.lookup(parts).relation)
        for kind in _LISTS:
            for model in _mappings(self.root.get(kind)):
                name = (REF, _text(model.get("name")).lower())
                given = model.get("relation")
                relation = self._relation(given) if given is not None else self.reader.lookup(name).relation
                self._entry(model, relation)
        for model in _mappings(self.root.get("semantic_models")):
            self._semantic(model, self._relation(model.get("model")))
        for test in _mappings(self.root.get("unit_tests")):
            for given in _mappings(test.get("given")):
                self._keys(given.get("rows"), self._relation(given.get("input")))
            expected = test.get("expect")
            model_name = (REF, _text(test.get("model")).lower())
            rows = expected.get("rows") if isinstance(expected, YamlMapping) else None
            self._keys(rows, self.reader.lookup(model_name).relation)
        for exposure in _mappings(self.root.get("exposures")):
            depends = exposure.get("depends_on")
            for one in depends.items if isinstance(depends, YamlSequence) else ():
                self._exposed(one)

    def _exposed(self, node: YamlNode) -> None:
        """An exposure shows what a model gives; which columns of it, no file says."""
        relation = self._relation(node)
        if isinstance(node, YamlScalar):
            for origin in sorted({o for held in relation.columns.values() for o in held}, key=str):
                for affected_object, _ in self.reader.find_affected(origin, ()):
                    self.reader.use(
                        Word(node.text, self._index(node)), affected_object, is_sure=False, via=origin.via
                    )

    def _relation(self, node: YamlNode | None) -> Relation:
        """The relation of ``ref('x')`` or ``source('a', 'b')``."""
        text = _text(node).strip().strip("{} ")
        value = value_of(tokens_of(text, 0), {})
        if not isinstance(value, SqlFragment) or "." not in value.text:
            return UNKNOWN_RELATION
        return self.reader.lookup(tuple(value.text.lower().split("."))).relation

    def _semantic(self, model: YamlMapping, relation: Relation) -> None:
        for kind in ("entities", "dimensions", "measures"):
            for one in _mappings(model.get(kind)):
                node = one.get("expr") or one.get("name")
                if isinstance(node, YamlScalar):
                    self._words(node, [relation], is_sure=True)

    def _keys(self, node: YamlNode | None, relation: Relation) -> None:
        for row in _mappings(node):
            for key, _ in row.entries:
                self._words(key, [relation], is_sure=False)

    def _entry(self, entry: YamlMapping, relation: Relation) -> None:
        """A model, a snapshot or a table of a source, with its columns, tests and configuration."""
        config = entry.get("config")
        contract = config.get("contract") if isinstance(config, YamlMapping) else None
        is_contract = isinstance(contract, YamlMapping) and _text(contract.get("enforced")) == "true"
        for key, value in entry.entries:
            if key.text == "columns":
                for column in _mappings(value):
                    is_checked = is_contract or any(column.get(name) is not None for name in _CHECKED)
                    name = column.get("name")
                    if isinstance(name, YamlScalar):
                        self._words(name, [relation], is_sure=is_checked)
                    for inner, more in column.entries:
                        if inner.text != "name":
                            self._values(inner.text, more, relation)
            elif key.text not in {"name", "relation"}:
                self._values(key.text, value, relation)

    def _values(self, key: str, node: YamlNode, relation: Relation) -> None:
        if _SILENT.fullmatch(key):
            return
        if isinstance(node, YamlMapping):
            other = node.get("to")
            for inner, value in node.entries:
                target = self._relation(other) if inner.text == "field" and other is not None else relation
                if inner.text not in {"to", "name"}:
                    self._values(inner.text, value, target)
        elif isinstance(node, YamlSequence):
            for item in node.items:
                self._values(key, item, relation)
        else:
            self._words(node, [relation], is_sure=bool(_COLUMN_KEYS.fullmatch(key)))

    def _words(
        self, scalar: YamlScalar, relations: Sequence[Relation], *, is_sure: bool, is_whole: bool = False
    ) -> None:
        """The words of a value that are columns; one that is more than a name is an expression."""
        at = self._index(scalar)
        if "{{" in scalar.text:
            for reading in read_template(scalar.text, self.variables).readings:
                for word in re.findall(r"\w+", reading.text):
                    find_name_uses(self.reader, word, at, relations, is_sure=is_sure and word == reading.text)
            return
        words = re.findall(r"\w+", scalar.text)
        if is_whole and len(words) != 1:
            return
        for word in words:
            found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(self.source.text, at)
            if found is not None:
                at = found.start()
            find_name_uses(self.reader, word, at, relations, is_sure=is_sure and len(words) == 1)

    def _index(self, node: YamlScalar) -> int:
        return self.starts[node.place.line - 1] + node.place.column - 1

    def _scalars(self, node: YamlNode | None, key: str) -> Iterator[tuple[str, YamlScalar]]:
        waiting: list[tuple[str, YamlNode]] = [] if node is None else [(key, node)]
        while waiting:
            name, at = waiting.pop()
            if isinstance(at, YamlScalar):
                yield name, at
            elif isinstance(at, YamlSequence):
                waiting.extend((name, item) for item in reversed(at.items))
            else:
                waiting.extend((inner.text, value) for inner, value in reversed(at.entries))


def _aligned(value: str, text: str, at: int) -> Iterator[int]:
    """The index in a file of each character of a value that is indented or spread over lines there."""
    for character in value:
        if character.isspace():
            yield at
            continue
        found = text.find(character, at)
        at = found if found >= 0 else at
        yield at
        at += 1


def _mappings(node: YamlNode | None) -> Iterator[YamlMapping]:
    if isinstance(node, YamlSequence):
        yield from (item for item in node.items if isinstance(item, YamlMapping))


def _text(node: YamlNode | None) -> str:
    return node.text if isinstance(node, YamlScalar) else ""
