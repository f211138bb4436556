"""``lists:`` of the project file: values, or where the values come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlSequence
from icemigrate.files.read.for_each import Lists
from icemigrate.files.read.list_sources import ListSource
from icemigrate.files.read.node_values import as_mapping, list_items, mapping_entries, scalar_text

SEEN: Literal["seen"] = "seen"
"""The list of the tenants that appear in the log; every project with a log has one of this name."""


def list_mistakes(content: YamlMapping) -> Iterator[Diagnostic]:
    """Errors of ``lists`` that the schema allows."""
    if _has_log(content):
        return
    for key, value in mapping_entries(content.get("lists")):
        if scalar_text(value) == SEEN:
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
            found[key.text] = ListSource(SEEN, SEEN)
    return found


def _has_log(content: YamlMapping) -> bool:
    pipeline = content.get("pipeline")
    return pipeline is not None and as_mapping(pipeline).get("log") is not None
