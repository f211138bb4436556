"""Results as JSON documents, as the schemas in ``schemas/`` describe them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeAlias

from icemigrate.diagnostics import Diagnostic
from icemigrate.drift.results import DriftResult
from icemigrate.frozen import Frozen
from icemigrate.plan_file import dump, masked, with_digest
from icemigrate.redaction import redact_document
from icemigrate.render.words import summarise
from icemigrate.results import ApplyResult, CheckResult, DoctorResult, PlanResult
from icemigrate.status_results import LockStatus

Document: TypeAlias = dict[str, Any]

_FOR_PEOPLE: Mapping[type, tuple[str, ...]] = {
    ApplyResult: ("is_baseline", "to", "beyond", "held", "held_gone", "held_edited"),
    CheckResult: ("older", "older_base"),
    LockStatus: ("words",),
}
"""Fields that no document has: texts for people are made of them."""


def plan_document(result: PlanResult) -> Document:
    """The plan as :mod:`icemigrate.plan_file` saves it, so that the output can be applied; and for readers
    its numbers and what is to be said of it."""
    document: Document = {
        **masked(dump(result.plan)),
        "summary": _plain(summarise(result.plan)),
        "ready": result.ready,
        "diagnostics": redact_document([_diagnostic(d) for d in result.diagnostics]),
    }
    if result.lying_old:
        document["lying_old"] = _plain(result.lying_old)
    return with_digest(document)


def result_document(result: object) -> Document:
    """A result by the names of its fields, as the schema of its command describes it."""
    document: Document = redact_document(_plain(result))
    if isinstance(result, (CheckResult, DoctorResult)):
        document["ok"] = result.ok
    if isinstance(result, DriftResult):
        document["drifted"] = result.drifted
    return document


def _plain(value: Any) -> Any:
    """A value as JSON has it; what is only for the texts that people read is left out."""
    if isinstance(value, Diagnostic):
        return _diagnostic(value)
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Frozen):
        names = value.__struct_fields__
        return {name: _plain(getattr(value, name)) for name in names if _is_told(value, name)}
    return value


def _is_told(value: object, name: str) -> bool:
    return all(name not in names for kind, names in _FOR_PEOPLE.items() if isinstance(value, kind))


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
