"""Random edits of a table as a whole: its properties, its format, its references."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.table import DESCRIPTION_PROPERTY, DISTRIBUTION_PROPERTY, Ref, Table
from tests.support.random_fields import Edit, Ids
from tests.support.random_tables import PROPERTIES

_AGES = (None, 86_400_000, 2_592_000_000)


def _write_distribution(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    return _with_property(draw, table, DISTRIBUTION_PROPERTY, ("none", "hash", "range"))


def _with_property(draw: st.DrawFn, table: Table, key: str, values: Iterable[str]) -> Table:
    value = draw(st.sampled_from([v for v in values if v != table.properties.get(key)]))
    return replace(table, properties={**table.properties, key: value})


def _describe_table(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    return _with_property(draw, table, DESCRIPTION_PROPERTY, (*PROPERTIES[DESCRIPTION_PROPERTY], "Else"))


def _set_property(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    return _with_property(draw, table, draw(st.sampled_from(("k", "fresh"))), ("1", "2", "", "it's: #3"))


def _unset_property(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    own = [k for k in ("k", "a.b: c") if k in table.properties]
    if not own:
        return None
    gone = draw(st.sampled_from(own))
    return replace(table, properties={k: v for k, v in table.properties.items() if k != gone})


def _upgrade_format(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if table.format_version >= 3:
        return None
    return replace(table, format_version=draw(st.integers(table.format_version + 1, 3)))


def _references(table: Table) -> dict[str, Ref]:
    return {n: r for n, r in table.refs.items() if n in ("golden", "b 1", "other")}


def _create_reference(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    free = [n for n in ("golden", "b 1", "other") if n not in table.refs]
    if not free or table.snapshot is None:
        return None
    kind = draw(st.sampled_from(("tag", "branch")))
    ref = Ref(kind, -1, draw(st.sampled_from(_AGES)))
    return replace(table, refs={**table.refs, draw(st.sampled_from(free)): ref})


def _change_reference(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if not _references(table):
        return None
    name, ref = draw(st.sampled_from(sorted(_references(table).items())))
    age = draw(st.sampled_from([a for a in _AGES if a != ref.max_ref_age_ms]))
    return replace(table, refs={**table.refs, name: replace(ref, max_ref_age_ms=age)})


def _drop_reference(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if not _references(table):
        return None
    gone = draw(st.sampled_from(sorted(_references(table))))
    return replace(table, refs={n: r for n, r in table.refs.items() if n != gone})


EDITS: dict[str, Edit] = {
    "write_distribution": _write_distribution,
    "describe_table": _describe_table,
    "set_property": _set_property,
    "unset_property": _unset_property,
    "upgrade_format": _upgrade_format,
    "create_reference": _create_reference,
    "change_reference": _change_reference,
    "drop_reference": _drop_reference,
}
"""By the kind of change that each leads to; more may come of it."""
