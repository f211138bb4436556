"""Results as JSON documents, as the schemas in ``schemas/`` describe them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeAlias

from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import Frozen
from icemigrate.planning.plan_file import mask_plan_document, plan_to_json, with_digest
from icemigrate.redaction import redact_document
from icemigrate.render.phrases import summarise_plan
from icemigrate.results.command_results import (
    ApplyResult,
    CheckResult,
    DoctorResult,
    PlanResult,
    RepairResult,
)
from icemigrate.results.describe_results import DescribeResult
from icemigrate.results.drift_results import DriftResult
from icemigrate.results.status_results import LockStatus, MigrationStatus, Status
from icemigrate.results.table_results import SnapshotsResult

Document: TypeAlias = dict[str, Any]

FIELDS_FOR_PEOPLE: Mapping[type, tuple[str, ...]] = {
    ApplyResult: ("is_baseline", "to", "beyond", "held", "held_gone", "held_edited"),
    CheckResult: ("older", "older_base"),
    DescribeResult: ("is_plot",),
    DriftResult: ("resolutions",),
    LockStatus: ("words",),
    MigrationStatus: ("is_other_file",),
    RepairResult: ("action",),
    SnapshotsResult: ("is_graph",),
    Status: ("hidden_losses",),
}
"""Fields that no document has: texts for people are made of them."""
COMPUTED_FIELDS: Mapping[type, tuple[str, ...]] = {
    CheckResult: ("ok",),
    DoctorResult: ("ok",),
    DriftResult: ("drifted",),
}
"""Properties that documents have beside the fields."""


def plan_document(result: PlanResult) -> Document:
    """The plan as :mod:`icemigrate.planning.plan_file` saves it, with counts and notes for readers.

    So the output can be applied.
    """
    document: Document = {
        **mask_plan_document(plan_to_json(result.plan)),
        "summary": _plain(summarise_plan(result.plan)),
        "ready": result.ready,
        "diagnostics": redact_document([_diagnostic(d) for d in result.diagnostics]),
    }
    if result.old_partition_tables:
        # Named otherwise than the field: the key is kept for compatibility.
        document["lying_old"] = _plain(result.old_partition_tables)
    if result.table_by_table:
        document["table_by_table"] = redact_document(_plain(result.table_by_table))
    return with_digest(document)


def result_document(result: object) -> Document:
    """A result by the names of its fields, as the schema of its command describes it."""
    document: Document = redact_document(_plain(result))
    return document | {name: getattr(result, name) for name in COMPUTED_FIELDS.get(type(result), ())}


def _plain(value: Any) -> Any:
    """A value as JSON; fields for text output only are left out."""
    if isinstance(value, Diagnostic):
        return _diagnostic(value)
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Frozen):
        names = value.__struct_fields__
        return {name: _plain(getattr(value, name)) for name in names if _is_in_document(value, name)}
    return value


def _is_in_document(value: object, name: str) -> bool:
    return name not in FIELDS_FOR_PEOPLE.get(type(value), ())


def _diagnostic(diagnostic: Diagnostic) -> Document:
    place = diagnostic.place
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "hint": diagnostic.hint,
    }


def _moment(at: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
