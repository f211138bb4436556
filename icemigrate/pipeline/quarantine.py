"""The table of entries that cannot be read, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.otlp.telemetry_rows import TelemetryRow

QUARANTINE_TYPES: Mapping[str, str] = {
    "quarantined_at": "timestamptz",
    "tenant": "string",
    "kind": "string",
    "encoding": "string",
    "segment": "string",
    "offset": "long",
    "problem": "string",
    "payload": "binary",
}


def quarantine_schema() -> Schema:
    """The columns of the quarantine; the tenant is null where the bytes are no entry."""
    fields = (
        Field(number, name, Primitive(type_))
        for number, (name, type_) in enumerate(QUARANTINE_TYPES.items(), 1)
    )
    return Schema(tuple(fields))


def missing_columns(columns: Iterable[Field]) -> tuple[str, ...]:
    """The columns of the quarantine that a table lacks, or has with another type, in words."""
    types = {column.name: column.type for column in columns if not column.required}
    return tuple(
        f"`{name}` ({type_})"
        for name, type_ in QUARANTINE_TYPES.items()
        if types.get(name) != Primitive(type_)
    )


def quarantine_row(entry: Mapping[str, Any], problem: str) -> TelemetryRow:
    """The row of an entry.

    :param entry: with the columns of :data:`~icemigrate.pipeline.segment_entries.ENTRY_COLUMNS`.
    """
    kept = {name: entry[name] for name in ("tenant", "kind", "encoding", "segment", "offset", "payload")}
    return {**kept, "quarantined_at": datetime.now(timezone.utc), "problem": problem}
