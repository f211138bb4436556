"""``lists:`` of the project file: values, or where the values come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.files.read.for_each import Lists
from icemigrate.files.read.list_sources import ListSource
from icemigrate.files.read.node_values import as_mapping, list_items, mapping_entries, scalar_text
from icemigrate.frozen import replace

SEEN: Literal["seen"] = "seen"
"""The list of the tenants that appear in the log; every project with a log has one of this name."""


def list_mistakes(content: YamlMapping) -> Iterator[Diagnostic]:
    """Errors of ``lists`` that the schema allows."""
    for key, value in mapping_entries(content.get("lists")):
        if isinstance(value, YamlMapping) and value.get("column") is not None and value.get("file") is None:
            message = f"`column` has no meaning for the query of the list `{key.text}`"
            yield Diagnostic("conflicting-keys", message, value.key_place("column"), "name it in the query")
        if isinstance(value, YamlScalar) and not _has_log(content):
            message = f"the list `{key.text}` is of the tenants in the log, and the project has no log"
            yield Diagnostic(
                "missing-key", message, value.place, "write the folder of the log as `log` below `pipeline`"
            )


def project_lists(content: YamlMapping) -> Lists:
    """The lists of a valid project file; those that name a source have no values yet."""
    found: dict[str, tuple[str, ...] | ListSource] = {}
    if _has_log(content):
        found[SEEN] = ListSource(SEEN, SEEN)
    for key, value in mapping_entries(content.get("lists")):
        if isinstance(value, YamlSequence):
            found[key.text] = tuple(scalar_text(item) for item in list_items(value))
        else:
            found[key.text] = _source(value)
    return found


def _source(value: YamlNode) -> ListSource:
    if isinstance(value, YamlScalar):
        return ListSource(SEEN, SEEN)
    node = as_mapping(value)
    column = node.get("column")
    file = node.get("file")
    if file is None:
        return ListSource("query", scalar_text(node.get("query")))
    return ListSource("file", scalar_text(file), column=None if column is None else scalar_text(column))


def with_file_values(lists: Lists, root: Path) -> tuple[Lists, tuple[Diagnostic, ...]]:
    """The lists with the values of files, and the errors of the files.

    :param root: the folder of the project file.
    """
    files = {name: one for name, one in lists.items() if isinstance(one, ListSource) and one.kind == "file"}
    if not files:
        return lists, ()
    # Every command reads the project file; most projects have no such list.
    from icemigrate.project.list_files import read_list_file

    read = {name: read_list_file(root, one.text, one.column) for name, one in files.items()}
    known = {name: replace(one, values=read[name].values) for name, one in files.items()}
    return {**lists, **known}, tuple(d for one in read.values() for d in one.diagnostics)


def _has_log(content: YamlMapping) -> bool:
    pipeline = content.get("pipeline")
    return pipeline is not None and as_mapping(pipeline).get("log") is not None
