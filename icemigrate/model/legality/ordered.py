"""Rules about the sort order (specification, "Sorting")."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.json_form import primitive_text
from icemigrate.model.legality.breach import Breach, View
from icemigrate.model.names import format_path
from icemigrate.model.partitioning import accepts
from icemigrate.model.types import is_nested

_SUBJECT = ("sort_by",)


def sort_sources_exist(view: View) -> Iterator[Breach]:
    """Every term of the order is of a field that is in the schema.

    A library that let such a column go left a table that nothing could read (public thread:
    apache/iceberg-python#2166); Iceberg's Java library refuses it (``SortOrder.checkCompatibility``).
    """
    for term in view.table.sort_order.fields:
        field_id = term.source_ids[0]
        if field_id not in view.fields:
            path = view.before.schema.path_of(field_id) if view.before else None
            name = "a field that is not there" if path is None else f"`{format_path(path)}`, which is dropped"
            yield Breach(
                "sort-source-missing",
                _SUBJECT,
                f"the table is sorted by {name}",
                "write `sort_by` without it in the same migration (`sort_by: []` for no order)",
            )


def sort_sources_can_be_sorted(view: View) -> Iterator[Breach]:
    """A term is of a primitive field outside lists and maps, by a transform that takes its type.

    ``SortOrder.checkCompatibility``: "Cannot sort by non-primitive source field".
    """
    for term in view.table.sort_order.fields:
        entry = view.fields.get(term.source_ids[0])
        if entry is None:
            continue
        path, type_ = format_path(entry.path), entry.field.type
        if is_nested(type_):
            what, hint = f"is a {type(type_).__name__.lower()}", "sort by one of its fields"
        elif view.in_container(entry):
            what, hint = "stands in a list or a map", "sort by a field outside lists and maps"
        elif not accepts(term.transform, type_):
            what = f"is of type {primitive_text(type_)}, which {term.transform} cannot be applied to"
            hint = "sort by the field itself, or by another one"
        else:
            continue
        yield Breach("sort-source", _SUBJECT, f"the table is sorted by `{path}`, which {what}", hint)
