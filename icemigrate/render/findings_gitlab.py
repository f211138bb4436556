"""Findings as GitLab's code quality report, which a merge request shows beside the lines.

(https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format)
"""

from __future__ import annotations

import json

from icemigrate.diagnostics import Severity
from icemigrate.hidden_characters import escaped_json
from icemigrate.redaction import redact_document
from icemigrate.render.places import findings_of
from icemigrate.results import CheckResult, Failure

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab_text(result: CheckResult | Failure) -> str:
    """A list; GitLab tells new findings from old ones by their fingerprints."""
    document = [
        {
            "description": finding.text,
            "check_name": finding.code,
            "fingerprint": finding.fingerprint,
            "severity": _SEVERITIES[finding.severity],
            "location": {"path": finding.place.file, "lines": {"begin": finding.place.line}},
        }
        for finding in findings_of(result)
    ]
    return escaped_json(json.dumps(redact_document(document), indent=2, ensure_ascii=False)) + "\n"
