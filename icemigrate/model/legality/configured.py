"""Rules about table properties."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import did_you_mean
from icemigrate.model import retention
from icemigrate.model.column_properties import of_columns
from icemigrate.model.legality.breach import Breach, View
from icemigrate.model.names import format_path
from icemigrate.model.reserved import instead
from icemigrate.model.table import DISTRIBUTION_PROPERTY
from icemigrate.model.types import Primitive

DISTRIBUTIONS = ("none", "hash", "range")
_AGES = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")


def no_reserved_properties(view: View) -> Iterator[Breach]:
    """No property is set that Iceberg or Spark keep for themselves (:mod:`icemigrate.model.reserved`).

    Some fail when they are set, some are ignored without a word.
    """
    old = view.before.properties if view.before else {}
    for key, _ in sorted(view.table.properties.items() - old.items()):
        hint = instead(key)
        if hint is not None:
            yield Breach("reserved-property", _subject(key), f"`{key}` cannot be set as a property", hint)


def properties_name_columns(view: View) -> Iterator[Breach]:
    """A property for a column names one that is there.

    ``MetricsConfig.validate`` refuses it when a table is made, and only then (public thread:
    apache/iceberg#13884).  One that a rename or a drop leaves behind is a warning: it does nothing.
    """
    old = view.before.properties if view.before else {}
    for key, _, name in of_columns(view.table.properties):
        if view.find(name) is not None:
            continue
        near = did_you_mean(name, view.names)
        yield Breach(
            "property-without-column",
            _subject(key),
            f"property `{key}` is for column `{name}`, which is not there",
            near or "name a column that is there, or take the property away with `null`",
            is_warning=key in old,
        )


def distribution_is_known(view: View) -> Iterator[Breach]:
    """The write distribution is one of three words (``DistributionMode`` of Iceberg)."""
    mode = view.table.properties.get(DISTRIBUTION_PROPERTY)
    if mode is not None and mode.lower() not in DISTRIBUTIONS:
        yield Breach(
            "write-distribution",
            ("write_distribution",),
            f"`{mode}` is no write distribution",
            did_you_mean(mode, DISTRIBUTIONS) or f"write one of {', '.join(DISTRIBUTIONS)}",
        )


def rows_are_retained_by_a_time(view: View) -> Iterator[Breach]:
    """Rows are retained by a date or timestamp that is there, outside lists and maps."""
    path = retention.row_column(view.table.properties)
    if path is None:
        return
    subject = ("retention", "rows", "column")
    field = view.table.schema.find(path)
    if field is None:
        yield Breach(
            "retention-column-missing",
            subject,
            f"rows are retained by `{format_path(path)}`, which is not there",
            "name another column, or write `retention: {rows: null}`",
        )
    elif not isinstance(field.type, Primitive) or field.type.name not in _AGES:
        yield Breach(
            "retention-column-type",
            subject,
            f"rows are retained by `{format_path(path)}`, which is neither a date nor a timestamp",
            "name a date or timestamp column",
        )


def _subject(key: str) -> tuple[str, ...]:
    return ("properties", key)
