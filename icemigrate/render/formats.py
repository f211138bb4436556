"""The output formats: each entry of :data:`OUTPUT_FORMATS` has a renderer for each type of result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import escaped_json, escaped_lines
from icemigrate.redaction import redact_secrets
from icemigrate.render.terminal_style import PLAIN_STYLE, TerminalStyle

Renderer: TypeAlias = Callable[..., Any]


class OutputFormat(Frozen):
    """An output format.

    :param name: as ``--format`` takes it.
    :param renderers: name of a result's type → module of this package and function, which are imported when
        such a result is shown: all of them together take 0.1 s.  A missing type has no such output.
    :param call: makes the text of a result by its renderer.
    :param for_programs: whether standard output contains nothing else, and errors use this format too.
    :param for_repository: whether readers only have the repository, so that paths are relative to its root.
    """

    name: str
    renderers: Mapping[str, str]
    call: Callable[[Renderer, Any, TerminalStyle], str]
    for_programs: bool = False
    for_repository: bool = False

    def shows(self, kind: type) -> bool:
        """Whether the format can show results of a type."""
        return kind.__name__ in self.renderers

    def text(self, value: object, style: TerminalStyle) -> str:
        """A result in this format."""
        module, _, function = self.renderers[type(value).__name__].partition(":")
        renderer: Renderer = getattr(import_module(f"icemigrate.render.{module}"), function)
        return self.call(renderer, value, style)


def _styled(render: Renderer, value: object, style: TerminalStyle) -> str:
    return str(render(value, style))


def _plain(render: Renderer, value: object, _style: TerminalStyle) -> str:
    return str(render(value))


def _json(document: Renderer, value: object, _style: TerminalStyle) -> str:
    return escaped_json(json.dumps(document(value), indent=2, ensure_ascii=False)) + "\n"


def _of_findings(name: str, renderer: str, others: Mapping[str, str] | None = None) -> OutputFormat:
    """A format in which other programs read findings.

    :param others: renderers of results without findings.
    """
    renderers = {"CheckResult": renderer, **(others or {}), "Failure": renderer}
    return OutputFormat(name, renderers, _plain, for_programs=True, for_repository=True)


_TEXT = {
    "PlanResult": "plan_text:plan_text",
    "CheckResult": "findings_text:check_text",
    "Status": "status_text:status_text",
    "HistoryResult": "status_text:history_text",
    "ApplyResult": "status_text:apply_text",
    "RollbackResult": "status_text:rollback_text",
    "ReconcileResult": "status_text:reconcile_text",
    "RevertResult": "status_text:revert_text",
    "ImportResult": "status_text:import_text",
    "DiffResult": "diff_text:diff_text",
    "AdoptionResult": "adoption_text:adoption_text",
    "IngestResult": "ingest_text:ingest_text",
    "ProposeResult": "attribute_text:propose_text",
    "IngestStatus": "ingest_status_text:ingest_status_text",
    "MigrationTestsResult": "migration_test_text:tests_text",
    "RepairResult": "status_text:repair_text",
    "RebaseResult": "status_text:rebase_text",
    "SquashResult": "status_text:squash_text",
    "DriftResult": "drift_text:drift_text",
    "AcceptResult": "drift_text:accept_text",
    "MaintainResult": "report_texts:maintain_text",
    "ResetResult": "report_texts:reset_text",
    "UnlockResult": "status_text:unlock_text",
    "DoctorResult": "report_texts:doctor_text",
    "RulesResult": "report_texts:rules_text",
    "GenerateResult": "generate_text:generate_text",
    "SnapshotsResult": "snapshot_text:snapshots_text",
    "TimelineResult": "timeline_text:timeline_text",
    "CompareResult": "compare_text:compare_text",
    "CompactResult": "snapshot_text:compact_text",
    "ManifestsResult": "file_text:manifests_text",
    "PartitionsResult": "file_text:partitions_text",
    "FilesResult": "file_text:files_text",
    "DescribeResult": "describe_text:describe_text",
    "QueryExplanation": "query_text:explanation_text",
    "RollbackTableResult": "snapshot_text:rollback_table_text",
    "ExpireResult": "snapshot_text:expire_text",
    "CreateTableResult": "write_text:create_table_text",
    "InsertResult": "write_text:insert_text",
    "RowChangeResult": "write_text:row_change_text",
    "ColumnChangesResult": "column_text:column_changes_text",
    "Failure": "findings_text:failure_text",
}
_JSON = dict.fromkeys(_TEXT, "json_documents:result_document") | {
    "PlanResult": "json_documents:plan_document"
}
_MARKDOWN = {
    "PlanResult": "plan_markdown:plan_markdown",
    "CheckResult": "findings_markdown:check_markdown",
    "Failure": "findings_markdown:failure_markdown",
}

OUTPUT_FORMATS: tuple[OutputFormat, ...] = (
    OutputFormat("text", _TEXT, _styled),
    OutputFormat("json", _JSON, _json, for_programs=True),
    OutputFormat("markdown", _MARKDOWN, _plain, for_repository=True),
    _of_findings("github", "findings_for_ci:github_text"),
    _of_findings("gitlab", "findings_for_ci:gitlab_text"),
    _of_findings(
        "junit", "findings_for_ci:junit_text", {"MigrationTestsResult": "migration_test_text:tests_junit"}
    ),
    _of_findings("sarif", "findings_sarif:sarif_text"),
)


_OF_JSON = frozenset({"json", "gitlab", "sarif"})


def names_for(kind: type) -> tuple[str, ...]:
    """The formats that can show a kind of result, the default first."""
    return tuple(f.name for f in OUTPUT_FORMATS if f.shows(kind))


def find_output_format(name: str) -> OutputFormat:
    """The format of a name that :func:`names_for` gave."""
    return next(f for f in OUTPUT_FORMATS if f.name == name)


def render(value: object, name: str = "text", style: TerminalStyle = PLAIN_STYLE) -> str:
    """A result in a format; ends with a line break."""
    text = find_output_format(name).text(value, style)
    # Each renderer masks and escapes what it is given; this is for what one forgets.  A document of JSON has
    # been masked value by value: masking its text could break it, and a saved plan's digest.
    return escaped_lines(text if name in _OF_JSON else redact_secrets(text), painted=style.colour)
