"""The output formats: each entry of :data:`OUTPUT_FORMATS` has a renderer for each type of result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import escaped_json, escaped_lines
from icemigrate.redaction import redact_secrets
from icemigrate.render import json_documents as doc
from icemigrate.render.column_text import column_changes_text
from icemigrate.render.compare_text import compare_text
from icemigrate.render.describe_text import describe_text
from icemigrate.render.diff_text import diff_text
from icemigrate.render.drift_text import accept_text, drift_text
from icemigrate.render.file_text import files_text, manifests_text, partitions_text
from icemigrate.render.findings_for_ci import github_text, gitlab_text, junit_text
from icemigrate.render.findings_markdown import check_markdown, failure_markdown
from icemigrate.render.findings_sarif import sarif_text
from icemigrate.render.findings_text import check_text, failure_text
from icemigrate.render.generate_text import generate_text
from icemigrate.render.ingest_text import ingest_text
from icemigrate.render.migration_test_text import tests_junit, tests_text
from icemigrate.render.plan_markdown import plan_markdown
from icemigrate.render.plan_text import plan_text
from icemigrate.render.query_text import explanation_text
from icemigrate.render.report_texts import doctor_text, maintain_text, reset_text, rules_text
from icemigrate.render.snapshot_text import compact_text, expire_text, rollback_table_text, snapshots_text
from icemigrate.render.status_text import (
    apply_text,
    history_text,
    import_text,
    rebase_text,
    reconcile_text,
    repair_text,
    revert_text,
    rollback_text,
    squash_text,
    status_text,
    unlock_text,
)
from icemigrate.render.terminal_style import PLAIN_STYLE, TerminalStyle
from icemigrate.render.timeline_text import timeline_text
from icemigrate.render.write_text import create_table_text, insert_text, row_change_text
from icemigrate.results.column_results import ColumnChangesResult
from icemigrate.results.command_results import (
    ApplyResult,
    CheckResult,
    DoctorResult,
    Failure,
    ImportResult,
    PlanResult,
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
from icemigrate.results.drift_results import AcceptResult, DriftResult, ReconcileResult
from icemigrate.results.file_results import FilesResult, ManifestsResult, PartitionsResult
from icemigrate.results.generate_results import GenerateResult
from icemigrate.results.ingest_results import IngestResult
from icemigrate.results.maintain_results import MaintainResult
from icemigrate.results.migration_test_results import MigrationTestsResult
from icemigrate.results.query_results import QueryExplanation
from icemigrate.results.reset_results import ResetResult
from icemigrate.results.snapshot_results import CompactResult, ExpireResult, RollbackTableResult
from icemigrate.results.status_results import HistoryResult, Status, UnlockResult
from icemigrate.results.table_results import SnapshotsResult
from icemigrate.results.timeline_results import TimelineResult
from icemigrate.results.write_results import CreateTableResult, InsertResult, RowChangeResult

Renderer: TypeAlias = Callable[[Any, TerminalStyle], str]


class OutputFormat(Frozen):
    """An output format.

    :param name: as ``--format`` takes it.
    :param renderers: type of a result → its renderer.  A missing type has no such output.
    :param for_programs: whether standard output contains nothing else, and errors use this format too.
    :param for_repository: whether readers only have the repository, so that paths are relative to its root.
    """

    name: str
    renderers: Mapping[type, Renderer]
    for_programs: bool = False
    for_repository: bool = False


def _json(document: Callable[[Any], doc.Document]) -> Renderer:
    def render(value: object, _style: TerminalStyle) -> str:
        return escaped_json(json.dumps(document(value), indent=2, ensure_ascii=False)) + "\n"

    return render


def _plain(render: Callable[[Any], str]) -> Renderer:
    return lambda value, _style: render(value)


def _of_findings(
    name: str, render: Callable[[Any], str], others: Mapping[type, Renderer] | None = None
) -> OutputFormat:
    """A format in which other programs read findings.

    :param others: renderers of results without findings.
    """
    renderer = _plain(render)
    renderers = {CheckResult: renderer, **(others or {}), Failure: renderer}
    return OutputFormat(name, renderers, for_programs=True, for_repository=True)


OUTPUT_FORMATS: tuple[OutputFormat, ...] = (
    OutputFormat(
        "text",
        {
            PlanResult: plan_text,
            CheckResult: check_text,
            Status: status_text,
            HistoryResult: history_text,
            ApplyResult: apply_text,
            RollbackResult: rollback_text,
            ReconcileResult: reconcile_text,
            RevertResult: revert_text,
            ImportResult: import_text,
            DiffResult: diff_text,
            IngestResult: ingest_text,
            MigrationTestsResult: tests_text,
            RepairResult: repair_text,
            RebaseResult: rebase_text,
            SquashResult: squash_text,
            DriftResult: drift_text,
            AcceptResult: accept_text,
            MaintainResult: maintain_text,
            ResetResult: reset_text,
            UnlockResult: unlock_text,
            DoctorResult: doctor_text,
            RulesResult: rules_text,
            GenerateResult: generate_text,
            SnapshotsResult: snapshots_text,
            TimelineResult: timeline_text,
            CompareResult: compare_text,
            CompactResult: compact_text,
            ManifestsResult: manifests_text,
            PartitionsResult: partitions_text,
            FilesResult: files_text,
            DescribeResult: describe_text,
            QueryExplanation: explanation_text,
            RollbackTableResult: rollback_table_text,
            ExpireResult: expire_text,
            CreateTableResult: create_table_text,
            InsertResult: insert_text,
            RowChangeResult: row_change_text,
            ColumnChangesResult: column_changes_text,
            Failure: failure_text,
        },
    ),
    OutputFormat(
        "json",
        {
            PlanResult: _json(doc.plan_document),
            CheckResult: _json(doc.result_document),
            Status: _json(doc.result_document),
            HistoryResult: _json(doc.result_document),
            ApplyResult: _json(doc.result_document),
            RollbackResult: _json(doc.result_document),
            ReconcileResult: _json(doc.result_document),
            RevertResult: _json(doc.result_document),
            ImportResult: _json(doc.result_document),
            DiffResult: _json(doc.result_document),
            IngestResult: _json(doc.result_document),
            MigrationTestsResult: _json(doc.result_document),
            RepairResult: _json(doc.result_document),
            RebaseResult: _json(doc.result_document),
            SquashResult: _json(doc.result_document),
            DriftResult: _json(doc.result_document),
            AcceptResult: _json(doc.result_document),
            MaintainResult: _json(doc.result_document),
            ResetResult: _json(doc.result_document),
            UnlockResult: _json(doc.result_document),
            DoctorResult: _json(doc.result_document),
            RulesResult: _json(doc.result_document),
            GenerateResult: _json(doc.result_document),
            SnapshotsResult: _json(doc.result_document),
            TimelineResult: _json(doc.result_document),
            CompareResult: _json(doc.result_document),
            CompactResult: _json(doc.result_document),
            ManifestsResult: _json(doc.result_document),
            PartitionsResult: _json(doc.result_document),
            FilesResult: _json(doc.result_document),
            DescribeResult: _json(doc.result_document),
            QueryExplanation: _json(doc.result_document),
            RollbackTableResult: _json(doc.result_document),
            ExpireResult: _json(doc.result_document),
            CreateTableResult: _json(doc.result_document),
            InsertResult: _json(doc.result_document),
            RowChangeResult: _json(doc.result_document),
            ColumnChangesResult: _json(doc.result_document),
            Failure: _json(doc.result_document),
        },
        for_programs=True,
    ),
    OutputFormat(
        "markdown",
        {
            PlanResult: _plain(plan_markdown),
            CheckResult: _plain(check_markdown),
            Failure: _plain(failure_markdown),
        },
        for_repository=True,
    ),
    _of_findings("github", github_text),
    _of_findings("gitlab", gitlab_text),
    _of_findings("junit", junit_text, {MigrationTestsResult: _plain(tests_junit)}),
    _of_findings("sarif", sarif_text),
)


_OF_JSON = frozenset({"json", "gitlab", "sarif"})


def names_for(kind: type) -> tuple[str, ...]:
    """The formats that can show a kind of result, the default first."""
    return tuple(f.name for f in OUTPUT_FORMATS if kind in f.renderers)


def find_output_format(name: str) -> OutputFormat:
    """The format of a name that :func:`names_for` gave."""
    return next(f for f in OUTPUT_FORMATS if f.name == name)


def render(value: object, name: str = "text", style: TerminalStyle = PLAIN_STYLE) -> str:
    """A result in a format; ends with a line break."""
    text = find_output_format(name).renderers[type(value)](value, style)
    # Each renderer masks and escapes what it is given; this is for what one forgets.  A document of JSON has
    # been masked value by value: masking its text could break it, and a saved plan's digest.
    return escaped_lines(text if name in _OF_JSON else redact_secrets(text), painted=style.colour)
