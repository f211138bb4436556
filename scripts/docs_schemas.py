"""The JSON schemas of what commands print, made from the classes in ``icemigrate/results``."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import Frozen
from icemigrate.render.json_documents import COMPUTED_FIELDS, FIELDS_FOR_PEOPLE
from icemigrate.results.adoption_results import AdoptionResult
from icemigrate.results.attribute_results import ProposeResult
from icemigrate.results.column_results import ColumnChangesResult
from icemigrate.results.command_results import (
    ApplyResult,
    CheckResult,
    DoctorResult,
    Failure,
    ImportResult,
    RebaseResult,
    RepairResult,
    RevertResult,
    RollbackResult,
    RulesResult,
    SquashResult,
)
from icemigrate.results.compare_results import CompareResult
from icemigrate.results.describe_results import DescribeResult
from icemigrate.results.diff_results import DiffResult
from icemigrate.results.document_types import DiagnosticDocument
from icemigrate.results.drift_results import AcceptResult, DriftResult, ReconcileResult
from icemigrate.results.file_results import FilesResult, ManifestsResult, PartitionsResult
from icemigrate.results.generate_results import GenerateResult
from icemigrate.results.ingest_results import IngestResult
from icemigrate.results.ingest_status_results import IngestStatus
from icemigrate.results.maintain_results import MaintainResult
from icemigrate.results.migration_test_results import MigrationTestsResult
from icemigrate.results.query_results import QueryExplanation
from icemigrate.results.reset_results import ResetResult
from icemigrate.results.snapshot_results import CompactResult, ExpireResult, RollbackTableResult
from icemigrate.results.status_results import HistoryResult, Status, UnlockResult
from icemigrate.results.table_results import SnapshotsResult
from icemigrate.results.timeline_results import TimelineResult
from icemigrate.results.write_results import CreateTableResult, InsertResult, RowChangeResult

Schema: TypeAlias = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
RESULTS: dict[str, tuple[type[Frozen], str]] = {
    "adopt-parquet": (AdoptionResult, "adopt-parquet"),
    "apply": (ApplyResult, "apply"),
    "check": (CheckResult, "check"),
    "diff": (DiffResult, "diff"),
    "doctor": (DoctorResult, "doctor"),
    "drift": (DriftResult, "drift"),
    "drift-accept": (AcceptResult, "drift --accept"),
    "generate": (GenerateResult, "generate"),
    "history": (HistoryResult, "history"),
    "import": (ImportResult, "import"),
    "ingest": (IngestResult, "ingest"),
    "ingest-propose": (ProposeResult, "ingest propose"),
    "ingest-status": (IngestStatus, "ingest status"),
    "maintain": (MaintainResult, "maintain"),
    "rebase": (RebaseResult, "rebase"),
    "reconcile": (ReconcileResult, "apply --reconcile"),
    "repair": (RepairResult, "repair"),
    "reset": (ResetResult, "reset"),
    "revert": (RevertResult, "revert"),
    "rollback": (RollbackResult, "rollback"),
    "rules": (RulesResult, "rules"),
    "squash": (SquashResult, "squash"),
    "status": (Status, "status"),
    "table-create": (CreateTableResult, "table create"),
    "table-insert": (InsertResult, "table insert"),
    "table-row-changes": (RowChangeResult, "table update"),
    "table-expire": (ExpireResult, "table expire"),
    "table-rollback": (RollbackTableResult, "table rollback"),
    "table-columns": (ColumnChangesResult, "table add-column"),
    "table-describe": (DescribeResult, "table describe"),
    "table-files": (FilesResult, "table files"),
    "table-partitions": (PartitionsResult, "table partitions"),
    "table-manifests": (ManifestsResult, "table manifests"),
    "table-compact": (CompactResult, "table compact"),
    "table-query": (QueryExplanation, "table query --explain"),
    "table-compare": (CompareResult, "table compare"),
    "table-history": (TimelineResult, "table history"),
    "table-snapshots": (SnapshotsResult, "table snapshots"),
    "test": (MigrationTestsResult, "test"),
    "unlock": (UnlockResult, "unlock"),
}
"""By the name of the schema: the result, and the command that prints it."""
_FAILURE = "What a command with `--format json` prints if it fails."
_ELSEWHERE = {
    "project": "Name of the project.",
    "environment": "Name of the environment.",
    "notes": "Notes, each a sentence.",
    "version": "The digits at the start of the file's name.",
    "elapsed_ms": "From the first statement to the last record, in milliseconds.",
    "duration_ms": "In milliseconds.",
    "user": "The user.",
    "host": "The host.",
}
"""Descriptions of fields that mean the same in every class."""


def result_schemas() -> dict[str, str]:
    """The text of each schema file, by the file's name."""
    found = {
        name: _document(name, kind, f"What `icemigrate {command} --format json` prints.")
        for name, (kind, command) in RESULTS.items()
    }
    found["error"] = _document("error", Failure, _FAILURE)
    return {f"{n}.schema.json": json.dumps(s, indent=2, ensure_ascii=False) + "\n" for n, s in found.items()}


def _document(name: str, kind: type[Frozen], description: str) -> Schema:
    _, parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    kinds = {one.__name__: one for one in _kinds(kind)}
    parts = {key: _object(kinds[key], parts) for key in kinds}
    own = parts.pop(kind.__name__)
    document = {
        "$schema": _DIALECT,
        "$id": f"urn:icemigrate:schema:{name}",
        **own,
        "description": description,
    }
    return {**document, "$defs": parts} if parts else document


def _kinds(kind: type[Frozen]) -> Iterator[type[Frozen]]:
    """The class, and those of its fields; a diagnostic has a document of its own."""
    if kind is Diagnostic:
        kind = DiagnosticDocument
    yield kind
    for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        if field.name not in _hidden(kind):
            yield from (one for found in _structs(field.type) for one in _kinds(found))


def _structs(info: Any) -> Iterator[type[Frozen]]:
    if isinstance(info, msgspec.inspect.StructType):
        yield info.cls
    for inner in getattr(info, "types", ()) or filter(None, (getattr(info, "item_type", None),)):
        yield from _structs(inner)


def _hidden(kind: type) -> tuple[str, ...]:
    return FIELDS_FOR_PEOPLE.get(kind, ())


def _object(kind: type[Frozen], parts: dict[str, Schema]) -> Schema:
    summary, texts = _documentation(kind)
    made = parts.get(kind.__name__) or msgspec.json.schema(kind)["$defs"][kind.__name__]
    properties: Schema = {}
    for name, schema in made["properties"].items():
        if name not in _hidden(kind):
            text = texts.get(name) or _ELSEWHERE.get(name)
            assert text, f"the docstring of {kind.__name__} has no `:param {name}:`"
            properties[name] = {
                "description": text,
                **_plain(schema, "datetime" in str(kind.__annotations__[name])),
            }
    for name in COMPUTED_FIELDS.get(kind, ()):
        text = _sentence(inspect.getdoc(getattr(kind, name)) or "")
        properties[name] = {"description": text, "type": "boolean"}
    return {
        "title": re.sub(r"(?<=[a-z])([A-Z])", lambda m: f" {m[1].lower()}", kind.__name__),
        "description": summary,
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _plain(schema: Schema, is_time: bool) -> Schema:
    """A field's schema: without a default, and with one list of types for a simple value or `null`."""
    found = {key: value for key, value in schema.items() if key != "default"}
    if "$ref" in found and found["$ref"].endswith("/Diagnostic"):
        return {"$ref": f"#/$defs/{DiagnosticDocument.__name__}"}
    if "items" in found:
        found["items"] = _plain(found["items"], False)
    if "anyOf" in found:
        branches = [_plain(one, False) for one in found.pop("anyOf")]
        limited = [one for one in branches if one.keys() != {"type"}]
        if len(limited) <= 1 and all("type" in one for one in branches):
            found |= {**(limited[0] if limited else {}), "type": [one["type"] for one in branches]}
        else:
            found["anyOf"] = branches
    elif "enum" in found and "type" not in found:
        found = {"type": "string", **found}
    return {**found, "format": "date-time"} if is_time else found


def _documentation(kind: type) -> tuple[str, dict[str, str]]:
    """The summary of a class, and the text of each parameter."""
    summary, *parts = re.split(r"^:param (\w+): ", inspect.getdoc(kind) or "", flags=re.M)
    texts = {name: _sentence(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    return _sentence(summary.split("\n\n")[0]), texts


def _sentence(text: str) -> str:
    """Text of a docstring as a sentence."""
    text = " ".join(text.split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?[\w.]*?(\w+)`", r"`\1`", text).replace("``", "`").replace("`None`", "`null`")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
