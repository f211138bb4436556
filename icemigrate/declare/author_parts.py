"""Parts of a table entry, written: columns, terms, retention, references.  The inverse of the fold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from icemigrate.declare.terms import format_partition
from icemigrate.model import retention
from icemigrate.model.names import Path, quote_name
from icemigrate.model.partitioning import PartitionSpec, default_name
from icemigrate.model.sorting import SortOrder
from icemigrate.model.table import Ref
from icemigrate.model.terms import SortTerm
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field, List, Map, Struct, Type, is_nested, walk

TEXT_LIMIT = 70
"""A nested type longer than so many characters is written in YAML."""
DISTRIBUTIONS = ("none", "hash", "range")
MAX_KEPT = 1_000_000
_DURATION = re.compile(r"[1-9][0-9]{0,5}[smhdw]")

Entry = dict[str, Any]
"""A mapping as it stands in YAML."""


def column(field: Field, name: str | None = None) -> Entry:
    """A new column, or a new field below one, with all that is not the default.

    A default is one value in a declaration; where the initial one differs from the writers', that is
    the one that is written.
    """
    out: Entry = {"name": quote_name(field.name) if name is None else name, **type_keys(field.type)}
    if field.required:
        out["required"] = True
    if field.write_default is not None:
        out["default"] = field.write_default
    if field.doc is not None:
        out["description"] = field.doc
    return out


def type_keys(type_: Type) -> Entry:
    """A type as the keys of a column: ``type``, or for a long or described one ``fields``, ``element``, …"""
    text = format_type(type_)
    inside = [f for _, f in walk(type_)]
    plain = all(f.doc is None and f.initial_default is None and f.write_default is None for f in inside)
    if not is_nested(type_) or (plain and len(text) <= TEXT_LIMIT) or type_ == Struct(()):
        return {"type": text}
    if isinstance(type_, Struct):
        return {"fields": [column(f) for f in type_.fields]}
    if isinstance(type_, List):
        return {"element": _part(type_.element)}
    assert isinstance(type_, Map)
    return {"key": _part(type_.key), "value": _part(type_.value)}


def _part(field: Field) -> Entry | str:
    keys = type_keys(field.type)
    if field.required and field.name != "key":
        keys["required"] = True
    return str(keys["type"]) if list(keys) == ["type"] else keys


def partition_terms(
    spec: PartitionSpec, paths: Mapping[int, Path], known: Mapping[Any, str] | None = None
) -> list[str]:
    """The live fields as terms; a name that goes without saying is left out.

    :param paths: of the fields, by id; a term whose source is gone cannot be written and is left out.
    :param known: names of the terms that are there already, by sources and transform.
    """
    out = []
    for f in spec.live:
        path = paths.get(f.source_ids[0])
        if path is None or len(f.source_ids) > 1:
            continue
        named = (known or {}).get((f.source_ids, f.transform), f.name)
        unsaid = f.name == named == default_name(path, f.transform)
        out.append(format_partition(path, f.transform, None if unsaid else f.name))
    return out


def sort_terms(order: SortOrder, paths: Mapping[int, Path]) -> list[str]:
    """The fields as terms; one whose source is gone is left out."""
    return [
        str(SortTerm(paths[f.source_ids[0]], f.transform, f.direction, f.null_order))
        for f in order.fields
        if f.source_ids[0] in paths and len(f.source_ids) == 1
    ]


def sayable_retention(properties: Mapping[str, str]) -> dict[str, dict[str, str | int]]:
    """The retention that properties say, as far as a declaration can say just that."""
    said = retention.from_properties(properties)
    snapshots = {
        key: value
        for key, value in said.get("snapshots", {}).items()
        if _says(properties, {"snapshots": {key: value}}) and _fits(value)
    }
    rows = said.get("rows", {})
    out: dict[str, dict[str, str | int]] = {"snapshots": snapshots} if snapshots else {}
    if rows and _says(properties, {"rows": rows}) and _fits(rows["max_age"]) and rows["column"]:
        out["rows"] = rows
    return out


def _says(properties: Mapping[str, str], said: Mapping[str, Any]) -> bool:
    return all(properties.get(key) == value for key, value in retention.to_properties(said).items())


def _fits(value: str | int) -> bool:
    if isinstance(value, int):
        return 1 <= value <= MAX_KEPT
    return _DURATION.fullmatch(value) is not None


def references(refs: Mapping[str, Ref], kind: str) -> dict[str, Entry]:
    """The branches or the tags; ages that no duration can say are left out."""
    return {name: _reference(ref) for name, ref in refs.items() if ref.kind == kind}


def is_sayable(ref: Ref) -> bool:
    """Whether a file can say how long a branch or a tag is kept, so that it can be made anew.

    Spark SQL has no words for less than minutes.
    """
    ages = [ms for ms in (ref.max_ref_age_ms, ref.max_snapshot_age_ms) if ms is not None]
    kept = ref.min_snapshots_to_keep
    is_kept = kept is None or _fits(kept)
    return is_kept and all(
        ms % retention.MINUTE_MS == 0 and _fits(retention.format_duration(ms)) for ms in ages
    )


def _reference(ref: Ref) -> Entry:
    snapshots: Entry = {}
    _say_age(snapshots, ref.max_snapshot_age_ms)
    if ref.min_snapshots_to_keep is not None:
        snapshots["keep_at_least"] = ref.min_snapshots_to_keep
    out: Entry = {}
    _say_age(out, ref.max_ref_age_ms)
    if snapshots:
        out["snapshots"] = snapshots
    return {"retention": out} if out else {}


def _say_age(out: Entry, ms: int | None) -> None:
    text = "" if ms is None else retention.format_duration(ms)
    if _fits(text):
        out["max_age"] = text


def longest_increasing(numbers: Iterable[int]) -> set[int]:
    """The members of a longest increasing subsequence: what need not move when the others do."""
    numbers = list(numbers)
    best: list[tuple[int, int | None]] = []
    for i, n in enumerate(numbers):
        before = max((j for j in range(i) if numbers[j] < n), key=lambda j: (best[j][0], -j), default=None)
        best.append((1 if before is None else best[before][0] + 1, before))
    at = max(range(len(best)), key=lambda i: (best[i][0], -i), default=None)
    kept: set[int] = set()
    while at is not None:
        kept.add(numbers[at])
        at = best[at][1]
    return kept
