"""Results as JSON documents, as the schemas in ``schemas/`` describe them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any, TypeAlias

from icemigrate.diagnostics import Diagnostic
from icemigrate.plan_file import dump
from icemigrate.render.words import summarise
from icemigrate.results import (
    ApplyResult,
    CheckResult,
    DoctorResult,
    Failure,
    HistoryResult,
    LockStatus,
    PlanResult,
    RebaseResult,
    RepairResult,
    RevertResult,
    RollbackResult,
    SquashResult,
    Status,
    UnlockResult,
)

Document: TypeAlias = dict[str, Any]


def plan_document(result: PlanResult) -> Document:
    """The plan as :mod:`icemigrate.plan_file` saves it, so that the output can be applied; and for readers
    its numbers and what is to be said of it."""
    return {
        **dump(result.plan),
        "summary": asdict(summarise(result.plan)),
        "ready": result.ready,
        "diagnostics": _diagnostics(result.diagnostics),
    }


def check_document(result: CheckResult) -> Document:
    """``schemas/check.schema.json``."""
    return {
        "project": result.project,
        "ok": result.ok,
        "migrations": result.migrations,
        "tables": result.tables,
        "diagnostics": _diagnostics(result.diagnostics),
    }


def status_document(status: Status) -> Document:
    """``schemas/status.schema.json``."""
    return {
        "project": status.project,
        "environment": status.environment,
        "catalog": status.catalog,
        "version": status.version,
        "migrations": [
            {
                "version": m.version,
                "description": m.description,
                "state": m.state,
                "applied_at": _moment(m.applied_at),
            }
            for m in status.migrations
        ],
        "tables": [
            {
                "table": t.table,
                "name": t.name,
                "version": t.version,
                "exists": t.exists,
                "pending": list(t.pending),
                "ours": t.ours,
            }
            for t in status.tables
        ],
        "lock": _lock(status.lock),
    }


def history_document(history: HistoryResult) -> Document:
    """``schemas/history.schema.json``."""
    return {
        "project": history.project,
        "environment": history.environment,
        "entries": [
            {
                "version": e.version,
                "description": e.description,
                "standing": e.standing,
                "at": _moment(e.at),
                "by": e.by,
                "duration_ms": e.duration_ms,
                "checksum": e.checksum,
            }
            for e in history.entries
        ],
    }


def apply_document(result: ApplyResult) -> Document:
    """``schemas/apply.schema.json``."""
    return {
        "project": result.project,
        "environment": result.environment,
        "applied": list(result.applied),
        "elapsed_ms": result.elapsed_ms,
        "notes": list(result.notes),
    }


def doctor_document(result: DoctorResult) -> Document:
    """``schemas/doctor.schema.json``."""
    return {
        "project": result.project,
        "environment": result.environment,
        "ok": result.ok,
        "checkups": [asdict(c) for c in result.checkups],
        "catalog": result.catalog,
        "abilities": [asdict(a) for a in result.abilities],
    }


def unlock_document(result: UnlockResult) -> Document:
    """``schemas/unlock.schema.json``."""
    return {
        "project": result.project,
        "environment": result.environment,
        "lock": _lock(result.lock),
        "taken": result.taken,
    }


def _lock(lock: LockStatus | None) -> Document | None:
    if lock is None:
        return None
    return {
        "user": lock.user,
        "host": lock.host,
        "pid": lock.pid,
        "since": _moment(lock.since),
        "seen_at": _moment(lock.seen_at),
        "action": lock.action,
        "step": lock.step,
    }


def rollback_document(result: RollbackResult) -> Document:
    """``schemas/rollback.schema.json``."""
    return {
        "project": result.project,
        "environment": result.environment,
        "rolled_back": list(result.rolled_back),
        "elapsed_ms": result.elapsed_ms,
        "notes": list(result.notes),
    }


def revert_document(result: RevertResult) -> Document:
    """``schemas/revert.schema.json``."""
    return {"project": result.project, "path": result.path, "notes": list(result.notes)}


def repair_document(result: RepairResult) -> Document:
    """``schemas/repair.schema.json``."""
    return {
        "project": result.project,
        "environment": result.environment,
        "repaired": [asdict(r) for r in result.repaired],
    }


def rebase_document(result: RebaseResult) -> Document:
    """``schemas/rebase.schema.json``."""
    return {
        "project": result.project,
        "environment": result.environment,
        "renamed": [asdict(r) for r in result.renamed],
    }


def squash_document(result: SquashResult) -> Document:
    """``schemas/squash.schema.json``."""
    return {"project": result.project, "path": result.path, "removed": list(result.removed)}


def failure_document(failure: Failure) -> Document:
    """``schemas/error.schema.json``."""
    return {
        "error": failure.error,
        "message": failure.message,
        "hint": failure.hint,
        "exit_code": failure.exit_code,
        "diagnostics": _diagnostics(failure.diagnostics),
    }


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> list[Document]:
    return [
        {
            "code": d.code,
            "severity": d.severity.value,
            "message": d.message,
            "file": d.place.file if d.place else None,
            "line": d.place.line if d.place else None,
            "column": d.place.column if d.place else None,
            "hint": d.hint,
        }
        for d in diagnostics
    ]


def _moment(at: datetime | None) -> str | None:
    """RFC 3339 in UTC, to the millisecond."""
    if at is None:
        return None
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
