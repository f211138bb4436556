"""Differences of two declared tables as text, limited to what a declaration can express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.files.write.entry_parts import with_pins
from icemigrate.files.write.migration_entries import creation_entry
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table

_NAMED = ("columns", "fields")
ABSENT = "(absent)"


def declared_differences(
    old: Table | None,
    new: Table | None,
    words: tuple[str, str],
    *,
    ordered: bool = True,
    only: tuple[str, str] | None = None,
) -> tuple[str, ...]:
    """The differences of two declared tables, without field ids; see also :func:`other_fields`.

    :param words: names of the two sides, e.g. ``("applied", "file")``.
    :param ordered: whether the order of fields counts.
    :param only: texts for a table that only one side has; by default ``only`` and the name of the side.
    """
    if old is None and new is None:
        return ()
    one, other = (None if t is None else with_pins(creation_entry(t), t) for t in (old, new))
    name = str((old or new).name)  # type: ignore[union-attr]
    if one is None or other is None:
        texts = only or (f"only {words[0]}", f"only {words[1]}")
        return (f"{name}: {texts[0] if other is None else texts[1]}",)
    found = _between(_keyed(one, ordered), _keyed(other, ordered), ())
    return tuple(f"{name}: {_path(p)}: {words[0]} {_shown(a)}, {words[1]} {_shown(b)}" for p, a, b in found)


def other_fields(before: Table | None, old: Table, new: Table) -> tuple[str, ...]:
    """Fields of one name that one side keeps from ``before`` and the other creates or takes from another
    field.

    Such a difference is a rename that became a drop and an addition.

    :param old: with the ids of the catalog.
    :param new: the result of replay on ``before``; new fields have negative ids.
    """
    kept = set() if before is None else {f.id for _, f in before.schema.walk()}
    kept |= set() if before is None else {i for d in before.dropped for i in (d.field.id,)}
    ids = {entry.path: i for i, entry in schema_index(old.schema).items()}
    found = []
    for field_id, entry in schema_index(new.schema).items():
        was = ids.get(entry.path)
        if was is None:
            continue
        same = was == field_id if was in kept or field_id in kept else True
        if not same:
            found.append(f"{new.name}: columns.{'.'.join(entry.path)} is another field, with other values")
    return tuple(found)


def _keyed(value: Any, ordered: bool) -> Any:
    """Convert lists of columns to mappings by name, so that a moved column is one difference."""
    if not isinstance(value, Mapping):
        return value
    out: dict[str, Any] = {}
    for key, one in value.items():
        if key in _NAMED:
            out[key] = {c["name"]: _keyed({k: v for k, v in c.items() if k != "name"}, ordered) for c in one}
            if ordered:
                out[f"order of {key}"] = [c["name"] for c in one]
        else:
            out[key] = _keyed(one, ordered)
    return out


def _between(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            if key.startswith("order of ") and {*old.get(key, ())} != {*new.get(key, ())}:
                continue  # the columns themselves differ
            yield from _between(old.get(key, ABSENT), new.get(key, ABSENT), (*path, key))
    elif old != new:
        yield path, old, new


def _path(path: tuple[str, ...]) -> str:
    return ".".join(path)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items()) or "nothing"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)
