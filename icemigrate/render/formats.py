"""The output formats: each one entry of :data:`FORMATS`, which says how it shows each kind of result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from icemigrate.drift.results import AcceptResult, DriftResult, ReconcileResult
from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import escaped_json, escaped_lines
from icemigrate.model.imported import ImportResult
from icemigrate.model.upkeep import MaintainResult
from icemigrate.redaction import redact
from icemigrate.render import documents as doc
from icemigrate.render.doctor_text import doctor_text
from icemigrate.render.drift_text import accept_text, drift_text
from icemigrate.render.findings_github import github_text
from icemigrate.render.findings_gitlab import gitlab_text
from icemigrate.render.findings_junit import junit_text
from icemigrate.render.findings_markdown import check_markdown, failure_markdown
from icemigrate.render.findings_sarif import sarif_text
from icemigrate.render.findings_text import check_text, failure_text
from icemigrate.render.maintain_text import maintain_text
from icemigrate.render.plan_markdown import plan_markdown
from icemigrate.render.plan_text import plan_text
from icemigrate.render.rules_text import rules_text
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
from icemigrate.render.style import PLAIN, Style
from icemigrate.results import (
    ApplyResult,
    CheckResult,
    DoctorResult,
    Failure,
    PlanResult,
    RebaseResult,
    RepairResult,
    RevertResult,
    RollbackResult,
    SquashResult,
)
from icemigrate.rule_results import RulesResult
from icemigrate.status_results import HistoryResult, Status, UnlockResult

Renderer: TypeAlias = Callable[[Any, Style], str]


class Format(Frozen):
    """An output format.

    :param name: as ``--format`` takes it.
    :param renderers: type of a result → its text.  A type that is missing has no such output.
    :param for_programs: standard output holds nothing else, and failures go there in this format too.
    :param for_repository: read by whoever knows the repository alone, so paths begin at its top.
    """

    name: str
    renderers: Mapping[type, Renderer]
    for_programs: bool = False
    for_repository: bool = False


def _json(document: Callable[[Any], doc.Document]) -> Renderer:
    def render(value: object, _style: Style) -> str:
        return escaped_json(json.dumps(document(value), indent=2, ensure_ascii=False)) + "\n"

    return render


def _plain(render: Callable[[Any], str]) -> Renderer:
    return lambda value, _style: render(value)


def _of_findings(name: str, render: Callable[[Any], str]) -> Format:
    """A format in which other programs read findings."""
    renderer = _plain(render)
    return Format(name, {CheckResult: renderer, Failure: renderer}, for_programs=True, for_repository=True)


FORMATS: tuple[Format, ...] = (
    Format(
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
            RepairResult: repair_text,
            RebaseResult: rebase_text,
            SquashResult: squash_text,
            DriftResult: drift_text,
            AcceptResult: accept_text,
            MaintainResult: maintain_text,
            UnlockResult: unlock_text,
            DoctorResult: doctor_text,
            RulesResult: rules_text,
            Failure: failure_text,
        },
    ),
    Format(
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
            RepairResult: _json(doc.result_document),
            RebaseResult: _json(doc.result_document),
            SquashResult: _json(doc.result_document),
            DriftResult: _json(doc.result_document),
            AcceptResult: _json(doc.result_document),
            MaintainResult: _json(doc.result_document),
            UnlockResult: _json(doc.result_document),
            DoctorResult: _json(doc.result_document),
            RulesResult: _json(doc.result_document),
            Failure: _json(doc.result_document),
        },
        for_programs=True,
    ),
    Format(
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
    _of_findings("junit", junit_text),
    _of_findings("sarif", sarif_text),
)


_OF_JSON = frozenset({"json", "gitlab", "sarif"})


def names_for(kind: type) -> tuple[str, ...]:
    """The formats that can show a kind of result, the default first."""
    return tuple(f.name for f in FORMATS if kind in f.renderers)


def format_named(name: str) -> Format:
    """The format of a name that :func:`names_for` gave."""
    return next(f for f in FORMATS if f.name == name)


def render(value: object, name: str = "text", style: Style = PLAIN) -> str:
    """A result in a format; ends with a line break."""
    text = format_named(name).renderers[type(value)](value, style)
    # Each renderer masks and escapes what it is given; this is for what one forgets.  A document of JSON has
    # been masked value by value: masking its text could break it, and a saved plan's digest.
    return escaped_lines(text if name in _OF_JSON else redact(text), painted=style.colour)
